"""The tidy frames that every number of C2-Faith is made from: one row per judgement.

A judgement without a verdict (unparsed, refused, cut off ...) stays in its frame with NaN: it
is counted beside every number, and never taken for a verdict of either kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.tidy import check_rows, typed

WAY = ("judge", "reading", "prompt")
"""Who judged, how the judgement was read, and the form that was asked."""
PERTURBED, CONTROL = "perturbed", "control"
BOTH = "both"
"""Perturbed and control items together."""
NO_STEP = -1
"""Said by a judge that finds no broken step (C2-Faith, §3.3)."""
_ABOUT_EDITS = (
    *("target", "n_steps", "relative_position", "edit_similarity", "math_symbol_density"),
    *("n_words", "n_chars"),
)
_JUDGEMENT = (*WAY, "item", "chain", "outcome")
_PLACED = ("n_steps", "n_middle", "target", "predicted")


@dataclass(frozen=True)
class _Shape:
    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    key: tuple[str, ...]
    """Together different in every row."""
    verdict: str = ""
    distribution: str = ""
    """A column that may be left out: the probability of every verdict, from the least."""


SHAPES = {
    "detection": _Shape(
        (*_JUDGEMENT, "condition", "score", "p_flag"),
        ("score", "p_flag"),
        (*WAY, "item", "condition"),
        "score",
    ),
    "localisation": _Shape(
        (*_JUDGEMENT, "condition", *_PLACED, "p_target", "final_score"),
        (*_PLACED, "p_target", "final_score"),
        (*WAY, "item", "condition"),
        "predicted",
        "probabilities",
    ),
    "coverage": _Shape(
        (
            *(*_JUDGEMENT, "scale", "level", "n_middle", "n_removed", "score"),
            *("expected", "reference", "reference_judge"),
        ),
        ("level", "n_middle", "n_removed", "score", "expected", "reference"),
        (*WAY, "item", "scale", "level", "reference_judge"),
        "score",
        "probabilities",
    ),
    "injection": _Shape(
        (
            *(*_JUDGEMENT, "task", "condition", "injection", "demand", "demanded", "top"),
            *("clean_outcome", "clean", "score", "p_clean", "p_injected"),
        ),
        ("demanded", "top", "clean", "score", "p_clean", "p_injected"),
        (*WAY, "item", "condition", "injection", "demand"),
        "score",
    ),
    "features": _Shape(
        ("item", "chain", *_ABOUT_EDITS, "edit_type", "method"),
        _ABOUT_EDITS,
        ("item",),
    ),
    "internals": _Shape(
        ("model", "signal", "item", "chain", "condition", "score"),
        ("score",),
        ("model", "signal", "item", "condition"),
    ),
    "internals_localisation": _Shape(
        ("model", "signal", "item", "chain", "condition", *_PLACED, "n_candidates"),
        (*_PLACED, "n_candidates"),
        ("model", "signal", "item", "condition"),
    ),
}


@dataclass(frozen=True)
class Frames:
    """What was judged, and what the model's insides say of the same items.

    What was not run is left out: an empty frame. Numbers become floats, text becomes strings,
    probabilities of every verdict tuples, empty where none were read.

    Raises:
        ValueError: a column is missing, two rows are of one judgement, a verdict stands beside
            an outcome other than `parsed` or is none that the form admits, or probabilities
            are not of every verdict there is, together 1.
    """

    detection: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`condition`: perturbed | control; `score`: 1 follows, 0 does not; `p_flag`: probability
    of 0, of the scored reading only."""
    localisation: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`target`, `predicted`: 0-based steps, -1 for none; `n_middle`: steps among which targets
    were drawn; `final_score`: 1 where the same reply says that all steps are valid, 0 where it
    says that one is not, NaN where its form does not ask; of the scored reading `p_target` and
    `probabilities`, of -1 first and then of every step."""
    coverage: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`scale`: "0-4", "0-9" ...; `level`: share of the middle steps that was asked to be removed;
    of the scored reading `probabilities`, of every score from 0, and `expected`, their mean;
    `reference`: score of a judge that saw what was removed."""
    injection: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Asks with a text in their chain, each beside its twin without: `score`, `clean`: the two
    verdicts; `demanded`: the one that the text demands; `p_*`: its probability, of the scored
    reading; `top`: the greatest score of a scale, NaN of a step index."""
    features: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What the edits of the causal items are like, a row per item."""
    internals: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`score`: how suspicious a signal inside the model finds the step; higher is more."""
    internals_localisation: pd.DataFrame = field(default_factory=pd.DataFrame)
    """`predicted`: the step that a signal inside the model finds most suspicious, of the
    `n_candidates` that have a number; `n_middle`: how many of those targets were drawn among."""

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, checked(f.name, getattr(self, f.name)))


def checked(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its columns in order and of their kinds; see `Frames`."""
    shape = SHAPES[name]
    every = [*shape.columns, *([shape.distribution] if shape.distribution else [])]
    if frame.empty:
        return pd.DataFrame(columns=every).astype(dict.fromkeys(shape.numbers, float))
    check_rows(f"c2faith frame {name!r}", frame, shape.columns, shape.key)
    made = typed(frame, shape.columns, shape.numbers)
    if shape.distribution:
        given = frame[shape.distribution] if shape.distribution in frame else [None] * len(frame)
        made[shape.distribution] = pd.Series(
            [() if p is None or isinstance(p, float) else tuple(map(float, p)) for p in given],
            dtype=object,
        )
    kept = pd.DataFrame(made)
    if shape.verdict:
        _check_verdicts(name, kept, shape.verdict)
    if shape.distribution:
        _check_distributions(name, kept, shape.distribution)
    if "condition" in kept:
        # a chain with steps left out is neither, where one frame holds all tasks
        none = kept["task"] == "coverage" if "task" in kept else False
        known = kept["condition"].isin([PERTURBED, CONTROL])
        _refuse(name, kept, ~known & ~(none & (kept["condition"] == "")), "condition")
    return kept


