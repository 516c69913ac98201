"""Spreading of prompts over servers: as many in flight at each as it takes, lost servers left out.

One event loop in a thread of its own does all waiting, so that results arrive in the caller's
thread, even a notebook's, and requests in flight can be cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import queue
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faithscope.interp.backends import BackendError, BackendLost
from faithscope.interp.generation import Generation

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_TRIES = 2
"""Number of times that a prompt is sent, each with all the client's retries, before it fails."""


@dataclass(frozen=True)
class Endpoint:
    """One server, as it was when connected to."""

    url: str
    served_as: str
    """The model's name on this server."""
    max_positions: int | None
    version: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Servers:
    """The servers of one model, and the limits of requests to them."""

    name: str
    endpoints: tuple[Endpoint, ...]
    in_flight: int = 64
    """Number of concurrent requests to each server."""
    timeout_s: float = 3600.0
    """Longest wait for one continuation in seconds, retries included."""
    retries: int = 4
    """Repeats of a request, after growing waits, if a server is busy or breaks off."""


Ask = Callable[["AsyncOpenAI", Endpoint, int], Awaitable[Generation]]


Ended = tuple[int, "Generation | BackendError"]


def spread(servers: Servers, n: int, ask: Ask) -> Generator[Ended, None, None]:
    """(index, generation) of `n` prompts as each ends, or why one was not continued.

    Leaving early, by an error or a closed iterator, cancels the requests in flight.

    Raises:
        BackendLost: no server is left, or a server refuses the key or the model.
    """
    ended: queue.SimpleQueue[Ended | BaseException | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    task = loop.create_task(_Spread(servers, n, ask, ended.put).run())

    def work() -> None:
        try:
            loop.run_until_complete(task)
            ended.put(None)
        except asyncio.CancelledError:
            ended.put(None)
        except BaseException as error:
            # nested task groups: the first error is the one that cancelled the others
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            ended.put(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    thread = threading.Thread(target=work, name="vllm-requests", daemon=True)
    thread.start()
    try:
        while (event := ended.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event
    finally:
        # the thread may have ended, and closed its loop, since it was checked
        if thread.is_alive():
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
        thread.join()


class _Spread:
    """The prompts of one `spread` call on their way through the servers."""

    def __init__(
        self,
        servers: Servers,
        n: int,
        ask: Ask,
        put: Callable[[Ended], None],
    ) -> None:
        self._servers, self._n, self._ask, self._put = servers, n, ask, put
        self._lost: dict[str, str] = {}
        self._tries: Counter[int] = Counter()

    async def run(self) -> None:
        todo: asyncio.Queue[int] = asyncio.Queue()
        for i in range(self._n):
            todo.put_nowait(i)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._serve(endpoint, todo))
                for endpoint in self._servers.endpoints
            ]
            await todo.join()
            for task in tasks:
                task.cancel()

    async def _serve(self, endpoint: Endpoint, todo: asyncio.Queue[int]) -> None:
        """Keep one server busy until it is lost."""
        import openai

        async with (
            openai.AsyncOpenAI(
                base_url=endpoint.url,
                api_key=endpoint.key,
                timeout=openai.Timeout(self._servers.timeout_s, connect=30),
                max_retries=self._servers.retries,
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            # with fewer prompts than places, every server gets its share
            share = math.ceil(self._n / len(self._servers.endpoints))
            for _ in range(min(self._servers.in_flight, share)):
                group.create_task(self._one_after_the_other(client, endpoint, todo))

    async def _one_after_the_other(
        self, client: AsyncOpenAI, endpoint: Endpoint, todo: asyncio.Queue[int]
    ) -> None:
        import openai

        while endpoint.url not in self._lost:
            i = await todo.get()
            if endpoint.url in self._lost:
                todo.put_nowait(i)
                todo.task_done()
                return
            try:
                # the client's own timeout would begin anew with each of its retries
                async with asyncio.timeout(self._servers.timeout_s):
                    self._put((i, await self._ask(client, endpoint, i)))
            except BackendError as error:
                self._put((i, error))
            except openai.APIStatusError as error:
                self._failed(i, endpoint, _said(error), error.status_code, todo, error)
            except (openai.APITimeoutError, TimeoutError) as error:
                what = f"no reply within {self._servers.timeout_s:g} s; raise timeout_s"
                self._failed(i, endpoint, what, 408, todo, error)
            except openai.APIConnectionError as error:
                self._lose(endpoint, str(error.__cause__ or error), error)
                todo.put_nowait(i)
            except (openai.OpenAIError, json.JSONDecodeError) as error:
                # a reply that breaks the API
                self._failed(i, endpoint, str(error), 500, todo, error)
            todo.task_done()

    def _lose(self, endpoint: Endpoint, why: str, error: Exception) -> None:
        self._lost[endpoint.url] = why
        if len(self._lost) == len({e.url for e in self._servers.endpoints}):
            each = "; ".join(f"{url}: {reason}" for url, reason in self._lost.items())
            raise BackendLost(
                f"no server of {self._servers.name} answers any more ({each}); start them again, "
                "and run again: what was written is kept"
            ) from error

    def _failed(
        self,
        i: int,
        endpoint: Endpoint,
        what: str,
        status: int,
        todo: asyncio.Queue[int],
        error: Exception,
    ) -> None:
        """Put prompt `i` back into the queue, unless trying again is of no use."""
        self._tries[i] += 1
        if status in (401, 403, 404):
            raise BackendLost(f"server {endpoint.url} refuses ({status}): {what}") from error
        if self._tries[i] < _TRIES and (status >= 500 or status in (408, 409, 429)):
            todo.put_nowait(i)
            return
        failed = BackendError(f"prompt {i}: {endpoint.url} ({status}): {what}")
        failed.__cause__ = error
        self._put((i, failed))


def _said(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split())[:400]
