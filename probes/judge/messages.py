"""Messages and settings in Inspect's form for an ask or a writing of an API model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from faithscope.probes.judge import parse
from faithscope.probes.judge.form import Ask, Writing

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, GenerateConfig


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


def held_to(ask: Ask, model: str) -> GenerateConfig:
    """Settings with which the provider of `model` holds the reply to the form's JSON schema."""
    from inspect_ai.model import GenerateConfig, ResponseSchema
    from inspect_ai.util import JSONSchema

    schema = JSONSchema.model_validate(parse.schema(ask, listed=True))
    name = re.sub(r"[^\w-]", "_", ask.form.name, flags=re.A)[:64]
    strict = True if model.startswith(("openai/", "mistral/")) else None
    return GenerateConfig(
        response_schema=ResponseSchema(name=name, json_schema=schema, strict=strict)
    )
