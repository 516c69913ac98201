"""Signals read inside a model, among them those that depend on where r′ leads.

A trace has the probability of every option at every cut. Which option r′ leads to is no label of
the data: it is given here, by a judge of r′ or by the model itself (`led_to`), and all that is
said of it follows from the trace alone, so that another choice needs no new run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray

from faithscope.probes.record import number

POSITIONS = 11
"""Number of places, from the beginning of a part to its end, at which curves are drawn."""
TRACE_SIGNALS = (
    *("p_before", "p_after_r_prime", "r_prime_effect", "p_peak", "peak_at", "p_final"),
    *("final_lead", "followed", "ever_led", "led_share", "last_led", "turn_at", "turn_own"),
    *("flips", "steepest_fall"),
)
LENS_SIGNALS = ("lens_peak", "lens_peak_depth", "lens_led", "lens_suppressed")
FREE_SIGNALS = ("gold_lost", "gold_regained", "own_gained")
"""Signals of items without options; see `measure.look_inside`."""
COMPARED = {"r_prime": ("r_prime",), "own": ("r", "e"), "question": ("question",)}
"""What attention goes to -> the regions (`measure.REGIONS`) that it sums; `own` is the model's own
continuation."""
TURNS = ("r_prime", "r", "e", "a", "never_led", "never_turned")


@dataclass(frozen=True)
class Traced:
    """Probabilities of the options along one output, as shares of one another."""

    cuts: Int[NDArray[np.int64], " C"]
    """Number of tokens given at each cut, rising from 0."""
    p: Float[NDArray[np.float64], "C K"]
    coarse: Bool[NDArray[np.bool_], " C"]
    """Whether a cut is one of the equally spaced ones; the others were put near turns."""
    options: tuple[str, ...]
    """The stances that may be answered."""
    n_r_prime: int
    reasoned: int
    resumed: int
    """Position in the output, as in `layout.Layout`; so are the two fields above."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Traced | None:
        """The trace in a record of `measure.look_inside`; None if options were not traced."""
        if record["trace"] != "options" or "p" not in record:
            return None
        options = tuple(record["options"])
        return cls(
            np.array(record["cuts"], np.int64),
            np.array(record["p"], float).reshape(-1, len(options)),
            np.array(record["coarse"], bool),
            options,
            *(record[name] for name in ("n_r_prime", "reasoned", "resumed")),
        )

    @cached_property
    def top(self) -> Int[NDArray[np.int64], " C"]:
        """The likeliest option at every cut; the first one if several are equal."""
        return self.p.argmax(axis=1)

    @property
    def last(self) -> int:
        return int(self.cuts[-1])

    def part_of(self, cut: int) -> str:
        """The part that the last given token belongs to; "" if no token is given."""
        if cut <= 0:
            return ""
        return "r_prime" if cut <= self.n_r_prime else "r" if cut <= self.reasoned else "e"

    def distance(self, one: int, other: int) -> int:
        """Number of cuts that may be made from one cut to another, counting the second and not the
        first."""
        return other - (self.resumed if one == self.reasoned < other else one)

    def spans(self) -> dict[str, tuple[int, int]]:
        """The parts that are there, each with its first and last cut."""
        ends = {
            "r_prime": (0, self.n_r_prime),
            "r": (self.n_r_prime, self.reasoned),
            "e": (self.reasoned, self.last),
        }
        return {part: (a, b) for part, (a, b) in ends.items() if a < b}

    def curve(self, part: str, option: str) -> Float[NDArray[np.float64], " P"]:
        """The option's probability at `POSITIONS` equal distances along a part; NaN if the part is
        not there."""
        if part not in self.spans():
            return np.full(POSITIONS, math.nan)
        a, b = self.spans()[part]
        within = (self.cuts >= a) & (self.cuts <= b)
        at, p = self.cuts[within].astype(float), self.p[within, self.options.index(option)]
        if part == "e":  # the closer, which no cut lies in, takes no room
            at = np.maximum(at, self.resumed)
        return np.interp(np.linspace(at[0], at[-1], POSITIONS), at, p)


def turn(trace: Traced, option: str, answer: str | None) -> dict[str, Any]:
    """The last place where an option leads, and the place where the lead has passed on for good.

        last_led      the last cut at which it leads, as a share of all traced tokens
        turn          tokens given when it has turned: the first cut from which the option never
                      leads again; `turn_at`, as a share of all; `turn_own`, tokens after r′ as a
                      share of the model's own, 0 where it turned in r′; `turn_within`, from how
                      many tokens on the turn may have come, 1 where the token is known
        turn_part     of `TURNS`: the part that the token lies in; `a`, where the option leads up
                      to the answer, which is another; `never_turned`, where the answer is that of
                      the option or cannot be told; `never_led`, if it leads at no cut after the
                      first token

    A value is None where there is no such place.
    """
    values: dict[str, Any] = dict.fromkeys(
        ("last_led", "turn", "turn_at", "turn_own", "turn_within")
    )
    led = np.flatnonzero(trace.top == trace.options.index(option))
    led = led[trace.cuts[led] > 0]
    if not len(led):
        return values | {"turn_part": "never_led"}
    last = int(led[-1])
    before = int(trace.cuts[last])
    values["last_led"] = before / trace.last
    if last == len(trace.cuts) - 1:
        away = answer is not None and answer in trace.options and answer != option
        return values | {"turn_part": "a" if away else "never_turned"}
    at = int(trace.cuts[last + 1])
    own = trace.last - trace.n_r_prime
    return values | {
        "turn": at,
        "turn_at": at / trace.last,
        "turn_own": max(0, at - trace.n_r_prime) / own if own else None,
        "turn_within": trace.distance(before, at),
        "turn_part": trace.part_of(at),
    }


