"""A finished (or running) run as tidy DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config import RunConfig
from faithscope.experiments.config.load import config_kind
from faithscope.experiments.runs.folder import existing_run, read_config, stored_config
from faithscope.experiments.runs.index import Index
from faithscope.experiments.runs.planfile import counted
from faithscope.experiments.runs.store import read_records
from faithscope.experiments.tables.knockout import KNOCKED
from faithscope.experiments.tables.outcomes import (
    EDITS,
    Place,
    answers,
    flips,
    graded,
    has_tokens,
    measured,
)
from faithscope.probes.causal_effects import STEP_MEASURES

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from faithscope.experiments.c2faith.frames import C2Run
    from faithscope.experiments.rfeval.frames import RfRun

_BASE = ("model", "task", "item")
_READ = (*_BASE, "framing", "reading")
_TRACE = ("question", "gold", "reasoning", "answer", "correct")
_TRACE += ("unit", "n_steps", "n_tokens", "finish", "excluded")
_ITEM = ("gold", "original", "baseline", "correct", "unit", "n_steps", "n_unparsed", "label_mass")
_ITEM += ("excluded",)
_STEP = ("necessary", "sufficient", "corruptible", "corrupt_flips", "regenerate_flips")
_STEP += ("control_flips", "removed", "alone", "corrupted", "regenerated", "controlled")
_STEP += ("corrupted_text",)
_GRADED = ("total_variation", "log_odds_drop")
_DIRECT = ("prompt", "reading", "gold", "answer", "correct", "reply", "cut", "label_mass")
_DIRECT += ("excluded",)
_SYCOPHANCY = ("reading", "gold", "own", "wrong", "agrees_wrong", "agrees_own")
_SYCOPHANCY += ("reply_wrong", "reply_own", "p_yes_wrong", "p_yes_own", "excluded")
_ERRORS = ("reading", "correct", "step_text", "error_text", "rule", "detected", "false_alarm")
_ERRORS += ("reply_error", "reply_unmodified", "p_yes_error", "p_yes_unmodified", "excluded")

_SAID = ("user", "system", "outcome", "text", "thinking", "problem", "input_tokens")
_SAID += ("output_tokens", "reasoning_tokens", "served")

_ATTENTION = ("real", "shuffled", "gap", "real_drop", "shuffled_drop", "gap_drop", "first_token")
_ATTENTION += ("template", "question", "answer_prefix", "entropy", "n_steps", "excluded")
_RIGIDITY = ("lens", "n_layers", "stable_layer", "depth", "final_token", "top", "log_prob")
_RIGIDITY += ("top_is_option", "no_options", "option_stable_layer", "option_depth", "option_top")
_INFORMATION = ("n_tokens", "n_steps", "perplexity", "perplexity_without", "paper_gain")
_INFORMATION += ("paper_gain_per_token", "pointwise_gain", "pointwise_gain_total", "entropy_gain")
_INFORMATION += ("entropy_gain_total", "no_comparison", "answer", "answer_entropy_before")
_INFORMATION += ("answer_entropy_after", "mean_mi", "informative", "largest_alone")
_INFORMATION += ("largest_share", "bound", "bound_given_rest", "no_step_mi")
_STEP_INFORMATION = ("surprisal", "surprisal_without", "mi", "mi_share", "mi_removed")
_STEP_INFORMATION += ("mi_corrupted", "mi_replaced")
_FLOW = ("n_layers", "n_tokens", "peak_layer", "peak_depth", "peak_value", "cosine")
_FLOW += ("token_cosine", "steps", "step_peak_layers")
_LINEAR_PROBE = ("answer", "gold", "group", "n_steps", "positions", "steps", "layers", "n_layers")


@dataclass(frozen=True)
class Run:
    """One run folder; its frames are read when first asked for."""

    path: Path

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
    def items(self) -> pd.DataFrame:
        """A row per item, framing and reading: baseline answer, and shares of its steps."""
        return _frame(
            (*_READ, *_ITEM, "necessity", "sufficiency", "order_sensitivity"),
            [_item_row(r) for r in self._slrc],
        )

    @cached_property
    def steps(self) -> pd.DataFrame:
        """A row per step of every item, framing and reading: what each edit of it did."""
        return _frame(
            (*_READ, "position", "step", "text", *_STEP),
            [row for r in measured(self._slrc) for row in _step_rows(r)],
        )

    @cached_property
    def branches(self) -> pd.DataFrame:
        """A row per branch: the edit, its answer, and how far that is from the baseline's."""
        return _frame(
            (*_READ, "edit", "position", "baseline", "answer", "flipped", *_GRADED),
            [row for r in measured(self._slrc) for row in _branch_rows(r)],
        )

    @cached_property
    def direct(self) -> pd.DataFrame:
        """A row per item, direct prompt and reading: the answer without reasoning."""
        return self._replies("direct", _DIRECT)

    @cached_property
    def sycophancy(self) -> pd.DataFrame:
        """A row per item and reading: agreement with a wrong answer, and with its own."""
        return self._replies("sycophancy", _SYCOPHANCY)

    @cached_property
    def error_detection(self) -> pd.DataFrame:
        """A row per item and reading: the error put in, whether it was seen, false alarms."""
        return self._replies("error_detection", _ERRORS)

    @cached_property
    def said(self) -> pd.DataFrame:
        """A row per message that a model behind an API was sent about a trace: the reply, as it
        came, and how it ended."""
        units = sorted(Index.of(self.path).each(("said",)), key=lambda u: u.key)
        found = [r for u in units for r in u.records]
        return _frame((*_BASE, *_SAID), [r | {"task": r["dataset"]} for r in found])

    @cached_property
    def attention(self) -> pd.DataFrame:
        """A row per item: where the answer's attention goes, real and shuffled."""
        return self._replies("attention", _ATTENTION)

    @cached_property
    def rigidity(self) -> pd.DataFrame:
        """A row per item: the layer from which the lens gives the model's own token."""
        return self._replies("rigidity", _RIGIDITY)

    @cached_property
    def flow(self) -> pd.DataFrame:
        """A row per item: cosines of reasoning and answer token by layer, and their peak."""
        return self._replies("flow", _FLOW)

    @cached_property
    def linear_probe(self) -> pd.DataFrame:
        """A row per item: what classifiers are fitted for; `arrays("linear_probe")` on what."""
        return self._replies("linear_probe", _LINEAR_PROBE)

    @cached_property
    def tracing(self) -> pd.DataFrame:
        """A row per item and step: the answer's probability after it, and what it moved."""
        found = [r for r in read_records(self.path, "tracing") if not r.get("excluded")]
        return _frame(
            (*_BASE, "position", "step", "answer", "p", "delta"),
            [
                _base(r)
                | {"position": i + 1, "step": r["steps"][i], "answer": r["answer"]}
                | {"p": r["p_steps"][i], "delta": r["delta"][i]}
                for r in found
                for i in range(r["n_steps"])
            ],
        )

    @cached_property
    def measures(self) -> pd.DataFrame:
        """A row per item and measure of `experiments.tables.measures`: its score, and its cost."""
        from faithscope.experiments.tables.measures import PROBES_READ, all_scores

        return all_scores(r for probe in PROBES_READ for r in read_records(self.path, probe))

    @cached_property
    def information(self) -> pd.DataFrame:
        """A row per item: information gain, perplexity, step information and its bound."""
        return self._replies("information", _INFORMATION)

    @cached_property
    def step_information(self) -> pd.DataFrame:
        """A row per item and step: its surprisal, and what it tells of the answer (nats)."""
        return _frame(
            (*_BASE, "position", "step", *_STEP_INFORMATION),
            [
                _base(r)
                | {"position": i + 1, "step": step}
                | {k: _at(r[f"step_{k}"], i) for k in _STEP_INFORMATION}
                for r in read_records(self.path, "information")
                for i, step in enumerate(r["steps"])
            ],
        )

    @cached_property
    def knockout(self) -> pd.DataFrame:
        """A row per item, query, window and step: the step cut off, beside its text removed."""
        found = [r for r in read_records(self.path, "knockout") if "window" in r]
        names = ("queries", "window", "first_layer", "last_layer")
        return _frame(
            (*_BASE, *names, "position", "step", "answer", *KNOCKED),
            [
                _base(r)
                | {name: r[name] for name in names}
                | {"position": i + 1, "step": r["steps"][i], "answer": r["answer"]}
                | {name: r[name][i] for name in KNOCKED}
                for r in found
                for i in range(r["n_steps"])
            ],
        )

    @cached_property
    def causal_effects(self) -> pd.DataFrame:
        """A row per item and step: graded necessity, NLDD, TTS, and why one of them is not."""
        found = [r for r in read_records(self.path, "causal_effects") if not r.get("excluded")]
        names = ("corruption_rule", *STEP_MEASURES, "corrupt_excluded", "tts_excluded")
        return _frame(
            (*_BASE, "position", "step", "answer", *names),
            [
                _base(r)
                | {"position": i + 1, "step": step, "answer": r["answer"]}
                | {name: r[name][i] for name in names}
                for r in found
                for i, step in enumerate(r["steps"])
            ],
        )

    @cached_property
    def patching(self) -> pd.DataFrame:
        """A row per item, place, site, direction, layer and step that was patched."""
        found = [r for r in read_records(self.path, "patching") if not r.get("excluded")]
        names = ("place", "site", "direction")
        return _frame(
            (*_BASE, *names, "layer", "position", "step", "answer", "difference", "moved"),
            [
                _base(r)
                | {name: r[name] for name in names}
                | {"layer": layer, "position": i + 1, "step": step, "answer": r["answer"]}
                | {"difference": r["difference"][i], "moved": r["moved"][at * r["n_steps"] + i]}
                for r in found
                for at, layer in enumerate(r["layers"])
                for i, step in enumerate(r["steps"])
                if r["not_patched"][i] is None
            ],
        )

    def arrays(self, probe: str) -> Iterator[tuple[Place, dict[str, np.ndarray]]]:
        """(model, task, item) and its raw numbers by name, of each item that the probe did.

        One item is in memory at a time. `arrays/<probe>.safetensors` in the run folder, which
        is written with the tables, holds the same in one file.
        """
        from faithscope.experiments.runs.arrays import each

        for (_, model, task, item), found in each(counted(self.path), probe):
            yield (model, task, item), found

    def _replies(self, probe: str, names: tuple[str, ...]) -> pd.DataFrame:
        found = read_records(self.path, probe)
        return _frame((*_BASE, *names), [r | {"task": r["dataset"]} for r in found])

    @cached_property
    def _slrc(self) -> list[dict[str, Any]]:
        return read_records(self.path, "slrc")


