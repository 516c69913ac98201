"""Connections to API models through Inspect AI, and what they need before the first call."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from importlib.metadata import EntryPoint
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from faithscope.interp.errors import UserError
from faithscope.probes.judge.secrets import address_problem, one_line

if TYPE_CHECKING:
    from inspect_ai.model import Model

INSTALL = "pip install 'faithscope[judge]'"
STARTS_SERVERS = ("vllm", "sglang")
"""Providers for which Inspect starts a server of its own where it is given no address."""
NO_KEY = "no-key"
"""Key sent to a server on this machine if none is set, since clients insist on one."""
NO_CLIENTS = ("faithscope", "transformer_lens")
"""Packages whose extensions of Inspect change no call of an API: tasks and scorers, and providers
of models on this machine, which need `torch` (10 s of processor time, 450 MB)."""
_OURS: Mapping[str, Any] = {
    # Never reached: Inspect keeps the first number for a service as long as the process lives. Each
    # judge's own limit (`ApiJudge.max_connections`) is enforced here instead.
    "max_connections": 100_000,
    # Every prompt is sent once, so that a provider's prompt cache would only cost money.
    "cache_prompt": False,
    # If unset, Inspect asks an OpenAI model that thinks whether it gives summaries, by a call of
    # its own that no account here would count.
    "reasoning_summary": "none",
}
"""Inspect's settings of every call."""
BODIES: ContextVar[list[Any]] = ContextVar("BODIES")
"""List to which the JSON of each reply of success is added; of clients of OpenAI's APIs, which most
servers speak. Inspect does not keep what it cannot read."""


async def _keep_body(response: Any) -> None:
    if response.status_code == 200 and (kept := BODIES.get(None)) is not None:
        await response.aread()
        with suppress(ValueError, RecursionError):
            kept.append(response.json())


POOLED = 8
"""Most connections in one pool of a client: before and after each request a pool looks at all that
it has, so that one pool of 200 costs a third of a call's processor time."""


class Pools:
    """Transport of a client over several pools; each request goes to the one with least to do."""

    def __init__(self, pools: Sequence[Any]) -> None:
        self.pools, self.at_work = pools, [0] * len(pools)

    async def handle_async_request(self, request: Any) -> Any:
        idlest = self.at_work.index(min(self.at_work))
        self.at_work[idlest] += 1
        try:
            return await self.pools[idlest].handle_async_request(request)
        finally:
            self.at_work[idlest] -= 1

    async def aclose(self) -> None:
        for pool in self.pools:
            await pool.aclose()


def _divide(client: Any, connections: int) -> None:
    """Let a client of Inspect's keep so many connections in pools of `POOLED`; connections through
    a proxy, which has a pool of its own, stay as they are."""
    whole = getattr(client, "_transport", None)
    settings = getattr(whole, "_kwargs", None)
    if connections > POOLED and settings is not None:
        # one context for all: each reads the certificates anew, 30 ms
        library = sys.modules[type(whole).__base__.__module__.partition(".")[0]]
        settings = {"verify": library.create_ssl_context()} | settings
        n = -(-connections // POOLED)
        client._transport = Pools([type(whole)(**settings) for _ in range(n)])


@contextmanager
def _without_local_extensions(provider: str) -> Iterator[None]:
    """A context in which Inspect, which loads all of its extensions for the first model, does
    without those of `NO_CLIENTS`, but for `provider` itself; a later use of Inspect loads them."""
    entrypoints: Any = import_module("inspect_ai._util.entrypoints")
    found, had_all = entrypoints.entry_points, entrypoints._inspect_ai_eps_loaded_all

    def wanted(**of: str) -> Sequence[EntryPoint]:
        every = found(**of)
        return [e for e in every if e.name == provider or e.module.split(".")[0] not in NO_CLIENTS]

    entrypoints.entry_points = wanted
    try:
        yield
    finally:
        entrypoints.entry_points, entrypoints._inspect_ai_eps_loaded_all = found, had_all


def connect(
    name: str,
    base_url: str | None = None,
    config: Mapping[str, Any] = MappingProxyType({}),
    connections: int = 1,
) -> Model:
    """The API model `name` in Inspect; no call is made.

    Args:
        name: `provider/model`, or `openai-api/SERVICE/MODEL` for any other OpenAI-compatible server
            (its key is in SERVICE_API_KEY).
        config: fields of Inspect's `GenerateConfig`.
        connections: number of calls that are made at the same time.

    Raises:
        UserError: the provider is unknown, its package, key or address is missing, or the address
            may hold a key.
    """
    if base_url is not None and (problem := address_problem(base_url)):
        raise UserError(f"model {name!r}: base_url {problem}")
    try:
        from inspect_ai._util.error import PrerequisiteError
        from inspect_ai.model import GenerateConfig, get_model
    except ImportError as error:
        raise UserError(
            f"model {name!r} needs {error.name}, which is not installed: {INSTALL}"
        ) from None
    provider = name.partition("/")[0]
    variable = f"{provider.upper()}_BASE_URL"
    if provider in STARTS_SERVERS and not (base_url or os.getenv(variable)):
        raise UserError(f"model {name!r} has no fixed address: give base_url, or set {variable}")
    known: dict[str, Any] = {
        "config": GenerateConfig(**_OURS, **config),
        "base_url": base_url,
        "memoize": False,
    }
    hook = sys.excepthook
    try:
        with _without_local_extensions(provider):
            try:
                model = get_model(name, **known)
            except PrerequisiteError:
                if not is_here(base_url or ""):
                    raise
                model = get_model(name, **known, api_key=NO_KEY)
    except (PrerequisiteError, ValueError) as error:
        words = re.sub(r"\[/?[a-z ]+\]|ERROR:?", "", str(getattr(error, "message", error)))
        raise UserError(f"model {name!r}: {one_line(words)}") from None
    finally:
        # Inspect sets an excepthook of its own, which prints tracebacks in place of one line.
        sys.excepthook = hook
    if (client := getattr(model.api, "http_client", None)) is not None:
        client.event_hooks["response"].append(_keep_body)
        _divide(client, connections)
    return model


def is_here(address: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
