"""Reading SLRC records: what each branch of each edit did, in one order for everyone.

A record is flat JSON: one item in one framing and one reading, with lists that hold one
value per counted step, or per shuffle. `task` is the dataset of a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
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


def flips_within_floor(*kinds: str) -> kit.Stat:
    """`share_within_floor` of each kind of edit."""
    return kit.plain(
        **{
            f"{kind}flips_within_floor": lambda same, kind=kind: share_within_floor(same, kind)
            for kind in kinds
        }
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
    return [r for _, same in WAYS.of(list(records)) for r in same]


def _rank(record: Record) -> tuple[int, int]:
    return FRAMINGS.index(record["framing"]), READINGS.index(record["reading"])


_WAY = {"framing": "framing", "reading": "reading"}
WAYS = kit.grouped("slrc", _WAY, rank=_rank)
"""Records that hold a measurement by model, task, framing and reading."""
ALL_WAYS = kit.grouped("slrc", _WAY, rank=_rank, counts=lambda r: True)
"""Excluded ones, too."""
