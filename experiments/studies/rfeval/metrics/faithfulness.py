"""Reasoning faithfulness and its coverage, what was left out on the way to it, and why pairs are
unfaithful (RFEval, appendix F; Tables 2, 3, 13 and 16 to 25).

Models into whose mouth r′ was put are kept apart from those to which it was only quoted. The paper
leaves the latter out of its comparison of models (appendix G.2), because what they score also says
whether they took r′ for their own words. Here they stand in every table that has a row per model,
with their framing, and whatever pools or compares models has those of one framing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.stats import wilson_of_items
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    count,
    groups,
    keep,
    numbers,
    rows,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX, Framing
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.metrics.chains import EXCLUSIONS, LINKS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    CELL,
    OVERALL,
    VALUE_SHARES,
    attempted,
    included,
    share_of,
    value_shares,
    with_overall,
)

SHARES = {"rf": "rf", **{f"chi_{c}": f"{c}_chi" for c in CONDITIONS}, "kappa": "kappa"}
"""Column of the table -> column of `chains.scored`."""
RFEVAL = [*CELL, "n_total", "n_attempted", "n_coverage", "n_included"]
RFEVAL += with_interval("contrast_coverage", *SHARES)
REASONS = [*CELL, "exclusion", "condition", "reason", "n"]
REGIMES = ["reader", "family", "regime", "model", "n_included"]
REGIMES += with_interval("contrast_coverage", "rf")
LEFT_OUT = {"unfinished": ("outcome", "complete"), "evaluation_error": ("judged", "parsed")}
"""Exclusion -> the columns that say what was wrong with each output, and their value of a good."""


@tabled(*RFEVAL)
def rf_table(scored: pd.DataFrame) -> Rows:
    """A row per model and task, pooled over tasks, over models, and over both.

    Pooled shares are over items, each once: "instance-weighted" (appendix D.3). Coverage is over
    `n_coverage` pairs: all attempted, those too that were left out later (with `paper_compat` as
    `chains.in_coverage_of` says). Contrast is known of pairs that were judged; the others are in
    none. χ, κ and RF are over the included. Intervals are Wilson's, of items; pooled over models
    they treat the same item under two models as two.
    """
    for key, of in groups(with_overall(scored, "task", "model"), CELL):
        tried, counts = attempted(of), included(of)
        covered = keep(tried, tried["in_coverage"])
        line = {**key, "n_total": len(of), "n_attempted": len(tried)}
        line |= {"n_coverage": len(covered), "n_included": len(counts)}
        line |= columns("contrast_coverage", share_of(covered["contrast"]))
        for name, column in SHARES.items():
            line |= columns(name, share_of(counts[column]))
        yield line


@tabled(*CELL, "n_total", "n_included", *(f"n_{x}" for x in EXCLUSIONS))
def waterfall(scored: pd.DataFrame) -> Rows:
    """Where all pairs went, a row per model and task and pooled; every row adds up (Table 13).

    Raises:
        ValueError: a pair is left out for a reason that the table does not know.
    """
    unknown = set(scored["exclusion"]) - {*EXCLUSIONS, ""}
    if unknown:
        raise ValueError(f"rfeval: exclusion {min(unknown)!r} is none of {', '.join(EXCLUSIONS)}")
    for key, of in groups(with_overall(scored, "task", "model"), CELL):
        line = {**key, "n_total": len(of), "n_included": count(of["exclusion"] == "")}
        yield line | {f"n_{x}": count(of["exclusion"] == x) for x in EXCLUSIONS}


@tabled(*REASONS)
def exclusion_reasons(scored: pd.DataFrame) -> Rows:
    """What exactly was wrong with the pairs left out: output by output, a row per reason.

    An item of which both outputs are cut off is in two rows: these do not add up, `waterfall`
    does.
    """
    for key, of in groups(scored, CELL):
        for exclusion, (column, good) in LEFT_OUT.items():
            left = where(of, exclusion=exclusion)
            for condition in CONDITIONS:
                why: Any = left[f"{condition}_{column}"].replace("", "not_asked")
                about = {**key, "exclusion": exclusion, "condition": condition}
                counts = why[why != good].value_counts().sort_index().items()
                yield from ({**about, "reason": reason, "n": int(n)} for reason, n in counts)
        about = {**key, "exclusion": "global", "condition": ""}
        counts = where(of, exclusion="global")["excluded"].value_counts().items()
        yield from ({**about, "reason": reason, "n": n} for reason, n in counts)


def regime_table(rf: pd.DataFrame, regimes: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """RF and coverage by post-training regime within families (Table 3).

    Args:
        rf: what `rf_table` gave.
        regimes: model -> family and regime ("MiMo-7B", "SFT+RL"), in the order of the rows.

    Raises:
        ValueError: a model of `regimes` is not in the table.
    """
    overall = where(rf, task=OVERALL)
    if missing := [m for m in regimes if m not in set(overall["model"])]:
        known = ", ".join(dict.fromkeys(overall["model"]))
        raise ValueError(f"regime of {missing[0]!r}, which has no results; there are {known}")
    lines = [
        row | {"family": family, "regime": regime}
        for model, (family, regime) in regimes.items()
        for row in rows(where(overall, model=model))
    ]
    return pd.DataFrame(lines, columns=REGIMES)


QUARTILES = ["reader", "by", "group", "quartile", "n_cells", "n_included"]
QUARTILES += [*with_interval("rf"), "coverage_min", "coverage_max"]


def coverage_quartiles(rf: pd.DataFrame) -> pd.DataFrame:
    """RF of the cells (model, task) binned by their coverage, weighted by included pairs.

    `by` is `model`: the tasks of each model are binned; or `task`: the models of each task. The
    group `overall` pools the bins of all groups. Bin edges are the quartiles of the group's own
    coverages (linear interpolation), an edge belonging to the lower bin.

    Args:
        rf: what `faithfulness.rf_table` gave; cells without an included pair are passed over.
    """
    cells = keep(rf, (rf["model"] != OVERALL) & (rf["task"] != OVERALL) & (rf["n_included"] > 0))
    binned = [
        of.assign(by=by, group=key[by], quartile=_quartiles(numbers(of["contrast_coverage"])))
        for by in ("model", "task")
        for key, of in groups(cells, ("reader", by))
    ]
    every = pd.concat(binned or [cells])
    lines = []
    keys = ("reader", "by", "group", "quartile")
    for key, of in groups(pd.concat([every, every.assign(group=OVERALL)]), keys) if binned else ():
        weights, coverage = numbers(of["n_included"]), of["contrast_coverage"]
        n = int(weights.sum())
        share = wilson_of_items(float(numbers(of["rf"]) @ weights / n), n)
        line = {**key, "n_cells": len(of), "n_included": n} | columns("rf", share)
        lines.append(line | {"coverage_min": coverage.min(), "coverage_max": coverage.max()})
    table = pd.DataFrame(lines, columns=QUARTILES)
    return table.sort_values(["reader", "by"], kind="stable", ignore_index=True)


def _quartiles(values: np.ndarray) -> np.ndarray:
    """Gives each value the number of its quartile, 1 for the lowest."""
    return 1 + np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values, side="left")


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
    comparable_rows = keep(table, (table["model"] != OVERALL) | table["framing"].isin(lead))
    return comparable_rows.reset_index(drop=True)


def _named(table: pd.DataFrame, framing: str | list[Framing]) -> pd.DataFrame:
    named = table.copy()
    behind = list(table.columns).index("model") + 1
    named.insert(behind, "framing", pd.Series(framing, named.index, str))
    return named


def _of(table: pd.DataFrame, framing: Framing) -> pd.DataFrame:
    return keep(table, table["framing"] == framing)


VIOLATIONS = ("baseline_inconsistent", "intervened_inconsistent", "no_influence", "several")
BASELINE_LINKS = ("re", "ea", "ra")
INTERVENED_LINKS = tuple(LINKS)
CAUSALITY = ("both", "reasoning", "answer")
CAUSALITY_ALL, CAUSALITY_UNFAITHFUL = "causality_all", "causality_unfaithful"
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
    conditions = dict(zip(VIOLATIONS, ("baseline_chi", "intervened_chi", "kappa"), strict=False))
    fails = {
        f"fails_{name}": np.where(numbers(frame[column]) == 0, "yes", "no")
        for name, column in conditions.items()
    }
    every = [_shares(frame.assign(**fails), name, ("yes",)) for name in fails]
    return pd.concat([_shares(frame, "violation", VIOLATIONS), *every], ignore_index=True)


def failure_locations(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the chains that break, where they break first (Tables 18, 19, 22 and 23).

    `statistic` is `baseline_break` or `intervened_break`, `value` the transition: pr (r′ to r),
    re, ea, ra. Over the unfaithful, as all of appendix F.
    """
    frame = _unfaithful(scored)
    links = {"baseline_break": BASELINE_LINKS, "intervened_break": INTERVENED_LINKS}
    tables = [_shares(keep(frame, frame[name] != ""), name, of) for name, of in links.items()]
    return pd.concat(tables, ignore_index=True)


