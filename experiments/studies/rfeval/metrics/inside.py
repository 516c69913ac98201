"""Signals inside a model by what a judge saw it do, for the included pairs whose internals were
read.

The option that r′ leads to is the stance that the reader gave r′, so that every reader has rows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import LEVELS, Boot, Count, Lines, levels, rows_without
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, means
from faithscope.experiments.analysis.tables import Table, pooled
from faithscope.experiments.analysis.tidy import columns, keep, numbers, rows, where
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
from faithscope.experiments.studies.rfeval.metrics.frames import KEY, READER, WAY, included
from faithscope.experiments.studies.rfeval.metrics.inside_signs import (
    FAMILY,
    SIGNAL,
    SIGNALS,
    SIGNS,
)

KINDS: dict[str, tuple[Any, ...]] = {
    "behaviour": BEHAVIOURS,
    "violation": ("", *VIOLATIONS),
    "causality": (*CAUSALITY, "neither"),
    "intervened_chi": (1.0, 0.0),
    "kappa": (1.0, 0.0),
    "rf": (1.0, 0.0),
}
"""Column that pairs are grouped by -> its values; violation "" is shown as `none`."""
_POOLED = "all"


def _groups(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    yield _POOLED, _POOLED, frame
    for by, values in KINDS.items():
        for value in values:
            members = keep(frame, frame[by] == value)
            name = value or "none" if isinstance(value, str) else f"{value:.0f}"
            if len(members):
                yield by, name, members


def _means(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for by, group, members in _groups(pairs):
        values = {signal: numbers(members[signal]) for signal in SIGNALS}
        estimates = means(members["item"].astype(str).to_numpy(), values, how=how)
        for signal, family in FAMILY.items():
            line = {"by": by, "group": group, "family": family, "signal": signal}
            line |= {"n_pairs": len(members), "n": estimates[signal].n}
            yield line | columns("mean", estimates[signal])


INSIDE_COLUMNS = (
    Column("by", meaning="What pairs are grouped by; `all` for all pairs."),
    Column("group", meaning="The value of what pairs are grouped by."),
    *SIGNAL,
    Column("n_pairs", meaning="Pairs of the group that were looked into."),
    Column("n", meaning="Pairs of the group that have the signal."),
    Column("mean", meaning="Mean of the signal over items.", interval=True),
)
INSIDE = Table(
    "rf_inside", "inside", (READER, "model"), lines=[Lines(INSIDE_COLUMNS, _means)], pool=("model",)
)
"""The mean of every signal by behaviour, violation, causality, χ(o′), κ and RF; intervals from
drawing items."""


BEHAVIOUR = Column(
    "behaviour",
    meaning="What the model does with r′: misled, self_correcting, silently_correcting, "
    "incoherent, inert or ornamental.",
)


def _turns(pairs: pd.DataFrame, how: Bootstrap) -> Iterator[dict[str, Any]]:
    for behaviour in (*BEHAVIOURS, _POOLED):
        members = pairs if behaviour == _POOLED else where(pairs, behaviour=behaviour)
        for line in levels("turn_part", TURNS, "").compute(members, how):
            shares = {name: x for name, x in line.items() if name not in ("statistic", "value")}
            yield {"behaviour": behaviour, "turn_part": line["value"]} | shares


TURNING_COLUMNS = (
    BEHAVIOUR,
    Column(
        "turn_part",
        "turns",
        "The part in which the lead passes for good from the option of r′ to another, "
        "or why it does not.",
    ),
    *(column for column in LEVELS if column.name in ("n_of", "n", "share")),
)
TURNING = Table(
    "rf_inside_turns",
    "inside",
    (READER, "model"),
    lines=[Lines(TURNING_COLUMNS, _turns, rows_without(turn_part=""))],
    pool=("model",),
)
"""Part in which the lead passes from the option of r′ for good, by behaviour: shares of the pairs
with a trace, with Wilson intervals; see `trace_signals.TURNS`."""


def in_order(curves: pd.DataFrame) -> pd.DataFrame:
    """The curves of each model and of all models, by behaviour, option and part."""
    keys = ["reader", "model", "behaviour", "option", "part", "position"]
    place = {part: i for i, part in enumerate(PARTS)}
    by = lambda column: column.map(place) if column.name == "part" else column  # noqa: E731
    return pooled(curves, "model").sort_values(keys, key=by, kind="stable")


TRACES = Table(
    "rf_inside_traces",
    "curves",
    (
        READER,
        "model",
        BEHAVIOUR,
        Column("part", meaning="The part of the output."),
        Column("position", meaning="Place in the part, from 0 to 1."),
        Column(
            "option", meaning="Whose probability it is: that of the option of r′, or of the answer."
        ),
    ),
    (
        Count("n", meaning="Pairs that have the part."),
        Boot("p", "p", "item", meaning="Mean probability of the option."),
    ),
    prepare=in_order,
)
"""Mean probability along r′, own reasoning and explanation, by behaviour; intervals from drawing
items."""
TABLES = (INSIDE, SIGNS, TURNING, TRACES)


ABOUT = ("behaviour", "violation", "causality", "intervened_chi", "kappa", "rf")
NAMES_NO_OPTION = "r_prime_stance_is_no_option"
JOINED = [*KEY, *ABOUT, "trace", "answered", "led_to", "led_to_reason", "turn_part", "turn_within"]
JOINED += SIGNALS


def inside_frame(records: Iterable[Mapping[str, Any]], pairs: pd.DataFrame) -> pd.DataFrame:
    """A row per included pair whose internals were read: its judgements, and the signals.

    Args:
        records: those of `measure.look_inside`, of both conditions.
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