def load_run(path: str | Path) -> Run | C2Run | RfRun:
    """Open a run folder: a `Run` of traces, a `C2Run` of C2-Faith, an `RfRun` of RFEval.

        faithscope.load_run("runs/quickstart").items
        faithscope.load_run("runs/c2faith").judgements
        faithscope.load_run("runs/rfeval").pairs

    Raises:
        UserError: `path` is none, or its config names a benchmark that there is not.
    """
    folder = existing_run(path)
    kind = config_kind(stored_config(folder))
    if kind is RunConfig:
        return Run(folder)
    from faithscope.experiments.c2faith.config import C2FaithConfig
    from faithscope.experiments.c2faith.frames import C2Run
    from faithscope.experiments.rfeval.frames import RfRun

    return C2Run(folder) if kind is C2FaithConfig else RfRun(folder)


def _frame(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def _base(record: Mapping[str, Any]) -> dict[str, Any]:
    names = {"model": "model", "task": "dataset", "item": "item"}
    return {k: record.get(v) for k, v in names.items()} | {
        k: record[k] for k in ("framing", "reading") if k in record
    }


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


def _item_row(record: dict[str, Any]) -> dict[str, Any]:
    return _base(record) | {
        **{k: record.get(k) for k in _ITEM},
        "necessity": _share(flips(record, "remove")),
        "sufficiency": _share([None if f is None else not f for f in flips(record, "keep_only")]),
        "order_sensitivity": _share(flips(record, "shuffle")),
    }


def _step_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _base(record)
        | {"position": i + 1, "step": step, "text": record["step_text"][i]}
        | {k: _at(record.get(k), i) for k in _STEP}
        for i, step in enumerate(record["steps"])
    ]


def _branch_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        _base(record)
        | {
            "edit": edit,
            "position": None if edit == "shuffle" else i + 1,
            "baseline": record["baseline"],
            "answer": _at(answers(record, edit), i),
            "flipped": flipped,
            "total_variation": _at(graded(record, edit, "tv"), i),
            "log_odds_drop": _at(graded(record, edit, "log_odds"), i),
        }
        for edit in EDITS
        for i, flipped in enumerate(flips(record, edit))
        if flipped is not None
    ]


def _at(values: Sequence[Any] | None, i: int) -> Any:
    return values[i] if values and i < len(values) else None


def _share(values: Sequence[bool | None]) -> float | None:
    made = [v for v in values if v is not None]
    return sum(made) / len(made) if made else None
