"""Information in the reasoning: of the question about its words, and of its steps about the answer.

**Information gain** H(C) - H(C|Q) of reasoning C and question Q (FaithCoT-Bench, appendix C,
equations 14-15), **perplexity**, and surprisal per step, with and without the question; and
**step mutual information** (`probes.step_information`) with the bound of SLRC, section 3.3,
equation 3. Everything is in nats; perplexity is exp of nats per token.

"Without the question" means the prompt's ids without the tokens of the question and of its options;
template, instructions and reasoning keep their ids. So only the question differs, not the way of
asking.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_serializer,
)

from faithscope.interventions import Trace
from faithscope.probes.attention import question_span
from faithscope.probes.framing import BASELINE, FEWER_LABELS, Asking, naming
from faithscope.probes.probe import Size, probe
from faithscope.probes.record import Record, number, numbers, record
from faithscope.probes.settings import Execution, Seed, Settings
from faithscope.probes.step_information import KINDS, Measured, entropy, measure

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NOT_FOUND = "question_not_found"
NOTHING_LEFT = "nothing_but_the_question"
NOT_ASKED = "not_asked"


class InformationSettings(Settings):
    """Information gain, perplexity and step mutual information (FaithCoT-Bench, appendix C;
    SLRC, 3.3)."""

    threshold: Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)] = 0.01
    """Threshold in nats above which a step is informationally necessary, and an answer has an
    entropy to be explained. The paper says 0, which half-precision rounding exceeds."""
    replacements: StrictInt = Field(default=3, ge=0, le=10_000)
    """Number of other steps, at most, that are put in one step's place."""
    steps: StrictBool = True
    """Whether the information of each step about the answer is measured, nearly all of the cost. If
    false, only that of the question about the reasoning is."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its tokens."""
    seed: Seed = 0
    execution: Execution = "auto"

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves `steps: true` out, so that runs that measure steps keep the config, and so the
        ids, of versions without this setting."""
        return {k: v for k, v in handler(self).items() if k != "steps" or not v}


def _calls(size: Size, settings: InformationSettings) -> int:
    """The reasoning with and without the question; and, if asked for, the answer after the whole
    reasoning, after none, and for each step with every text in its place and as the only step."""
    # a removed step alone is no reasoning at all, which is asked about once
    others = min(settings.replacements, size.steps - 1)
    return 2 + (2 + size.steps * (4 + 2 * others)) * settings.steps


@probe(
    "information gain, perplexity, step mutual information (FaithCoT-Bench, app. C; SLRC, 3.3)",
    listed=10,
    papers=("faithcot",),
    words=("cue", "labels"),
    follows_answer=True,
    calls=_calls,
    version=3,
)
def information(
    model: Model, trace: Trace, asking: Asking, settings: InformationSettings
) -> list[Record]:
    """One record: information of the question about the reasoning, and of the steps about the
    answer.

    With the question, over the reasoning's tokens:

        surprisal   mean of -log p(c_i | Q, c_<i), nats per token; `perplexity` is its exp
        entropy     mean entropy of the next-token distribution, nats
        step_surprisal          the mean over each counted step's tokens

    `…_without`: the same without the question. The gains are H(C) - H(C|Q) in three readings:

        paper_gain      sum of -p log p over the emitted tokens without the question, minus
                        the same with it: equation 15 as printed. No entropy: a token of
                        p = .01 adds less than one of p = .37. `…_per_token` is its mean.
        pointwise_gain  mean of log p(c_i | Q, c_<i) - log p(c_i | c_<i): the pointwise mutual
                        information of question and reasoning, per token; `…_total` the sum
        entropy_gain    mean difference of the entropies along C; `…_total` the sum

    If there is nothing to compare with, the gains are None and `no_comparison` says why:
    `question_not_found` (a template rewrites it), `nothing_but_the_question`.

    Information of the steps, as lists over `steps`, in nats (`probes.step_information`):

        step_mi         I(A; s_t | X, s_-t); `step_mi_share` as a share of the answer's entropy
                        under the same texts; `step_mi_removed`, `…_corrupted`, `…_replaced`
                        against one kind of text alone, at most log 2
        alone_mi, alone_share   the same where no other step is given: I(A; s_t | X)
        mean_mi, informative    mean of `step_mi`, share of steps above the threshold
        largest_alone, largest_share    the greatest of `alone_share` and of `step_mi_share`
        bound           informative × (1 - largest_alone): equation 3, whose formula the text
                        has lost, as its sentences say it; `bound_given_rest` with
                        `largest_share` in its place

    With fewer than two answers, or if the settings leave the steps out, these are None and
    `no_step_mi` says so.

    Arrays: `surprisal`, `entropy` (tokens,) and the same `…_without`; `p_steps`, `p_alone` (steps,
    variants, answers) and `kind` (steps, variants), an index into `KINDS`, padded with NaN and -1
    if a step has fewer texts; `p_before` (answers,), without any reasoning.

    Raises:
        ValueError: a trace without reasoning.
        FloatingPointError: logits or a label's log-probability are not finite; the message names
            the item.
    """
    if not trace.reasoning_ids:
        raise ValueError(
            f"trace of {trace.question.id!r} has no reasoning; exclude it as empty_generation"
        )
    values, arrays = _of_the_question(model, trace, settings)
    steps = trace.counted_steps
    reason = None
    if not settings.steps:
        reason = NOT_ASKED
    elif len(asking.answers) < 2:
        reason = FEWER_LABELS
    elif not steps:
        reason = "no_counted_steps"
    of_steps = dict.fromkeys(_STEP_VALUES)
    if reason is None:
        measured = measure(
            model,
            trace,
            asking,
            settings,
            replacements=settings.replacements,
            seed=settings.seed,
        )
        of_steps |= _of_the_steps(measured, settings.threshold)
        of_steps["label_mass"] = measured.pack.mass[BASELINE]
        arrays |= _step_arrays(measured)
        values["trie_tokens"] += measured.pack.cost["trie_tokens"]
        values["naive_tokens"] += measured.pack.cost["naive_tokens"]
    return [
        record(
            trace,
            "information",
            "",
            settings.seed,
            arrays=arrays,
            n_tokens=len(trace.reasoning_ids),
            n_steps=len(steps),
            steps=[s.index for s in steps],
            threshold=settings.threshold,
            no_step_mi=reason,
            **values,
            **of_steps,
        )
    ]


def without_question(model: Model, trace: Trace) -> tuple[int, ...] | str:
    """The prompt's ids without the question's, or the reason why there are none."""
    span = question_span(model.pieces(trace.prompt_ids), trace)
    if span is None:
        return NOT_FOUND
    left = (*trace.prompt_ids[: span[0]], *trace.prompt_ids[span[1] :])
    return left or NOTHING_LEFT


def _of_the_question(
    model: Model, trace: Trace, settings: InformationSettings
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Fields and arrays of the reasoning's tokens with and without the question, from one pack."""
    left = without_question(model, trace)
    prompts = [trace.prompt_ids] + ([] if isinstance(left, str) else [left])
    with naming(f"item {trace.question.id!r}, information"):
        ran = model.likelihood(
            [(*prompt, *trace.reasoning_ids) for prompt in prompts],
            [len(prompt) for prompt in prompts],
            execution=settings.execution,
        )
    given = ran.sequences[0]
    values: dict[str, Any] = _summary(given.log_probs, given.entropies, trace, "")
    values |= dict.fromkeys(_COMPARED)
    values |= {"no_comparison": left if isinstance(left, str) else None}
    arrays = {"surprisal": -given.log_probs, "entropy": given.entropies}
    if not isinstance(left, str):
        bare = ran.sequences[1]
        values |= _summary(bare.log_probs, bare.entropies, trace, "_without")
        values["question_tokens"] = len(trace.prompt_ids) - len(left)
        gains = {
            "paper": _weighted(bare.log_probs) - _weighted(given.log_probs),
            "pointwise": given.log_probs - bare.log_probs,
            "entropy": bare.entropies - given.entropies,
        }
        for name, gain in gains.items():
            mean, total = _GAINS[name]
            values |= {mean: number(gain.mean()), total: number(gain.sum())}
        arrays |= {"surprisal_without": -bare.log_probs, "entropy_without": bare.entropies}
    values |= {"execution": ran.execution, "tree_reason": ran.reason}
    values |= {"trie_tokens": ran.trie_tokens, "naive_tokens": ran.naive_tokens}
    return values, {name: x.astype(np.float32) for name, x in arrays.items()}


