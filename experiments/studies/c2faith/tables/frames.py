"""The tidy frames that every number of C2-Faith is made from, and columns that tables share.

A frame has one row per judgement.

A judgement without a verdict (unparsed, refused, cut off ...) stays in its frame with NaN: it
is counted beside every number, and never taken for a verdict of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Mask,
    all_of,
    every_row,
    rows_known,
    rows_with,
)
from faithscope.experiments.analysis.columns import Column, described
from faithscope.experiments.analysis.tidy import check_rows, typed
from faithscope.experiments.engine.forms.tasks import NO_STEP

WAY = ("judge", "reading", "prompt")
"""Key of a way of judging: the judge, how the judgement was read, and the form that was asked."""
PERTURBED, CONTROL = "perturbed", "control"
BOTH = "both"
"""Perturbed and control items together."""
ON_BROKEN, ON_INTACT = rows_with(condition=PERTURBED), rows_with(condition=CONTROL)
"""Masks of the judgements of chains with a replaced step, and of chains as they were."""
JUDGED = rows_known("score")
"""Mask of the judgements with a verdict."""
COUNTS = described(
    n=("items", "Items with a verdict."),
    n_without_verdict=(
        "without a verdict",
        "Judgements whose reply gave no verdict; they are in no other number of the row.",
    ),
)
CONTROLS = described(
    n_control=("controls", "Control items with a verdict, which no step was replaced in."),
    n_control_without_verdict=(
        "controls without a verdict",
        "Control items without a verdict; they are in no other number of the row.",
    ),
)
CONDITION, SCALE, REFERENCE_JUDGE, LEVEL, SHARE_KEPT = described(
    condition="Perturbed (a step is replaced), control (none is), or both together.",
    scale="The least and the greatest score that the prompt allows.",
    reference_judge="The judge whose scores are the reference.",
    level=("steps left out", "Share of the middle steps that was to be left out."),
    share_kept=("kept", "Mean share of the middle steps that are still there."),
)
_EDITS = ("target", "n_steps", "relative_position", "edit_similarity", "math_symbol_density")
_EDITS += ("n_words", "n_chars", "edit_type", "method", "wrong_alone")
JUDGEMENT = (*WAY, "item", "chain", "outcome")
_PLACED = ("n_steps", "n_middle", "target", "predicted")
_SCORED = ("n_middle", "n_removed", "score", "expected", "reference")
_SIGNAL = ("model", "signal", "item", "chain", "condition")
_MORE_TEXTS = ("scale", "reference_judge", "edit_type", "method")
_TEXTS = {*JUDGEMENT, *_SIGNAL, *_MORE_TEXTS}
"""The columns of the study's frames that hold text; all others hold numbers."""


@dataclass(frozen=True)
class Shape:
    """Columns of a frame, and what its verdicts can be."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Columns that together differ in every row."""
    verdict: str = ""
    least: int = 0
    greatest: Callable[[pd.DataFrame], Any] = lambda frame: 1
    """The greatest verdict that the form of each row admits; NaN where none is."""
    has_distribution: bool = False
    """Whether `probabilities` of every verdict, from the least, may be given."""
    texts: tuple[str, ...] = ()
    """Columns that hold text, beside those of the study's own frames."""


SHAPES = {
    "detection": Shape(
        (*JUDGEMENT, "condition", "score", "p_flag"), (*WAY, "item", "condition"), "score"
    ),
    "localisation": Shape(
        (*JUDGEMENT, "condition", *_PLACED, "p_target", "final_score"),
        (*WAY, "item", "condition"),
        "predicted",
        NO_STEP,
        lambda frame: frame["n_steps"] - 1,
        has_distribution=True,
    ),
    "coverage": Shape(
        (*JUDGEMENT, "scale", "level", *_SCORED, "reference_judge"),
        (*WAY, "item", "scale", "level", "reference_judge"),
        "score",
        greatest=lambda frame: frame["scale"].map(maximum),
        has_distribution=True,
    ),
    "features": Shape(("item", "chain", *_EDITS), ("item",)),
    "internals": Shape((*_SIGNAL, "score"), ("model", "signal", "item", "condition")),
    "internals_localisation": Shape(
        (*_SIGNAL, *_PLACED, "n_candidates"), ("model", "signal", "item", "condition")
    ),
}


@dataclass(frozen=True)
class Frames:
    """Judgements, and signals inside models for the same items, as the tables take them.

    What was not run is left out: an empty frame. Numbers become floats, text becomes strings,
    probabilities of every verdict tuples, empty where none were read.

    Raises:
        ValueError: a column is missing, two rows are of one judgement, a verdict stands beside
            an outcome other than `parsed` or is none that the form admits, or probabilities
            are not of every verdict there is, together 1.
    """

    detection: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Judgements of single steps. `condition`: perturbed | control; `score`: 1 follows, 0 does not;
    `p_flag`: probability of 0, of the scored reading only."""
    localisation: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Judgements of whole chains. `target`, `predicted`: 0-based steps, -1 for none; `n_middle`:
    steps among which targets were drawn; `final_score`: 1 where the same reply says that all steps
    are valid, 0 where it says that one is not, NaN where its form does not ask; of the scored
    reading `p_target` and `probabilities`, of -1 first and then of every step."""
    coverage: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Ratings of chains with steps left out. `scale`: "0-4", "0-9" ...; `level`: share of the
    middle steps that was asked to be removed; of the scored reading `probabilities`, of every score
    from 0, and `expected`, their mean; `reference`: score of a judge that saw what was removed."""
    features: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Features of the edits of the causal items, a row per item."""
    internals: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Suspicion of single steps. `score`: how suspicious a signal inside the model finds the step;
    higher is more."""
    internals_localisation: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Steps that signals name. `predicted`: the step that a signal inside the model finds most
    suspicious, of the `n_candidates` that have a number; `n_middle`: how many of those targets were
    drawn among."""

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, checked(f.name, getattr(self, f.name)))


