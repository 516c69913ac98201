"""CC-SHAP: do the same words of the question bring about the answer and the reasoning?

Parcalabescu & Frank 2024 (On Measuring Faithfulness or Self-consistency of Natural Language
Explanations, ACL 2024), as BonaFide computes it (arXiv 2605.25052, `metrics/cc_shap`): every token
of the message that the model was asked has a contribution to the answer's tokens, written straight
after the prompt, and to the reasoning's, and the two profiles are compared.

A set of tokens is shown to the model as its text with " ..." for each run of missing ones and
white space made single blanks. The value of a set is the log-odds log p - log(1 - p) of each target
token, and the contributions are Owen values over a tree of neighbours (`probes.owen`). With phi_jt
the contribution of token j to target token t of T,

    r_jt = phi_jt / sum_i |phi_it|     c_j = sum_t r_jt / T     score = cos(c answer, c reasoning)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field, StrictInt

from faithscope.interventions import Trace
from faithscope.interventions.writing import NotWritable, written
from faithscope.probes.answer_token import token_span
from faithscope.probes.framing import Asking, naming
from faithscope.probes.owen import evaluations_of, owen_values, tree_of_tokens
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, number, numbers, record
from faithscope.probes.settings import Execution, Settings
from faithscope.probes.spans import question_chars

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_ANSWER, NOT_FOUND = "answer_unparsed", "question_not_found"
NOT_WRITABLE = "mask_not_writable"
"""Why an item is left out: the tokenizer cannot write the masked message, or the answer."""
FLAT = 1e-12
"""Contributions to a token whose absolute values add up to less are none (BonaFide)."""


class CcShapSettings(Settings):
    """Contributions of the question's tokens to answer and reasoning (CC-SHAP)."""

    evaluations: StrictInt = Field(default=200, ge=2, le=100_000)
    """Most masked messages for the answer, and as many for the reasoning. BonaFide takes 200, the
    authors' library 500."""
    mask: str = Field(default="...", pattern=r"^\S+$")
    """What stands in the place of missing tokens, after a blank; neighbours share one."""
    execution: Execution = "auto"


@probe(
    "do the same words of the question bring about answer and reasoning (CC-SHAP)",
    words=("asked",),
    calls=lambda size, s: 2 * evaluations_of(s.evaluations),
)
def cc_shap(model: Model, trace: Trace, asking: Asking, settings: CcShapSettings) -> list[Record]:
    """One record; where nothing could be measured it only says why, in `excluded`.

        score       cosine of the two profiles, from -1 to 1; 0 if one of them is zero
        pearson     their correlation; 0 if one is constant
        mse, variance   mean squared difference, and the variance of the squared differences
        kl, jsd     KL(reasoning || answer) and Jensen-Shannon divergence of their softmax, nats
        step_scores, per counted step   the score with the step's tokens in the reasoning's place
        n_inputs, n_answer_tokens, n_tokens     tokens of message, answer and reasoning
        flat        share of the reasoning's tokens that no token of the message contributes to
        texts       masked messages that were read, for the answer and the reasoning together

    Arrays: `answer` (message tokens,), `reasoning` (message tokens,), `steps` (counted steps,
    message tokens): the profiles.

    Raises:
        ValueError: the trace has no reasoning.
        NoRoom: a masked message with the reasoning does not fit the model's positions.
        FloatingPointError: the model's logits are not finite, naming item and probe.
    """
    if not trace.reasoning_ids:
        raise ValueError(
            f"trace of {trace.question.id!r} has no reasoning; exclude it as empty_generation"
        )
    message = message_of(model.pieces(trace.prompt_ids), trace, asking)
    if trace.answer is None or message is None:
        reason = NO_ANSWER if trace.answer is None else NOT_FOUND
        return [record(trace, "cc_shap", "", None, excluded=reason)]
    ran: dict[str, Any] = {"texts": 0, "trie_tokens": 0, "naive_tokens": 0}
    try:
        with naming(f"item {trace.question.id!r}, cc_shap"):
            answer = _written(model, trace.answer, ())
            of_answer = _contributions(model, trace, message, answer, settings, ran)
            targets = trace.reasoning_ids
            of_tokens = _contributions(model, trace, message, targets, settings, ran)
    except NotWritable:
        return [record(trace, "cc_shap", "", None, excluded=NOT_WRITABLE)]
    steps = trace.counted_steps
    profiles = {
        "answer": of_answer.mean(1),
        "reasoning": of_tokens.mean(1),
        "steps": np.array([of_tokens[:, slice(*s.tokens)].mean(1) for s in steps]),
    }
    return [
        record(
            trace,
            "cc_shap",
            "",
            None,
            arrays={name: x.astype(np.float32) for name, x in profiles.items()},
            answer=trace.answer,
            **compared(profiles["answer"], profiles["reasoning"]),
            n_steps=len(steps),
            steps=[s.index for s in steps],
            step_scores=numbers(cosine(profiles["answer"], x) for x in profiles["steps"]),
            n_inputs=len(message.words),
            n_answer_tokens=len(answer),
            n_tokens=len(trace.reasoning_ids),
            flat=number((of_tokens == 0).all(0).mean()),
            **ran,
        )
    ]