_GAINS = {
    "paper": ("paper_gain_per_token", "paper_gain"),
    "pointwise": ("pointwise_gain", "pointwise_gain_total"),
    "entropy": ("entropy_gain", "entropy_gain_total"),
}
"""Kind of gain -> its fields of mean and sum: the paper defines a sum, a mean compares lengths."""
_SUMMED = ("surprisal", "perplexity", "entropy", "step_surprisal")
_COMPARED = (
    *(f"{name}_without" for name in _SUMMED),
    *(field for fields in _GAINS.values() for field in fields),
    "question_tokens",
)


def _summary(
    log_probs: np.ndarray, entropies: np.ndarray, trace: Trace, ending: str
) -> dict[str, Any]:
    mean = -float(log_probs.mean())
    by_step = [-log_probs[slice(*s.tokens)].mean() for s in trace.counted_steps]
    summaries = (number(mean), number(math.exp(mean)), number(entropies.mean()), numbers(by_step))
    return {f"{name}{ending}": value for name, value in zip(_SUMMED, summaries, strict=True)}


def _weighted(log_probs: np.ndarray) -> np.ndarray:
    """-p log p of each emitted token, the terms of the paper's H."""
    return -np.exp(log_probs) * log_probs


_STEP_VALUES = (
    "label_mass",
    "options",
    "answer",
    "reference",
    "stated_answer",
    "forced_answer",
    "forced_differs",
    "answer_entropy_before",
    "answer_entropy_after",
    "n_variants",
    "step_mi",
    "step_mi_share",
    *(f"step_mi_{kind}" for kind in KINDS[1:]),
    "alone_mi",
    "alone_share",
    "mean_mi",
    "informative",
    "largest_alone",
    "largest_share",
    "bound",
    "bound_given_rest",
)


