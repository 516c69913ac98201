"""Spending of judges behind APIs: the most that a call may use, and the account of all calls."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Usage, Writing

LETTERS_PER_TOKEN = 2.5
"""Letters per token in the words of an estimate: with nine vocabularies (of OpenAI's models, Claude
2, Mistral, Qwen, DeepSeek, SmolLM2), no text that was tried had fewer."""
_PIECE = re.compile(r" ?[A-Z]?[a-z]+| ?[A-Z]+| +|[^A-Za-z ]+")
_NO_WORD = re.compile(r"[^aeiouyAEIOUY]{4}|^[^aeiouyAEIOUY]+$")
"""Letters that are no ordinary word, as in a cipher or a formula."""
MESSAGE_TOKENS = 12
"""Number of tokens that chat formats write around a message."""
REPLY_TOKENS = 4096
"""Guessed tokens of a reply whose usage nobody tells, if the judge sets no `max_tokens`."""


def tokens_of(texts: Iterable[str], messages: int = 1) -> int:
    """Estimated number of tokens of a prompt of some messages, without a tokenizer: at least as
    many as any common one makes of them.

    A word has a token per `LETTERS_PER_TOKEN` letters. Letters that form no ordinary word, digits,
    marks, line breaks and the bytes of all other scripts are a token each, as where a vocabulary
    has nothing longer. Of mathematical English this is 1.5 to 2 times the truth, of Chinese up to 4
    times, since old vocabularies write a character in three tokens.
    """
    tenths = sum(10 * text.count("\n") + sum(map(_of_line, text.split("\n"))) for text in texts)
    return math.ceil(tenths / 10) + MESSAGE_TOKENS * messages


def _of_line(line: str) -> int:
    """Tenths of tokens of a line; most lines of a prompt are the form's, the same for all items."""
    return _of_short_line(line) if len(line) < 2_000 else sum(map(_in_piece, _PIECE.findall(line)))


@lru_cache(1 << 10)
def _of_short_line(line: str) -> int:
    return sum(map(_in_piece, _PIECE.findall(line)))


@lru_cache(1 << 12)
def _in_piece(piece: str) -> int:
    letters = piece.lstrip(" ")
    if not letters:
        return 10 if len(piece) == 1 else (len(piece) + 3) // 4 * 10
    if letters[-1].islower() and letters.isascii() and not _NO_WORD.search(letters):
        return max(10, round(10 * len(letters) / LETTERS_PER_TOKEN))
    return 10 * len(letters.encode("utf-8", "replace"))


def most_used(ask: Ask | Writing, max_tokens: int | None, prompted: bool = True) -> Usage:
    """The most that one call for an ask may use: its prompt, and as long a reply as is allowed.

    A dry run multiplies it by a price; an account counts it where no server tells the usage.

    Args:
        max_tokens: most tokens of a reply, thinking included; None for `REPLY_TOKENS`.
        prompted: whether the schema is asked for in the prompt (`ApiJudge.structured`).
    """
    texts, messages = [ask.prompt, ask.system or ""], 1
    if isinstance(ask, Ask):
        texts.append(parse.request(ask) if prompted else "")
    else:
        texts += [content for _, content in ask.before]
        messages = len(ask.turns)
    read = tokens_of(texts, messages)
    return Usage(1, read, REPLY_TOKENS if max_tokens is None else max_tokens)


class BudgetSpent(Exception):
    """The budget ended the asking. Replies so far are stored; the other asks are still pending."""


BEGUN = "begun"
"""Outcome of a call before it has ended: its usage is the most that was allowed."""


@dataclass(frozen=True)
class Call:
    """One call: begun, answered, or one that may be billed though nobody saw an answer."""

    model: str
    """The judge's name, as in `ApiJudge.name`."""
    ask: str
    """Name of the ask or writing that the call was made for (`Ask.name`)."""
    outcome: str
    """Outcome of the call's reply; `stopped` if it was given up before a reply, `timed_out` if it
    was made again, `begun` before its end."""
    usage: Usage
    cost: float | None = None
    """Dollars at the price when the call was made; None without a price."""
    estimated: bool = False
    """Whether `usage`, or a part of it, is not the server's, but the most that was allowed."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    """Random id of the call, different for every call, and the same at its beginning and end."""
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    """Time at which the call began or ended, ISO 8601 in UTC."""


class Account:
    """Account of the calls of one or several judges. This one sets no limit and forgets the calls;
    a run's (`experiments.engine.models.account.RunAccount`) has limits, and keeps them on the disk.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        """Number of calls that were admitted and have not ended."""
        self._known: dict[str, tuple[float, int]] = {}
        """Model -> input tokens of its calls over those allowed, and output tokens, at most."""

    def check(self, model: str) -> None:
        """Check before the first call of a judge that its calls can be limited.

        Raises:
            UserError: the cost is limited, and the judge has no price.
        """

    def most(self, model: str, allowed: Usage) -> Usage:
        """The most that a call may use: what is allowed, or more if earlier calls used more, since
        the server put words before the prompt, or thought beyond `max_tokens`."""
        ratio, written = self._known.get(model, (1.0, 0))
        read = math.ceil(allowed.input_tokens * ratio)
        return replace(
            allowed, input_tokens=read, output_tokens=max(written, allowed.output_tokens)
        )

    def learn(self, begun: Call | None, ended: Call) -> None:
        """Take a call's usage into account for `most`."""
        ratio, written = self._known.get(ended.model, (1.0, 0))
        if begun is not None and begun.usage.input_tokens:
            ratio = max(ratio, ended.usage.input_tokens / begun.usage.input_tokens)
        self._known[ended.model] = (ratio, max(written, ended.usage.output_tokens))

    def admit(self, call: Call) -> bool:
        """Begin a call, which `settle` ends; False if it might pass a limit.

        Args:
            call: a `BEGUN` call with the usage that is allowed.

        Raises:
            UserError: the call cannot be stored.
        """
        self.in_flight += 1
        return True

    def in_groups(self) -> AbstractContextManager[None]:
        """A context in which an account that keeps calls on the disk may bring several there at
        once, by `flush`, and at its end; what else its files get goes with them."""
        return nullcontext()

    @property
    def is_late(self) -> bool:
        """Whether something waits for `flush`."""
        return False

    def flush(self) -> None:
        """Bring to the disk what waits for it; may be called on any thread.

        Raises:
            UserError: it cannot be stored.
        """

    def may_free(self) -> bool:
        """Whether calls in flight may end and leave room for others."""
        return self.in_flight > 0

    def settle(self, begun: Call, calls: Sequence[Call]) -> None:
        """Record the end of a call that `admit` allowed.

        Args:
            calls: the call, by its id, with its repeats that may be billed; none for a cached
                reply.

        Raises:
            UserError: a call cannot be stored; it is counted all the same.
        """
        self.in_flight -= 1
        for call in calls:
            self.learn(begun, call)
