"""HTTP responses of a server from which Inspect and the provider's client make no reply.

Both drop a body that they cannot read, although the server wrote it and bills it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx import Response
    from inspect_ai.model import Model

_RESPONSES: ContextVar[list[Response] | None] = ContextVar("responses", default=None)


def listen(model: Model) -> None:
    """Let `responses` see the responses to a model's client, if that is a client of httpx."""
    client: Any = getattr(getattr(model.api, "client", None), "_client", None)
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict):
        client.event_hooks = hooks | {"response": [*hooks.get("response", ()), _keep]}


@contextmanager
def responses() -> Iterator[list[Response]]:
    """Collects the responses to all requests made within, in order, also in tasks begun there."""
    kept: list[Response] = []
    token = _RESPONSES.set(kept)
    try:
        yield kept
    finally:
        _RESPONSES.reset(token)


def is_answered(kept: list[Response]) -> bool:
    """Whether the last response said that the request was served."""
    return bool(kept) and kept[-1].is_success


def body_of(kept: list[Response]) -> str | None:
    """The body of the last response; None if that was an error or was not read to its end."""
    if not is_answered(kept):
        return None
    try:
        return kept[-1].content.decode("utf-8", "replace")
    except RuntimeError:
        # the httpx of each client (there are several) has its own subclass of this error
        return None


def counts_by_truth(body: str) -> bool:
    """Whether the usage in a body has true or false for a number of tokens.

    The provider's client and Inspect make a count of it: one token, or none.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    usage = answer.get("usage") if isinstance(answer, dict) else None
    inner = [x for x in usage.values() if isinstance(x, dict)] if isinstance(usage, dict) else []
    counts = [usage, *inner] if isinstance(usage, dict) else []
    return any(isinstance(n, bool) for of in counts for name, n in of.items() if "tokens" in name)


async def _keep(response: Response) -> None:
    kept = _RESPONSES.get()
    if kept is not None:
        kept.append(response)