PARTS = ("r_prime", "r", "e")
PLACES = tuple(i / (POSITIONS - 1) for i in range(POSITIONS))
CURVES = (*WAY, "item", "behaviour", "part", "position", "option", "p")


def curve_frame(records: Iterable[Mapping[str, Any]], inside: pd.DataFrame) -> pd.DataFrame:
    """`CURVES`: the probability of an option along the parts of the outputs under r′.

    `option` is `r_prime`, the option that r′ leads to, or `answer`, the one the reader says the
    intervened output answers (no row where it answers none). `position` is the share of the part,
    0 to 1; an output without a part has no row of it.

    Args:
        inside: the frame of `inside_frame`.
    """
    outputs = by_output(records)
    curves: list[dict[str, Any]] = []
    for row in rows(inside):
        trace = Traced.of(outputs[(*(row[k] for k in KEY[1:]), "intervened")])
        if trace is None:
            continue
        for option, stance in (("r_prime", row["led_to"]), ("answer", row["answered"])):
            named = named_option(trace.options, stance)
            if named is not None:
                curves += [
                    {**row, "part": part, "position": place, "option": option, "p": p}
                    for part in trace.spans()
                    for place, p in zip(PLACES, trace.curve(part, named), strict=True)
                ]
    return pd.DataFrame(curves, columns=list(CURVES))


def named_option(options: Sequence[str], stance: str) -> str | None:
    """The option that a stance names, whatever its case; None if it names none."""
    wanted = " ".join(stance.split()).casefold()
    return next((o for o in options if " ".join(o.split()).casefold() == wanted), None)


def by_output(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {(r["model"], r["task"], r["item"], r["variant"]): r for r in records}


def _joined(
    pair: Mapping[str, Any], outputs: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[str, Any]:
    key = tuple(pair[k] for k in KEY[1:])
    record = outputs[(*key, "intervened")]
    row: dict[str, Any] = {k: pair[k] for k in (*KEY, *ABOUT)}
    dependent = {*TRACE_SIGNALS, *LENS_SIGNALS}  # the record has these for its own `led_to`
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
