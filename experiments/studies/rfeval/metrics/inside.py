"""What goes on inside a model by what a judge saw it do, of the included pairs looked into.

The option that r′ leads to is the stance that the reader gave r′, so that every reader has rows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import Drawing, means
from faithscope.experiments.analysis.tidy import (
    Rows,
    columns,
    groups,
    keep,
    numbers,
    rows,
    tabled,
    where,
    with_interval,
)
from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    LENS_SIGNALS,
    POSITIONS,
    TRACE_SIGNALS,
    TURNS,
    Traced,
    signals,
)
from faithscope.experiments.studies.rfeval.metrics.faithfulness import (
    BEHAVIOURS,
    CAUSALITY,
    VIOLATIONS,
)
from faithscope.experiments.studies.rfeval.metrics.frames import (
    KEY,
    VALUE_SHARES,
    WAY,
    included,
    value_shares,
    with_overall,
)
from faithscope.experiments.studies.rfeval.metrics.inside_signs import (
    NAMED_SIGNALS,
    SIGNALS,
    best_signs,
    by_place,
    inside_signs,
)

KINDS: dict[str, tuple[Any, ...]] = {
    "behaviour": BEHAVIOURS,
    "violation": ("", *VIOLATIONS),
    "causality": (*CAUSALITY, "neither"),
    "intervened_chi": (1.0, 0.0),
    "kappa": (1.0, 0.0),
    "rf": (1.0, 0.0),
}
"""What the pairs are grouped by, and its values; violation "" is `none`."""
CURVES = ["reader", "model", "behaviour", "part", "position", "option", "n", *with_interval("p")]
_PARTS = ("r_prime", "r", "e")
_POOLED = "all"


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


@tabled(*WAY, "by", "group", "family", "signal", "n_pairs", "n", *with_interval("mean"))
def inside_table(joined: pd.DataFrame, seed: int = 0, resamples: int = stats.RESAMPLES) -> Rows:
    """`rf_inside`: the mean of every signal by behaviour, violation, causality, χ(o′), κ and RF.

    `n_pairs` of the group were looked into, `n` of them have the signal; intervals from drawing
    items. All models together under `overall`, all pairs of one under `by` = `all`.
    """
    how = Drawing(seed, resamples)
    for way, of in groups(with_overall(joined, "model"), WAY):
        for by, group, members in _groups(of):
            values = {signal: numbers(members[signal]) for signal in SIGNALS}
            estimates = means(members["item"].astype(str).to_numpy(), values, how=how)
            for family, signal in NAMED_SIGNALS:
                about = {**way, "by": by, "group": group, "family": family, "signal": signal}
                about |= {"n_pairs": len(members), "n": estimates[signal].n}
                yield about | columns("mean", estimates[signal])


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
    return table.sort_values(keys, key=by_place(_PARTS), kind="stable").reset_index(drop=True)


def _groups(frame: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
    yield _POOLED, _POOLED, frame
    for by, values in KINDS.items():
        for value in values:
            members = keep(frame, frame[by] == value)
            name = value or "none" if isinstance(value, str) else f"{value:.0f}"
            if len(members):
                yield by, name, members


ABOUT = ("behaviour", "violation", "causality", "intervened_chi", "kappa", "rf")
NAMES_NO_OPTION = "r_prime_stance_is_no_option"
JOINED = [*KEY, *ABOUT, "trace", "answered", "led_to", "led_to_reason", "turn_part", "turn_within"]
JOINED += SIGNALS


def inside_frame(records: Iterable[Mapping[str, Any]], pairs: pd.DataFrame) -> pd.DataFrame:
    """A row per included pair that was looked into: what was judged, and the signals.

    Args:
        records: of `looking.look_inside`, of both conditions.
        pairs: see `metrics.chains.scored`.

    Returns:
        `JOINED`; NaN where a signal has no value. `led_to` is the reader's stance of r′;
        `led_to_reason` says why it is no option of the trace, "" of most: the signals that
        depend on it are then NaN.
    """
    outputs = by_output(records)
    joined = [
        _joined(pair, outputs)
        for pair in rows(included(pairs))
        if (*(pair[k] for k in KEY[1:]), "intervened") in outputs
    ]
    frame = pd.DataFrame(joined, columns=JOINED)
    return frame.astype(dict.fromkeys([*SIGNALS, "turn_within"], float))


def named_option(options: Sequence[str], stance: str) -> str | None:
    """The option that a stance names, whatever its case; None if it names none."""
    wanted = " ".join(stance.split()).casefold()
    return next((o for o in options if " ".join(o.split()).casefold() == wanted), None)


def by_output(
    records: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {(r["model"], r["task"], r["item"], r["variant"]): r for r in records}


def _joined(
    pair: Mapping[str, Any], outputs: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[str, Any]:
    key = tuple(pair[k] for k in KEY[1:])
    record = outputs[(*key, "intervened")]
    row: dict[str, Any] = {k: pair[k] for k in (*KEY, *ABOUT)}
    dependent = {*TRACE_SIGNALS, *LENS_SIGNALS}  # those that the record has are of its own `led_to`
    row |= {name: None if name in dependent else record.get(name) for name in SIGNALS}
    row |= {"trace": record["trace"], "answered": pair["intervened_a"], "turn_part": ""}
    row |= {"led_to": "", "led_to_reason": ""}
    if record["trace"] != "options":
        return row
    option = named_option(record["options"], pair["intervened_r_prime"])
    if option is None:
        return row | {"led_to_reason": NAMES_NO_OPTION}
    answer = named_option(record["options"], pair["intervened_a"])
    row |= {k: v for k, v in signals(record, option, answer).items() if k in JOINED}
    baseline = outputs.get((*key, "baseline"))
    without = Traced.of(baseline) if baseline else None
    if without is not None:
        row["baseline_p_final"] = without.p[-1, without.options.index(option)]
        row["baseline_confidence"] = without.p[-1].max()
    return row | {"led_to": option}
