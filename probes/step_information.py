"""Step mutual information I(A; s_t | X, s_-t), computed from the model's own answer distribution.

SLRC paper, section 3.3, equation 2, which calls it not computable from outside. From inside, the
answer's distribution under any text in the step's place can be read; the paper leaves open which
texts may stand there, that is, the distribution over s_t. Here that is a designed distribution, the
same for every model. The kinds

    real        the step as written
    removed     nothing in its place
    corrupted   the step made to say something else (`interventions.corrupt_step`)
    replaced    other steps of the same reasoning in its place, a seeded few

are equally likely, and so are the texts of one kind; a kind that does not exist for a step
(nothing to corrupt) is left out. With p_v the answer's distribution under text v and w_v the
probability of v, the mutual information is the Jensen-Shannon form

    I = H(sum_v w_v p_v) - sum_v w_v H(p_v),

from 0 to the least of log(answers), H(w) and H(sum_v w_v p_v); nats. It is the information about
the answer in *which of these texts* stands at t, given the question and the other steps as they
were written; it is not an expectation over questions, nor over what the model itself might have
written there. Later text is frozen, as in removal and frozen corruption: a step that a later step
repeats carries no information of its own.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from faithscope.interventions import (
    NotCorruptible,
    NotWritable,
    Trace,
    corrupt_step,
    keep_only_step,
    remove_step,
    replace_step,
    truncate_after_token,
)
from faithscope.probes.edited import Run, Scored, Scoring, scored
from faithscope.probes.framing import BASELINE, Arm, Asking

if TYPE_CHECKING:
    from jaxtyping import Float

    from faithscope.interp.model import Model

KINDS = ("real", "removed", "corrupted", "replaced")


@dataclass(frozen=True)
class Variants:
    """The answer's distribution under every text in one step's place."""

    kinds: tuple[str, ...]
    """Kind of each text, one of `KINDS`; `real` first."""
    p: Float[NDArray[np.float64], "variants answers"]

    @property
    def weights(self) -> Float[NDArray[np.float64], " variants"]:
        """Probability of each text: kinds are equally likely, and so are the texts of one kind."""
        present = set(self.kinds)
        return np.array([1 / len(present) / self.kinds.count(kind) for kind in self.kinds])

    @property
    def information(self) -> float:
        """Information about the answer in which of the texts stands in the step's place, nats."""
        return mutual_information(self.p, self.weights)

    def share(self, least: float) -> float:
        """`information` as a share of the answer's entropy under the mixture, in [0, 1].

        0 if that entropy is not above `least` nats: an answer that no text moves has nothing to be
        explained, and a ratio of rounding errors may have any value.
        """
        whole = float(entropy(self.weights @ self.p))
        return self.information / whole if whole > least else 0.0

    def against(self, kind: str) -> float | None:
        """The information in whether the real text or any of a single kind stands there.

        The two alternatives are equally likely, so the information is at most log 2, however many
        texts the kind has. None if the kind has no text.
        """
        others = [i for i, k in enumerate(self.kinds) if k == kind]
        if not others:
            return None
        pair = np.stack([self.p[0], self.p[others].mean(0)])
        return mutual_information(pair, np.array([0.5, 0.5]))


def entropy(p: np.ndarray) -> np.ndarray:
    """Entropies of the distributions along the last axis, nats."""
    # Not at the top: a list of the probes need not wait a third of a second for scipy.
    from scipy.special import entr

    return entr(p).sum(-1)


def mutual_information(
    p: Float[NDArray[np.float64], "variants answers"], weights: Float[NDArray[np.float64], " v"]
) -> float:
    """Entropy of the mixture minus the mean entropy, in nats; negative rounding errors become 0."""
    return max(0.0, float(entropy(weights @ p) - weights @ entropy(p)))


@dataclass(frozen=True)
class Measured:
    """Answer distributions of one trace under all texts in its steps' places."""

    answers: tuple[str, ...]
    given_rest: tuple[Variants, ...]
    """Per counted step, its variants with every other step as written."""
    alone: tuple[Variants, ...]
    """Per counted step, its variants with no other step given."""
    before: Float[NDArray[np.float64], " answers"]
    """The answer's distribution without any reasoning."""
    pack: Scored

    @property
    def after(self) -> Float[NDArray[np.float64], " answers"]:
        """The answer's distribution after the reasoning as written."""
        return self.given_rest[0].p[0]


def measure(
    model: Model,
    trace: Trace,
    asking: Asking,
    settings: Scoring,
    *,
    replacements: int,
    seed: int,
) -> Measured:
    """The answer's distribution under every text in every counted step's place, in one pack.

    Args:
        asking: the task's words, with labels of at least two answers.
        replacements: most other steps that are put in the place of one step.

    Raises:
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    texts = [_texts(model, trace, s.index, replacements, seed) for s in trace.counted_steps]
    nothing = truncate_after_token(trace, 0)
    arms: dict[Arm, Run] = {BASELINE: trace, ("nothing", 0): nothing}
    given_rest: list[list[tuple[str, Arm]]] = []
    alone: list[list[tuple[str, Arm]]] = []
    for i, (step, of_step) in enumerate(zip(trace.counted_steps, texts, strict=True)):
        given_rest.append([("real", BASELINE)])
        alone.append([("real", ("alone_real", i))])
        arms["alone_real", i] = keep_only_step(trace, step.index)
        for k, (kind, edited) in enumerate(of_step):
            arms[f"{kind}_{k}", i] = edited
            given_rest[-1].append((kind, (f"{kind}_{k}", i)))
            if kind == "removed":
                alone[-1].append((kind, ("nothing", 0)))
            else:
                arms[f"alone_{kind}_{k}", i] = keep_only_step(edited, step.index)
                alone[-1].append((kind, (f"alone_{kind}_{k}", i)))
    pack = scored(model, trace, asking, arms, settings)
    p = {arm: np.exp(np.array(list(of_arm.values()))) for arm, of_arm in pack.arms.items()}
    return Measured(
        answers=tuple(pack.arms[BASELINE]),
        given_rest=tuple(_read(p, x) for x in given_rest),
        alone=tuple(_read(p, x) for x in alone),
        before=p["nothing", 0],
        pack=pack,
    )


def _read(p: dict[Arm, NDArray[np.float64]], arms: Sequence[tuple[str, Arm]]) -> Variants:
    return Variants(tuple(kind for kind, _ in arms), np.stack([p[arm] for _, arm in arms]))


def _texts(
    model: Model, trace: Trace, step: int, replacements: int, seed: int
) -> list[tuple[str, Trace]]:
    """(kind, trace with a text of that kind in one step's place) for all kinds but `real`."""
    texts = [("removed", remove_step(trace, step))]
    with contextlib.suppress(NotCorruptible, NotWritable):
        texts.append(("corrupted", corrupt_step(trace, step, seed, model.encode, model.pieces)))
    own = next(s for s in trace.steps if s.index == step)
    others = {trace.step_ids(s): s for s in trace.counted_steps}
    others.pop(trace.step_ids(own))
    # The draw depends on trace and step, too: one seed must not pick the same place everywhere.
    rng = random.Random(f"replace-{seed}-{trace.question.task}-{trace.question.id}-{step}")
    chosen = rng.sample(list(others.values()), min(replacements, len(others)))
    for other in sorted(chosen, key=lambda s: s.index):
        ids, pieces = trace.step_ids(other), trace.pieces[slice(*other.tokens)]
        detail = {"with": other.index}
        edited = replace_step(trace, step, ids, pieces, seed=seed, detail=detail)
        texts.append(("replaced", edited))
    return texts
