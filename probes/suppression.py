"""Suppression matrix: effect on each later step when no later token can attend to one step.

All attention to step i from every later token is cut, in all layers and heads, while its text
stays; S[i, j] is how far the model's next-token distributions at the tokens of a later step j then
move: KL(whole || cut), mean over these tokens (Bogdan et al. 2025, "Thought Anchors", arXiv
2506.19143: attention suppression). The last column is the token whose output begins the answer. The
authors take logs of each token's KL, at temperature 0.6, and subtract a column's mean; here S stays
in nats, so that its entries can be added up and read by themselves. Declared spans, such as a cue
(`probes.spans`), are cut off in the same way and have a row each.

Receiver heads are those that gather the attention of later steps on few earlier ones: the excess
kurtosis, over steps, of the mean attention that a step gets from the tokens of all later ones. The
probe `attention` has this kurtosis for the answer's token alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, StrictBool, StrictInt

from faithscope.interventions import Trace
from faithscope.probes.attention import excess_kurtosis, named_heads
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.knockout import NO_KNOCKOUT
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, number, record
from faithscope.probes.settings import Execution
from faithscope.probes.spans import Span, TakesSpans, find

if TYPE_CHECKING:
    from torch import Tensor

    from faithscope.interp.model import Model

TOP_EDGES = TOP_HEADS = 10
ROWS = 512
"""Most next-token distributions held at once, besides those of the whole reasoning: 300 MB for a
vocabulary of 150,000 tokens."""


class SuppressionSettings(TakesSpans):
    """Effect on later steps when all attention to a step is cut (Thought Anchors)."""

    receivers: StrictBool = True
    """Whether to find receiver heads, which gather later steps' attention on few earlier ones."""
    apart: StrictInt = Field(default=1, ge=1)
    """Distance from which on a step counts as later for receiver heads; the authors' code says
    4."""
    execution: Execution = "auto"


@probe(
    "what every later step loses when no token can look at a step: a matrix (Thought Anchors)",
    words=("cue",),
    calls=lambda size, s: (
        # the reading for receiver heads is no branch
        1 + size.steps + len(s.spans)
    ),
)
def suppression(
    model: Model, trace: Trace, asking: Asking, settings: SuppressionSettings
) -> list[Record]:
    """One record. Lists have a value per counted step, in nats; None where there is no other step:

        to_answer    what cutting it off does to the token before the answer
        later        … to the tokens of a later step, where each is predicted, mean over later
                     steps; the first token of the very next step is predicted by the step itself,
                     which nothing is cut from, and does not count
        received     what this step's tokens lose by an earlier one being cut off, mean over these
        by_distance  mean over all pairs of steps that are 1, 2, … apart

    `edge_from`, `edge_to`, `edge_kl`: the `TOP_EDGES` greatest entries between steps, counted from
    1. Arrays, with T counted steps, L layers, H heads: `matrix` (T, T + 1), by the step cut off and
    the later step, the answer last, NaN where that is no later one; with `receivers`, `received`
    (L, H, T), the attention per token that a step gets from later steps' tokens, NaN where there
    is no later one, and `kurtosis` (L, H), NaN below four such steps; `receiver_layer`, …: the
    heads where it is greatest.

    With declared `spans`, lists over these: `span_names`, `span_to_answer`, and `span_later`, the
    mean over the later steps; None where a chain has not the span (`spans_missing` has the
    reasons). The array `spans` (S, T + 1) has the rows.

    Raises:
        FloatingPointError: the model's logits are not finite.
    """
    if not model.supports_tree:
        return [record(trace, "suppression", "", None, excluded=NO_KNOCKOUT)]
    steps = trace.counted_steps
    n = len(steps)
    found = find(model, trace, asking, settings.named, settings.spans)
    of_spans = list(found.spans.values())
    whole, cost = suppressed(model, trace, asking, settings.execution, of_spans)
    matrix, between = whole[:n], whole[:n, :n]
    arrays = {"matrix": matrix.astype(np.float32)}
    heads: dict[str, Any] = {}
    if settings.spans:
        rows = np.full((len(settings.spans), n + 1), math.nan)
        rows[[name in found.spans for name in settings.spans]] = whole[n:]
        arrays["spans"] = rows.astype(np.float32)
        heads = {
            "span_names": list(settings.spans),
            "span_to_answer": [_mean(row[n:]) for row in rows],
            "span_later": [_mean(row[:n]) for row in rows],
            "spans_missing": list(found.missing.values()),
        }
    if settings.receivers:
        received = attention_received(model, trace, settings.apart)
        arrays["received"] = received.astype(np.float32)
        has_later = received[..., : max(0, n - settings.apart)]
        arrays["kurtosis"] = excess_kurtosis(has_later).astype(np.float32)
        heads |= named_heads("receiver", arrays["kurtosis"], TOP_HEADS)
    edges = [(i, j) for i, j in np.argwhere(~np.isnan(matrix)).tolist() if j < n]
    edges = sorted(edges, key=lambda edge: -matrix[edge])[:TOP_EDGES]
    return [
        record(
            trace,
            "suppression",
            "",
            None,
            arrays=arrays,
            n_steps=n,
            steps=[s.index for s in steps],
            to_answer=[number(x) for x in matrix[:, n]],
            later=[_mean(row) for row in between],
            received=[_mean(column) for column in between.T],
            by_distance=[_mean(np.diagonal(between, d)) for d in range(1, n)],
            edge_from=[i + 1 for i, _ in edges],
            edge_to=[j + 1 for _, j in edges],
            edge_kl=[number(matrix[edge]) for edge in edges],
            n_layers=model.n_layers,
            **heads,
            **cost,
        )
    ]