def checked(name: str, frame: pd.DataFrame, shape: Shape | None = None) -> pd.DataFrame:
    """Checks a frame; puts its columns in order and gives them their types (see `Frames`).

    Args:
        shape: by default that of the study's frame of this name.
    """
    shape = shape or SHAPES[name]
    numbers = [c for c in shape.columns if c not in {*_TEXTS, *shape.texts}]
    if frame.empty:
        every = [*shape.columns, *(["probabilities"] if shape.has_distribution else [])]
        return pd.DataFrame(columns=every).astype(dict.fromkeys(numbers, float))
    check_rows(f"c2faith frame {name!r}", frame, shape.columns, shape.key)
    columns = typed(frame, shape.columns, numbers)
    if shape.has_distribution:
        given = frame["probabilities"] if "probabilities" in frame else [None] * len(frame)
        columns["probabilities"] = pd.Series(
            [() if p is None or isinstance(p, float) else tuple(map(float, p)) for p in given],
            dtype=object,
        )
    judged = pd.DataFrame(columns)
    if shape.verdict:
        value, is_parsed = judged[shape.verdict], judged["outcome"] == "parsed"
        greatest = shape.greatest(judged)
        impossible = (value < shape.least) | (value > greatest)
        _refuse(name, judged, (value.notna() != is_parsed) | impossible, shape.verdict)
        if shape.has_distribution:
            p = judged["probabilities"]
            adds_up = p.map(lambda x: min(x) >= 0 and abs(math.fsum(x) - 1) < 1e-6 if x else True)
            fits = is_parsed & (p.map(len) == greatest - shape.least + 1) & adds_up
            _refuse(name, judged, (p.map(len) > 0) & ~fits, "probabilities")
    return judged


def _refuse(name: str, frame: pd.DataFrame, wrong: Any, column: str) -> None:
    if wrong.any():
        row = frame.loc[wrong].iloc[0]
        raise ValueError(
            f"c2faith frame {name!r}: {column} = {row[column]} cannot be (item {row['item']}, "
            f"outcome {row['outcome']}); a verdict stands in parsed rows, in all of them, and "
            "every value within its form's range"
        )


def counted(column: Column, among: Mask) -> Count:
    """The cell that counts the rows under a mask in a declared column."""
    return Count(column.name, among, column.label, column.meaning)


def counts(
    given: Mask, among: Mask = every_row, columns: Sequence[Column] = COUNTS
) -> tuple[Count, ...]:
    """The cells that count the rows with a verdict, and those without.

    Args:
        given: mask of the rows that have what counts as a verdict.
        among: mask of the rows that are counted at all.
    """
    silent: Mask = lambda frame: among(frame) & ~given(frame)  # noqa: E731
    masks = (all_of(among, given), silent)
    return tuple(counted(column, mask) for column, mask in zip(columns, masks, strict=True))


def ends(name: str, interval: str) -> tuple[Column, ...]:
    """The columns of an interval's ends, for tables that lack its estimate."""
    low, high = (f"{end} end of {interval}." for end in ("Lower", "Upper"))
    return described(**{f"{name}_low": low, f"{name}_high": high})


def sorted_within(frame: pd.DataFrame, by: Sequence[str], order: Any) -> pd.DataFrame:
    """The rows of each group in rising order; groups stay in the order of their first rows.

    Args:
        by: columns of the groups.
        order: (rows,) what the rows of a group are sorted by.
    """
    group = frame.groupby(list(by), sort=False, dropna=False).ngroup().to_numpy()
    return frame.iloc[np.lexsort((pd.factorize(np.asarray(order), sort=True)[0], group))]


def maximum(scale: str) -> int:
    """The best score of a scale: 4 of "0-4".

    Raises:
        ValueError: not the name of a scale.
    """
    low, _, high = scale.partition("-")
    if low != "0" or not high.isdigit() or int(high) == 0:
        raise ValueError(f"coverage scale {scale!r} is not of the form '0-4'")
    return int(high)


def verdicts_by_judge(frame: pd.DataFrame, value: str, keys: Sequence[str]) -> pd.DataFrame:
    """A row per item (its `keys` as index, sorted), a column per judge in order; NaN for none."""
    judges = list(dict.fromkeys(frame["judge"]))
    columns = [frame.loc[frame["judge"] == j].set_index(list(keys))[value] for j in judges]
    if not columns:
        return pd.DataFrame(index=pd.MultiIndex.from_arrays([[]] * len(keys), names=list(keys)))
    return pd.concat(columns, axis=1, keys=judges).sort_index()


def who_spoke(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The columns of `verdicts_by_judge` that hold a verdict: a judge that never gives one would
    leave no item that all judged."""
    return verdicts.dropna(axis=1, how="all")


def mean_or_nan(values: np.ndarray) -> float:
    """The mean of some values; NaN if there are none."""
    return float(values.mean()) if len(values) else math.nan
