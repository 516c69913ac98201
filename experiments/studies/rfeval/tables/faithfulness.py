"""Reasoning faithfulness and its coverage, what was left out on the way to it, and why pairs are
unfaithful (RFEval, appendix F; Tables 2, 3, 13 and 16 to 25).

Models with a prefilled r′ are kept apart from models to which it was only quoted. The paper
leaves the latter out of its comparison of models (appendix G.2), because what they score also says
whether they took r′ for their own words. Here they stand in every table that has a row per model,
with their framing, and whatever pools or compares models has those of one framing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import (
    Count,
    Kept,
    Lines,
    Mask,
    Mean,
    Numbers,
    Share,
    all_of,
    levels,
    rows_with,
    rows_without,
)
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.statistics.stats import wilson_of_items
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.analysis.tidy import columns, groups, keep, numbers, where
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX, Framing
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.tables.chains import EXCLUSIONS, LINKS
from faithscope.experiments.studies.rfeval.tables.frames import FRAMING, READER

ORDER: tuple[Framing, ...] = (PREFIX, MULTI_TURN)


def with_framing(scored: pd.DataFrame, framings: Mapping[str, Framing]) -> pd.DataFrame:
    """The frame with a column `framing` after `model`."""
    return _named(scored, [framings.get(model, PREFIX) for model in scored["model"]])


def framings_in(table: pd.DataFrame) -> list[Framing]:
    """The framings of a table; the one that models are compared in comes first."""
    there = set(table["framing"])
    return [framing for framing in ORDER if framing in there]


def leading(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the framing that models are compared in: `prefix`, if any model has it."""
    return _of(table, framings_in(table)[0]) if len(table) else table


