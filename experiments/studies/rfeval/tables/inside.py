"""Signals inside a model under r′, beside the judgements of the pairs that count.

The option that r′ leads to is the stance that the reader gave r′, so that every reader has rows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Boot, Count, levels, rows_known, rows_without
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.tables.faithfulness import BEHAVIOURS
from faithscope.experiments.studies.rfeval.tables.frames import KEY, READER, included
from faithscope.probes.prefilled_reasoning import (
    SIGNALS,
    TURNS,
    curve,
    option_signals,
    shares_along,
)

ABOUT = ("behaviour", "violation", "causality", "intervened_chi", "kappa", "rf")
BASELINE = {
    "baseline_p_final": "Probability of the option of r′ before the answer, without r′.",
    "baseline_confidence": "Probability of the likeliest option before the answer, without r′.",
}
"""Signal of the output without r′ -> its meaning."""
NAMES = [*SIGNALS, *BASELINE]
JOINED = [*KEY, *ABOUT, "trace", "answered", "led_to", "led_to_reason", "turn_part"]
JOINED += NAMES
NAMES_NO_OPTION = "r_prime_stance_is_no_option"
CURVES = [*KEY, "behaviour", "option", "part", "position", "p"]


def inside_frame(records: Iterable[Mapping[str, Any]], pairs: pd.DataFrame) -> pd.DataFrame:
    """A row per included pair whose internals were read: its judgements, and the signals.

    Args:
        records: those of `subjects.inside.look_inside`, of both conditions.
        pairs: see `tables.chains.scored`.

    Returns:
        `JOINED`; NaN where a signal has no value. `led_to` is the reader's stance of r′;
        `led_to_reason` says why it is no option of the trace, "" of most: the signals that
        depend on it are then NaN.
    """
    outputs = _by_output(records)
    joined = [_joined(p, outputs) for p in rows(included(pairs)) if _key(p) in outputs]
    return pd.DataFrame(joined, columns=JOINED).astype(dict.fromkeys(NAMES, float))


def curve_frame(records: Iterable[Mapping[str, Any]], inside: pd.DataFrame) -> pd.DataFrame:
    """`CURVES`: probabilities along the parts of the outputs under r′, at places that are shares of
    the part (0 to 1).

    `option` is `r_prime`, the option that r′ leads to, or `answer`, the one that the reader says
    the output answers (no row where it answers none).

    Args:
        inside: the frame of `inside_frame`.
    """
    outputs = _by_output(records)
    curves: list[dict[str, Any]] = []
    for row in rows(inside):
        record = outputs[_key(row)]
        for name, stance in (("r_prime", row["led_to"]), ("answer", row["answered"])):
            if "p" in record and (option := named_option(record["options"], stance)):
                curves += [{**row, **point, "option": name} for point in curve(record, option)]
    return pd.DataFrame(curves, columns=CURVES)


def named_option(options: Sequence[str], stance: str) -> str | None:
    """The option that a stance names, whatever its case; None if it names none."""
    wanted = " ".join(stance.split()).casefold()
    return next((o for o in options if " ".join(o.split()).casefold() == wanted), None)


def _key(row: Mapping[str, Any], condition: str = "intervened") -> tuple[str, ...]:
    return (*(row[name] for name in KEY[1:]), condition)


def _by_output(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {_key(record, record["variant"]): record for record in records}


def _joined(
    pair: Mapping[str, Any], outputs: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[str, Any]:
    record = outputs[_key(pair)]
    row: dict[str, Any] = {name: pair[name] for name in (*KEY, *ABOUT)}
    row |= {name: record.get(name) for name in SIGNALS}
    trace = "options" if "p" in record else "free" if "log_prob" in record else "none"
    row |= {"trace": trace, "answered": pair["intervened_a"], "turn_part": ""}
    row |= {"led_to": "", "led_to_reason": ""}
    if trace != "options":
        return row
    option = named_option(record["options"], pair["intervened_r_prime"])
    if option is None:
        return row | {"led_to_reason": NAMES_NO_OPTION}
    answer = named_option(record["options"], pair["intervened_a"])
    row |= option_signals(record, option, answer) | {"led_to": option}
    if without := outputs.get(_key(pair, "baseline")):
        last = shares_along(without)[-1]
        row["baseline_p_final"] = last[without["options"].index(option)]
        row["baseline_confidence"] = last.max()
    return row


def _by_behaviour(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("behaviour", key=lambda x: x.map(BEHAVIOURS.index), kind="stable")


def _signal_rows(inside: pd.DataFrame) -> pd.DataFrame:
    """A row per pair and signal."""
    about = _by_behaviour(inside)[["reader", "model", "item", "behaviour", *NAMES]]
    return about.melt(about.columns[:4], NAMES, "signal")


BEHAVIOUR = Column(
    "behaviour",
    meaning="What the model does with r′: misled, self_correcting, silently_correcting, "
    "incoherent, inert or ornamental.",
)
INSIDE = Table(
    "rf_inside",
    "inside",
    (READER, "model", BEHAVIOUR, Column("signal", meaning="What was read inside the model.")),
    (
        Count("n_pairs", label="pairs", meaning="Pairs that were looked into."),
        Count("n", rows_known("value"), meaning="Pairs that have the signal."),
        Boot("mean", "value", "item", meaning="Mean of the signal over items."),
    ),
    prepare=_signal_rows,
    pool=("behaviour", "model"),
)
"""The mean of every signal by behaviour; intervals from drawing items."""
TURNING = Table(
    "rf_inside_turns",
    "inside",
    (READER, "model", BEHAVIOUR),
    lines=[levels("turn_part", TURNS, "turn_part")],
    prepare=_by_behaviour,
    among=rows_without(turn_part=""),
    pool=("behaviour", "model"),
)
"""Part in which the lead passes from the option of r′ for good, by behaviour: shares of the pairs
with a trace, with Wilson intervals; see `probes.prefilled_reasoning.TURNS`."""
TRACES = Table(
    "rf_inside_traces",
    "curves",
    (
        *(READER, "model", BEHAVIOUR),
        Column("option", meaning="Whose probability it is: the option of r′, or the answer."),
        Column("part", meaning="The part of the output."),
        Column("position", meaning="Place in the part, from 0 to 1."),
    ),
    (
        Count("n", meaning="Pairs that have the part."),
        Boot("p", "p", "item", meaning="Mean probability of the option."),
    ),
    prepare=_by_behaviour,
    pool=("model",),
)
"""Mean probability along r′, own reasoning and explanation, by behaviour; intervals from drawing
items."""
TABLES = (INSIDE, TURNING, TRACES)
