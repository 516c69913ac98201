"""Causal effect of each step on the answer: graded necessity, NLDD and TTS side by side.

Three graded measures of the causal effect of a step, taken on the same steps with the same edits,
so that they can be compared with each other and with SLRC (which names this comparison as future
work):

- graded necessity: the drop of the answer's log-odds (nats) when the step is removed, and the
  total variation of the answer distribution; SLRC's 0/1 necessity discards both.
- NLDD, normalised logit difference decay (Ye et al. 2026): the drop of an answer's lead over its
  best rival when the step is corrupted and later text frozen, as a share of that lead.
- TTS, true-thinking score (Zhao et al. 2025): how far corrupting the step moves the
  probability of the answer right after it, in its own context and in a corrupted one.

All branches of an item are one pack, in `prefix` framing, read off the answers' log-probs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import StrictBool

from faithscope.interventions import (
    NotCorruptible,
    NotWritable,
    Trace,
    corrupt_step,
    remove_step,
    truncate_after_step,
)
from faithscope.probes.edited import scored
from faithscope.probes.floor import baseline_of
from faithscope.probes.framing import BASELINE, FEWER_LABELS, Arm, Asking
from faithscope.probes.graded import log_odds, logit_difference, nldd, true_thinking_score
from faithscope.probes.probe import probe
from faithscope.probes.readings import scored_outcomes
from faithscope.probes.record import Record, mean_of_steps, number, record
from faithscope.probes.reference_answer import FORCED
from faithscope.probes.settings import Execution, Seed, Settings

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NOTHING_TO_CORRUPT = "nothing_to_corrupt"
"""Why a step has no corruption: no rule finds anything to change in it."""
NOT_SAMPLED = "not_sampled"
NO_CONTEXT = "no_context"
"""Why the first step has no TTS: there is no earlier step to perturb."""
CONTEXT_NOT_CORRUPTIBLE = "context_not_corruptible"
"""Why a step has no TTS: no rule finds anything to change in any earlier step."""
STEP_MEASURES = (
    "graded_necessity",
    "removed_tv",
    "removed_flips",
    "corrupted_log_odds",
    "corrupted_tv",
    "corrupted_flips",
    "nldd",
    "nldd_own",
    "nldd_truncated",
    "nldd_own_truncated",
    "tts",
    "tts_intact",
    "tts_perturbed",
)
"""Fields that hold one value per counted step; `mean_<name>` is their mean over steps."""
FORCED_MEASURES = tuple(
    FORCED + name
    for name in (
        "graded_necessity",
        "corrupted_log_odds",
        "nldd_own",
        "nldd_own_truncated",
        "tts",
        "tts_intact",
        "tts_perturbed",
    )
)
"""Fields of the measures that also follow the forced choice; the other measures follow no answer,
or the right one."""
_CORNERS = ("exit", "exit_corrupted", "exit_context", "exit_both")
"""TTS branches, asked right after a step: nothing perturbed, the step, its context, or both."""


class CausalEffectsSettings(Settings):
    """Graded necessity, NLDD and TTS of every step, beside SLRC."""

    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens."""
    seed: Seed = 0
    """Seed of the digits that corruption writes, as in `slrc`, so that both corrupt alike."""
    execution: Execution = "auto"


