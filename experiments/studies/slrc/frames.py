"""A finished (or running) run as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.analysis.records import Place, Record, has_tokens
from faithscope.experiments.engine.folder import read_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import read_records
from faithscope.experiments.engine.units import API_REPLIES
from faithscope.experiments.studies.slrc.config import RunConfig

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from faithscope.experiments.studies.slrc.measures.slice import Frame

_BASE = ("model", "task", "item")
_TRACE = ("question", "gold", "reasoning", "answer", "correct")
_TRACE += ("unit", "n_steps", "n_tokens", "finish", "excluded")
_REPLY = ("user", "system", "outcome", "text", "thinking", "problem", "input_tokens")
_REPLY += ("output_tokens", "reasoning_tokens", "served")


def _frames() -> dict[str, tuple[str, Frame]]:
    """Name -> probe and frame. Not at the top: with slices come all libraries of figures."""
    from faithscope.experiments.studies.slrc.measures import SLICES

    return {frame.name: (s.probe, frame) for s in SLICES.values() for frame in s.frames}


@dataclass(frozen=True)
class Run:
    """One run folder; its frames are read when first asked for.

    Beside those below, every measure has frames of its own: `items`, `steps` and `branches` of
    SLRC, and one by the name of each probe. `frames` names them all.
    """

    path: Path

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> pd.DataFrame: ...
    else:

        def __getattr__(self, name):
            found = {} if name.startswith("_") else _frames()
            if name not in found:
                raise AttributeError(
                    f"a run has no frame {name!r}"
                    + (f"; it has {', '.join(self.frames)}" if found else "")
                )
            probe, frame = found[name]
            rows = [
                _base(r) | dict(row)
                for r in read_records(self.path, probe)
                for row in frame.rows(r)
            ]
            self.__dict__[name] = made = _frame((*_BASE, *frame.columns), rows)
            return made

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_frames()})

    @property
    def frames(self) -> dict[str, str]:
        """Name -> what its rows are, of every frame."""
        own = {n: getattr(Run, n).__doc__ for n in ("traces", "api_replies", "measures")}
        return own | {name: frame.meaning for name, (_, frame) in _frames().items()}

    @cached_property
    def config(self) -> RunConfig:
        return read_config(self.path, RunConfig)

    @cached_property
    def traces(self) -> pd.DataFrame:
        """A row per trace: question, reasoning, answer, and why it is excluded if it is."""
        return _frame(
            (*_BASE, *_TRACE),
            [_trace_row(r) for r in read_records(self.path, "trace")],
        )

    @cached_property
    def api_replies(self) -> pd.DataFrame:
        """A row per message that a model behind an API was sent about a trace: the reply, as it
        came, and how it ended."""
        units = sorted(Index.of(self.path).each((API_REPLIES,)), key=lambda u: u.key)
        found = [r for u in units for r in u.records]
        return _frame((*_BASE, *_REPLY), found)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """A row per item and measure: its score, and its cost."""
        from faithscope.experiments.studies.slrc.tables.measures import PROBES_READ, all_scores

        return all_scores(r for probe in PROBES_READ for r in read_records(self.path, probe))

    def arrays(self, probe: str) -> Iterator[tuple[Place, dict[str, np.ndarray]]]:
        """(model, task, item) and its raw numbers by name, of each item that the probe did.

        One item is in memory at a time. `arrays/<probe>.safetensors` in the run folder, which
        is written with the tables, holds the same in one file.
        """
        from faithscope.experiments.engine.arrays import each

        for (_, model, task, item), found in each(counted(self.path), probe):
            yield (model, task, item), found


def _frame(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def _base(record: Record) -> dict[str, Any]:
    base = {"model": record["model"], "task": record["task"], "item": record["item"]}
    return base | {k: record[k] for k in ("framing", "reading") if k in record}


def _trace_row(record: dict[str, Any]) -> dict[str, Any]:
    question = record["question"]
    return _base(record) | {
        "question": question["text"],
        "gold": question["gold"],
        "reasoning": "".join(record["pieces"]),
        "n_steps": sum(s["counted"] for s in record["steps"]),
        "n_tokens": len(record["reasoning_ids"]) if has_tokens(record) else None,
        **{k: record.get(k) for k in ("answer", "correct", "unit", "finish", "excluded")},
    }
