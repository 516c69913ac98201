"""Conversion of Inspect AI's outputs and errors to replies, with each kind of missing verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from faithscope.interp import plain
from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Outcome, Reply, Usage, Writing
from faithscope.probes.judge.providers import redact

if TYPE_CHECKING:
    from inspect_ai.event import Event
    from inspect_ai.model import ModelOutput

FATAL = {
    401: "the key was refused",
    402: "the account has nothing left",
    404: "there is no such model, or no such address",
    "insufficient_quota": "the account has nothing left",
}
"""Statuses and codes that every other ask would get, too."""

_FILTERED = re.compile(
    r"inappropriate content|data_inspection|content.{0,9}(filter|polic|management)|sensitive|"
    r"moderation|safety",
    re.I,
)
"""Words by which some services say, in a refused request, that their filter stopped it."""

_OVERFLOW = re.compile(
    r"context.{0,9}(length|window)|(prompt|input).{0,20}too (long|large)|too many (input )?tokens",
    re.I,
)

_TIMEOUT = re.compile(r"(?!Connect)\w*Timeout\w*\(|Request timed out")
"""Timeout errors: Inspect's own (`AttemptTimeoutError`), and those of providers' clients."""

UNREADABLE = "the server's reply cannot be read"
"""Beginning of `Reply.problem` for a reply of success whose body has an unknown form."""

KEPT_CHARACTERS = 10_000
"""Most characters that are kept of an unreadable body."""

MOST_TOKENS = 10**8
"""Greatest plausible token count of one call; the longest contexts have ten million."""


def from_error(error: BaseException, body: str | None = None) -> tuple[Reply, bool]:
    """A reply that says why there is no verdict, and whether every other ask would meet the same
    error.

    Args:
        body: the body that the server sent with success, if the client could not read it.
    """
    from tenacity import RetryError

    if isinstance(error, RetryError):
        error = error.last_attempt.exception() or error
    code = getattr(error, "code", None)
    status = getattr(error, "status_code", None) or code
    fatal = next((why for key, why in FATAL.items() if key in (status, code)), None)
    # Inspect's own message holds the whole request; the provider's message says what is wrong.
    message = getattr(error, "provider_message", None) or str(error) or repr(error)
    source = error.__cause__ or error
    if re.fullmatch(r"Error code: \d+", message):
        # A server with another form of errors (`{"detail": …}`): the client leaves out its message.
        message += f" - {getattr(getattr(source, 'response', None), 'text', '')}"
    problem = f"{type(source).__name__}: {message}"
    outcome: Outcome = "failed"
    if body and (told := _error_in(body)):
        problem = f"the server sent an error in place of a reply: {told}"
    elif body is not None:
        return _unreadable(problem, body), False
    elif status in (400, 413) and _OVERFLOW.search(message):
        outcome = "overflow"
    elif status == 400 and _FILTERED.search(message):
        outcome = "filtered"
    elif isinstance(error, json.JSONDecodeError):
        # The server answered in a body that breaks off, which counts as a malformed reply.
        outcome = "unparsed"
    elif fatal:
        problem = f"{fatal}: {problem}"
    return Reply(outcome, problem=one_line(problem), usage=Usage(calls=1)), fatal is not None


def _unreadable(problem: str, body: str) -> Reply:
    # a page in place of a reply (by a proxy) is not the model's, and is asked for again
    text = redact(body) if body.lstrip().startswith("{") else ""
    if len(text) > KEPT_CHARACTERS:
        text = f"{text[:KEPT_CHARACTERS]} … [{len(text):,} characters]"
    reason = one_line(f"{UNREADABLE}: {problem}")
    return Reply("unparsed", text=_whole(text), problem=reason, usage=Usage(calls=1))


def _error_in(body: str) -> str:
    """The error that some services send with the status of success; empty if there is none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = answer.get("error") if isinstance(answer, dict) and not answer.get("choices") else None
    return str(error.get("message") or error) if isinstance(error, dict) else str(error or "")


def attempts_of(events: Sequence[Event]) -> list[str | None]:
    """The error of each attempt that Inspect made in `events`; None for an attempt without one.

    Repeats by the provider's client within an attempt are not among them.
    """
    from inspect_ai.event import ModelEvent

    calls = (e for e in events if isinstance(e, ModelEvent) and e.cache != "read")
    return [call.error for call in calls]