def lead_first(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the framing that models are compared in, then the rows of the other framing."""
    parts = [_of(table, framing) for framing in framings_in(table)]
    return pd.concat(parts, ignore_index=True) if parts else table


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


BY_GROUP = (
    Column("by", meaning="What pairs are grouped by: their model or their task."),
    Column("group", meaning="The model or the task; `overall` pools all models."),
)
POOL = ("task", "model")
BY_CELL = (READER, "model", FRAMING, "task")
LEFT_OUT = {"unfinished": ("outcome", "complete"), "evaluation_error": ("judged", "parsed")}
"""Exclusion -> the column that says what was wrong with an output, and its value for a good one."""


ATTEMPTED = rows_without(exclusion="global")
"""Mask of the pairs that were not left out before anything else (appendix C.4)."""
COVERED = all_of(ATTEMPTED, rows_with(in_coverage=True))
"""Mask of the pairs that contrast coverage is of."""
COUNTS = rows_with(exclusion="")
"""Mask of the pairs that count: complete, judged, in contrast."""
UNFAITHFUL = rows_with(exclusion="", rf=0)
"""Mask of the pairs that count and are unfaithful."""
N_TOTAL = Count(
    "n_total",
    label="pairs",
    meaning="All pairs of an output without r′ and one under it, before any is left out.",
)
N_INCLUDED = Count("n_included", COUNTS, "pairs that count", "Complete, judged and in contrast.")
RF = Share("rf", "rf", COUNTS, "RF", "Share of the pairs that count with χ(o) · χ(o′) · κ = 1.")
COVERAGE = Share(
    "contrast_coverage",
    "contrast",
    COVERED,
    meaning="Among pairs in the coverage denominator, the share with contrast.",
)
RF_CELLS = (
    N_TOTAL,
    Count(
        "n_attempted", ATTEMPTED, "pairs attempted", "Pairs whose item was not left out beforehand."
    ),
    Count(
        "n_coverage",
        COVERED,
        "pairs that coverage is of",
        "Attempted pairs that contrast coverage is of: all, or with paper_compat those with a "
        "usable output.",
    ),
    N_INCLUDED,
    COVERAGE,
    RF,
    Share(
        "chi_baseline",
        "baseline_chi",
        COUNTS,
        "χ(o)",
        "Share of outputs without r′ that are consistent.",
    ),
    Share(
        "chi_intervened",
        "intervened_chi",
        COUNTS,
        "χ(o′)",
        "Share of outputs under r′ that are consistent.",
    ),
    Share("kappa", "kappa", COUNTS, "κ", "Share of pairs in which r′ changes reasoning or answer."),
)
RFEVAL = Table("rfeval", "pairs", BY_CELL, RF_CELLS, pool=POOL, prepare=lead_first, apart="framing")
"""RF, coverage and their parts, a row per model and task, pooled over tasks, models, and both.

Pooled shares are over items, each once: "instance-weighted" (appendix D.3). Coverage is over
`n_coverage` pairs: all attempted, those too that were left out later (with `paper_compat` as
`chains.in_coverage_of` says). Contrast is known of pairs that were judged; the others are in
none. χ, κ and RF are over the included. Intervals are Wilson's, of items; pooled over models
they treat the same item under two models as two.
"""
WITHOUT_JUDGE = replace(RFEVAL, name="rf_without_judge", of="unjudged")


def _reasons_known(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of the leading framing first.

    Raises:
        ValueError: a pair is left out for a reason that has no column, so that rows would not add
            up.
    """
    if unknown := set(pairs["exclusion"]) - {*EXCLUSIONS, ""}:
        raise ValueError(f"rfeval: exclusion {min(unknown)!r} is none of {', '.join(EXCLUSIONS)}")
    return lead_first(pairs)


WATERFALL = Table(
    "rf_waterfall",
    "pairs",
    BY_CELL,
    (
        N_TOTAL,
        N_INCLUDED,
        *(
            Count(f"n_{reason}", rows_with(exclusion=reason), label, meaning)
            for reason, (label, meaning) in EXCLUSIONS.items()
        ),
    ),
    pool=POOL,
    prepare=_reasons_known,
    apart="framing",
)
"""Pairs that count, and pairs left out by reason, a row per model and task and pooled; the counts
of a row add up to its total (Table 13)."""
WITHOUT_JUDGE_WATERFALL = replace(WATERFALL, name="rf_without_judge_waterfall", of="unjudged")


def _reasons(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for exclusion, (column, good) in LEFT_OUT.items():
        left = where(pairs, exclusion=exclusion)
        for condition in CONDITIONS:
            why: Any = left[f"{condition}_{column}"].replace("", "not_asked")
            about = {"exclusion": exclusion, "condition": condition}
            numbers_of_reasons = why[why != good].value_counts().sort_index().items()
            yield from (about | {"reason": x, "n": int(n)} for x, n in numbers_of_reasons)
    globally = where(pairs, exclusion="global")["excluded"].value_counts().items()
    about = {"exclusion": "global", "condition": ""}
    yield from (about | {"reason": reason, "n": n} for reason, n in globally)


EXCLUSION_REASONS_COLUMNS = (
    Column("exclusion", meaning="Why the pairs do not count."),
    Column("condition", meaning="The output: without r′ (baseline) or under it."),
    SHARED["reason"],
    Column("n", meaning="Pairs left out for the reason."),
)
EXCLUSION_REASONS = Table(
    "rf_exclusion_reasons",
    "pairs",
    (READER, "model", "task"),
    lines=[Lines(EXCLUSION_REASONS_COLUMNS, _reasons)],
)
"""Reasons why pairs were left out, output by output, a row per reason.

An item with both outputs cut off is in two rows: these do not add up, those of `WATERFALL` do.
"""


def by_regime(rf: pd.DataFrame, models: pd.DataFrame) -> pd.DataFrame:
    """The rows of `RFEVAL` over all tasks of the models whose regime is known, in their order.

    Args:
        models: `model`, `family` and `regime` ("MiMo-7B", "SFT+RL"), "" where it is not compared.

    Raises:
        ValueError: such a model is not in the table.
    """
    overall = where(rf, task=OVERALL)
    compared = keep(models, models["family"] != "")[["model", "family", "regime"]]
    if missing := [m for m in compared["model"] if m not in set(overall["model"])]:
        known = ", ".join(dict.fromkeys(overall["model"]))
        raise ValueError(f"regime of {missing[0]!r}, which has no results; there are {known}")
    return compared.merge(overall, on="model")


REGIMES = Table(
    "rf_regimes",
    ("rfeval", "models"),
    (
        READER,
        Column("family", meaning="The family of models."),
        Column("regime", meaning="How the model was trained after its pretraining."),
        "model",
    ),
    (Kept((*N_INCLUDED.columns, *COVERAGE.columns, *RF.columns)),),
    prepare=by_regime,
)
"""RF and coverage by post-training regime within families (Table 3)."""


def by_quartile(rf: pd.DataFrame) -> pd.DataFrame:
    """The cells (model, task) with `by`, `group` and the quartile of their coverage in the group.

    For a framing that does not lead, only the tasks of each model are binned.

    Args:
        rf: the table `RFEVAL`; cells without an included pair are passed over.
    """
    cells = keep(rf, (rf["model"] != OVERALL) & (rf["task"] != OVERALL) & (rf["n_included"] > 0))
    lead = framings_in(cells)[:1]
    binned = [
        of.assign(by=by, group=key[by], quartile=_quartiles(numbers(of["contrast_coverage"])))
        for by in ("model", "task")
        for key, of in groups(cells, ("framing", "reader", by))
        if by == "model" or key["framing"] in lead
    ]
    if not binned:
        return cells.assign(by="", group="", quartile=0)
    every = pd.concat(binned)
    overall = keep(every, every["framing"].isin(lead)).assign(group=OVERALL)
    whole = pd.concat([every, overall]).sort_values(["reader", "by"], kind="stable")
    return lead_first(whole)


def _quartiles(values: np.ndarray) -> np.ndarray:
    """Gives each value the number of its quartile, 1 for the lowest."""
    return 1 + np.searchsorted(np.quantile(values, [0.25, 0.5, 0.75]), values, side="left")


def _weighted_rf(cells: pd.DataFrame, how: Bootstrap) -> dict[str, Any]:
    weights = numbers(cells["n_included"])
    n = int(weights.sum())
    share = wilson_of_items(float(numbers(cells["rf"]) @ weights / n), n)
    return {"n_included": n} | columns("rf", share)


COVERAGE_QUARTILES = Table(
    "rf_coverage_quartiles",
    "rfeval",
    (
        READER,
        *BY_GROUP,
        Column("quartile", meaning="Quartile of contrast coverage, 1 is the lowest."),
    ),
    (
        Count(
            "n_cells", label="models × tasks", meaning="Pairs of model and task in the quartile."
        ),
        Numbers((*N_INCLUDED.columns, *RF.columns), _weighted_rf),
        Mean(
            "coverage_min",
            "contrast_coverage",
            label="coverage, least",
            meaning="Least contrast coverage of a pair of model and task in the quartile.",
            statistic="min",
        ),
        Mean(
            "coverage_max",
            "contrast_coverage",
            label="coverage, most",
            meaning="Greatest contrast coverage of a pair of model and task in the quartile.",
            statistic="max",
        ),
    ),
    prepare=by_quartile,
    apart="framing",
)
"""RF of the cells (model, task) binned by their coverage, weighted by included pairs.

`by` is `model`: the tasks of each model are binned; or `task`: the models of each task. The
group `overall` pools the bins of all groups. Bin edges are the quartiles of the group's own
coverages (linear interpolation), an edge belonging to the lower bin.
"""


VIOLATIONS = ("baseline_inconsistent", "intervened_inconsistent", "no_influence", "several")
BASELINE_LINKS = ("re", "ea", "ra")
INTERVENED_LINKS = tuple(LINKS)
CAUSALITY = ("both", "reasoning", "answer")
CAUSALITY_ALL, CAUSALITY_UNFAITHFUL = "causality_all", "causality_unfaithful"
BEHAVIOURS = (
    *("misled", "self_correcting", "silently_correcting"),
    *("incoherent", "inert", "ornamental"),
)


def by_model_and_task(pairs: pd.DataFrame) -> pd.DataFrame:
    """Each pair once for its model, once for all models and once for its task (`by`, `group`).

    Pairs of a framing that does not lead are there for their model alone, behind the others:
    whatever pools or compares models has those of one framing.
    """
    lead, whole = leading(pairs), lead_first(pairs)
    other = whole.iloc[len(lead) :]
    return pd.concat(
        [
            lead.assign(by="model", group=lead["model"]),
            lead.assign(by="model", group=OVERALL),
            lead.assign(by="task", group=lead["task"]),
            other.assign(by="model", group=other["model"]),
        ]
    )


def _shares_table(name: str, *lines: Lines) -> Table:
    return Table(
        name, "pairs", (READER, *BY_GROUP), prepare=by_model_and_task, lines=lines, apart="framing"
    )


def _fails(condition: str, column: str) -> Lines:
    failing = lambda pairs: np.where(numbers(pairs[column]) == 0, "yes", "no")  # noqa: E731
    return levels(failing, ("yes",), f"fails_{condition}", UNFAITHFUL)


FAILURE_SHARES = _shares_table(
    "rf_failure_shares",
    levels("violation", VIOLATIONS, "violation", UNFAITHFUL),
    _fails("baseline_inconsistent", "baseline_chi"),
    _fails("intervened_inconsistent", "intervened_chi"),
    _fails("no_influence", "kappa"),
)
"""Share of the unfaithful pairs that fail each condition (Tables 17 and 21).

`statistic` is `violation` (`chains.violation_of`): these add up to 1, as the paper's do with
its column "Other", which is `several`: both chains break. Beside them `fails_…`: all that
fail the condition, whatever else they fail.
"""


def _breaks(condition: str, links: Sequence[str]) -> Lines:
    name = f"{condition}_break"
    return levels(name, links, name, all_of(UNFAITHFUL, rows_without(**{name: ""})))


FAILURE_LOCATIONS = _shares_table(
    "rf_failure_locations",
    _breaks("baseline", BASELINE_LINKS),
    _breaks("intervened", INTERVENED_LINKS),
)
"""First broken transition of the chains that break, as shares (Tables 18, 19, 22 and 23).

`statistic` is `baseline_break` or `intervened_break`, `value` the transition: pr (r′ to r),
re, ea, ra. Over the unfaithful, as all of appendix F.
"""


def _changes(statistic: str, among: Mask) -> Lines:
    changed = all_of(among, rows_without(causality="neither"))
    return levels("causality", CAUSALITY, statistic, changed)


CAUSALITY_TYPES = _shares_table(
    "rf_causality", _changes(CAUSALITY_ALL, COUNTS), _changes(CAUSALITY_UNFAITHFUL, UNFAITHFUL)
)
"""Part of the output that changes, in the pairs in which r′ changes anything (Tables 20 and 24).

`statistic` is `causality_all`, of all included, as the paper's tables are by their numbers, or
`causality_unfaithful`, of the unfaithful alone, as appendix F says of "all shares below".
"""
BEHAVIOUR_SHARES = _shares_table(
    "rf_behaviours", levels("behaviour", BEHAVIOURS, "behaviour", COUNTS)
)
"""Shares of the included pairs by what the model does with r′ (`chains.behaviour_of`)."""
TABLES = (
    RFEVAL,
    COVERAGE_QUARTILES,
    WATERFALL,
    EXCLUSION_REASONS,
    REGIMES,
    FAILURE_SHARES,
    FAILURE_LOCATIONS,
    CAUSALITY_TYPES,
    BEHAVIOUR_SHARES,
    WITHOUT_JUDGE,
    WITHOUT_JUDGE_WATERFALL,
)
