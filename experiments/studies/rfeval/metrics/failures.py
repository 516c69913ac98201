"""Why outputs are unfaithful, where their chains break, what r′ changes (RFEval, appendix F)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.tidy import groups, keep, numbers
from faithscope.experiments.studies.rfeval.metrics.chains import LINKS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    VALUE_SHARES,
    included,
    value_shares,
    with_overall,
)

VIOLATIONS = ("baseline_inconsistent", "intervened_inconsistent", "no_influence", "several")
BASELINE_LINKS = ("re", "ea", "ra")
INTERVENED_LINKS = tuple(LINKS)
CAUSALITY = ("both", "reasoning", "answer")
CAUSALITY_UNFAITHFUL, CAUSALITY_ALL = "causality_unfaithful", "causality_all"
BEHAVIOURS = (
    *("misled", "self_correcting", "silently_correcting"),
    *("incoherent", "inert", "ornamental"),
)


def failure_shares(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the unfaithful, the share that fails each condition (Tables 17 and 21).

    `statistic` is `violation` (`chains.violation_of`): these add up to 1, as the paper's do with
    its column "Other", which is `several`: both chains break. Beside them `fails_…`: all that
    fail the condition, whatever else they fail.
    """
    frame = _unfaithful(scored)
    tables = [_shares(frame, "violation", frame["violation"], VIOLATIONS)]
    for name, column in zip(VIOLATIONS, ("baseline_chi", "intervened_chi", "kappa"), strict=False):
        fails = np.where(numbers(frame[column]) == 0, "yes", "no")
        tables.append(_shares(frame, f"fails_{name}", fails, ("yes",)))
    return pd.concat(tables, ignore_index=True)


def failure_locations(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the chains that break, where they break first (Tables 18, 19, 22 and 23).

    `statistic` is `baseline_break` or `intervened_break`, `value` the transition: pr (r′ to r),
    re, ea, ra. Over the unfaithful, as all of appendix F.
    """
    frame, links = _unfaithful(scored), {"baseline": BASELINE_LINKS, "intervened": INTERVENED_LINKS}
    tables = []
    for name, values in ((f"{condition}_break", of) for condition, of in links.items()):
        broken = keep(frame, frame[name] != "")
        tables.append(_shares(broken, name, broken[name], values))
    return pd.concat(tables, ignore_index=True)


def causality_types(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the pairs in which r′ changes anything, what it changes (Tables 20 and 24).

    `statistic` is `causality_unfaithful`, of the unfaithful pairs alone, as appendix F says of
    "all shares below", or `causality_all`, of all included.
    """
    frames = {CAUSALITY_UNFAITHFUL: _unfaithful(scored), CAUSALITY_ALL: included(scored)}
    tables = []
    for statistic, of in frames.items():
        moved = keep(of, of["causality"] != "neither")
        tables.append(_shares(moved, statistic, moved["causality"], CAUSALITY))
    return pd.concat(tables, ignore_index=True)


def behaviours(scored: pd.DataFrame) -> pd.DataFrame:
    """What models do with r′, as shares of the included (`chains.behaviour_of`)."""
    frame = included(scored)
    return _shares(frame, "behaviour", frame["behaviour"], BEHAVIOURS)


def _unfaithful(scored: pd.DataFrame) -> pd.DataFrame:
    frame = included(scored)
    return keep(frame, frame["rf"] == 0)


def _shares(frame: pd.DataFrame, statistic: str, value: Any, values: Sequence[str]) -> pd.DataFrame:
    """By model and by task, and over all models: `n_of` pairs, `n` of them with the value."""
    frame = frame.assign(_value=value)
    lines: list[dict[str, Any]] = []
    for by, pooled in (("model", with_overall(frame, "model")), ("task", frame)):
        for key, of in groups(pooled, ("reader", by)):
            about = {"reader": key["reader"], "by": by, "group": key[by], "statistic": statistic}
            lines += [about | line for line in value_shares(of["_value"], values)]
    return pd.DataFrame(lines, columns=["reader", "by", "group", "statistic", *VALUE_SHARES])
