"""Attention of the answer: the attention rows of the token that the answer is read from.

Real against shuffled (SLRC, sections 2.7 and 4.5): the share of that attention which goes to the
reasoning, beside the share that goes to it when its steps stand in another order. Shuffled
reasonings have the same ids and the same length, in one pack, so that positions and tokens cancel
and only the order of the steps differs.

Allocation: the shares of the whole row that go to question, template, reasoning and the text after
it, per layer and head, and the row's entropy. The first token is counted by itself: as an attention
sink it takes most of many heads' rows and means nothing. Of declared spans (`probes.spans`), the
share of each, and also of the attention of other tokens than the answer's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, StrictInt, StrictStr

from faithscope.interp.errors import UserError
from faithscope.interventions import Trace, n_orders, shuffles
from faithscope.probes.answer_token import (
    attention_row,
    attention_to,
    regions_of_prompt,
    token_span,
)
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import Record, number, numbers, record
from faithscope.probes.settings import ADDED, Seed, as_several
from faithscope.probes.spans import TakesSpans, find, question_chars

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_ATTENTION = "no_attention_rows"
ONE_ORDER = "steps_have_one_order"
NO_SPANS = "queries: their attention is read to declared spans, and none is declared; add spans"
REGIONS = ("first_token", "template", "question", "reasoning", "answer_prefix")
"""Regions that tile a branch; `template` is the prompt without its first token and the question."""


POINTS = 64
"""Most tokens of a span whose attention is read, evenly spaced."""
_WEIGHTS = 1 << 26
"""Most attention weights held at once, over layers, heads, tokens read and tokens looked at."""


class AttentionSettings(TakesSpans):
    """Attention of the answer to the reasoning, real against shuffled (2.7, 4.5)."""

    shuffles: StrictInt = Field(default=3, ge=1, le=10_000)
    """Seeded random orders of the steps per item, beside the real one."""
    top_heads: StrictInt = Field(default=10, ge=0)
    """Number of heads named in a record: those with the greatest share on the reasoning."""
    queries: Annotated[tuple[StrictStr, ...], BeforeValidator(as_several), ADDED] = ()
    """Spans whose attention to the declared spans is read, besides that of the token before the
    answer: the mean over up to 64 of their tokens, evenly spaced."""
    seed: Seed = 0

    @property
    def named(self) -> tuple[str, ...]:
        return (*self.spans, *self.queries)

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        return [*super().misfits(models), *([NO_SPANS] if self.queries and not self.spans else ())]


@probe(
    "attention of the answer to the reasoning, real against shuffled, and allocation (2.7)",
    listed=5,
    papers=("slrc",),
    words=("cue",),
    # a long span's tokens are read in several texts, how many depends on the model
    calls=lambda size, s: 1 + s.shuffles + len(s.queries),
    branches=lambda size, s: Branches(other=s.shuffles, repeated=False, scored=False),
    version=3,
)
def attention(
    model: Model, trace: Trace, asking: Asking, settings: AttentionSettings
) -> list[Record]:
    """One record: attention of the last token before the answer, in `prefix` framing.

    That token is where the answer is computed: its output is the first token of the answer. Shares
    are fractions of a head's row, which sums to one but for what a sink parameter takes (gpt-oss).
    `real`, `shuffled` and `gap` are means over all heads of all layers; `real_drop`,
    `shuffled_drop` and `gap_drop` are the decrease of the mean over heads from the first layer to
    the last. The paper leaves open which of the two its Table 4 shows. `…_by_layer` lists are means
    over heads; `by_step` has the share of each of `steps`, mean over heads and layers.

    Arrays, with L layers, H heads, T counted steps, K shuffles, R regions in the order of
    `REGIONS`: `regions` (L, H, R), `steps` (L, H, T), `shuffled` (K, L, H) shares of the
    reasoning, `shuffled_steps` (K, L, H, T) by the step's place in the real order, `entropy`
    (L, H) in nats, `kurtosis` (L, H): excess kurtosis over the steps of a head's attention
    per token of the step, NaN below four steps ("receiver heads" of Thought Anchors, arXiv
    2506.19143, there over all later tokens, here for the answer's token alone).

    With declared `spans`, flat lists over `queries` (`answer`, the same token, then the others) and
    spans: `span_queries`, `span_names`, `span_shares` (means over heads, layers and those of the
    queries' tokens that stand after a span), `span_densities`, the share over what the span's
    length alone would bring it, both without the first token; None where a chain has not the span
    (`spans_missing` has the reasons) or no query stands after it. The array `spans` (Q, S, L, H)
    has the shares by head, with NaN.

    Raises:
        ValueError: the trace has fewer than 2 counted steps.
        UserError: a query is no span, or there are queries and no spans.
        FloatingPointError: a row is not finite.
    """
    steps = trace.counted_steps
    if len(steps) < 2:
        raise ValueError(
            f"trace of {trace.question.id!r}: {len(steps)} counted steps, shuffling needs 2; "
            "exclude it as fewer_than_2_steps"
        )
    if not model.supports_tree:
        return [_excluded(trace, settings, NO_ATTENTION)]
    if n_orders(trace) < 2:
        return [_excluded(trace, settings, ONE_ORDER)]
    reordered = shuffles(trace, settings.shuffles, settings.seed)
    rows = _rows(model, asking, [trace, *reordered])
    regions = spans(model, trace, asking)
    start = len(trace.prompt_ids)
    real = rows[0]
    shares = np.stack([attention_to(real, regions[name]) for name in REGIONS], axis=-1)
    by_step = _by_step(real, trace, start)
    inside = regions["reasoning"]
    shuffled = [attention_to(row, inside) for row in rows[1:]]
    placed = [_by_step(row, edited, start) for row, edited in zip(rows[1:], reordered, strict=True)]
    entropy = -np.sum(np.where(real > 0, real * np.log(np.maximum(real, 1e-38)), 0), axis=-1)
    kurtosis = excess_kurtosis(by_step / np.array([s.tokens[1] - s.tokens[0] for s in steps]))
    reasoning = shares[..., REGIONS.index("reasoning")]
    arrays = {
        "regions": shares,
        "steps": by_step,
        "entropy": entropy,
        "kurtosis": kurtosis,
    }
    of_spans: dict[str, Any] = {}
    if settings.named:
        of_spans, arrays["spans"] = _to_spans(model, trace, asking, settings, real)
    if shuffled:
        arrays |= {"shuffled": np.stack(shuffled), "shuffled_steps": np.stack(placed)}
    return [
        record(
            trace,
            "attention",
            "",
            settings.seed,
            arrays={name: x.astype(np.float32) for name, x in arrays.items()},
            n_steps=len(steps),
            n_reasoning=len(trace.reasoning_ids),
            n_tokens=real.shape[-1],
            n_layers=real.shape[0],
            n_heads=real.shape[1],
            n_shuffles=len(shuffled),
            steps=[s.index for s in steps],
            by_step=numbers(by_step.mean(axis=(0, 1))),
            question_found=bool(regions["question"]),
            **_summary(reasoning, shuffled),
            **{
                name: number(shares[..., i].mean())
                for i, name in enumerate(REGIONS)
                if name != "reasoning"
            },
            **{
                f"{name}_by_layer": numbers(shares[..., i].mean(axis=1))
                for i, name in enumerate(REGIONS)
            },
            entropy=number(entropy.mean()),
            entropy_by_layer=numbers(entropy.mean(axis=1)),
            **named_heads("reader", reasoning, settings.top_heads),
            **named_heads("receiver", kurtosis, settings.top_heads),
            **of_spans,
        )
    ]


def spans(model: Model, trace: Trace, asking: Asking) -> dict[str, tuple[tuple[int, int], ...]]:
    """Half-open token spans of every region; `question` has none if its text is not found.

    The question reaches from its first word to the end of the last option after it in the prompt.
    It is searched in the text of the prompt's own tokens, so it is found unless a template rewrites
    its input.
    """
    n = len(trace.prompt_ids)
    end = n + len(trace.reasoning_ids)
    after = end + len(asking.closer_ids) + len(model.encode(asking.answer_cue))
    question = question_span(model.pieces(trace.prompt_ids), trace)
    return {
        **regions_of_prompt(n, question),
        "reasoning": ((n, end),),
        "answer_prefix": ((end, after),),
    }


def question_span(pieces: Sequence[str], trace: Trace) -> tuple[int, int] | None:
    """Half-open span of the prompt's tokens that hold the question and its options."""
    chars = question_chars("".join(pieces), trace.question)
    return None if chars is None else token_span(pieces, *chars)


def _rows(model: Model, asking: Asking, traces: Sequence[Trace]) -> list[np.ndarray]:
    """(L, H, P) attention of the last token in each trace."""
    from faithscope.interp.forest import Branch

    branches = [Branch(prefix_ids(model, asking, t)) for t in traces]
    read = model.run(branches, rows=True).branches
    return [
        attention_row(model, r.rows, f"item {t.question.id!r}")
        for t, r in zip(traces, read, strict=True)
    ]


def _to_spans(
    model: Model, trace: Trace, asking: Asking, settings: AttentionSettings, real: np.ndarray
) -> tuple[dict[str, Any], np.ndarray]:
    """Fields of a record about the declared spans, and the shares by head; see `attention`.

    Args:
        real: (L, H, P) attention of the token before the answer.
    """
    if not settings.spans:
        raise UserError(f"attention.{NO_SPANS}")
    found, names = find(model, trace, asking, settings.named, settings.spans), list(settings.spans)
    ids = prefix_ids(model, asking, trace)
    sources: dict[str, Iterator[np.ndarray]] = {"answer": iter([real])}
    for query in settings.queries:
        at = [p for span in found.spans.get(query, ()) for p in range(*span)]
        some = sorted(
            {at[i] for i in np.linspace(0, len(at) - 1, min(POINTS, len(at))).astype(int)}
        )
        sources[query] = _rows_at(model, trace, ids, some, real.size)
    shares = np.full((len(sources), len(names), *real.shape[:2]), math.nan)
    densities = np.full(shares.shape[:2], math.nan)
    for q, rows in enumerate(sources.values()):
        sums, counts = np.zeros(shares.shape[1:]), np.zeros(len(names))
        by_length = np.zeros(len(names))
        for row in rows:
            rest, last = 1 - float(row[..., 0].mean()), row.shape[-1]
            for k, name in enumerate(names):
                spans = [(a, b) for a, b in found.spans.get(name, ()) if b < last]
                if spans:
                    sums[k] += attention_to(row, spans)
                    counts[k] += 1
                    n = sum(b - max(a, 1) for a, b in spans)
                    by_length[k] += rest * n / (last - 1)
        known = counts > 0
        shares[q, known] = sums[known] / counts[known, None, None]
        told = by_length > 0
        densities[q, told] = sums[told].mean(axis=(1, 2)) / by_length[told]
    means = shares.mean(axis=(2, 3))
    flat = [None if math.isnan(x) else number(x) for x in means.ravel()]
    fields = {
        "span_queries": [query for query in sources for _ in names],
        "span_names": names * len(sources),
        "span_shares": flat,
        "span_densities": [None if math.isnan(x) else number(x) for x in densities.ravel()],
        "spans_missing": list(found.missing.values()),
    }
    return fields, shares


def _rows_at(
    model: Model, trace: Trace, ids: tuple[int, ...], positions: Sequence[int], size: int
) -> Iterator[np.ndarray]:
    """The attention of tokens at some positions, (L, H, position + 1) each.

    Args:
        size: number of weights of the longest row, over all layers and heads.
    """
    from faithscope.interp.forest import Branch

    together = max(1, _WEIGHTS // size)
    for start in range(0, len(positions), together):
        some = tuple(positions[start : start + together])
        (read,) = model.run([Branch(ids[: some[-1] + 1], some)], rows=True, logits=False).branches
        for row in read.rows:
            yield attention_row(model, [row], f"item {trace.question.id!r}")


def _by_step(row: np.ndarray, trace: Trace, start: int) -> np.ndarray:
    """(L, H, T) attention to each counted step, by its index in the trace as written."""
    counted = sorted(trace.counted_steps, key=lambda s: s.index)
    parts = [[(start + s.tokens[0], start + s.tokens[1])] for s in counted]
    return np.stack([attention_to(row, part) for part in parts], axis=-1)


def excess_kurtosis(per_token: np.ndarray) -> np.ndarray:
    """(L, H) excess kurtosis over steps, the last axis; NaN below four steps or if all are
    equal."""
    from scipy.stats import kurtosis

    if per_token.shape[-1] < 4:
        return np.full(per_token.shape[:2], math.nan)
    flat = np.ptp(per_token, axis=-1) < 1e-12
    with np.errstate(all="ignore"):
        values = np.asarray(kurtosis(per_token, axis=-1))
    return np.where(flat, math.nan, values)


def _summary(reasoning: np.ndarray, shuffled: Sequence[np.ndarray]) -> dict[str, Any]:
    """Real, shuffled and gap of (L, H) shares, as means and as drops across depth."""

    def drop(shares: np.ndarray) -> float:
        by_layer = shares.mean(axis=1)
        return float(by_layer[0] - by_layer[-1])

    summary: dict[str, Any] = {
        "real": number(reasoning.mean()),
        "real_drop": number(drop(reasoning)),
    }
    if not shuffled:
        return summary | dict.fromkeys(("shuffled", "gap", "shuffled_drop", "gap_drop"))
    other = np.mean(shuffled, axis=0)
    return summary | {
        "shuffled": number(other.mean()),
        "gap": number(reasoning.mean() - other.mean()),
        "shuffled_drop": number(drop(other)),
        "gap_drop": number(drop(reasoning) - drop(other)),
        "shuffled_by_layer": numbers(other.mean(axis=1)),
        "gap_by_layer": numbers((reasoning - other).mean(axis=1)),
    }


def named_heads(name: str, values: np.ndarray, n: int) -> dict[str, Any]:
    """The `n` heads with the greatest of (L, H) values, layers counted from 1, heads from 0."""
    flat = np.where(np.isnan(values), -np.inf, values).ravel()
    order = [i for i in np.argsort(-flat, kind="stable")[:n] if flat[i] > -np.inf]
    layers, heads = np.unravel_index(np.array(order, dtype=int), values.shape)
    return {
        f"{name}_layer": [int(x) + 1 for x in layers],
        f"{name}_head": [int(x) for x in heads],
        f"{name}_value": numbers(flat[order]),
    }


def _excluded(trace: Trace, settings: AttentionSettings, reason: str) -> Record:
    return record(trace, "attention", "", settings.seed, excluded=reason)
