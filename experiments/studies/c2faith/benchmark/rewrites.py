"""Acausal steps that a language model writes: the requests, and what is taken of the replies.

C2-Faith (section 3.1, appendix F.1) has a model rewrite one step at temperature 0.7. The texts
may come from anywhere: requests go out by id, replies come back by id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from faithscope.experiments.studies.c2faith.benchmark.items import (
    CausalItem,
    Chain,
    LeftOut,
    Settings,
    causal_item,
    targets,
)
from faithscope.experiments.studies.c2faith.prompts import PlainPrompt

LONGEST = 3
"""Greatest length of a rewrite as a multiple of its step's, beside `SPARE` characters."""
SPARE = 200

Seen = Literal["preceding", "all"]
"""Part of the chain that the writer sees before the step: the one step that algorithm 1 gives to
NEGATE, or all of them."""

Refusal = Literal[
    "no_reply",
    "writer_failed",
    "empty",
    "unchanged",
    "repeats_a_step",
    "several_lines",
    "too_long",
]
_QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), ("`", "`"))
_LABELS = ("rewrite (just the text):", "rewrite:", "rewritten step:", "target step:")


@dataclass(frozen=True)
class Request:
    """One step to be rewritten."""

    id: str
    """Id of the item that the rewrite becomes."""
    chain: Chain
    target: int
    prompt: str


@dataclass(frozen=True)
class Refused:
    """A reply that is no rewrite."""

    reason: Refusal


def rewrite_requests(
    chains: Sequence[Chain], settings: Settings, prompt: PlainPrompt, seen: Seen = "preceding"
) -> tuple[Request, ...]:
    """Requests to a writer, one for every chain that has a middle.

    The step is the uniform draw of `targets`, the same that replacement by rule tries first.
    """
    requests = []
    for chain in chains:
        order = targets(chain, settings)
        if not order:
            continue
        j = order[0]
        context = chain.steps[:j] if seen == "all" else chain.steps[max(j - 1, 0) : j]
        text = prompt.fill(
            context="\n".join(context), target_step=chain.steps[j], question=chain.problem
        )
        requests.append(Request(f"{chain.id}.causal", chain, j, text))
    return tuple(requests)


def rewrite_of(request: Request, reply: str) -> str | Refused:
    """The rewritten step in a reply, or why there is none.

    Quotation marks around the whole and a repeated "Rewrite:" are taken off, no more is mended:
    a reply that explains itself has more lines than the step, or is much longer, and is refused.
    """
    original = request.chain.steps[request.target]
    text = _bare(reply.strip(), original)
    if not text:
        return Refused("empty")
    if _plain(text) == _plain(original):
        return Refused("unchanged")
    if any(_plain(text) == _plain(step) for step in request.chain.steps):
        return Refused("repeats_a_step")
    if _n_lines(text) > _n_lines(original):
        return Refused("several_lines")
    if len(text) > LONGEST * len(original) + SPARE:
        return Refused("too_long")
    return text


def causal_by_replies(
    chains: Sequence[Chain],
    requests: Sequence[Request],
    replies: Mapping[str, str],
    author: str,
    failed: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[CausalItem, ...], tuple[LeftOut, ...]]:
    """Items that a writer's replies give, in the order of the chains, and the chains that got none.

    Args:
        replies: text by the request's id; a request without one is left out as `no_reply`.
        author: the model's name.
        failed: why there is no reply, by the request's id, where there never will be one; its
            chain is left out as `writer_failed`.

    Raises:
        ValueError: a reply to no request, or a request of a chain that is not among `chains`.
    """
    by_chain = {request.chain.id: request for request in requests}
    strays = set(replies) - {r.id for r in requests}
    strange = set(by_chain) - {c.id for c in chains}
    if strays or strange:
        raise ValueError(
            f"replies to no request: {sorted(strays)[:3]}; requests of no chain: "
            f"{sorted(strange)[:3]}; give the requests that were made of these chains"
        )
    items, left_out = [], []
    for chain in chains:
        request = by_chain.get(chain.id)
        if request is None:
            left_out.append(LeftOut(chain.id, "causal", "no_middle"))
            continue
        reply, problem = replies.get(request.id), failed.get(request.id)
        if reply is None:
            rewrite = Refused("no_reply" if problem is None else "writer_failed")
        else:
            rewrite = rewrite_of(request, reply)
        if isinstance(rewrite, Refused):
            detail = f"step {request.target}: {problem or repr((reply or '')[:200])}"
            left_out.append(LeftOut(chain.id, "causal", rewrite.reason, detail))
        else:
            items.append(causal_item(chain, request.target, rewrite, "llm", author))
    return tuple(items), tuple(left_out)


def _bare(text: str, original: str) -> str:
    for label in _LABELS:
        if text.lower().startswith(label):
            text = text[len(label) :].strip()
    for opening, closing in _QUOTES:
        quoted = len(text) > 1 and text.startswith(opening) and text.endswith(closing)
        # not if the marks belong to quotes inside: "a" and "b"
        inner = text[1:-1]
        if quoted and opening not in inner and not original.startswith(opening):
            return inner.strip()
    return text


def _n_lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _plain(text: str) -> str:
    return "".join(text.lower().split())
