"""The noise floor of an item: how far its baseline moves when only the pack changes.

A record holds the floor beside its measures, and each answer's margin. A flip by no more than the
floor is kept, counted like all others, and marked: in bfloat16 the next run, in packs of other
shapes, may not show it.
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
"""Name of an edit of a trace, and the index in the record's list of that edit: ("removed", 0)."""
BASELINE: Arm = ("baseline", 0)
"""The arm without any edit; in pack p it is asked once more as ("baseline", p)."""
T = TypeVar("T")


def baseline_of(by_arm: Mapping[Arm, T], pack: int, baseline: Arm = BASELINE) -> T:
    """The value in `pack` of the baseline, or of another arm that is repeated like it."""
    return by_arm[baseline[0], pack]


def without_baselines(by_arm: Mapping[Arm, T]) -> dict[Arm, T]:
    return {arm: of_arm for arm, of_arm in by_arm.items() if arm[0] != BASELINE[0]}


def noise(repeated: Answered, names: Sequence[str]) -> dict[str, Any]:
    """Differences between the repeats of an item's baseline, as fields of a record.

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
    """`answered` with one log-prob per answer in place of one per label, its repeats included."""
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
    """Margin of a written answer, in nats: the narrowest lead among the tokens that change what is
    parsed; for a number also that of the token after them, by which the number ends.

    The other tokens choose the answer's wording ("94" or "\\(\\boxed{94}\\)"), often by next to
    nothing, and would have led to the same answer. If nothing is parsed, every token counts.

    Args:
        parse: function from the reply's first tokens to the answer that they hold.
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
    """The narrowest of `margins`; None if any of them is unknown."""
    known = [m for m in margins if m is not None]
    return min(known) if len(known) == len(margins) else None


def rounded(value: float | None) -> float | None:
    """A value as a record can hold it: rounded, and None if it is not finite."""
    return None if value is None or not math.isfinite(value) else number(value)
