"""An API model as judge, through Inspect AI.

Inspect (`inspect_ai.model.get_model`) does connections, retries with their waiting, rate limits,
the cache, and each provider's words for thinking, refusals and limits. This module adds: one reply
for every ask, repeated asks after malformed replies, a distinction of all ways to have no verdict,
a budget, and no key in anything that comes back.
"""

from __future__ import annotations

import queue
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from faithscope.interp.errors import UserError
from faithscope.probes.judge import http, parse
from faithscope.probes.judge.form import Ask, OnReply, OnText, Reply, Usage, Writing
from faithscope.probes.judge.messages import held_to, messages
from faithscope.probes.judge.providers import redact, service
from faithscope.probes.judge.replies import (
    UNREADABLE,
    attempts_of,
    from_error,
    from_output,
    may_be_billed,
    one_line,
    timed_out,
)
from faithscope.probes.judge.reply_cache import ReplyCache
from faithscope.probes.judge.spend import Budget, BudgetSpent, Call, add, most_used

if TYPE_CHECKING:
    from inspect_ai.model import GenerateConfig, Model

_NEVER_REACHED = 100_000
"""Number of connections given to Inspect, which keeps the first number for a service as long as the
process lives. Each judge's own limit (`max_connections`) is enforced here instead."""
GIVE_UP_AFTER = 10
"""Number of consecutive asks (or as many as run at once) that fail after all retries, or get
unreadable replies, before asking ends: the server is then down, or takes no request of this kind,
and the rest is better left for later."""

Answered = tuple[Any, Reply, Callable[[], None]]
"""An ask, its reply, and the function that makes room for another ask."""


