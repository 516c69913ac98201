"""The sections of a config that name judges, and what they may cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
)

from experiments import registry
from experiments.config.base import OneOrMany, Section

API = "api:"
"""Before the name of a judge that is asked over the network; any other name is a model here."""
Reading = Literal["generated", "scored"]
_PROVIDERS = ("openai", "anthropic", "google", "groq", "together", "vllm", "openai-api")


def _judge(name: str) -> str:
    if name.startswith(API):
        if "/" not in name:
            raise ValueError(f"{name!r} names no provider; write {API}openai/gpt-4.1 and the like")
        return name
    if problem := registry.model_problem(name):
        first = name.partition("/")[0]
        hint = f"; over its API: '{API}{name}'" if first in _PROVIDERS else ""
        raise ValueError(f"{problem}{hint}")
    return name


_SECRET = re.compile(
    r"authorization$|(api|access|auth|secret|bearer)[_-]?(keys?|token)$|secret$|password$|"
    r"^(key|token)$",
    re.I,
)
"""Names of what must not stand in a file that goes into the run folder and its page."""


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def service_of(name: str) -> str:
    """Of a judge behind an API, whose it is: `openai`, `openai-api/SERVICE`."""
    parts = name.removeprefix(API).split("/")
    return "/".join(parts[: 2 if parts[0] == "openai-api" else 1])


JudgeName = Annotated[StrictStr, AfterValidator(_judge)]


class JudgeConfig(Section):
    """Who judges, and how each is asked."""

    model: Annotated[list[JudgeName], *OneOrMany]
    """One or several of: a model here as in `model.name`, or `api:PROVIDER/MODEL`."""
    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated", "scored"])
    """How the verdict is got: from what is written, or (models here) from its log-probs."""
    max_tokens: StrictInt = Field(default=1024, ge=16)
    """Most tokens of a reply, thinking included; a thinking model wants thousands."""
    temperature: StrictFloat = Field(default=0.0, ge=0)
    """0 is greedy."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling, where temperature > 0."""
    attempts: StrictInt = Field(default=3, ge=1)
    """How often an ask is put while its replies do not parse; once where a model here is greedy."""
    thinking: StrictBool | None = None
    """Ask a hybrid model here to think, or not to; null leaves it to its template."""
    batch_size: StrictInt = Field(default=8, ge=1)
    """Asks that a model here answers together."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of a model here; `auto` is float32 on a CPU and bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """`auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Pin of a hub repository."""
    quantize: Literal["8bit", "4bit"] | None = None
    """8- or 4-bit weights through bitsandbytes."""
    device_map: StrictStr | None = None
    """`auto` spreads the layers over the devices of a node."""
    base_url: StrictStr | None = None
    """Of an OpenAI-compatible server. Keys come from the environment and are never written."""
    structured: Literal["auto", "schema", "prompt"] = "auto"
    """Whether replies are held to the form while they are written, or it is asked for in the
    prompt; `auto` holds those of providers that can, and of models here that do not think."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """Of an API model that thinks."""
    reasoning_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of its thinking, where the provider lets one say."""
    max_connections: StrictInt = Field(default=10, ge=1)
    """Calls to an API at the same time."""
    max_retries: StrictInt = Field(default=5, ge=0)
    """After rate limits, errors of the server and lost connections."""
    timeout: StrictInt = Field(default=300, ge=1)
    """Seconds until a call without an answer is made again."""
    cache: StrictStr | None = None
    """A folder where API replies are kept and found again, also by other runs."""
    extra_body: dict[str, Any] | None = None
    """What else an OpenAI-compatible server is sent."""

    @field_validator("base_url")
    @classmethod
    def _no_key_in_the_address(cls, url: str | None) -> str | None:
        # before anything is written: the config is kept in the run folder and shown on the page
        parts = urlsplit(url or "")
        if parts.username or parts.password or parts.query:
            raise ValueError(
                "holds a user name, a password or a query; keys come from the environment only"
            )
        return url

    @field_validator("extra_body")
    @classmethod
    def _no_key_in_the_body(cls, body: dict[str, Any] | None) -> dict[str, Any] | None:
        if body is None:
            return None
        # with it comes torch, which most configs need not wait for
        from probes.judge.providers import redact

        if redact(str(body)) != str(body):
            raise ValueError(
                "holds the value of an environment variable that is a key, and the run folder "
                "would keep it; take it out: keys are read from the environment"
            )
        if named := next((n for n in _names(body) if _SECRET.search(n)), None):
            raise ValueError(
                f"{named!r} is named like a key, which the run folder would keep; keys come from "
                "the environment only"
            )
        return body

    def readings_of(self, name: str) -> list[Reading]:
        """An API gives no log-probs of whole verdicts: what it writes is all there is."""
        return ["generated"] if name.startswith(API) else list(self.readings)


class SpendConfig(Section):
    """What asking by API may cost; a run that reaches a limit ends cleanly and goes on later.

    The limits hold for the run folder as a whole, whoever works in it and however often it is
    started: every call is kept in spend.*.jsonl as it ends. Parts at work together (`--shard`) look
    up each other's calls every two seconds, and can pass a limit by what the others were asking
    and were answered meanwhile; parts in folders of their own know nothing of each other.
    """

    max_cost: StrictFloat | None = Field(default=None, ge=0)
    """US dollars."""
    max_calls: StrictInt | None = Field(default=None, ge=0)
    """Calls, repeated ones included."""
    prices: StrictStr | None = None
    """A YAML file of prices like configs/prices.yaml, which max_cost needs; null knows none."""