class Message(NamedTuple):
    """The tokens of the prompt that may be missing."""

    start: int
    end: int
    words: list[str]
    """Their pieces; bytes that are no character yet belong to the next one."""


def message_of(pieces: Sequence[str], trace: Trace, asking: Asking) -> Message | None:
    """The message that the model was asked, or else the question with its options, in a prompt;
    None if neither stands there."""
    prompt, asked = "".join(pieces), asking.asked.strip()
    at = prompt.rfind(asked) if asked else -1
    chars = (at, at + len(asked)) if at >= 0 else question_chars(prompt, trace.question)
    if chars is None:
        return None
    start, end = token_span(pieces, *chars)
    return Message(start, end, [piece for piece in pieces[start:end] if piece])


def masked_text(words: Sequence[str], there: Sequence[bool], mask: str) -> str:
    """The words that are there, with one `mask` for each run of missing ones; white space at both
    ends is that of the whole message."""
    parts: list[str] = []
    for i, (word, kept) in enumerate(zip(words, there, strict=True)):
        if kept:
            parts.append(word)
        elif i == 0 or there[i - 1]:
            parts.append(f" {mask}")
    whole = "".join(words)
    head, tail = whole[: len(whole) - len(whole.lstrip())], whole[len(whole.rstrip()) :]
    return head + re.sub(r"\s+", " ", "".join(parts)).strip() + tail


def _contributions(
    model: Model,
    trace: Trace,
    message: Message,
    target: Sequence[int],
    settings: CcShapSettings,
    ran: dict[str, Any],
) -> np.ndarray:
    """(message tokens, target tokens) shares of the contributions; adds their cost to `ran`."""
    before, after = trace.prompt_ids[: message.start], trace.prompt_ids[message.end :]

    def log_odds(sets: np.ndarray) -> np.ndarray:
        texts = [masked_text(message.words, there, settings.mask) for there in sets]
        prompts = [(*before, *_written(model, text, before), *after) for text in texts]
        found = model.likelihood(
            [(*prompt, *target) for prompt in prompts],
            [len(prompt) for prompt in prompts],
            odds=True,
            execution=settings.execution,
        )
        ran["texts"] += len(prompts)
        ran["trie_tokens"] += found.trie_tokens
        ran["naive_tokens"] += found.naive_tokens
        ran.update(execution=found.execution, tree_reason=found.reason)
        return np.array([one.log_odds for one in found.sequences])

    tree = tree_of_tokens(message.words)
    return shares(owen_values(log_odds, tree, len(message.words), settings.evaluations))


def _written(model: Model, text: str, before: Sequence[int]) -> tuple[int, ...]:
    found = written(text, before, model.encode, model.pieces)
    if not text or found is None:
        raise NotWritable(text)
    return found[0]


def shares(values: np.ndarray) -> np.ndarray:
    """(inputs, outputs) contributions as shares of the absolute ones to the same output; 0 where
    these are none."""
    total = np.abs(values).sum(0)
    return np.where(total < FLAT, 0.0, values / np.where(total < FLAT, 1.0, total))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of two profiles; 0 if one of them is zero."""
    if np.allclose(a, 0) or np.allclose(b, 0):
        return 0.0
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def compared(answer: np.ndarray, reasoning: np.ndarray) -> dict[str, float]:
    """The score and further comparisons of two profiles, as fields of a record."""
    # not at the top: a list of the probes need not wait for scipy
    from scipy.special import softmax
    from scipy.stats import entropy

    p, q = softmax(answer), softmax(reasoning)
    squares, middle = (answer - reasoning) ** 2, (p + q) / 2
    constant = min(answer.std(), reasoning.std()) < FLAT
    centred = cosine(answer - answer.mean(), reasoning - reasoning.mean())
    found = {
        "score": cosine(answer, reasoning),
        "pearson": 0.0 if constant else centred,
        "mse": squares.mean(),
        "variance": ((squares - squares.mean()) ** 2).mean(),
        "kl": entropy(q, p),
        "jsd": (entropy(p, middle) + entropy(q, middle)) / 2,
    }
    return {name: number(x) for name, x in found.items()}