def suppressed(
    model: Model,
    trace: Trace,
    asking: Asking,
    execution: Any = "auto",
    others: Sequence[tuple[Span, ...]] = (),
) -> tuple[np.ndarray, dict[str, Any]]:
    """(T + others, T + 1) matrix of mean KL in nats, as described in `suppression`, and the cost.

    What is cut off, with up to `ROWS` asked tokens together, runs in one pack with the whole
    reasoning.

    Args:
        others: spans that are cut off besides the steps, each from every token after it.
    """
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.edits import Knockout
    from faithscope.interp.forest import Branch

    ids = prefix_ids(model, asking, trace)
    spans = _spans(trace)
    n = len(spans)
    # each token of a step is predicted at the token before it
    owner = {p - 1: j for j, span in enumerate(spans) for p in range(*span)} | {len(ids) - 1: n}
    cut_off = [*((span,) for span in spans), *others]
    sums, counts = (np.zeros((len(cut_off), n + 1)) for _ in range(2))
    trie = naive = 0
    later = [[p for p in sorted(owner) if p >= min(b for _, b in of)] for of in cut_off]
    cuts = [tuple(Knockout((b, None), (a, b)) for a, b in of) for of in cut_off]
    for pack in _packs(later):
        whole = sorted({p for _, asked in pack for p in asked})
        branches = [Branch(ids[: whole[-1] + 1], tuple(whole))]
        branches += [Branch(ids[: asked[-1] + 1], tuple(asked), cuts[i]) for i, asked in pack]
        run = model.run(branches, execution=execution)
        at = {p: row for row, p in enumerate(whole)}
        for (i, asked), cut in zip(pack, run.branches[1:], strict=True):
            rows = run.branches[0].logits[[at[p] for p in asked]]
            for p, kl in zip(asked, _divergences(model, rows, cut.logits), strict=True):
                sums[i, owner[p]] += kl
                counts[i, owner[p]] += 1
        trie, naive = trie + run.trie_tokens, naive + run.naive_tokens
        how, reason = run.execution, run.reason
    cost = {"execution": how, "tree_reason": reason} if n else {}
    with np.errstate(invalid="ignore"):
        matrix = sums / counts
    return matrix, cost | {"trie_tokens": trie, "naive_tokens": naive, "dtype": model.dtype}


def attention_received(model: Model, trace: Trace, apart: int = 1) -> np.ndarray:
    """(L, H, T) attention per token that each counted step gets from the tokens of the steps that
    are at least `apart` later, mean over these steps; NaN where there are none.

    The reasoning is read once more, and of its attention only these sums are kept.
    """
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.attention_sums import attention_between

    spans = _spans(trace)
    n, sizes = len(spans), np.array([b - a for a, b in spans])
    # by later step (rows) and earlier one
    later = np.tri(n, n, -apart)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = later / sizes[:, None] / sizes / later.sum(0)
    received = attention_between(
        model, trace.prompt_ids + trace.reasoning_ids, spans, np.nan_to_num(factors)
    )
    return np.where(later.any(0), received.astype(float), math.nan)


def _spans(trace: Trace) -> list[Span]:
    start = len(trace.prompt_ids)
    return [(start + a, start + b) for a, b in (s.tokens for s in trace.counted_steps)]


def _packs(asked: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, Sequence[int]]]]:
    """Packs of (index of what is cut off, positions asked under its cut), with at most `ROWS`
    positions each."""
    pack: list[tuple[int, Sequence[int]]] = []
    for i, positions in enumerate(asked):
        for start in range(0, len(positions), ROWS):
            some = positions[start : start + ROWS]
            if pack and sum(len(p) for _, p in pack) + len(some) > ROWS:
                yield pack
                pack = []
            pack.append((i, some))
    if pack:
        yield pack


def _divergences(model: Model, whole: Tensor, cut: Tensor) -> list[float]:
    """KL(whole || cut) in nats for each row of (A, V) logits of next tokens."""
    import torch

    from faithscope.interp.execute import check_finite

    divergences: list[float] = []
    for p, q in zip(whole.split(64), cut.split(64), strict=True):
        check_finite(model, p)
        check_finite(model, q)
        log_p, log_q = p.double().log_softmax(-1), q.double().log_softmax(-1)
        terms = torch.where(log_p.exp() > 0, log_p.exp() * (log_p - log_q), 0.0)
        divergences += terms.sum(-1).clamp(min=0).tolist()
    return divergences


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return number(known.mean()) if len(known) else None