def timed_out(error: str | None) -> bool:
    """Whether an attempt of `attempts_of` was given up for taking too long."""
    return error is not None and _TIMEOUT.match(error) is not None


def may_be_billed(error: str | None) -> bool:
    """Whether an attempt may be billed without a reply: it was stopped on its way, or timed out."""
    return error is None or timed_out(error) or "model call cancelled" in error


def one_line(text: str) -> str:
    """A message that may be written anywhere: on one line, without keys or terminal controls."""
    return redact(plain.one_line(text))[:500]


def from_output(ask: Ask | Writing, output: ModelOutput) -> Reply:
    """The reply in Inspect's output: the judge's verdict, or the kind of missing verdict."""
    return replace(_read(ask, output), served=redact(output.model or ""))


def _read(ask: Ask | Writing, output: ModelOutput) -> Reply:
    usage = usage_of(output)
    if output.empty:
        return Reply("unparsed", problem="the server's reply holds no choice", usage=usage)
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    text = content if isinstance(content, str) else ""
    thinking = []
    refused = False
    for part in parts:
        if part.type == "reasoning":
            thinking.append(part.summary or "" if part.redacted else part.reasoning)
        elif part.type == "text":
            text += part.text
            refused = refused or bool(part.refusal)
    text = _whole(redact(text))
    given = _whole(redact("\n".join(thinking)))
    stop, details = output.stop_reason, output.choices[0].stop_details
    # Claude's word for a refusal; Inspect uses it also for prompts filtered unread and unbilled
    if details and details.type == "refusal" and output.usage:
        refused = True
    if refused or stop in ("content_filter", "model_length"):
        outcome: Outcome = "refused" if refused else "filtered"
        why = details and (details.explanation or details.category)
        problem = why or output.error or text
        if stop == "model_length":
            outcome = "overflow"
        return Reply(outcome, text=text, thinking=given, problem=one_line(problem), usage=usage)
    # a server ends the thinking at a mark, which the judge may only have quoted
    thought = bool(given.strip())
    reading = parse.read(ask, text, cut=stop == "max_tokens", after_thinking=thought)
    return Reply(
        reading.outcome,
        # keys are removed again from the parsed values: JSON may have spelled them with escapes
        _without_secrets(reading.values),
        text=reading.answer,
        # If all of a reply is thinking, Inspect leaves it in the text as well.
        thinking=given or reading.thinking,
        problem=reading.problem,
        extra_fields=reading.n_extra_fields,
        usage=usage,
    )


def _without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: redact(value)
        if isinstance(value, str)
        else _without_secrets(value)
        if isinstance(value, Mapping)
        else value
        for name, value in values.items()
    }


def _whole(text: str) -> str:
    """`text` with lone surrogates replaced, which no file can hold and no API accepts."""
    return text.encode("utf-8", "replace").decode()


def usage_of(output: ModelOutput) -> Usage:
    """Usage of one call as the provider reports it; one call without tokens if it reports nothing.

    A count below zero or above `MOST_TOKENS` is implausible, and all counts beside it are dropped,
    too. If more tokens are cached than were read, Inspect's count of the others is below zero.
    """
    used = output.usage
    if used is None:
        return Usage(calls=1)
    cached, reasoning = used.input_tokens_cache_read or 0, used.reasoning_tokens or 0
    parts = (used.input_tokens, cached, used.input_tokens_cache_write or 0)
    counts = (*parts, used.output_tokens, reasoning, used.total_tokens)
    if not all(0 <= count <= MOST_TOKENS for count in counts):
        return Usage(calls=1)
    read = sum(parts)
    # xAI counts reasoning apart from the completion, and only its total shows it; so does any
    # service that reports more reasoning than completion
    beside = used.total_tokens == read + used.output_tokens + reasoning
    return Usage(
        calls=1,
        input_tokens=read,
        output_tokens=used.output_tokens
        + (reasoning if beside or reasoning > used.output_tokens else 0),
        reasoning_tokens=reasoning,
        cached_tokens=cached,
    )
