"""An API model as judge, through Inspect AI.

Inspect (`inspect_ai.model.get_model`) does connections, retries with their waiting, rate limits,
the cache, and each provider's words for thinking, refusals and limits. This module adds: one reply
for every ask, repeated asks after malformed replies, an end of the asking that loses no reply which
was paid for, an account of all calls, and no key in anything that comes back.

Two of Inspect's own means cannot keep this. Its `cost_limit` raises in place of the replies that
were in flight when the limit was passed, though they are paid for, and knows of no other process
or earlier start; it is the account that admits calls here. Its prices leave out what a server does
not tell, and what xAI counts beside the completion (`messages.usage_of`).
"""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from faithscope.interp.errors import UserError
from faithscope.probes.judge import parse
from faithscope.probes.judge.connection import BODIES, connect
from faithscope.probes.judge.form import Ask, OnReply, Reply, Usage, Writing
from faithscope.probes.judge.messages import (
    UNENDED,
    UNREADABLE,
    from_error,
    from_output,
    held_to,
    messages,
    without_usage,
)
from faithscope.probes.judge.spend import BEGUN, Account, BudgetSpent, Call, most_used

if TYPE_CHECKING:
    from inspect_ai.model import Model

HOLDS_TO_SCHEMA = ("openai", "google", "mistral", "vllm", "sglang")
"""Providers whose current models can all be held to a JSON schema."""
_LATE = re.compile(r"Timeout|timed out")
"""Errors of attempts that were given up for taking too long, which a server may bill."""
GIVE_UP_AFTER = 10
"""Number of consecutive asks (or as many as run at once) that fail after all retries, or get
unreadable replies, before asking ends: the server is then down, or takes no request of this kind,
and the rest is better left for later."""


