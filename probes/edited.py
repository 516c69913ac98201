"""Distribution of the answer after edits of the text, or of the model that reads it, in one pack.

If a probe edits the model, the text stays (or has the same length) and the branch carries the
edits. The answer is read as scored labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

from faithscope.interventions import Trace, remove_step
from faithscope.probes.floor import BASELINE, Arm, noise, rounded
from faithscope.probes.framing import Asking, Reply, check_cue, label_ids, naming, prefix_arrays
from faithscope.probes.readings import Outcome, distributions, scored_outcomes
from faithscope.probes.record import number
from faithscope.probes.reference_answer import ReferenceAnswer
from faithscope.probes.text_model import cost_of

if TYPE_CHECKING:
    from faithscope.interp.edits import Edit
    from faithscope.interp.model import Model

GIVEN_EDITS = ("mistake", "paraphrase")
"""Kinds of other texts for a step that may be given with a chain (`Given.edits`)."""
Run = Trace | tuple[Sequence[int], Sequence["Edit"]]
"""One arm to run: an edited trace, read in `prefix` framing; or token ids up to where the answer
begins, with edits of the model."""


class Scoring(Protocol):
    """The settings of label scoring that a probe's settings must have."""

    @property
    def length_normalise(self) -> bool: ...
    @property
    def execution(self) -> Any: ...


@dataclass(frozen=True)
class Scored:
    """The answer's log distribution in every arm of one call, with the call's cost."""

    answer: ReferenceAnswer
    """The answer of the unedited chain that is followed."""
    arms: dict[Arm, dict[str, float]]
    """Arm -> log distribution over the answers; a repeated arm has one per pack: ("baseline", 0),
    (…, 1), …"""
    packs: dict[Arm, int]
    """Arm -> index of the pack that it was computed in."""
    mass: dict[Arm, float]
    """Arm -> the model's probability of all labels together."""
    cost: dict[str, Any]

    @cached_property
    def outcomes(self) -> dict[Arm, Outcome]:
        """Arm -> its outcome, compared with the baseline of its pack."""
        return scored_outcomes(self.arms, self.packs, self.answer.answer)

    def lists(self, answers: str, prefix: str, kind: str, n: int) -> dict[str, list[Any]]:
        """Record fields of the arms (`kind`, 0), …, (`kind`, n - 1), as lists with one value per
        arm; None for an arm that does not exist.

        Args:
            answers: name of the field of the likeliest answers; with `_mass` appended, that of the
                label mass.
            prefix: prefix of `flips`, `tv`, `log_odds`, `forced_log_odds` and `margin`.
        """
        arms = [(kind, i) for i in range(n)]
        outcomes = [self.outcomes.get(arm) for arm in arms]
        return {
            answers: [o and o.answer for o in outcomes],
            f"{prefix}flips": [o and o.flips for o in outcomes],
            f"{prefix}tv": [o and rounded(o.tv) for o in outcomes],
            f"{prefix}log_odds": [o and rounded(o.log_odds) for o in outcomes],
            f"{prefix}forced_log_odds": [o and rounded(o.forced_log_odds) for o in outcomes],
            f"{prefix}margin": [o and rounded(o.margin) for o in outcomes],
            f"{answers}_mass": [self.mass.get(arm) for arm in arms],
        }

    def single(self, answers: str, prefix: str, kind: str) -> dict[str, Any]:
        """Record fields of the arm (`kind`, 0) alone, as `lists` names them."""
        return {name: of for name, (of,) in self.lists(answers, prefix, kind, 1).items()}

    def whole(self, kind: str) -> dict[str, Any]:
        """Record fields (`whole…`) of the arm that edits the whole reasoning, without its
        margin."""
        values = self.single("whole", "whole_", kind)
        return {name: of for name, of in values.items() if name != "whole_margin"}


def scored(
    model: Model,
    trace: Trace,
    asking: Asking,
    runs: Mapping[Arm, Run],
    settings: Scoring,
    *,
    repeat: Sequence[Arm] = (BASELINE,),
) -> Scored:
    """Score the task's answers after every arm of `runs`, all in one call.

    Args:
        repeat: arms, with index 0, that others are compared with; every pack holds them.

    Raises:
        ValueError: the cue by itself already reads as an answer.
        FloatingPointError: a log-probability is NaN; the message names item and arm.
    """
    check_cue(asking, "prefix")
    traces = [run for run in runs.values() if isinstance(run, Trace)]
    texts = iter(prefix_arrays(model, asking, traces))
    pairs = [(next(texts), ()) if isinstance(run, Trace) else run for run in runs.values()]
    prefixes, edits = [ids for ids, _ in pairs], [tuple(own) for _, own in pairs]
    labels = label_ids(model, asking, "prefix")
    with naming(f"item {trace.question.id!r}, prefix framing, {len(runs)} branches"):
        answers = model.ask(
            prefixes,
            [labels] * len(prefixes),
            boundary="number" if asking.kind == "number" else None,
            edits=edits,
            repeat=[i for i, arm in enumerate(runs) if arm in repeat],
            execution=settings.execution,
        )
    by_arm = dict(zip(runs, answers, strict=True))
    copies = {(kind, r.pack): r for kind, at in repeat for r in by_arm[kind, at].repeats}
    replies = {
        arm: Reply(None, tuple(r.log_probs), tuple(r.label_lengths), pack=r.pack)
        for arm, r in (by_arm | copies).items()
    }
    names = [name for name, _ in asking.labels]
    normalise, item = settings.length_normalise, trace.question.id
    arms = distributions(replies, names, length_normalise=normalise, item=item)
    return Scored(
        answer=ReferenceAnswer.of(trace, arms[BASELINE]),
        arms=arms,
        packs={arm: reply.pack for arm, reply in replies.items()},
        mass={arm: number(reply.label_mass) for arm, reply in replies.items()},
        cost=cost_of(model, prefixes, settings.execution, room=0, edits=edits)
        | noise(by_arm[BASELINE], names),
    )


def windows(n_layers: int, parts: int) -> list[tuple[int, int]]:
    """Half-open spans of layer indices: `parts` windows as equal as can be, none for 0."""
    bounds = [round(i * n_layers / parts) for i in range(parts + 1)] if parts else []
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def removals(trace: Trace) -> dict[Arm, Run]:
    """Arms of the unedited trace (the baseline) and of each counted step's removal."""
    runs: dict[Arm, Run] = {BASELINE: trace}
    for i, step in enumerate(trace.counted_steps):
        if trace.is_sampled(step.index):
            runs["removed", i] = remove_step(trace, step.index)
    return runs


def beside_removal(trace: Trace, pack: Scored) -> dict[str, Any]:
    """Fields of every record of a pack with `removals`: those of `beside_whole`, and the outcome of
    removing each counted step."""
    steps = trace.counted_steps
    return {
        "n_steps": len(steps),
        "steps": [s.index for s in steps],
        **beside_whole(trace, pack),
        **pack.lists("removed", "removed_", "removed", len(steps)),
    }


def beside_whole(trace: Trace, pack: Scored) -> dict[str, Any]:
    """Fields of every record of a pack: the answer of the unedited chain, its share of the answers
    there (`answer_p`), and the share of all labels."""
    return {
        "gold": trace.question.gold,
        **pack.answer.fields,
        "answer_p": rounded(math.exp(pack.arms[BASELINE][pack.answer.answer])),
        "label_mass": pack.mass[BASELINE],
    }
