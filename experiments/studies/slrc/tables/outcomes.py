"""Reading SLRC records: what each branch of each edit did, in one order for everyone.

A record is flat JSON: one item in one framing and one reading, with lists that hold one
value per counted step, or per shuffle. `task` is the dataset of a record.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from faithscope.experiments.analysis.records import Record, place_of
from faithscope.experiments.analysis.tidy import mean
from faithscope.probes.framing import FRAMINGS, READINGS

EDITS = ("remove", "corrupt", "regenerate", "control", "keep_only", "shuffle")
_ANSWERS = {
    "remove": "removed",
    "corrupt": "corrupted",
    "regenerate": "regenerated",
    "control": "controlled",
    "keep_only": "alone",
    "shuffle": "shuffled",
}
_FLIPS = {
    "remove": "necessary",
    "corrupt": "corrupt_flips",
    "regenerate": "regenerate_flips",
    "control": "control_flips",
    "keep_only": "sufficient",
    "shuffle": "reordered",
}
GROUP = ("model", "task", "framing", "reading")


def is_variant(task: str) -> bool:
    """Whether a task is another in other words: `sst2:alternative` (SLRC, 2.6)."""
    return ":" in task


def answers(record: Record, edit: str) -> list[str | None]:
    """What each branch of an edit answered; None where it did not parse, or was not run."""
    return list(record.get(_ANSWERS[edit]) or [])


def flips(record: Record, edit: str) -> list[bool | None]:
    """Whether each branch of an edit changed the answer; None where there was no branch.

    One value per counted step, or per shuffle. `keep_only` flips where the step alone
    does not give the answer back.
    """
    found = list(record.get(_FLIPS[edit]) or [])
    if edit in ("corrupt", "regenerate") and found:
        can = record.get("corruptible") or [True] * len(found)
        found = [flip if possible else None for flip, possible in zip(found, can, strict=True)]
    if edit == "keep_only":
        found = [None if same is None else not same for same in found]
    return found


def margins(record: Record, edit: str) -> list[float | None]:
    """By how much each branch, or its baseline where that was closer, was decided, in nats."""
    return list(record.get(f"{_ANSWERS[edit]}_margin") or [])


def within_floor(
    record: Record, flipped: Sequence[bool | None], of: Sequence[float | None] | None
) -> list[bool]:
    """Per flip, whether it was decided by no more than the noise floor of its record.

    Flips of unknown margin are left out: those behind an API.
    """
    floor = record.get("noise_floor")
    if floor is None or not of:
        return []
    pairs = zip(flipped, of, strict=True)
    return [margin <= floor for flip, margin in pairs if flip and margin is not None]


def share_within_floor(records: Iterable[Record], kind: str) -> float:
    """Of the flips that records list as `{kind}flips`, those within their floor; NaN if none."""
    return mean(
        [x for r in records for x in within_floor(r, r[f"{kind}flips"], r.get(f"{kind}margin"))]
    )


def graded(record: Record, edit: str, measure: str) -> list[float | None]:
    """`tv` (total variation) or `log_odds` (drop) of each branch, as `flips`; scored reading."""
    made = flips(record, edit)
    values = record.get(f"{_ANSWERS[edit]}_{measure}") or [None] * len(made)
    return [v if flip is not None else None for v, flip in zip(values, made, strict=True)]


def no_room(record: Record, edit: str) -> list[bool]:
    """Whether each step was left out of an edit because the model has no position left for it."""
    return [reason is not None for reason in record.get(f"{_ANSWERS[edit]}_excluded") or []]


def measured(records: Iterable[Record]) -> list[Record]:
    """The SLRC records that hold a measurement, in an order that no history changes."""
    return [r for r in _in_order(records) if not r.get("excluded")]


def groups(records: Iterable[Record]) -> list[tuple[tuple[str, ...], list[Record]]]:
    """Measured records by (model, task, framing, reading)."""
    return [
        (key, list(of_group)) for key, of_group in itertools.groupby(measured(records), key=_group)
    ]


def slrc_groups(records: Iterable[Record]) -> list[tuple[tuple[str, ...], list[Record]]]:
    """All SLRC records, excluded ones too, by (model, task, framing, reading)."""
    return [(key, list(group)) for key, group in itertools.groupby(_in_order(records), key=_group)]


def of_probe(records: Iterable[Record], probe: str) -> list[tuple[tuple[str, str], list[Record]]]:
    """What a probe measured, by (model, task), in an order that no history changes."""
    kept = [r for r in records if r["probe"] == probe and not r.get("excluded")]
    kept.sort(key=place_of)
    return [
        (key, list(same))
        for key, same in itertools.groupby(kept, key=lambda r: (r["model"], r["task"]))
    ]


def _in_order(records: Iterable[Record]) -> list[Record]:
    kept = [r for r in records if r["probe"] == "slrc"]
    return sorted(kept, key=lambda r: (r["model"], r["task"], _rank(r), str(r["item"])))


def _rank(record: Record) -> tuple[int, int]:
    return FRAMINGS.index(record["framing"]), READINGS.index(record["reading"])


def _group(record: Record) -> tuple[str, ...]:
    return record["model"], record["task"], record["framing"], record["reading"]
