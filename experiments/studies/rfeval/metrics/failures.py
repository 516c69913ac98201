"""Why outputs are unfaithful, where their chains break, what r′ changes (RFEval, appendix F)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.stats import wilson
from faithscope.experiments.analysis.tidy import (
    columns,
    count,
    groups,
    keep,
    numbers,
    with_interval,
)
from faithscope.experiments.studies.rfeval.metrics.chains import LINKS
from faithscope.experiments.studies.rfeval.metrics.frames import included, with_overall

VIOLATIONS = ("baseline_inconsistent", "intervened_inconsistent", "no_influence", "several")
BASELINE_LINKS = ("re", "ea", "ra")
INTERVENED_LINKS = tuple(LINKS)
CAUSALITY = ("both", "reasoning", "answer")
CAUSALITY_UNFAITHFUL, CAUSALITY_ALL = "causality_unfaithful", "causality_all"
BEHAVIOURS = (
    *("misled", "self_correcting", "silently_correcting"),
    *("incoherent", "inert", "ornamental"),
)
SHARES = ["reader", "by", "group", "statistic", "value", "n_of", "n"]
SHARES += with_interval("share")


def failure_shares(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the unfaithful, the share that fails each condition (Tables 17 and 21).

    `statistic` is `violation` (`chains.violation_of`): these add up to 1, as the paper's do with
    its column "Other", which is `several`: both chains break. Beside them `fails_…`: all that
    fail the condition, whatever else they fail.
    """
    frame = _unfaithful(scored)
    parts = [_shares(frame, "violation", frame["violation"], VIOLATIONS)]
    for name, column in zip(VIOLATIONS, ("baseline_chi", "intervened_chi", "kappa"), strict=False):
        said = np.where(numbers(frame[column]) == 0, "yes", "no")
        parts.append(_shares(frame, f"fails_{name}", said, ("yes",)))
    return pd.concat(parts, ignore_index=True)


def failure_locations(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the chains that break, where they break first (Tables 18, 19, 22 and 23).

    `statistic` is `baseline_break` or `intervened_break`, `value` the transition: pr (r′ to r),
    re, ea, ra. Over the unfaithful, as all of appendix F.
    """
    frame = _unfaithful(scored)
    made = []
    for name, links in (
        ("baseline_break", BASELINE_LINKS),
        ("intervened_break", INTERVENED_LINKS),
    ):
        broken = frame.loc[frame[name] != ""]
        made.append(_shares(broken, name, broken[name], links))
    return pd.concat(made, ignore_index=True)


def causality_types(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the pairs in which r′ changes anything, what it changes (Tables 20 and 24).

    `statistic` is `causality_unfaithful`, of the unfaithful pairs alone, as appendix F says of
    "all shares below", or `causality_all`, of all included.
    """
    made = []
    for statistic, of in (
        (CAUSALITY_UNFAITHFUL, _unfaithful(scored)),
        (CAUSALITY_ALL, included(scored)),
    ):
        moved = of.loc[of["causality"] != "neither"]
        made.append(_shares(moved, statistic, moved["causality"], CAUSALITY))
    return pd.concat(made, ignore_index=True)


def behaviours(scored: pd.DataFrame) -> pd.DataFrame:
    """What models do with r′, as shares of the included (`chains.behaviour_of`)."""
    frame = included(scored)
    return _shares(frame, "behaviour", frame["behaviour"], BEHAVIOURS)


def _unfaithful(scored: pd.DataFrame) -> pd.DataFrame:
    frame = included(scored)
    return keep(frame, frame["rf"] == 0)


def _shares(frame: pd.DataFrame, statistic: str, said: Any, values: Sequence[str]) -> pd.DataFrame:
    """By model and by task, and over all: `n_of` pairs, `n` of them with the value."""
    frame = frame.assign(_said=said)
    made: list[dict[str, Any]] = []
    for by in ("model", "task"):
        for key, of in groups(with_overall(frame, by), ("reader", by)):
            group = key[by]
            if by == "task" and group == "overall":
                continue  # the same as of all models
            for value in values:
                n = count(of["_said"] == value)
                row = {"reader": key["reader"], "by": by, "group": group, "statistic": statistic}
                row |= {"value": value, "n_of": len(of), "n": n}
                made.append(row | columns("share", wilson(n, len(of))))
    return pd.DataFrame(made, columns=SHARES)