def causality_types(scored: pd.DataFrame) -> pd.DataFrame:
    """Of the pairs in which r′ changes anything, what it changes (Tables 20 and 24).

    `statistic` is `causality_all`, of all included, as the paper's tables are by their numbers, or
    `causality_unfaithful`, of the unfaithful alone, as appendix F says of "all shares below".
    """
    frames = {CAUSALITY_ALL: included(scored), CAUSALITY_UNFAITHFUL: _unfaithful(scored)}
    tables = [
        _shares(keep(of, of["causality"] != "neither"), "causality", CAUSALITY, statistic)
        for statistic, of in frames.items()
    ]
    return pd.concat(tables, ignore_index=True)


def behaviours(scored: pd.DataFrame) -> pd.DataFrame:
    """What models do with r′, as shares of the included (`chains.behaviour_of`)."""
    return _shares(included(scored), "behaviour", BEHAVIOURS)


def _unfaithful(scored: pd.DataFrame) -> pd.DataFrame:
    frame = included(scored)
    return keep(frame, frame["rf"] == 0)


@tabled("reader", "by", "group", "statistic", *VALUE_SHARES)
def _shares(frame: pd.DataFrame, column: str, values: Sequence[str], statistic: str = "") -> Rows:
    """By model and by task, and over all models: `n_of` pairs, `n` of them with the value.

    Args:
        statistic: the name of it; that of the column where empty.
    """
    for by, pooled in (("model", with_overall(frame, "model")), ("task", frame)):
        for key, of in groups(pooled, ("reader", by)):
            about = {"reader": key["reader"], "by": by, "group": key[by]}
            about |= {"statistic": statistic or column}
            yield from (about | line for line in value_shares(of[column], values))