@dataclass
class ApiJudge:
    """A `Judge` that is asked over the network.

    Raises:
        UserError: at construction, before any call: the provider is unknown, or its package, key or
            address is missing.
    """

    name: str
    """Name of the model as in Inspect, `provider/model`; see `probes.judge.providers.KINDS`."""
    base_url: str | None = None
    temperature: float | None = 0.0
    """Sampling temperature; None for the provider's default. Models that know no temperature are
    not sent any."""
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = 4096
    """The most tokens of a reply, thinking included; None for the provider's default."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    reasoning_tokens: int | None = None
    structured: Literal["auto", "schema", "prompt"] = "auto"
    """`schema` has the provider hold the reply to the form's JSON schema, `prompt` asks for it in
    the prompt; `auto` is `schema` where the provider's current models all have it."""
    attempts: int = 3
    """Most attempts at an ask while its replies do not fit the form; all but the first bypass the
    cache."""
    max_connections: int = 10
    max_retries: int = 5
    """Most retries after rate limits, server errors and lost connections, with growing waits. The
    client's own two quick retries, which obey `Retry-After`, come before each of these."""
    timeout: int = 300
    """Seconds until an unanswered call is given up and made again; a provider may bill it."""
    cache: Path | None = None
    """Folder below which replies are cached (`reply_cache`); None caches none."""
    extra_body: Mapping[str, Any] | None = None
    """Further fields of requests to an OpenAI-compatible server, e.g. `chat_template_kwargs`."""
    budget: Budget = field(default_factory=Budget)
    """Budget of the judge's calls, which other judges may share."""

    def __post_init__(self) -> None:
        for name in ("attempts", "max_connections", "timeout"):
            if getattr(self, name) < 1:
                raise UserError(f"model {self.name!r}: {name}={getattr(self, name)}: at least 1")
        self._service = service(self.name, self.base_url)
        if self.structured == "auto":
            self.structured = "schema" if self._service.provider.schema else "prompt"
        self.budget.check(self.name)
        self._cache = None if self.cache is None else ReplyCache(self.cache)
        if self._cache is not None:
            self._cache.check()
        self._connect()

    def ask_all(self, asks: list[Ask], on_reply: OnReply) -> None:
        """Put every ask to the judge; `on_reply` takes each reply as it comes, on the caller's
        thread.

        The asking has an event loop and a thread of its own, so that this can be called where a
        loop already runs (a notebook). An ask keeps its connection until `on_reply` has returned: a
        kill loses at most `max_connections` replies, and a slow `on_reply` slows the asking.

        Raises:
            BudgetSpent: the budget allows no further call; replies so far have been handed over.
            UserError: the server refuses the key or knows no such model, the account is empty, or
                `GIVE_UP_AFTER` asks in a row failed.
            ValueError: two asks of one form have one id.
        """
        self._put_all(asks, [(ask.form.name, ask.id) for ask in asks], on_reply)

    def write_all(self, writings: list[Writing], on_text: OnText) -> None:
        """Put prompts to the model and take the replies as text; in all else like `ask_all`.

        A reply that is empty but for thinking is asked for again, and then `unparsed`.
        """
        self._put_all(writings, [writing.id for writing in writings], on_text)

    def _put_all(self, asks: list[Any], names: list[Any], on_reply: Callable[..., None]) -> None:
        from anyio.from_thread import start_blocking_portal

        if twice := [name for name, n in Counter(names).items() if n > 1]:
            raise ValueError(f"model {self.name!r}: asked twice: {twice[0]}")
        replies: queue.SimpleQueue[Answered | None] = queue.SimpleQueue()
        try:
            in_cache = self._cache.used() if self._cache else nullcontext()
            with in_cache, warnings.catch_warnings(), start_blocking_portal() as portal:
                # these warnings quote replies of another form as they came, with any keys
                warnings.filterwarnings("ignore", "Pydantic serializer warnings")
                run = portal.start_task_soon(self._run, asks, replies.put)
                run.add_done_callback(lambda _: replies.put(None))
                try:
                    while (item := replies.get()) is not None:
                        ask, reply, make_room = item
                        on_reply(ask, reply)
                        portal.start_task_soon(make_room)
                except BaseException:
                    run.cancel()
                    raise
                run.result()
        except KeyboardInterrupt:
            # The loop has ended by now. Replies still in the queue are paid for.
            while not replies.empty():
                if item := replies.get():
                    on_reply(*item[:2])
            raise

    async def _run(self, asks: list[Any], put: Callable[[Answered], None]) -> None:
        import anyio
        from inspect_ai.log import Transcript
        from inspect_ai.log._transcript import init_transcript

        state = _Run()
        slots = anyio.Semaphore(self.max_connections)

        async def one(ask: Ask | Writing) -> None:
            # A task inherits its caller's transcript if an evaluation by Inspect left one; each ask
            # would then count the attempts of all asks.
            init_transcript(Transcript())
            reply = await self._answer(model, ask, state)
            if reply is None:
                slots.release()
            else:
                put((ask, reply, slots.release))

        async with self._connect() as model, anyio.create_task_group() as group:
            for ask in asks:
                await slots.acquire()
                if state.fatal or not await self._admitted():
                    break
                # Each ask runs in a task of its own: Inspect keeps a transcript per task, and a
                # prompt and its reply should not stay in memory for longer than they are needed.
                group.start_soon(one, ask)
        if state.fatal:
            raise UserError(state.fatal)
        if left := len(asks) - state.answered:
            raise BudgetSpent(
                f"model {self.name!r}: the budget is spent ({self.budget}); {left} of {len(asks)} "
                "asks are left; raise it and start the run again",
                state.unanswered,
            )

    async def _admitted(self) -> bool:
        import anyio

        while not self.budget.admit():
            # Calls in flight may turn out to come from the cache, which costs nothing.
            if not self.budget.in_flight:
                return False
            await anyio.sleep(0.02)
        return True

    async def _answer(self, model: Model, ask: Ask | Writing, state: _Run) -> Reply | None:
        """The reply to one admitted ask, which is repeated while its replies are malformed.

        Returns: None if asking ends before there is a reply.
        """
        from inspect_ai.log import transcript

        began = time.perf_counter()
        usage = Usage()
        for attempt in range(1, self.attempts + 1):
            if attempt > 1 and (state.fatal or not await self._admitted()):
                state.unanswered = add(state.unanswered, usage)
                return None
            before = len(transcript().events)
            call = None
            try:
                reply, call = await self._call(model, ask, attempt, state)
            finally:
                self._settle(ask, call, attempts_of(transcript().events[before:]), state)
            usage = add(usage, reply.usage)
            if reply.outcome != "unparsed":
                break
        if state.fatal and reply.outcome == "failed":
            return None
        failed = reply.outcome == "failed" or reply.problem.startswith(UNREADABLE)
        state.failed_in_a_row = state.failed_in_a_row + 1 if failed else 0
        if state.failed_in_a_row >= max(GIVE_UP_AFTER, self.max_connections):
            state.fatal = (
                f"model {self.name!r}: {state.failed_in_a_row} asks in a row failed; the last: "
                f"{reply.problem}"
            )
        state.answered += 1
        took = time.perf_counter() - began
        details = {"usage": usage, "seconds": took, "requested": self._requested(ask)}
        return replace(reply, **details)

    def _settle(
        self, ask: Ask | Writing, call: Call | None, attempts: list[str | None], state: _Run
    ) -> None:
        """Count a call, as stopped if it is None, and its attempts that timed out.

        A stopped call costs nothing if no attempt was on its way.
        """
        if call is None:
            told = not (attempts and may_be_billed(attempts[-1]))
            call = self._charged(ask, "stopped", Usage(calls=min(1, len(attempts))), told)
        try:
            self.budget.settle(call)
            for _ in filter(timed_out, attempts[:-1]):
                self.budget.write_down(self._charged(ask, "timed_out", Usage(1), told=False))
        except UserError as error:
            # a call that cannot be written down must be the last one
            state.fatal = str(error)

    def _charged(self, ask: Ask | Writing, outcome: str, usage: Usage, told: bool) -> Call:
        """A call as it is charged; if the server has not told all usage, for the most allowed."""
        about = ask.id if isinstance(ask, Writing) else f"{ask.form.name}/{ask.id}"
        if not told:
            most = most_used(ask, self.max_tokens, self.structured == "prompt")
            usage = replace(
                usage,
                input_tokens=usage.input_tokens or most.input_tokens,
                output_tokens=usage.output_tokens or most.output_tokens,
            )
        return Call(self.name, about, outcome, usage, estimated=not told)

    async def _call(
        self, model: Model, ask: Ask | Writing, attempt: int, state: _Run
    ) -> tuple[Reply, Call]:
        from inspect_ai.log import transcript
        from inspect_ai.model import CachePolicy

        cache = self._cache if attempt == 1 else None
        draw = ask.draw if isinstance(ask, Writing) else 1
        scopes = {"draw": str(draw)} if draw > 1 else {}
        try:
            with http.responses() as sent_back:
                output = await model.generate(
                    messages(ask, self._requested(ask)),
                    config=self._config(ask),
                    cache=CachePolicy(expiry=None, scopes=scopes) if cache else False,
                )
        except Exception as error:
            body = http.body_of(sent_back)
            reply, fatal = from_error(error, body)
            if fatal:
                keys = " or ".join(self._service.keys)
                state.fatal = f"model {self.name!r} (key: {keys or 'none'}): {reply.problem}"
            sent = attempts_of(transcript().events[-1:])
            # the server wrote and billed a body that breaks off like a whole one
            broken = body is None and http.is_answered(sent_back)
            unseen = reply.outcome == "unparsed" or broken or any(map(timed_out, sent))
            return reply, self._charged(ask, reply.outcome, reply.usage, told=not unseen)
        # the cache keeps a reply as it came; one that repeats a key must be deleted
        if cache and redact(whole := str(output.model_dump())) != whole:
            cache.forget_secrets()
        reply = from_output(ask, output)
        if http.counts_by_truth(http.body_of(sent_back) or ""):
            reply = replace(reply, usage=Usage(calls=1))
        if getattr(transcript().events[-1], "cache", None) == "read":
            reply = replace(reply, usage=Usage(), from_cache=True)
        used, shown = reply.usage, bool(reply.text or reply.thinking)
        told = not used.calls or (used.input_tokens > 0 and (used.output_tokens > 0 or not shown))
        return reply, self._charged(ask, reply.outcome, used, told)

    def _requested(self, ask: Ask | Writing) -> str:
        return parse.requested(ask) if self.structured == "prompt" else ""

    def _config(self, ask: Ask | Writing) -> GenerateConfig:
        from inspect_ai.model import GenerateConfig

        if isinstance(ask, Writing) or self.structured == "prompt":
            return GenerateConfig()
        return held_to(ask, self.name)

    def _connect(self) -> Model:
        from inspect_ai._util.error import PrerequisiteError
        from inspect_ai.model import GenerateConfig, get_model

        config = GenerateConfig(
            temperature=self.temperature,
            top_p=self.top_p,
            seed=self.seed,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            reasoning_tokens=self.reasoning_tokens,
            max_connections=_NEVER_REACHED,
            max_retries=self.max_retries,
            attempt_timeout=self.timeout,
            extra_body=dict(self.extra_body) if self.extra_body else None,
            # Every prompt is sent once, so that a provider's prompt cache would only cost money.
            cache_prompt=False,
            # If unset, Inspect asks an OpenAI model that thinks whether it gives summaries, by a
            # call of its own that no account here would count.
            reasoning_summary="none",
        )
        hook = sys.excepthook
        try:
            model = get_model(
                self.name,
                config=config,
                base_url=self.base_url,
                api_key=self._service.api_key,
                memoize=False,
            )
            http.listen(model)
            return model
        except PrerequisiteError as error:
            plain = re.sub(r"\[/?[a-z ]+\]|ERROR:?", "", str(error.message))
            raise UserError(f"model {self.name!r}: {one_line(plain)}") from None
        finally:
            # Inspect sets an excepthook of its own, which prints tracebacks in place of one line.
            sys.excepthook = hook


@dataclass
class _Run:
    """State that the asks of one `ask_all` share."""

    answered: int = 0
    unanswered: Usage = field(default_factory=Usage)
    """Usage of asks that the budget stopped between two attempts."""
    failed_in_a_row: int = 0
    fatal: str = ""
