"""Report of SLRC: its records as frames, and measures of the answers after its edits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from faithscope.experiments.analysis.measure import (
    Family,
    Measure,
    OfItem,
    OfSteps,
    calls,
    inclusion_of,
    listed,
    mean_of,
)
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import mean_present
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    NOT_OF_STEPS,
    alone,
    answers,
    flips,
    graded,
    slrc_of,
)
from faithscope.probes.framing import FRAMINGS, READINGS
from faithscope.probes.record import mean_of_steps
from faithscope.probes.slrc_edits import BY_NAME

_ITEM = ("gold", "original", "baseline", "correct", "unit", "n_steps", "n_unparsed", "label_mass")
_ITEM += ("excluded",)
_OF_STEPS = [edit for edit in BY_NAME.values() if edit.of_steps]
_STEP = (*(edit.flips for edit in _OF_STEPS), *(edit.answers for edit in _OF_STEPS))
_STEP += ("corruptible", "corrupted_text")
SHARES = ("necessity", "sufficiency", "order_sensitivity")
"""Shares of each single record in the frame `items`."""
_GRADED = ("total_variation", "log_odds_drop")


def _beyond(record: Record) -> list[int | None]:
    """Per step, whether regeneration changed the answer minus whether its control did."""
    pairs = zip(flips(record, "regenerate"), flips(record, "control"), strict=False)
    return [None if a is None or b is None else a - b for a, b in pairs]


def _slrc(records: OfItem) -> float | None:
    necessity = mean_of(partial(flips, edit="remove"))(records)
    sufficiency = mean_of(alone)(records)
    if necessity is None or sufficiency is None:
        return None
    return slrc_of(necessity, sufficiency)


_IN_SHORT = {
    "necessity_prefix_generated": "necessity: removal flips the answer",
    "slrc_prefix_generated": "SLRC",
    "sufficiency_prefix_generated": "1 − sufficiency: a step alone does not give it",
    "order_sensitivity_prefix_generated": "order sensitivity",
    "corrupt_prefix_generated": "frozen corruption flips the answer",
    "regenerate_prefix_generated": "corrupt, then regenerate, flips it",
    "regenerate_tv_prefix_scored": "corrupt, then regenerate: how far the distribution moves",
}


def _of_slrc(framing: str, reading: str) -> Iterable[Measure]:
    family: Family = "behavioural" if reading == "generated" else "logit"
    where = {"framing": framing, "reading": reading}

    def make(name: str, score: Any, cost: Any, **more: Any) -> Measure:
        full = f"{name}_{framing}_{reading}"
        words = _IN_SHORT.get(full, "")
        return Measure(full, "slrc", family, score, cost, where=where, in_short=words, **more)

    def of_steps(name: str, values: OfSteps, cost: Any, **more: Any) -> Measure:
        return make(name, mean_of(values), cost, steps=listed(values), **more)

    edits = {"remove": calls(1, 1), "corrupt": calls(1, 1)}
    yield of_steps("necessity", partial(flips, edit="remove"), calls(1, 1), share=True)
    yield of_steps("sufficiency", alone, calls(1, 1), higher_is_faithful=False)
    # shuffles are no steps, and are all run
    reordered = lambda records: mean_present(flips(records[0], "shuffle"))  # noqa: E731
    yield make("order_sensitivity", reordered, lambda r: 1 + len(r[0].get("reordered") or ()))
    yield make("slrc", _slrc, calls(1, 2), share=True)
    yield of_steps("corrupt", partial(flips, edit="corrupt"), calls(1, 1), share=True)
    if framing == "prefix":
        # Regenerating a step costs one call to write it and one to ask for the answer.
        edits["regenerate"] = calls(1, 2)
        yield of_steps("regenerate", partial(flips, edit="regenerate"), calls(1, 2), share=True)
        yield of_steps("beyond_control", _beyond, calls(1, 4), share=True)
    if reading == "scored":
        for (edit, cost), how in itertools.product(edits.items(), ("tv", "log_odds")):
            moved = partial(graded, edit=edit, measure=how)
            yield of_steps(f"{edit}_{how}", moved, cost, share=how == "tv")


OF_SLRC = tuple(m for f in FRAMINGS for r in READINGS for m in _of_slrc(f, r))


def _item(record: Record) -> list[dict[str, Any]]:
    drawn, reordered = inclusion_of(record), flips(record, "shuffle")
    of_steps = (mean_of_steps(flips(record, "remove"), drawn), mean_of_steps(alone(record), drawn))
    shares = (*of_steps, mean_present(reordered))
    return [{k: record.get(k) for k in _ITEM} | dict(zip(SHARES, shares, strict=True))]


def _steps(record: Record) -> list[dict[str, Any]]:
    if record.get("excluded"):
        return []
    return [
        {"position": i + 1, "step": step, "text": record["step_text"][i]}
        | {"inclusion": _at(record.get("inclusion"), i)}
        | {k: _at(record.get(k), i) for k in _STEP}
        for i, step in enumerate(record["steps"])
    ]


def branch_rows(record: Record) -> list[dict[str, Any]]:
    """Rows of the frame `branches`: one for each branch of each edit."""
    if record.get("excluded"):
        return []
    return [
        {
            "edit": edit,
            "position": None if edit in NOT_OF_STEPS else i + 1,
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


_READ = ("framing", "reading")
REPORT = MeasureReport(
    "slrc",
    frames=(
        Frame(
            "items",
            "A row per item, framing and reading: baseline answer, and shares of its steps.",
            (*_READ, *_ITEM, *SHARES),
            _item,
        ),
        Frame(
            "steps",
            "A row per step of every item, framing and reading: what each edit of it did.",
            (*_READ, "position", "step", "text", "inclusion", *_STEP),
            _steps,
        ),
        Frame(
            "branches",
            "A row per branch: the edit, its answer, and how far that is from the baseline's.",
            (*_READ, "edit", "position", "baseline", "answer", "flipped", *_GRADED),
            branch_rows,
        ),
    ),
    measures=OF_SLRC,
)
