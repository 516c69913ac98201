"""Screening: a cheap estimate of what removal of each step does, from the keys of the whole chain.

Exact removal reads all later text again for every step, so that its cost grows with the square of a
chain's length. The estimate reads the chain once. For each step it hides the step's keys, moves the
later ones to their places without it, and computes anew only the tokens through which the step's
effect is likely to pass: those of the next steps, and *mediators*, later tokens that attend to the
step and to which the answer attends. All others keep what they were computed from, the step among
it. `docs/long_chains.md` holds estimates against exact removal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from faithscope.interventions import Trace
from faithscope.probes.floor import BASELINE, rounded
from faithscope.probes.framing import FEWER_LABELS, Asking, check_cue, label_ids, naming, prefix_ids
from faithscope.probes.graded import log_distribution
from faithscope.probes.readings import Outcome, scored_outcomes
from faithscope.probes.reference_answer import ReferenceAnswer
from faithscope.probes.text_model import TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model


SCREENING = 1
"""Version of the estimates, raised when they change: they decide which steps a run edits."""


@dataclass(frozen=True)
class Anew:
    """The later tokens that are computed anew for each removed step, besides those after the
    reasoning."""

    steps: int = 1
    """Number of steps after the removed one."""
    mediators: float = 0.15
    """Share of the later tokens that mediate most: by the answer's attention to a token times the
    token's attention to the removed step, both mean over all heads."""
    most: int = 128
    """Most mediators of a step: in a long chain, a share of all later tokens would cost more than
    the exact removals that it saves."""

    def mediating(self, later: int) -> int:
        """Number of mediators among so many later tokens."""
        return min(math.ceil(self.mediators * later), self.most)


ANEW = Anew()
"""The tokens that a screen computes anew."""


@dataclass(frozen=True)
class Estimates:
    """Estimated outcomes of removing each counted step, in the scored reading."""

    outcomes: list[Outcome]
    tokens: list[int]
    """Per step, the tokens computed anew, those of the labels not counted."""
    later: list[int]
    """Per step, the tokens that exact removal computes."""

    @property
    def log_odds(self) -> list[float | None]:
        """Per step, the estimated drop of the answer's log-odds, in nats."""
        return [outcome.log_odds for outcome in self.outcomes]


def estimates(model: Model, trace: Trace, asking: Asking, anew: Anew = ANEW) -> Estimates:
    """Estimated outcomes of removing each counted step.

    Raises:
        UserError: keys of the model cannot be moved to other positions.
        FloatingPointError: a label's log-probability is NaN; the message names item and step.
    """
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.recompute import CachedText, Omission

    check_cue(asking, "prefix")
    ids, start = prefix_ids(model, asking, trace), len(trace.prompt_ids)
    # without a cue, the answer is read from the last token of the reasoning
    since = min(start + len(trace.reasoning_ids), len(ids) - 1)
    spans = [(start + a, start + b) for a, b in (s.tokens for s in trace.counted_steps)]
    what = f"item {trace.question.id!r}, estimate of removal"
    with naming(what):
        text = CachedText.of(model, ids, spans if anew.mediators else (), since)
        after = set(range(since, len(ids)))
        place = {step.index: k for k, step in enumerate(trace.steps)}
        omissions = [Omission((0, 0), tuple(sorted(after)))]
        for i, step in enumerate(trace.counted_steps):
            first = place[step.index] + 1
            following = trace.steps[first : first + anew.steps]
            near = {start + t for other in following for t in range(*other.tokens)}
            later = np.arange(spans[i][1], since)
            if anew.mediators:
                weight = (text.read * text.seen[:, i])[later]
                order = np.argsort(-weight, kind="stable")
                near.update(later[order[: anew.mediating(len(later))]].tolist())
            omissions.append(Omission(spans[i], tuple(sorted(near | after))))
        labels = label_ids(model, asking, "prefix")
        scores, _ = text.ask(omissions, labels, "number" if asking.kind == "number" else None)
    names = [name for name, _ in asking.labels]
    arms = [BASELINE, *(("removed", i) for i in range(len(spans)))]
    read = {
        arm: log_distribution(log_probs, names, what=f"{what}, {arm}")
        for arm, log_probs in zip(arms, scores, strict=True)
    }
    followed = ReferenceAnswer.of(trace, read[BASELINE]).answer
    outcomes = scored_outcomes(read, dict.fromkeys(read, 0), followed)
    return Estimates(
        list(outcomes.values()),
        [len(omission.fresh) for omission in omissions[1:]],
        [len(ids) - last for _, last in spans],
    )


@dataclass
class Screen:
    """The steps of a trace that are edited for their estimated effect."""

    model: Model | TextModel
    trace: Trace
    asking: Asking
    most: int | None
    """Number of steps; None for none, and then nothing is estimated."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Fields for every record of the trace, filled by `steps`: indices of the steps `screened`, and
    per counted step the `estimated_log_odds` that its removal costs the answer (None where
    infinite); or why the steps were `not_screened`."""
    _chosen: Sequence[int] | None = None

    def steps(self) -> Sequence[int]:
        """Indices of the steps whose removal has the largest estimated effect, rising. They are
        estimated once."""
        if self._chosen is None:
            self._chosen = self._estimated()
        return self._chosen

    def _estimated(self) -> Sequence[int]:
        if self.most is None:
            return ()
        if len(self.asking.answers) < 2:
            self.fields["not_screened"] = FEWER_LABELS
            return ()
        assert not isinstance(self.model, TextModel), "no config screens the steps of an API model"
        effects = estimates(self.model, self.trace, self.asking).log_odds
        size = [math.inf if x is None else abs(x) for x in effects]
        order = sorted(range(len(size)), key=lambda i: -size[i])
        chosen = sorted(self.trace.counted_steps[i].index for i in order[: self.most])
        self.fields |= {"screened": chosen, "estimated_log_odds": [rounded(x) for x in effects]}
        return chosen
