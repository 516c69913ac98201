"""The whole benchmark at once: chains to items, with the account of everything left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from faithscope.experiments.studies.c2faith.benchmark.items import (
    CausalItem,
    Chain,
    LeftOut,
    Selection,
    Settings,
    causal_by_rule,
    causal_item,
    coverage_items,
)
from faithscope.experiments.studies.c2faith.benchmark.prm800k import Source
from faithscope.experiments.studies.c2faith.benchmark.rewrites import (
    TEMPERATURE,
    Request,
    Seen,
    causal_by_replies,
)
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark, made_of
from faithscope.experiments.studies.c2faith.prompts import PlainPrompt


def by_rule(
    selection: Selection,
    sources: Sequence[Source] = (),
    settings: Settings | None = None,
    limit: int | None = None,
) -> Benchmark:
    """The benchmark with steps replaced by rule: no model needed.

    Args:
        sources: the files that the chains came from, for the manifest.
        limit: the first so many chains.
    """
    settings = settings or Settings()
    causal, left_out = causal_by_rule(selection.chains[:limit], settings)
    return _whole(selection, sources, settings, limit, causal, left_out, {"by": "rule"})


def by_replies(
    selection: Selection,
    requests: Sequence[Request],
    replies: Mapping[str, str],
    author: str,
    prompt: PlainPrompt,
    sources: Sequence[Source] = (),
    settings: Settings | None = None,
    limit: int | None = None,
    seen: Seen = "preceding",
    temperature: float = TEMPERATURE,
    failed: Mapping[str, str] = MappingProxyType({}),
    draws: int = 1,
) -> Benchmark:
    """The benchmark with steps that a language model rewrote.

    Args:
        requests: of `rewrite_requests` for the same chains and settings.
        replies: the model's texts, by request id.
        author, prompt, seen, temperature, draws: how they were asked for, for the manifest; of
            several draws each reply is the first that is a rewrite, or the last.
        failed: why there never will be a reply, by request id.

    Raises:
        ValueError: replies or requests that are not of these chains.
    """
    settings = settings or Settings()
    chains = selection.chains[:limit]
    causal, left_out = causal_by_replies(chains, requests, replies, author, failed)
    how = {
        "by": "llm",
        "author": author,
        "prompt_sha256": prompt.sha256,
        "seen": seen,
        "temperature": temperature,
        # what was written before a step could be asked for again says nothing of it
        **({"draws": draws} if draws > 1 else {}),
    }
    return _whole(selection, sources, settings, limit, causal, left_out, how)


def before_replies(
    selection: Selection,
    requests: Sequence[Request],
    author: str,
    settings: Settings | None = None,
    limit: int | None = None,
) -> Benchmark:
    """The benchmark as far as it is known before a step is rewritten, to plan by: each step stands
    for its own rewrite, which is about as long, and none is refused."""
    steps = [(r.chain, r.target, r.chain.steps[r.target]) for r in requests]
    causal = tuple(causal_item(*step, "llm", author) for step in steps)
    how = {"by": "llm", "author": author}
    return _whole(selection, (), settings or Settings(), limit, causal, (), how)


def _whole(
    selection: Selection,
    sources: Sequence[Source],
    settings: Settings,
    limit: int | None,
    causal: tuple[CausalItem, ...],
    not_causal: tuple[LeftOut, ...],
    replacement: dict[str, Any],
) -> Benchmark:
    chains = selection.chains[:limit]
    beyond: Sequence[Chain] = selection.chains[len(chains) :]
    left_out = (
        *(LeftOut(name, "selection", reason) for name, reason in selection.left_out),
        *(LeftOut(chain.id, "selection", "limit") for chain in beyond),
        *not_causal,
    )
    described = made_of(
        chains,
        sources,
        settings,
        selection={**selection.counts, "limit": limit},
        replacement=replacement,
    )
    return Benchmark(causal, coverage_items(chains, settings), left_out, described)