@dataclass
class ApiJudge:
    """A `Judge` that is asked over the network.

    Raises:
        UserError: at construction, before any call: as for `connect`, or the cost is limited and
            the judge has no price.
    """

    name: str
    """Name of the model as in Inspect, `provider/model`; see `connect`."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Fields of Inspect's `GenerateConfig`: sampling, most tokens, effort of thinking, retries."""
    base_url: str | None = None
    structured: Literal["auto", "schema", "prompt"] = "auto"
    """`schema` has the provider hold the reply to the form's JSON schema, `prompt` asks for it in
    the prompt; `auto` is `schema` where the provider's current models all have it."""
    attempts: int = 3
    """Most attempts at an ask while its replies do not fit the form; all but the first bypass the
    cache."""
    max_connections: int = 10
    cache: bool = False
    """Whether replies are kept in Inspect's cache, and taken from it."""
    account: Account = field(default_factory=Account)
    """Account of the judge's calls, which other judges may share."""

    def __post_init__(self) -> None:
        if self.structured == "auto":
            can = self.name.partition("/")[0] in HOLDS_TO_SCHEMA
            self.structured = "schema" if can else "prompt"
        self._connect()
        self.account.check(self.name)

    def ask_all(self, asks: Iterable[Ask | Writing], on_reply: OnReply) -> None:
        """Put every ask to the judge; `on_reply` takes each reply as it comes.

        Asks may be made as they are taken, on the thread of `on_reply`: each is taken when it has a
        connection.

        A writing's reply is taken as text; one that is empty but for thinking is asked for again,
        and then `unparsed`.

        The asking has an event loop and a thread of its own, so that this can be called where a
        loop already runs (a notebook). `on_reply` is called on that thread, for one reply at a
        time, and an ask keeps its connection until it has returned: a kill loses at most
        `max_connections` replies. What the account and `on_reply` append to the account's files in
        the meantime is brought to the disk by another thread, for all asks that wait for it at
        once: a call is sent after its beginning is there.

        Raises:
            BudgetSpent: the budget allows no further call; replies so far have been handed over.
            UserError: the server refuses the key or knows no such model, the account is empty, or
                `GIVE_UP_AFTER` asks in a row failed.
            ValueError: two asks have one name.
        """
        from anyio.from_thread import start_blocking_portal

        known = asks if isinstance(asks, Sequence) else ()
        if twice := [name for name, n in Counter(ask.name for ask in known).items() if n > 1]:
            raise ValueError(f"model {self.name!r}: asked twice: {twice[0]}")
        with (
            warnings.catch_warnings(),
            self.account.in_groups(),
            start_blocking_portal() as portal,
        ):
            # these warnings quote replies of another form as they came, with any keys
            warnings.filterwarnings("ignore", "Pydantic serializer warnings")
            portal.call(self._run, asks, on_reply)

    async def _run(self, asks: Iterable[Ask | Writing], on_reply: OnReply) -> None:
        import anyio

        state = _Run(_Disk(self.account))
        names: set[str] = set()
        slots = anyio.Semaphore(self.max_connections)

        async def one(ask: Ask | Writing, begun: Call) -> None:
            try:
                if (reply := await self._answer(model, ask, begun, state)) is not None:
                    on_reply(ask, reply)
                    await state.disk.wait()
            except Exception as error:
                state.error = state.error or error
                group.cancel_scope.cancel()
            finally:
                slots.release()

        async with self._connect() as model, anyio.create_task_group() as group:
            coming = iter(asks)
            while True:
                await slots.acquire()
                try:
                    if state.fatal or (ask := next(coming, None)) is None:
                        break
                    if ask.name in names:
                        raise ValueError(f"model {self.name!r}: asked twice: {ask.name}")
                except Exception as error:
                    # calls that are on their way will be paid for, and their replies are kept
                    state.error = state.error or error
                    break
                names.add(ask.name)
                if (begun := await self._admitted(ask, state)) is None:
                    break
                group.start_soon(one, ask, begun)
        if state.error is not None:
            raise state.error
        if state.fatal:
            raise UserError(state.fatal)
        if state.answered < len(names):
            n = len(asks) if isinstance(asks, Sized) else None
            left = "asks are left" if n is None else f"{n - state.answered} of {n} asks are left"
            raise BudgetSpent(
                f"model {self.name!r}: the budget is spent ({self.account}); {left}; raise it and "
                "start the run again"
            )

    async def _admitted(self, ask: Ask | Writing, state: _Run) -> Call | None:
        """A call that the account lets begin; None if it lets none."""
        import anyio

        begun = Call(self.name, ask.name, BEGUN, self._allowed(ask), estimated=True)
        try:
            while not self.account.admit(begun):
                # calls in flight may turn out to cost less than they may
                if not self.account.may_free():
                    return None
                await anyio.sleep(0.02)
        except UserError as error:
            # a call that cannot be stored is not made
            state.fatal = str(error)
            return None
        return begun

    async def _answer(
        self, model: Model, ask: Ask | Writing, begun: Call | None, state: _Run
    ) -> Reply | None:
        """The reply to one admitted ask, which is repeated while its replies are malformed.

        Returns: None if asking ends before there is a reply.
        """
        began = time.perf_counter()
        usage = Usage()
        for attempt in range(1, self.attempts + 1):
            if attempt > 1:
                begun = None if state.fatal else await self._admitted(ask, state)
            if begun is None:
                return None
            reply = await self._call(model, ask, begun, attempt, state)
            usage += reply.usage
            if reply.outcome != "unparsed" and not reply.problem.startswith(UNENDED):
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
        return replace(reply, usage=usage, seconds=took, requested=self._requested(ask))

    async def _call(
        self, model: Model, ask: Ask | Writing, begun: Call, attempt: int, state: _Run
    ) -> Reply:
        """One call, of which the account is told whatever becomes of it."""
        from inspect_ai.event import ModelEvent
        from inspect_ai.log import Transcript
        from inspect_ai.log._transcript import init_transcript

        # Inspect writes its attempts at this call, and no others, into the transcript
        init_transcript(transcript := Transcript(log_model_api=False))
        outcome, usage, is_told = "stopped", Usage(1), False
        try:
            await state.disk.wait()
            reply, is_told = await self._reply(model, ask, attempt, state)
            outcome, usage = reply.outcome, reply.usage
        finally:
            attempts = [e for e in transcript.events if isinstance(e, ModelEvent)]
            sent = [e.error or "" for e in attempts if e.cache != "read"]
            calls = [
                self._charged(ask, "timed_out", Usage(1), is_told=False)
                for error in sent[:-1]
                if _LATE.search(error)
            ]
            from_cache = len(sent) < len(attempts)
            if sent and not from_cache:
                call = self._charged(ask, outcome, usage, is_told)
                calls.append(replace(call, id=begun.id))
            try:
                self.account.settle(begun, calls)
            except UserError as error:
                # a call that cannot be stored must be the last one
                state.fatal = str(error)
        return replace(reply, usage=Usage(), from_cache=True) if from_cache else reply

    async def _reply(
        self, model: Model, ask: Ask | Writing, attempt: int, state: _Run
    ) -> tuple[Reply, bool]:
        """The reply of one call, and whether the server has told all of its usage."""
        from inspect_ai.model import CachePolicy, GenerateConfig

        draw = ask.draw if isinstance(ask, Writing) else 1
        policy = CachePolicy(expiry=None, scopes={"draw": str(draw)} if draw > 1 else {})
        config = GenerateConfig()
        if self.structured == "schema":
            config = held_to(ask, self.name)
        output, failure = None, None
        BODIES.set(bodies := [])
        try:
            output = await model.generate(
                messages(ask, self._requested(ask)),
                config=config,
                cache=policy if self.cache and attempt == 1 else False,
            )
        except Exception as error:
            failure = from_error(error)
            if failure.reply.problem.startswith(UNREADABLE):
                output = await without_usage(_last(bodies))
        if output is not None:
            reply = from_output(ask, output, _last(bodies))
            used, shown = reply.usage, bool(reply.text or reply.thinking)
            is_told = used.input_tokens > 0 and (used.output_tokens > 0 or not shown)
        else:
            assert failure is not None
            reply, is_told = failure.reply, not failure.may_be_billed
            if failure.is_fatal:
                keys = " or ".join(model.api.api_key_vars) or "none"
                state.fatal = f"model {self.name!r} (key: {keys}): {reply.problem}"
        return reply, is_told

    def _charged(self, ask: Ask | Writing, outcome: str, usage: Usage, is_told: bool) -> Call:
        """A call as it is charged; if the server has not told all usage, for the most allowed."""
        if not is_told:
            most = self.account.most(self.name, self._allowed(ask))
            usage = replace(
                usage,
                input_tokens=usage.input_tokens or most.input_tokens,
                output_tokens=usage.output_tokens or most.output_tokens,
            )
        return Call(self.name, ask.name, outcome, usage, estimated=not is_told)

    def _allowed(self, ask: Ask | Writing) -> Usage:
        return most_used(ask, self.config.get("max_tokens"), self.structured == "prompt")

    def _requested(self, ask: Ask | Writing) -> str:
        return parse.requested(ask) if self.structured == "prompt" else ""

    def _connect(self) -> Model:
        return connect(self.name, self.base_url, self.config, self.max_connections)


def _last(bodies: Sequence[Any]) -> Mapping[str, Any]:
    """The last JSON object of some; an empty one if the last is none."""
    return bodies[-1] if bodies and isinstance(bodies[-1], dict) else {}


class _Disk:
    """Disk to which an account's files go: one flush serves all asks that waited for it."""

    def __init__(self, account: Account) -> None:
        import anyio

        self.account, self.flushes, self.at_work = account, 0, anyio.Lock()

    async def wait(self) -> None:
        """Wait until all that was added so far is on the disk."""
        import anyio.to_thread

        if not self.account.is_late and not self.at_work.locked():
            return
        before = self.flushes
        async with self.at_work:
            if self.flushes == before and self.account.is_late:
                self.flushes += 1
                await anyio.to_thread.run_sync(self.account.flush)


@dataclass
class _Run:
    """State that the asks of one `ask_all` share."""

    disk: _Disk
    answered: int = 0
    failed_in_a_row: int = 0
    fatal: str = ""
    """Why no further call can be of use."""
    error: Exception | None = None
    """The error of the function that takes replies."""
