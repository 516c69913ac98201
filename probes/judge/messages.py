"""Asks and replies in Inspect AI's form: conversations and schemas on the way to an API model,
outputs and errors on the way back, with each kind of missing verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Outcome, Reply, Usage, Writing
from faithscope.probes.judge.secrets import one_line, redact

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, StopReason

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

_UNREACHED = re.compile(r"Connect(Error|Timeout)|ConnectorError|ConnectionRefused")
"""Errors of clients that did not reach the server, which has billed nothing then."""

_NO_REPLY = (ValueError, TypeError, AttributeError, LookupError, AssertionError, RecursionError)
"""Errors by which a client, or Inspect, fails at a body that the server sent with success."""

UNREADABLE = "the server's reply cannot be read"
"""Beginning of `Reply.problem` for a reply of success whose body has an unknown form."""

UNENDED = "the server does not say that the reply has ended"
"""Beginning of `Reply.problem` for a reply that was broken off, or whose end nobody knows."""

_ENDS: Mapping[str, StopReason] = {
    # in any case: Text Generation Inference, Claude and Cohere, Ernie, and what proxies pass on
    **dict.fromkeys(("eos_token", "end_turn", "stop_sequence", "complete", "normal"), "stop"),
    **dict.fromkeys(("max_output_tokens", "model_context_window_exceeded"), "max_tokens"),
    **dict.fromkeys(("safety", "sensitive", "recitation", "content_filtered"), "content_filter"),
}
"""Words for an end that Inspect does not know. Any other is none: `error`, `abort`,
`insufficient_system_resource`, `network_error`, nothing at all."""

MOST_TOKENS = 10**8
"""Greatest plausible token count of one call; the longest contexts have ten million."""


def messages(ask: Ask | Writing, requested: str) -> list[ChatMessage]:
    """The conversation that an ask or a writing sends.

    Args:
        requested: request for the form, put below the prompt of an ask; empty if `held_to` enforces
            the form.
    """
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    if isinstance(ask, Writing):
        turns = ask.turns
    else:
        turns = [{"role": "user", "content": parse.sent(ask.prompt, requested)}]
    by_role = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
    first: list[ChatMessage] = [ChatMessageSystem(content=ask.system)] if ask.system else []
    return first + [by_role[turn["role"]](content=turn["content"]) for turn in turns]


def held_to(ask: Ask | Writing, model: str) -> GenerateConfig:
    """Settings with which the provider of `model` holds the reply to the JSON schema of the form,
    or of a writing; none for a writing without one."""
    from inspect_ai.model import GenerateConfig, ResponseSchema
    from inspect_ai.util import JSONSchema

    told = ask.schema if isinstance(ask, Writing) else parse.schema(ask, listed=True)
    if told is None:
        return GenerateConfig()
    schema = JSONSchema.model_validate(told)
    kind = "reply" if isinstance(ask, Writing) else ask.form.name
    name = re.sub(r"[^\w-]", "_", kind, flags=re.A)[:64]
    strict = True if model.startswith(("openai/", "mistral/")) else None
    return GenerateConfig(
        response_schema=ResponseSchema(name=name, json_schema=schema, strict=strict)
    )


class Failure(NamedTuple):
    """A call that ended in an error."""

    reply: Reply
    """The reply that says why there is no verdict."""
    is_fatal: bool
    """Whether every other ask would meet the same error."""
    may_be_billed: bool
    """Whether the server may have written a reply, which it bills though nobody can read it."""


def from_error(error: BaseException) -> Failure:
    """The failure that an error of Inspect, or of a provider's client, says."""
    from tenacity import RetryError

    if isinstance(error, RetryError):
        error = error.last_attempt.exception() or error
    code = getattr(error, "code", None)
    status = getattr(error, "status_code", None) or code
    why_fatal = next((why for key, why in FATAL.items() if key in (status, code)), "")
    # Inspect's own message holds the whole request; the provider's message says what is wrong.
    message = getattr(error, "provider_message", None) or str(error) or repr(error)
    source = error.__cause__ or error
    problem = f"{type(source).__name__}: {message}"
    outcome: Outcome = "failed"
    refused = isinstance(status, int) and status >= 400
    if status in (400, 413) and _OVERFLOW.search(message):
        outcome = "overflow"
    elif status == 400 and _FILTERED.search(message):
        outcome = "filtered"
    elif not refused and isinstance(error, _NO_REPLY):
        # counts as a malformed reply, which is asked for again
        outcome, problem = "unparsed", f"{UNREADABLE}: {problem}"
    elif why_fatal:
        problem = f"{why_fatal}: {problem}"
    reply = Reply(outcome, problem=one_line(problem), usage=Usage(calls=1))
    return Failure(reply, bool(why_fatal), not (refused or _UNREACHED.search(repr(source))))


