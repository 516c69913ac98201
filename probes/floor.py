"""The noise floor of an item: how far its baseline moves when nothing but the pack changes.

A record has it beside what was measured, and beside each answer how narrowly it was decided. A
flip by no more than the floor is kept and counted as all others, and told apart: in bfloat16 the
next run, in packs of other shapes, may not show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from faithscope.probes.graded import answer_log_probs, log_distribution, total_variation
from faithscope.probes.record import number

if TYPE_CHECKING:
    from faithscope.interp.answered import Answered
    from faithscope.interp.generation import Generation

Arm = tuple[str, int]
"""What was done to a trace, and its place in the record's list: ("removed", 0)."""
BASELINE: Arm = ("baseline", 0)
"""The arm that nothing is done in; in pack p it is asked once more as ("baseline", p)."""
T = TypeVar("T")


def baseline_of(by_arm: Mapping[Arm, T], pack: int, baseline: Arm = BASELINE) -> T:
    """What the baseline, or another arm that is repeated like it, was found to be in a pack."""
    return by_arm[baseline[0], pack]


def without_baselines(by_arm: Mapping[Arm, T]) -> dict[Arm, T]:
    return {arm: of_arm for arm, of_arm in by_arm.items() if arm[0] != BASELINE[0]}


def noise(repeated: Answered, names: Sequence[str]) -> dict[str, Any]:
    """What the repeats of an item's baseline differ by, as a record tells it.

        n_packs             that the arms fell into; 1 in the loop, which has none
        noise_floor         nats: the furthest that any lead of the baseline moved between its
                            packs, and between them and the baseline by itself
        baseline_moved      nats: the largest |Δ log-prob| of an answer, its spellings added up
        baseline_moved_tv   total variation of the answers' distribution, the largest
        baseline_redecided  whether any repeat would have written another token or have put
                            another answer first; another spelling of the same is no other

    Args:
        repeated: the baseline, asked with `repeat`.
        names: per label, the answer it stands for.
    """
    from faithscope.interp.floor import floor

    measured = floor(_by_answer(repeated, names))
    moved_tv = None
    if repeated.log_probs and repeated.alone is not None:
        first, *others = (
            log_distribution(r.log_probs, names, what="the baseline repeated")
            for r in (*repeated.repeats, repeated.alone)
        )
        moved_tv = max(total_variation(first, other) for other in others)
    return {
        "n_packs": measured.packs,
        "noise_floor": rounded(measured.lead),
        "baseline_moved": rounded(measured.log_prob),
        "baseline_moved_tv": rounded(moved_tv),
        "baseline_redecided": measured.decision_moved,
    }


def _by_answer(answered: Answered, names: Sequence[str]) -> Answered:
    """The same with one log-prob per answer in place of one per label, its repeats included."""
    answers = answer_log_probs(answered.log_probs, names) if answered.log_probs else {}
    return replace(
        answered,
        log_probs=tuple(answers.values()),
        repeats=tuple(_by_answer(r, names) for r in answered.repeats),
        alone=None if answered.alone is None else _by_answer(answered.alone, names),
    )


def answer_margin(
    generated: Generation, parse: Callable[[Sequence[int]], str | None], *, number: bool
) -> float | None:
    """How narrowly a written answer was decided, in nats: the narrowest lead among the tokens
    that change what is parsed; of a number also of the one after them, by which it ends.

    The others choose how the answer is put ("94" or "\\(\\boxed{94}\\)"), often by next to nothing,
    and would have led to the same one. Where nothing is parsed, every token counts.

    Args:
        parse: the answer that the first tokens of the reply hold.
    """
    ids, gaps = generated.ids, generated.gaps
    parsed = [parse(ids[:n]) for n in range(len(ids) + 1)]
    decisive = [i for i, (before, after) in enumerate(pairwise(parsed)) if before != after]
    if not decisive:
        return min(gaps, default=None)
    if number:
        decisive.append(decisive[-1] + 1)
    return min((gaps[i] for i in decisive if i < len(gaps)), default=None)


def narrower(*margins: float | None) -> float | None:
    """The narrowest of some margins; None where any of them is unknown."""
    known = [m for m in margins if m is not None]
    return min(known) if len(known) == len(margins) else None


def rounded(value: float | None) -> float | None:
    """What a record can hold: None for what is not finite."""
    return None if value is None or not math.isfinite(value) else number(value)