def _check_verdicts(name: str, frame: pd.DataFrame, column: str) -> None:
    value = frame[column]
    said = value.notna()
    _refuse(name, frame, said != (frame["outcome"] == "parsed"), column)
    if name == "injection":
        _refuse(
            name, frame, frame["clean"].notna() != (frame["clean_outcome"] == "parsed"), "clean"
        )
        for beside in ("p_clean", "p_injected"):
            _refuse(name, frame, (frame[beside] < 0) | (frame[beside] > 1), beside)
        allowed = (value >= NO_STEP) & ~(value > frame["top"])
    elif name == "detection":
        allowed = value.isin([0, 1])
    elif name == "localisation":
        allowed = (value >= NO_STEP) & (value < frame["n_steps"])
        beside = frame["final_score"]
        _refuse(name, frame, beside.notna() & ~(said & beside.isin([0, 1])), "final_score")
    else:
        top = frame["scale"].map(maximum).astype(float)
        allowed = (value >= 0) & (value <= top)
        for beside in ("reference", "expected"):
            _refuse(name, frame, (frame[beside] < 0) | (frame[beside] > top), beside)
    _refuse(name, frame, said & ~allowed, column)


def _check_distributions(name: str, frame: pd.DataFrame, column: str) -> None:
    top = frame["n_steps"] - 1 if name == "localisation" else frame["scale"].map(maximum)
    low = NO_STEP if name == "localisation" else 0
    given, size = frame[column], frame[column].map(len)
    _refuse(name, frame, (size > 0) & (frame["outcome"] != "parsed"), column)
    _refuse(name, frame, (size > 0) & (size != top - low + 1), column)
    whole = [not p or (min(p) >= 0 and abs(math.fsum(p) - 1) < 1e-6) for p in given]
    _refuse(name, frame, ~np.array(whole), column)


def _refuse(name: str, frame: pd.DataFrame, wrong: Any, column: str) -> None:
    if wrong.any():
        row = frame.loc[wrong].iloc[0]
        about = ", ".join(f"{c} {row[c]}" for c in ("item", "outcome") if c in frame)
        raise ValueError(
            f"c2faith frame {name!r}: {column} = {row[column]} cannot be ({about}); a verdict "
            "stands in parsed rows, in all of them, and every value within its form's range"
        )


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


def who_spoke(said: pd.DataFrame) -> pd.DataFrame:
    """The columns of `verdicts_by_judge` that hold a verdict: a judge that never gives one would
    leave no item that all judged."""
    return said.dropna(axis=1, how="all")