async def without_usage(body: Mapping[str, Any]) -> ModelOutput | None:
    """What the body of a reply says, if its usage alone has a form that nobody can read.

    Only bodies of OpenAI's two APIs, which most servers speak, are read without their usage.
    """
    from inspect_ai.model import model_output_from_openai, model_output_from_openai_responses

    if body.get("usage") is None:
        return None
    rest = {name: value for name, value in body.items() if name != "usage"}
    try:
        if "choices" in body:
            from openai.types.chat import ChatCompletion

            return await model_output_from_openai(ChatCompletion.construct(**rest))
        from openai.types.responses import Response

        return await model_output_from_openai_responses(Response.construct(**rest))
    except _NO_REPLY:
        return None


def from_output(
    ask: Ask | Writing, output: ModelOutput, body: Mapping[str, Any] = MappingProxyType({})
) -> Reply:
    """The reply in Inspect's output: the judge's verdict, or the kind of missing verdict.

    Args:
        body: the reply's body, for what the output does not say.
    """
    return replace(_read(ask, output, body), served=redact(output.model or ""))


def _end(output: ModelOutput, body: Mapping[str, Any]) -> tuple[StopReason, str]:
    """How the reply ended, and the server's own word for an end that is none."""
    from inspect_ai.model._model_output import as_stop_reason

    first, *_ = (*(body.get("choices") or ()), {})
    said = first.get("finish_reason") if "choices" in body else body.get("status")
    word = said.casefold() if isinstance(said, str) else ""
    stop = output.stop_reason
    if "output" in body and word in ("failed", "cancelled", "queued", "in_progress"):
        stop = "unknown"
    elif stop == "unknown":
        stop = _ENDS.get(word, as_stop_reason(word))
    return stop, repr(said) if said else "no finish reason"


def _read(ask: Ask | Writing, output: ModelOutput, body: Mapping[str, Any]) -> Reply:
    usage = usage_of(output) if output.usage else _counts(body.get("usage"))
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
    (stop, word), details = _end(output, body), output.choices[0].stop_details
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
    if stop == "unknown":
        problem = f"{UNENDED}: {word}"
        return Reply("failed", text=text, thinking=given, problem=one_line(problem), usage=usage)
    # a server ends the thinking at a mark, which the judge may only have quoted
    thought = bool(given.strip())
    reading = parse.read(ask, text, cut=stop == "max_tokens", after_thinking=thought)
    return Reply(
        reading.outcome,
        reading.values,
        text=reading.answer,
        # If all of a reply is thinking, Inspect leaves it in the text as well.
        thinking=given or reading.thinking,
        problem=reading.problem,
        extra_fields=reading.n_extra_fields,
        usage=usage,
    )


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
    read, written = sum(parts), used.output_tokens
    # some count reasoning apart from the completion
    if reasoning > written:
        written += reasoning
    # or show it in the total alone (xAI); what else the total has beyond its parts was written, too
    return Usage(1, read, max(written, used.total_tokens - read), reasoning, cached)


def _counts(usage: Any) -> Usage:
    """What can be read of a usage whose other parts cannot: whole numbers of tokens, or none."""
    told = usage if isinstance(usage, dict) else {}

    def count(*names: str) -> int:
        values = [told.get(name) for name in names]
        return max((n for n in values if type(n) is int and 0 <= n <= MOST_TOKENS), default=0)

    total = count("total_tokens")
    read = count("prompt_tokens", "input_tokens")
    written = count("completion_tokens", "output_tokens")
    if written and not read:
        read = max(0, total - written)
    return Usage(1, read, max(written, total - read))