def signals(record: Mapping[str, Any], option: str, answer: str | None) -> dict[str, Any]:
    """All signals of a record with options (`measure.look_inside`) that depend on where r′ leads.

    Args:
        option: the one that r′ leads to, of the record's `options`.
        answer: what the output answers; None or no option where that cannot be told.
    """
    values: dict[str, Any] = {}
    if (trace := Traced.of(record)) is not None:
        values |= trace_signals(trace, option, answer)
    if (p := lens_shares(record)) is not None:
        values |= lens_signals(p, record["options"], option)
    return {k: number(v) if isinstance(v, float) else v for k, v in values.items()}


def trace_signals(trace: Traced, option: str, answer: str | None = None) -> dict[str, Any]:
    """What the trace says of the option that r′ leads to. Beside the values of `turn`:

        p_before, p_after_r_prime, p_final   its probability before r′, after it, before the answer
        r_prime_effect     p_after_r_prime − p_before
        p_peak, peak_at    its greatest probability after the first token, and where, as a share
        final_lead         p_final less that of the best other option
        followed           1 if it leads at the end of r′; ever_led, 1 if at any cut but the first
        led_share          share of the model's own tokens along which it leads
        flips              changes of the leading option, over the equally spaced cuts
        steepest_fall      its greatest loss between two neighbours of these in the model's own text

    A value is None where nothing can tell it (no r′, no text of the model's own).
    """
    k = trace.options.index(option)
    p, top = trace.p[:, k], trace.top
    others = np.delete(trace.p[-1], k)
    after = int(np.flatnonzero(trace.cuts == trace.n_r_prime)[0])
    peak = 1 + int(p[1:].argmax()) if len(p) > 1 else 0
    forced = trace.n_r_prime > 0
    coarse = trace.coarse
    falls = -np.diff(p[coarse & (trace.cuts >= trace.n_r_prime)])
    steps = np.diff(trace.cuts)
    own = trace.cuts[:-1] >= trace.n_r_prime
    weight = float(steps[own].sum())
    values: dict[str, Any] = {
        "p_before": p[0],
        "p_after_r_prime": p[after] if forced else None,
        "r_prime_effect": p[after] - p[0] if forced else None,
        "p_peak": p[peak],
        "peak_at": trace.cuts[peak] / trace.last if trace.last else None,
        "p_final": p[-1],
        "final_lead": p[-1] - others.max(),
        "followed": top[after] == k if forced else None,
        "ever_led": (top[1:] == k).any(),
        "led_share": steps[own & (top[:-1] == k)].sum() / weight if weight else None,
        "flips": np.count_nonzero(np.diff(top[coarse])),
        "steepest_fall": falls.max() if len(falls) else None,
    }
    plain = {name: None if x is None else float(x) for name, x in values.items()}
    return plain | turn(trace, option, answer)


def lens_signals(
    p: Float[NDArray[np.float64], "L+1 K"], options: Sequence[str], option: str
) -> dict[str, float | None]:
    """What the layers between the first and the last say of the option that r′ leads to.

        lens_peak, lens_peak_depth   its greatest share of the options, and after which layer / L
        lens_led           share of these layers in which it leads
        lens_suppressed    1 if it leads in one of them and not in the last

    A model of one layer has None for all.
    """
    layers = len(p) - 1
    if layers < 2:
        return dict.fromkeys(LENS_SIGNALS)
    k = list(options).index(option)
    middle, leads = p[1:-1, k], p.argmax(axis=1) == k
    peak = int(middle.argmax())
    return {
        "lens_peak": float(middle[peak]),
        "lens_peak_depth": (peak + 1) / layers,
        "lens_led": float(leads[1:-1].mean()),
        "lens_suppressed": float(leads[1:-1].any() and not leads[-1]),
    }


def lens_shares(record: Mapping[str, Any]) -> Float[NDArray[np.float64], "L+1 K"] | None:
    """The options' shares layer by layer in a record of `measure.look_inside`; None if it has
    none."""
    values = record.get("asked_lens_p")
    return None if values is None else np.array(values).reshape(-1, len(record["options"]))


def led_to(trace: Traced, gold: str) -> str:
    """The option that r′ leads to by the model itself: the wrong one that it finds likeliest after
    r′.

    By construction r′ leads to a wrong answer (RFEval, section 3), so that of two options there is
    no choice.
    """
    wrong = [option for option in trace.options if option != gold]
    after = trace.p[int(np.flatnonzero(trace.cuts == trace.n_r_prime)[0])]
    return max(wrong, key=lambda option: after[trace.options.index(option)])
