"""The answer's distribution while the model is edited: knocked out or patched, in one pack.

For probes that write to the model: the text stays (or is another of the same length), what is
done to the model stands in the branch, and the answer is read as scored labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from faithscope.interventions import Trace
from faithscope.probes.floor import BASELINE, Arm, noise, rounded
from faithscope.probes.framing import Asking, Reply, label_ids
from faithscope.probes.graded import top
from faithscope.probes.readings import Outcome, distributions
from faithscope.probes.record import number
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from faithscope.interp.edits import Edit
    from faithscope.interp.model import Model

FEWER_LABELS = "fewer_than_2_labels"
Run = tuple[Sequence[int], Sequence["Edit"]]
"""Token ids up to where the answer begins, and what is done to the model on the way."""


@dataclass(frozen=True)
class Scored:
    """The answer's log distribution in every arm of one call, and what the call took."""

    arms: dict[Arm, dict[str, float]]
    """Log distributions by arm; a repeated arm has one per pack: ("baseline", 0), (…, 1), …"""
    packs: dict[Arm, int]
    """Which pack each arm was computed in."""
    mass: dict[Arm, float]
    """What all labels together have of the model's probability."""
    cost: dict[str, Any]


def answers_of(asking: Asking) -> list[str]:
    """The canonical answers that labels stand for, each once."""
    return list(dict.fromkeys(name for name, _ in asking.labels))


def scored(
    model: Model,
    trace: Trace,
    asking: Asking,
    runs: Mapping[Arm, Run],
    *,
    repeat: Sequence[Arm] = (BASELINE,),
    length_normalise: bool,
    execution: Any,
) -> Scored:
    """Score the task's answers after every run, all in one call.

    Args:
        repeat: arms that others are compared with, which every pack has; of place 0.

    Raises:
        FloatingPointError: a log-probability is NaN, naming item and arm.
    """
    prefixes = [tuple(ids) for ids, _ in runs.values()]
    edits = [tuple(own) for _, own in runs.values()]
    labels = label_ids(model, asking, "prefix")
    answers = model.ask(
        prefixes,
        [labels] * len(prefixes),
        boundary="number" if asking.kind == "number" else None,
        edits=edits,
        repeat=[i for i, arm in enumerate(runs) if arm in repeat],
        execution=execution,
    )
    by_arm = dict(zip(runs, answers, strict=True))
    copies = {(kind, r.pack): r for kind, at in repeat for r in by_arm[kind, at].repeats}
    replies = {
        arm: Reply(None, tuple(r.log_probs), tuple(r.label_lengths), pack=r.pack)
        for arm, r in (by_arm | copies).items()
    }
    names = [name for name, _ in asking.labels]
    return Scored(
        arms=distributions(
            replies,
            names,
            length_normalise=length_normalise,
            item=trace.question.id,
        ),
        mass={arm: number(reply.label_mass) for arm, reply in replies.items()},
        packs={arm: reply.pack for arm, reply in replies.items()},
        cost=cost_of(model, prefixes, execution, room=0, edits=edits)
        | noise(by_arm[BASELINE], names),
    )


def windows(n_layers: int, parts: int) -> list[tuple[int, int]]:
    """Half-open spans of layer indices: `parts` windows as equal as can be, none for 0."""
    bounds = [round(i * n_layers / parts) for i in range(parts + 1)] if parts else []
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def beside_removal(trace: Trace, pack: Scored, outcomes: Mapping[Arm, Outcome]) -> dict[str, Any]:
    """What every record of a pack says that has the arms ("removed", i): the unedited answer, and
    what removal of each counted step did."""
    n = len(trace.counted_steps)
    return {
        "n_steps": n,
        "steps": [s.index for s in trace.counted_steps],
        "gold": trace.question.gold,
        "answer": top(pack.arms[BASELINE]),
        "answer_p": rounded(math.exp(max(pack.arms[BASELINE].values()))),
        "label_mass": pack.mass[BASELINE],
        **step_lists("removed", "removed_", "removed", outcomes, pack.mass, n),
    }


def step_lists(
    answers: str,
    prefix: str,
    kind: str,
    outcomes: Mapping[Arm, Outcome],
    mass: Mapping[Arm, float],
    n_steps: int,
) -> dict[str, list[Any]]:
    """A value per counted step of what the arms (`kind`, i) did; None where there is no such arm.

    Args:
        answers: the field of the likeliest answers, and of the label mass with `_mass` behind.
        prefix: before `flips`, `tv`, `log_odds` and `margin`.
    """
    of_steps = [outcomes.get((kind, i)) for i in range(n_steps)]
    return {
        answers: [o and o.answer for o in of_steps],
        f"{prefix}flips": [o and o.flips for o in of_steps],
        f"{prefix}tv": [o and rounded(o.tv) for o in of_steps],
        f"{prefix}log_odds": [o and rounded(o.log_odds) for o in of_steps],
        f"{prefix}margin": [o and rounded(o.margin) for o in of_steps],
        f"{answers}_mass": [mass.get((kind, i)) for i in range(n_steps)],
    }