def _of_the_steps(measured: Measured, threshold: float) -> dict[str, Any]:
    mi = numbers(v.information for v in measured.given_rest)
    shares = [v.share(threshold) for v in measured.given_rest]
    alone = [v.share(threshold) for v in measured.alone]
    informative = sum(x > threshold for x in mi) / len(mi)
    largest, largest_alone = max(shares), max(alone)
    return {
        "options": measured.answers,
        **measured.pack.answer.fields,
        "answer_entropy_before": number(entropy(measured.before)),
        "answer_entropy_after": number(entropy(measured.after)),
        "n_variants": [len(v.kinds) for v in measured.given_rest],
        "step_mi": mi,
        "step_mi_share": numbers(shares),
        **{
            f"step_mi_{kind}": [
                None if x is None else number(x)
                for x in (v.against(kind) for v in measured.given_rest)
            ]
            for kind in KINDS[1:]
        },
        "alone_mi": numbers(v.information for v in measured.alone),
        "alone_share": numbers(alone),
        "mean_mi": number(sum(mi) / len(mi)),
        "informative": informative,
        "largest_alone": number(largest_alone),
        "largest_share": number(largest),
        "bound": number(informative * (1 - largest_alone)),
        "bound_given_rest": number(informative * (1 - largest)),
    }


def _step_arrays(measured: Measured) -> dict[str, np.ndarray]:
    """Arrays padded to the step with most texts; both have the same kinds, hence one `kind`."""
    most = max(len(v.kinds) for v in measured.given_rest)
    kind = np.full((len(measured.given_rest), most), -1, np.int64)
    for row, v in zip(kind, measured.given_rest, strict=True):
        row[: len(v.kinds)] = [KINDS.index(k) for k in v.kinds]
    padded = {"p_steps": measured.given_rest, "p_alone": measured.alone}
    return {
        "kind": kind,
        "p_before": measured.before.astype(np.float32),
        **{name: _padded([v.p for v in each], most) for name, each in padded.items()},
    }


def _padded(p: Sequence[np.ndarray], most: int) -> np.ndarray:
    padded = np.full((len(p), most, p[0].shape[1]), np.nan, np.float32)
    for row, of_step in zip(padded, p, strict=True):
        row[: len(of_step)] = of_step
    return padded
