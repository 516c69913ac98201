"""What goes on inside a model by what a judge saw it do: which sign tells which behaviour.

Signs inside (`rfeval.inside.looking`) over the pairs of `metrics.inside_frame`, the included
ones, as everywhere.

Signs at the end of a trace (`p_final`, `final_lead`, `never_turned`) tell misled from corrected
outputs nearly by construction, for the answer follows the text. Silent against open correction they
need not tell: both end away from r′.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.tidy import (
    columns,
    groups,
    keep,
    numbers,
    only,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.inside.trace_signals import POSITIONS, TURNS, Traced
from faithscope.experiments.studies.rfeval.metrics.failures import BEHAVIOURS, CAUSALITY, VIOLATIONS
from faithscope.experiments.studies.rfeval.metrics.frames import (
    KEY,
    VALUE_SHARES,
    WAY,
    value_shares,
    with_overall,
)
from faithscope.experiments.studies.rfeval.metrics.inside_frame import (
    FAMILIES,
    SIGNALS,
    by_output,
    inside_frame,
    named_option,
)
from faithscope.experiments.studies.rfeval.metrics.within import auroc_within, holm, rank_sum_p

KINDS: dict[str, tuple[Any, ...]] = {
    "behaviour": BEHAVIOURS,
    "violation": ("", *VIOLATIONS),
    "causality": (*CAUSALITY, "neither"),
    "intervened_chi": (1.0, 0.0),
    "kappa": (1.0, 0.0),
    "rf": (1.0, 0.0),
}
"""What the pairs are grouped by, and its values; violation "" is `none`."""
OPEN = ("self_correcting", "inert")
"""Rejections in so many words: of `inert` the chain holds though reasoning and answer are as
without r′, which they can be only where a flaw in r′ was named."""
CONTRASTS: dict[str, tuple[str, tuple[Any, ...], tuple[Any, ...]]] = {
    "silent_vs_self_correcting": ("behaviour", ("silently_correcting",), ("self_correcting",)),
    "silent_vs_open": ("behaviour", ("silently_correcting",), OPEN),
    "misled_vs_corrected": ("behaviour", ("misled",), ("silently_correcting", *OPEN)),
    "broken_vs_consistent": ("intervened_chi", (0.0,), (1.0,)),
    "inert_vs_influenced": ("kappa", (0.0,), (1.0,)),
    "unfaithful_vs_faithful": ("rf", (0.0,), (1.0,)),
}
"""Name -> the column it is of, its positive and its negative values."""
SIGNS = ["reader", "model", "contrast", "family", "signal", "n_positive", "n_negative"]
SIGNS += [*with_interval("auroc", "auroc_within"), "p", "p_holm", "reason"]
BEST = ["reader", "model", "contrast", "rank", "family", "signal", "n_positive", "n_negative"]
BEST += [*with_interval("auroc_within"), "auroc", "p_holm"]
CURVES = ["reader", "model", "behaviour", "part", "position", "option", "n", *with_interval("p")]
_PARTS = ("r_prime", "r", "e")
_POOLED = "all"
_NAMED = [(family, signal) for family, names in FAMILIES.items() for signal in names]


def inside_tables(
    records: Iterable[Mapping[str, Any]],
    pairs: pd.DataFrame,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
) -> dict[str, pd.DataFrame]:
    """All tables of this file by name, and `rf_inside_pairs`, the rows that they are made from.

    Args:
        records: of `looking.look_inside`, of every model, item and condition; lists, no arrays.
        pairs: see `metrics.chains.scored`.
    """
    records = list(records)
    joined = inside_frame(records, pairs)
    signs = inside_signs(joined)
    return {
        "rf_inside": inside_table(joined, seed, resamples),
        "rf_inside_signs": signs,
        "rf_inside_best": best_signs(signs),
        "rf_inside_turns": inside_turns(joined),
        "rf_inside_traces": inside_traces(records, joined, seed, resamples),
        "rf_inside_pairs": joined,
    }


def inside_table(
    joined: pd.DataFrame, seed: int = 0, resamples: int = stats.RESAMPLES
) -> pd.DataFrame:
    """`rf_inside`: the mean of every signal by behaviour, violation, causality, χ(o′), κ and RF.

    `n_pairs` of the group were looked into, `n` of them have the signal; intervals from drawing
    items. All models together under `overall`, all pairs of one under `by` = `all`.
    """
    how = Drawing(seed, resamples)
    lines = []
    for way, of in groups(with_overall(joined, "model"), WAY):
        for by, group, members in _groups(of):
            values = {signal: numbers(members[signal]) for signal in SIGNALS}
            estimates = means(members["item"].astype(str).to_numpy(), values, how=how)
            for family, signal in _NAMED:
                about = {**way, "by": by, "group": group, "family": family, "signal": signal}
                about |= {"n_pairs": len(members), "n": estimates[signal].n}
                lines.append(about | columns("mean", estimates[signal]))
    names = ["by", "group", "family", "signal", "n_pairs", "n", *with_interval("mean")]
    return pd.DataFrame(lines, columns=[*WAY, *names])


def inside_signs(joined: pd.DataFrame) -> pd.DataFrame:
    """`rf_inside_signs`: how well each signal alone tells two kinds of pairs apart (`CONTRASTS`).

    `auroc` over 0.5: the positive kind has the greater values, below: the smaller. `auroc_within`
    compares pairs of one model and task only: kinds that are frequent in different tasks differ in
    all that differs between tasks. Intervals: `within.auroc_within`, by item. `p` is of the
    Mann-Whitney test (two-sided; NaN where several models have the same items), `p_holm` the same
    with Holm's correction over all signals of a contrast. `reason` says why there is no number:
    `no_positive`, `no_negative`, `no_values` of either, `no_variation`, `no_pairs_within`.
    """
    lines = []
    joined = joined.assign(
        _stratum=joined.groupby(["model", "task"], sort=False).ngroup(),
        _item=pd.factorize(joined["item"])[0],
    )
    for way, of in groups(with_overall(joined, "model"), WAY):
        for contrast, (column, positive, negative) in CONTRASTS.items():
            members = keep(of, of[column].isin([*positive, *negative]))
            kind = members[column].isin(positive).to_numpy()
            signs = [
                {**way, "contrast": contrast, "family": family, "signal": signal}
                | _sign(members, kind, signal)
                for family, signal in _NAMED
            ]
            tested = [sign for sign in signs if not math.isnan(sign["p"])]
            for sign, p in zip(tested, holm([s["p"] for s in tested]), strict=True):
                sign["p_holm"] = p
            lines += signs
    return pd.DataFrame(lines, columns=SIGNS)


def best_signs(signs: pd.DataFrame, most: int = 5) -> pd.DataFrame:
    """`rf_inside_best`: of every contrast the signs whose `auroc_within` is furthest from .5.

    The best of many by the same pairs that they are judged by: `auroc_within` flatters them,
    `p_holm` does not.
    """
    known = signs.dropna(subset=["auroc_within"])
    far = (known["auroc_within"] - 0.5).abs()
    known = known.assign(_far=far).sort_values("_far", ascending=False, kind="stable")
    rank = known.groupby([*WAY, "contrast"], sort=False).cumcount() + 1
    known = known.assign(rank=rank).loc[rank <= most]
    keys = [*WAY, "contrast", "rank"]
    table = known.sort_values(keys, key=_by_place(CONTRASTS), kind="stable")
    return only(table, BEST).reset_index(drop=True)


def _by_place(names: Iterable[str]) -> Callable[[pd.Series], pd.Series]:
    """Sorts contrasts, or parts, by their place; other columns as they are."""
    place = {name: i for i, name in enumerate(names)}
    return lambda column: column.map(place) if column.name in ("contrast", "part") else column


def inside_turns(joined: pd.DataFrame) -> pd.DataFrame:
    """`rf_inside_turns`: where the lead passes from the option of r′ for good, by behaviour.

    Shares of the pairs with a trace, with Wilson intervals; see `trace_signals.TURNS`.
    """
    traced = keep(joined, joined["turn_part"] != "")
    lines = [
        {**way, "behaviour": behaviour} | line
        for way, of in groups(with_overall(traced, "model"), WAY)
        for behaviour in (*BEHAVIOURS, _POOLED)
        for pairs in [of if behaviour == _POOLED else where(of, behaviour=behaviour)]
        for line in value_shares(pairs["turn_part"], TURNS)
    ]
    table = pd.DataFrame(lines, columns=[*WAY, "behaviour", *VALUE_SHARES])
    return table.rename(columns={"value": "turn_part"})


def inside_traces(
    records: Iterable[Mapping[str, Any]],
    joined: pd.DataFrame,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
) -> pd.DataFrame:
    """`rf_inside_traces`: mean probability along r′, own reasoning and explanation, by behaviour.

    `option` is `r_prime`, the option that r′ leads to, or `answer`, the one the reader says the
    intervened output answers (no rows where it answers none). `position` is the share of the part,
    0 to 1; an output without a part is in no row of it. Intervals from drawing items.
    """
    outputs = by_output(records)
    curves: list[dict[str, Any]] = []
    for row in rows(joined):
        trace = Traced.of(outputs[(*(row[k] for k in KEY[1:]), "intervened")])
        if trace is None:
            continue
        for option, stance in (("r_prime", row["led_to"]), ("answer", row["answered"])):
            named = named_option(trace.options, stance)
            if named is not None:
                curves += [
                    {**row, "part": part, "option": option, "curve": trace.curve(part, named)}
                    for part in trace.spans()
                ]
    how = Drawing(seed, resamples)
    keys = [*WAY, "behaviour", "part", "option"]
    lines = []
    frame = pd.DataFrame(curves, columns=[*joined.columns, *keys[3:], "curve"])
    for about, of in groups(with_overall(frame, "model"), keys):
        by = {str(i): of["curve"].str[i].to_numpy(float) for i in range(POSITIONS)}
        estimates = means(of["item"].astype(str).to_numpy(), by, how=how)
        for i, estimate in estimates.items():
            line = {**about, "position": int(i) / (POSITIONS - 1), "n": len(of)}
            lines.append(line | columns("p", estimate))
    table = pd.DataFrame(lines, columns=CURVES)
    keys = ["reader", "model", "behaviour", "option", "part", "position"]
    return table.sort_values(keys, key=_by_place(_PARTS), kind="stable").reset_index(drop=True)


def _groups(frame: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    yield _POOLED, _POOLED, frame
    for by, values in KINDS.items():
        for value in values:
            members = keep(frame, frame[by] == value)
            name = value or "none" if isinstance(value, str) else f"{value:.0f}"
            if len(members):
                yield by, name, members


def _sign(members: pd.DataFrame, positive: np.ndarray, signal: str) -> dict[str, Any]:
    known = members[signal].notna().to_numpy()
    score, items, strata = (numbers(members.loc[known, x]) for x in (signal, "_item", "_stratum"))
    truth = positive[known]
    everywhere = auroc_within(items, np.zeros(len(score)), truth, score)
    within = auroc_within(items, strata, truth, score)
    reason = ""
    if not truth.any():
        reason = "no_values" if positive.any() else "no_positive"
    elif truth.all():
        reason = "no_negative" if positive.all() else "no_values"
    elif not np.ptp(score):
        reason = "no_variation"
    elif math.isnan(within.value):
        reason = "no_pairs_within"
    several = len(np.unique(items)) < len(items)
    line: dict[str, Any] = {"n_positive": int(truth.sum()), "n_negative": int((~truth).sum())}
    line |= columns("auroc", everywhere) | columns("auroc_within", within)
    line["p"] = math.nan if several else rank_sum_p(score[truth], score[~truth])
    return line | {"p_holm": math.nan, "reason": reason}