@probe(
    "graded necessity, NLDD and TTS of every step, side by side with SLRC",
    listed=12,
    papers=("faithcot",),
    samples_steps=True,
    words=("cue", "labels"),
    reads_labels=True,
    follows_answer=True,
    # the first step has no context that could be perturbed
    calls=lambda size, s: 1 + 6 * size.steps - 2,
    version=2,
)
def causal_effects(
    model: Model, trace: Trace, asking: Asking, settings: CausalEffectsSettings
) -> list[Record]:
    """One record with every graded effect of every counted step.

    `answer`, whose log-odds and probability are followed, is the answer that the chain states, or
    the forced choice if it states none (`reference`, `probes.reference_answer`). Probabilities are
    shares among the task's answers; answers of several tokens count with the sum of their
    log-probs. Lists have a value per counted step, None if the branch does not exist, with the
    reason in `corrupt_excluded` or `tts_excluded`:

        ..._mass            of each kind of branch, what all labels together have of the model's
                            probability; `label_mass`, after the whole reasoning
        graded_necessity    log-odds of the answer, whole reasoning minus step removed (nats)
        removed_tv          total variation of the answer distribution on removal
        removed             the likeliest answer after removal
        removed_flips       whether it is another than the likeliest on the whole reasoning,
                            whichever answer is followed
        removed_margin      by how much the closer of the two answers was decided (nats): a flip
                            by no more than `noise_floor` is within the noise of the dtype
        corrupted_...       the same with the step corrupted and later text frozen
        nldd                lead of the gold answer over its best rival, lost by the corruption,
                            as a share of the lead; None where gold is unknown or no option,
                            negative where a wrong answer of the model's loses to it
        nldd_own            the same lead of the chain's answer
        ..._truncated       against the reasoning that ends with the corrupted step, as the
                            authors' code has it: what later steps would have done is gone too
        tts                 mean of the two that follow; None for the first step, as the authors
        tts_intact          |p(y|C,s) - p(y|C,s')|, asked right after the step; C the steps before
        tts_perturbed       |p(y|C',s) - p(y|C',s')|, C' with every step before it corrupted
                            that can be
        forced_...          those that follow `answer`, of the forced choice (`FORCED_MEASURES`)

    Arrays, NaN for a branch that does not exist: `baseline` (answers,), `removed` and `corrupted`
    (steps, answers), `exits` (steps, 2, 2, answers) by context and step intact or perturbed:
    probabilities in the order of `options`.

    Raises:
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    if len(asking.answers) < 2:
        return [record(trace, "causal_effects", "", settings.seed, excluded=FEWER_LABELS)]
    arms = _arms(model, trace, settings.seed)
    pack = scored(model, trace, asking, arms, settings)
    steps, gold = trace.counted_steps, trace.question.gold
    followed = pack.answer.answer
    measured = effects(pack.arms, len(steps), gold, followed, pack.packs)
    of_forced = _following(pack.arms, len(steps), pack.answer.forced, pack.packs)
    measured |= {FORCED + name: values for name, values in of_forced.items()}
    baseline = pack.arms[BASELINE]
    values: dict[str, Any] = {
        **pack.answer.fields,
        "gold": gold,
        "options": list(baseline),
        "baseline_p": [_number(math.exp(x)) for x in baseline.values()],
        "label_mass": pack.mass[BASELINE],
        "log_odds": _number(log_odds(baseline, followed)),
        "lead": _number(logit_difference(baseline, gold)) if gold in baseline else None,
        "lead_own": _number(logit_difference(baseline, followed)),
        "n_steps": len(steps),
        "steps": [s.index for s in steps],
        "corruption_rule": [
            arms["corrupted", i].edits[-1].detail["rule"] if ("corrupted", i) in arms else None
            for i in range(len(steps))
        ],
        **_excluded(arms, trace),
        **measured,
        **{
            f"mean_{name}": _number(mean_of_steps(measured[name], trace.inclusion))
            for name in (*STEP_MEASURES, *FORCED_MEASURES)
        },
        **{
            f"{kind}_mass": [pack.mass.get((kind, i)) for i in range(len(steps))]
            for kind in ("removed", "corrupted", *_CORNERS)
        },
        **pack.cost,
    }
    arrays = _arrays(pack.arms, len(steps))
    return [record(trace, "causal_effects", "", settings.seed, arrays=arrays, **values)]


def effects(
    by_arm: Mapping[Arm, Mapping[str, float]],
    n_steps: int,
    gold: str | None,
    followed: str,
    packs: Mapping[Arm, int] | None = None,
) -> dict[str, list[Any]]:
    """Every measure of `STEP_MEASURES` from the log distributions of a pack's branches.

    Args:
        by_arm: arm -> log-probabilities over the answers: of the baseline, and of all that exist of
            ("removed", i), ("corrupted", i) and the four corners of TTS ("exit", i),
            ("exit_corrupted", i), ("exit_context", i), ("exit_both", i) of step i from 0.
        gold: the right answer; None if unknown.
        followed: the answer that is followed.
        packs: pack that each arm was computed in, if not all in one.
    """
    packs = dict.fromkeys(by_arm, 0) if packs is None else packs
    outcomes = scored_outcomes(by_arm, packs, followed)
    measures: dict[str, list[Any]] = {}
    for kind in ("removed", "corrupted"):
        of_kind = [outcomes.get((kind, i)) for i in range(n_steps)]
        measures[kind] = [o and o.answer for o in of_kind]
        measures[f"{kind}_tv"] = [o and _number(o.tv) for o in of_kind]
        measures[f"{kind}_flips"] = [o and o.flips for o in of_kind]
        measures[f"{kind}_margin"] = [o and _number(o.margin) for o in of_kind]
    measures |= _following(by_arm, n_steps, followed, packs)
    for kind, name in _CORRUPTIONS.items():
        measures[name] = _decays(by_arm, n_steps, kind, gold, packs)
    return measures


_CORRUPTIONS = {"corrupted": "nldd", "exit_corrupted": "nldd_truncated"}


def _following(
    by_arm: Mapping[Arm, Mapping[str, float]], n_steps: int, answer: str, packs: Mapping[Arm, int]
) -> dict[str, list[Any]]:
    """The measures that follow `answer`, named as in `FORCED_MEASURES` but without the prefix."""
    outcomes = scored_outcomes(by_arm, packs, answer)
    measures: dict[str, list[Any]] = {}
    for kind, drop in (("removed", "graded_necessity"), ("corrupted", "corrupted_log_odds")):
        of_kind = [outcomes.get((kind, i)) for i in range(n_steps)]
        measures[drop] = [o and _number(o.log_odds) for o in of_kind]
    for kind, name in _CORRUPTIONS.items():
        measures[name.replace("nldd", "nldd_own")] = _decays(by_arm, n_steps, kind, answer, packs)
    scores = [
        _tts([math.exp(by_arm[k, i][answer]) if (k, i) in by_arm else None for k in _CORNERS])
        for i in range(n_steps)
    ]
    return measures | {
        name: [_number(of_step[name]) for of_step in scores]
        for name in ("tts", "tts_intact", "tts_perturbed")
    }


def _decays(
    by_arm: Mapping[Arm, Mapping[str, float]],
    n_steps: int,
    kind: str,
    answer: str | None,
    packs: Mapping[Arm, int],
) -> list[float | None]:
    """NLDD of each step, from its branch of one kind."""
    return [
        _decay(baseline_of(by_arm, packs.get((kind, i), 0)), by_arm.get((kind, i)), answer)
        for i in range(n_steps)
    ]


def _arms(model: Model, trace: Trace, seed: int) -> dict[Arm, Trace]:
    """Arm -> edited trace, without the arms of steps that cannot be corrupted."""
    arms: dict[Arm, Trace] = {BASELINE: trace}
    context, perturbed = trace, False
    place = {s.index: i for i, s in enumerate(trace.counted_steps)}
    for step in trace.steps:
        corrupted = _corrupted(model, trace, step.index, seed)
        both = _corrupted(model, context, step.index, seed)
        if step.counted and trace.is_sampled(step.index):
            i, at = place[step.index], step.index
            arms["removed", i] = remove_step(trace, at)
            arms["exit", i] = truncate_after_step(trace, at)
            if corrupted is not None:
                arms["corrupted", i] = corrupted
                arms["exit_corrupted", i] = truncate_after_step(corrupted, at)
            if perturbed:
                arms["exit_context", i] = truncate_after_step(context, at)
                if both is not None:
                    arms["exit_both", i] = truncate_after_step(both, at)
        if both is not None:
            context, perturbed = both, True
    return arms


def _corrupted(model: Model, trace: Trace, step: int, seed: int) -> Trace | None:
    try:
        return corrupt_step(trace, step, seed, model.encode, model.pieces)
    except (NotCorruptible, NotWritable):
        return None


def _excluded(arms: Mapping[Arm, Trace], trace: Trace) -> dict[str, list[str | None]]:
    """Per step, why it has no corruption and why it has no TTS; None if it has."""
    left = [None if trace.is_sampled(step.index) else NOT_SAMPLED for step in trace.counted_steps]
    corrupt = [
        None if ("corrupted", i) in arms else out or NOTHING_TO_CORRUPT
        for i, out in enumerate(left)
    ]
    context = [
        None
        if ("exit_context", i) in arms
        else out or (CONTEXT_NOT_CORRUPTIBLE if i else NO_CONTEXT)
        for i, out in enumerate(left)
    ]
    both = [a or b for a, b in zip(corrupt, context, strict=True)]
    return {"corrupt_excluded": corrupt, "tts_excluded": both}


def _decay(
    clean: Mapping[str, float], corrupt: Mapping[str, float] | None, answer: str | None
) -> float | None:
    if corrupt is None or answer is None or answer not in clean:
        return None
    return _number(nldd(logit_difference(clean, answer), logit_difference(corrupt, answer)))


def _tts(p: Sequence[float | None]) -> dict[str, float | None]:
    """TTS and its two terms from the probabilities at `_CORNERS`."""
    scores: dict[str, float | None] = dict.fromkeys(("tts", "tts_intact", "tts_perturbed"))
    intact, step, context, both = p
    if intact is not None and step is not None:
        scores["tts_intact"] = abs(intact - step)
        if context is not None and both is not None:
            scores["tts_perturbed"] = abs(context - both)
            scores["tts"] = true_thinking_score((intact, step), (context, both))
    return scores


def _arrays(by_arm: Mapping[Arm, Mapping[str, float]], n_steps: int) -> dict[str, np.ndarray]:
    n = len(by_arm[BASELINE])

    def p(arm: Arm) -> np.ndarray:
        if arm not in by_arm:
            return np.full(n, np.nan, np.float32)
        return np.exp(np.array(list(by_arm[arm].values()))).astype(np.float32)

    def of_steps(kind: str) -> np.ndarray:
        return np.array([p((kind, i)) for i in range(n_steps)]).reshape(n_steps, n)

    exits = np.stack([of_steps(kind) for kind in _CORNERS], axis=1)
    return {
        "baseline": p(BASELINE),
        "removed": of_steps("removed"),
        "corrupted": of_steps("corrupted"),
        "exits": exits.reshape(n_steps, 2, 2, n),
    }


def _number(value: float | None) -> float | None:
    # + 0.0 makes minus zero zero
    return None if value is None else number(value) + 0.0
