"""SLRC's records as frames, and the measures of the answers that its edits lead to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from faithscope.experiments.analysis.measure import Family, Measure, OfItem, by_step, calls
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import mean, present
from faithscope.experiments.studies.slrc.measures.slice import Frame, Slice
from faithscope.experiments.studies.slrc.tables.outcomes import EDITS, answers, flips, graded
from faithscope.probes.framing import FRAMINGS, READINGS

_ITEM = ("gold", "original", "baseline", "correct", "unit", "n_steps", "n_unparsed", "label_mass")
_ITEM += ("excluded",)
_STEP = ("necessary", "sufficient", "corruptible", "corrupt_flips", "regenerate_flips")
_STEP += ("control_flips", "removed", "alone", "corrupted", "regenerated", "controlled")
_STEP += ("corrupted_text",)
_GRADED = ("total_variation", "log_odds_drop")


def _rate(edit: str) -> Callable[[OfItem], float | None]:
    """Share of the branches of an edit that changed the answer."""

    def read(records: OfItem) -> float | None:
        made = present(flips(records[0], edit))
        return mean(made) if made else None

    return read


def _flipped(edit: str) -> Callable[[OfItem], dict[int, float]]:
    return lambda records: by_step(records[0], flips(records[0], edit))


def _moved(edit: str, how: str) -> Callable[[OfItem], float | None]:
    """Mean over steps of how far an edit moved the answer distribution."""

    def read(records: OfItem) -> float | None:
        made = present(graded(records[0], edit, how))
        return mean(made) if made else None

    return read


def _moved_steps(edit: str, how: str) -> Callable[[OfItem], dict[int, float]]:
    return lambda records: by_step(records[0], graded(records[0], edit, how))


def _kept(records: OfItem) -> float | None:
    flipped = _rate("keep_only")(records)
    return None if flipped is None else 1 - flipped


def _returned(records: OfItem) -> dict[int, float]:
    """A step that alone gives the answer back is credited with it."""
    return {step: 1 - x for step, x in _flipped("keep_only")(records).items()}


def _slrc(records: OfItem) -> float | None:
    necessity, sufficiency = _rate("remove")(records), _kept(records)
    if necessity is None or sufficiency is None:
        return None
    return necessity * (1 - sufficiency)


def _beyond(records: OfItem) -> dict[int, float]:
    """Regeneration less its control, step by step."""
    made, control = _flipped("regenerate")(records), _flipped("control")(records)
    return {step: made[step] - control[step] for step in made if step in control}


def _beyond_control(records: OfItem) -> float | None:
    return mean(list(of.values())) if (of := _beyond(records)) else None


def _shuffles(records: OfItem) -> int:
    return 1 + len(records[0].get("reordered") or ())


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

    def make(name: str, score: Any, forwards: Any, **more: Any) -> Measure:
        full = f"{name}_{framing}_{reading}"
        more["in_short"] = _IN_SHORT.get(full, "")
        return Measure(full, "slrc", family, score, forwards, where=where, **more)

    yield make("necessity", _rate("remove"), calls(1, 1), share=True, steps=_flipped("remove"))
    yield make("sufficiency", _kept, calls(1, 1), higher_is_faithful=False, steps=_returned)
    yield make("order_sensitivity", _rate("shuffle"), _shuffles)
    yield make("slrc", _slrc, calls(1, 2), share=True)
    yield make("corrupt", _rate("corrupt"), calls(1, 1), share=True, steps=_flipped("corrupt"))
    edits = {"remove": calls(1, 1), "corrupt": calls(1, 1)}
    if framing == "prefix":
        # A step written anew is one call to write it and one to ask.
        edits["regenerate"] = twice = calls(1, 2)
        anew = _rate("regenerate")
        yield make("regenerate", anew, twice, share=True, steps=_flipped("regenerate"))
        yield make("beyond_control", _beyond_control, calls(1, 4), share=True, steps=_beyond)
    if reading == "scored":
        for (edit, cost), how in itertools.product(edits.items(), ("tv", "log_odds")):
            moved, credit = _moved(edit, how), _moved_steps(edit, how)
            yield make(f"{edit}_{how}", moved, cost, share=how == "tv", steps=credit)


OF_SLRC = tuple(m for f in FRAMINGS for r in READINGS for m in _of_slrc(f, r))


def _item(record: Record) -> list[dict[str, Any]]:
    return [
        {
            **{k: record.get(k) for k in _ITEM},
            "necessity": _share(flips(record, "remove")),
            "sufficiency": _share(
                [None if f is None else not f for f in flips(record, "keep_only")]
            ),
            "order_sensitivity": _share(flips(record, "shuffle")),
        }
    ]


def _steps(record: Record) -> list[dict[str, Any]]:
    if record.get("excluded"):
        return []
    return [
        {"position": i + 1, "step": step, "text": record["step_text"][i]}
        | {k: _at(record.get(k), i) for k in _STEP}
        for i, step in enumerate(record["steps"])
    ]


def _branches(record: Record) -> list[dict[str, Any]]:
    if record.get("excluded"):
        return []
    return [
        {
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
    made = present(values)
    return mean(made) if made else None


_READ = ("framing", "reading")
SLICE = Slice(
    "slrc",
    frames=(
        Frame(
            "items",
            "A row per item, framing and reading: baseline answer, and shares of its steps.",
            (*_READ, *_ITEM, "necessity", "sufficiency", "order_sensitivity"),
            _item,
        ),
        Frame(
            "steps",
            "A row per step of every item, framing and reading: what each edit of it did.",
            (*_READ, "position", "step", "text", *_STEP),
            _steps,
        ),
        Frame(
            "branches",
            "A row per branch: the edit, its answer, and how far that is from the baseline's.",
            (*_READ, "edit", "position", "baseline", "answer", "flipped", *_GRADED),
            _branches,
        ),
    ),
    measures=OF_SLRC,
)
