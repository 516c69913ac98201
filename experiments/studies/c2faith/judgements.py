"""Judgements as flat records and as rows: who judged which item how, what it said, what would have
been right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.verdicts import with_meaning
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.models.judging import Judged, of_cases
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.c2faith.additions import twin_of, varying
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.experiments.studies.c2faith.units import ordinary_cases
from faithscope.probes.judge.form import Reply

USAGE = ("calls", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
_ABOUT = ("judge", "form", "task", "reading", "item", "ask", "chain", "condition")
_ITEM = ("level", "scale", "target", "n_steps", "n_middle", "n_removed")
_SAID = (
    "outcome",
    "verdict",
    "flag",
    "score",
    "values",
    "right",
    "expected",
    "probabilities",
    "mass",
)
_TEXTS = ("system", "asked", "text", "thinking", "problem")
COLUMNS = (*_ABOUT, *_ITEM, *_SAID, *USAGE, "from_cache", *_TEXTS)
Row = dict[str, Any]
_WHOLE = ("target", "n_steps", "n_middle", "n_removed", "verdict", "right", *USAGE)
"""Columns of whole numbers, some of which may be missing."""


def is_varied(record: Mapping[str, Any]) -> bool:
    """Whether the ask was varied (`additions.C2Addition`), so that the record is no judgement of
    the item."""
    return "varied" in record


def judgement(record: Mapping[str, Any], form: TaskForm) -> Row:
    """A record with what its form says of it: the row that every frame is made from."""
    return dict(record) | {
        "form": record["variant"],
        "reading": READINGS[record["probe"]],
        "scale": form.scale if form.task.startswith("coverage") else None,
        "right": right_verdict(form.task, record),
        "expected": expected_verdict(record, form),
    }


def judgements(
    records: Iterable[Mapping[str, Any]],
    forms: Mapping[str, TaskForm],
    varied: str | None = None,
    more: Mapping[str, str | None] = MappingProxyType({}),
) -> pd.DataFrame:
    """A row per judgement, in the order of the records; see `frames`.

    Args:
        varied: name of the variation whose judgements are wanted; None for the ordinary ones.
        more: further columns, and the pandas dtypes that their values alone do not give.
    """
    rows = [
        judgement(r, forms[r["variant"]]) | with_meaning(r, forms[r["variant"]])
        for r in records
        if r.get("varied") == varied
    ]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, *more])
    floats = dict.fromkeys(("level", "expected", "mass"), "float64")
    own = {name: dtype for name, dtype in more.items() if dtype is not None}
    return frame.astype(dict.fromkeys(_WHOLE, "Int64") | floats | own)


def in_frame(row: Row) -> Row:
    """A judgement under the names of `tables.frames.Frames`."""
    return row | {"prompt": row["form"], "score": row["verdict"], "predicted": row["verdict"]}


def task_frames(
    rows: Iterable[Row], region: Callable[[int], range], reference_judge: str | None
) -> dict[str, pd.DataFrame]:
    """The frames of detection, localisation and coverage.

    Args:
        region: chain length -> the steps among which targets were drawn.
    """
    of_task: dict[str, list[Row]] = {"detection": [], "localisation": [], "coverage": []}
    references = {}
    for row in rows:
        of_frame, p, way = in_frame(row), row["probabilities"], (row["item"], row["scale"])
        if row["task"] == "detection":
            of_frame["p_flag"] = p[0] if p else None
        elif row["task"] == "localisation":
            of_frame |= {"n_middle": len(region(row["n_steps"]))}
            of_frame |= {"p_target": p[row["target"] - NO_STEP] if p else None}
            of_frame |= {"final_score": row["values"].get(FINAL_SCORE)}
        elif row["task"] == "coverage":
            of_frame |= {"reference": way, "reference_judge": reference_judge or ""}
        elif row["verdict"] is not None:
            references[way, row["reading"]] = row["verdict"]
        of_task.setdefault(row["task"], []).append(of_frame)
    for of_frame in of_task["coverage"]:
        # a reference that was not read this way was read as written
        way = of_frame["reference"]
        written = references.get((way, "generated"))
        of_frame["reference"] = references.get((way, of_frame["reading"]), written)
    return {task: pd.DataFrame(of_task[task]) for task in ("detection", "localisation", "coverage")}


def right_verdict(task: str, record: Mapping[str, Any]) -> int | None:
    """The verdict of a judge that sees the edit; None for coverage, which has no one right rating.

    Detection: 0 (does not follow) of a broken step, 1 of a sound one. Localisation: the step's
    index from 0, -1 where none is broken (C2-Faith, sections 3.2 and 3.3).
    """
    if task == "detection":
        return 0 if record["condition"] == "perturbed" else 1
    if task == "localisation":
        return record["target"] if record["condition"] == "perturbed" else -1
    return None


def expected_verdict(record: Mapping[str, Any], form: TaskForm) -> float | None:
    """Mean verdict under the probabilities; None where none were read."""
    low = form.form.verdict_field.low or 0
    p = record["probabilities"]
    return sum((low + i) * x for i, x in enumerate(p)) if p else None


def truth(record: Mapping[str, Any]) -> str:
    """A phrase on what was done to the item."""
    line = ""
    if is_varied(record) and record["varied"] in varying():
        line = f"{varying()[record['varied']].words(record)[1]}; "
    if record["condition"]:
        broken = record["condition"] == "perturbed"
        return line + (f"step {record['target']} is broken" if broken else "no step is broken")
    return f"{line}{record['n_removed']} of {record['n_middle']} middle steps are left out"


TEXTS = frozenset(["system", "asked", "requested", "text", "thinking", "problem"])
"""Fields that no table counts: what the judge was told and what it wrote."""
FINAL_SCORE = "final_score"
"""The field of localisation's form in which a reply says once more whether all steps are valid."""


def lost_judgements(
    lost: Sequence[Unit],
    benchmark: Benchmark,
    forms: Mapping[str, TaskForm],
    config: C2FaithConfig,
) -> Iterator[dict[str, Any]]:
    """Records of asks that failed and are to be asked again: judgements without a verdict."""
    judging = of_cases(config.judge, config.seed, config.models)
    names = dict.fromkeys(unit.task.partition("+")[0] for unit in lost)
    known = {(name, c.item): c for name in names for c in ordinary_cases(benchmark, forms[name])}
    for unit in lost:
        name, _, varied = unit.task.partition("+")
        asked = known[name, twin_of(unit.item) if varied else unit.item]
        if varied:
            asked = varying()[varied].again(config, asked, unit.item)
        (one,) = asked.asks
        reply = Reply("failed", problem=unit.failed or "")
        item = Judged(unit.model, asked, {})
        yield judging.record(item, one, unit.model, unit.stage, reply)
