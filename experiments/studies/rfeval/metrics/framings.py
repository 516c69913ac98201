"""Models into whose mouth r′ was put, and those to which it was only quoted, kept apart.

The paper leaves the latter out of its comparison of models (appendix G.2): what they score says
also whether they took r′ for their own words. Here they stand in every table that has a row per
model, with their framing, and whatever pools or compares models has those of one framing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from faithscope.experiments.analysis.tidy import keep
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL
from faithscope.experiments.studies.rfeval.subjects.injection import MULTI_TURN, PREFIX, Framing

ORDER: tuple[Framing, ...] = (PREFIX, MULTI_TURN)
Make = Callable[[pd.DataFrame], pd.DataFrame]


def with_framing(scored: pd.DataFrame, framings: Mapping[str, Framing]) -> pd.DataFrame:
    """The frame with a column `framing` behind `model`."""
    return _named(scored, [framings.get(model, PREFIX) for model in scored["model"]])


def framings_in(table: pd.DataFrame) -> list[Framing]:
    """The framings of a table, the one that models are compared in first."""
    there = set(table["framing"])
    return [framing for framing in ORDER if framing in there]


def leading(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the framing that models are compared in: `prefix`, where any model has it."""
    return _of(table, framings_in(table)[0]) if len(table) else table


def apart(make: Make, scored: pd.DataFrame) -> pd.DataFrame:
    """A table made of each framing by itself, one under the other, with the column `framing`.

    Rows that pool models pool those of one framing; they add up within it.
    """
    framings = framings_in(scored) or [PREFIX]
    tables = [_named(make(_of(scored, framing)), framing) for framing in framings]
    return pd.concat(tables, ignore_index=True)


def each_model(make: Make, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with columns `by` and `group`: of the leading framing whole, of the other framing
    the rows of single models."""
    framings = framings_in(frame)
    if len(framings) < 2:
        return make(frame)
    whole, other = (make(_of(frame, framing)) for framing in framings)
    own = other.loc[(other["by"] == "model") & (other["group"] != OVERALL)]
    return pd.concat([whole, own], ignore_index=True)


def comparable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `apart` without the rows that pool models of a framing that does not lead."""
    lead = framings_in(table)[:1]
    kept = keep(table, (table["model"] != OVERALL) | table["framing"].isin(lead))
    return kept.reset_index(drop=True)


def _named(table: pd.DataFrame, framing: str | list[Framing]) -> pd.DataFrame:
    named = table.copy()
    behind = list(table.columns).index("model") + 1
    named.insert(behind, "framing", pd.Series(framing, named.index, str))
    return named


def _of(table: pd.DataFrame, framing: Framing) -> pd.DataFrame:
    return keep(table, table["framing"] == framing)
