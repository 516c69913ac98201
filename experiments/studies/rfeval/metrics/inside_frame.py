"""Signs inside joined with what a judge saw: a row per included pair that was looked into.

The option that r′ leads to is the stance that the reader gave r′, so that every reader has rows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.inside.trace_signals import (
    COMPARED,
    FREE_SIGNALS,
    LENS_SIGNALS,
    TRACE_SIGNALS,
    Traced,
    signals,
)
from faithscope.experiments.studies.rfeval.metrics.frames import KEY, included

_ATTENTION = (
    *(f"{d}{region}" for d in ("", "density_") for region in COMPARED),
    "own_against_r_prime",
)
FAMILIES: dict[str, tuple[str, ...]] = {
    "trace": (*TRACE_SIGNALS, "baseline_p_final", "baseline_confidence", *FREE_SIGNALS),
    "attention": tuple(f"{place}_{x}" for place in ("asked", "written") for x in _ATTENTION),
    "lens": (
        *(*LENS_SIGNALS, "asked_settled_depth", "asked_option_settled_depth"),
        "written_settled_depth",
    ),
}
"""What a signal is read from -> the signals. `baseline_p_final` is the probability that the model's
own reasoning, without r′, leaves the option of r′, `baseline_confidence` that of its top option."""
SIGNALS = tuple(name for names in FAMILIES.values() for name in names)
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
    found = by_output(records)
    made = [
        _joined(pair, found)
        for pair in rows(included(pairs))
        if (*(pair[k] for k in KEY[1:]), "intervened") in found
    ]
    frame = pd.DataFrame(made, columns=JOINED)
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
    pair: Mapping[str, Any], found: Mapping[tuple[str, ...], Mapping[str, Any]]
) -> dict[str, Any]:
    key = tuple(pair[k] for k in KEY[1:])
    record = found[(*key, "intervened")]
    made: dict[str, Any] = {k: pair[k] for k in (*KEY, *ABOUT)}
    dependent = {*TRACE_SIGNALS, *LENS_SIGNALS}  # those that the record has are of its own `led_to`
    made |= {name: None if name in dependent else record.get(name) for name in SIGNALS}
    made |= {"trace": record["trace"], "answered": pair["intervened_a"], "turn_part": ""}
    made |= {"led_to": "", "led_to_reason": ""}
    if record["trace"] != "options":
        return made
    option = named_option(record["options"], pair["intervened_r_prime"])
    if option is None:
        return made | {"led_to_reason": NAMES_NO_OPTION}
    answer = named_option(record["options"], pair["intervened_a"])
    made |= {k: v for k, v in signals(record, option, answer).items() if k in JOINED}
    baseline = found.get((*key, "baseline"))
    without = Traced.of(baseline) if baseline else None
    if without is not None:
        made["baseline_p_final"] = without.p[-1, without.options.index(option)]
        made["baseline_confidence"] = without.p[-1].max()
    return made | {"led_to": option}
