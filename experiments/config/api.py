"""What a config says of a model that is asked over the network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, field_validator

from faithscope.experiments.config.base import Section

API = "api:"
"""The prefix of a model that is asked over the network; any other name is a model here."""
HOW_FAST = ("max_connections", "max_retries", "timeout", "cache")
"""Config keys that leave a model's replies as they are, so they are no part of a unit's id."""
DECIDES = ("temperature", "top_p", "max_tokens", "attempts")
DECIDES_API = ("base_url", "reasoning_effort", "reasoning_tokens", "extra_body")
"""Config keys that change an API model's replies, so they are part of a unit's id; `DECIDES` also
change those of a judge whose weights are here."""


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


def _no_key_in(url: str) -> str:
    # with it comes torch, which most configs need not wait for
    from faithscope.probes.judge.providers import secret_in_address

    if secret := secret_in_address(url):
        raise ValueError(f"holds {secret}; keys come from the environment only")
    return url


Address = Annotated[StrictStr, AfterValidator(_no_key_in)]
"""The address of a server. It holds nothing that may be a key, since the run folder keeps it."""


def service_of(name: str) -> str:
    """The service that a model behind an API belongs to: `openai`, `openai-api/SERVICE`."""
    parts = name.removeprefix(API).split("/")
    return "/".join(parts[: 2 if parts[0] == "openai-api" else 1])


def one_address_problem(key: str, url: str | None, names: Iterable[str]) -> str | None:
    """Why one `base_url` will not do for these models, if it will not.

    Each would be sent the key of its own service at the one address.
    """
    services = dict.fromkeys(service_of(name) for name in names if name.startswith(API))
    if not url or len(services) < 2:
        return None
    return (
        f"{key} is one address for {' and '.join(services)}; leave it out and name addresses in "
        f"the environment (VLLM_BASE_URL, or SERVICE_BASE_URL of {API}openai-api/SERVICE/MODEL)"
    )


def no_temperature_problem(temperature: float | None, names: Iterable[str]) -> str | None:
    """Why these models cannot be asked without a temperature, if it is left to a provider."""
    here = next((name for name in names if not name.startswith(API)), None)
    if temperature is not None or here is None:
        return None
    return (
        f"temperature is null, which leaves it to a provider, and {here!r} runs here and has none; "
        "give a number, 0 for greedy, or ask models behind APIs alone"
    )


class ApiSection(Section):
    """How a model behind an API is asked; some of it holds for models here, too."""

    max_tokens: StrictInt = Field(default=4096, ge=16)
    """Most tokens of a reply, thinking included; a thinking model wants thousands."""
    temperature: StrictFloat | None = Field(default=0.0, ge=0)
    """0 is greedy; null, of models behind APIs alone, sends none and leaves it to the provider, as
    the authors of C2-Faith did. Models that know no temperature are not sent any."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """The nucleus that is sampled from where the temperature is above 0."""
    attempts: StrictInt = Field(default=3, ge=1)
    """How often one is asked while its replies are not of the form, or empty."""
    base_url: Address | None = None
    """The address of an OpenAI-compatible server. Keys come from the environment and are never
    written."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How hard an API model that thinks is to think."""
    reasoning_tokens: StrictInt | None = Field(default=None, ge=1)
    """The most tokens that an API model may think in, where its provider takes such a limit."""
    max_connections: StrictInt = Field(default=10, ge=1)
    """Calls to an API at the same time."""
    max_retries: StrictInt = Field(default=5, ge=0)
    """How often a call is repeated after rate limits, server errors and lost connections."""
    timeout: StrictInt = Field(default=300, ge=1)
    """Seconds until a call without an answer is made again; a provider may bill both."""
    cache: StrictStr | None = None
    """A folder in which API replies are kept and found again, also by other runs: in a folder of
    their own, `faithscope-replies`, that is open to its owner alone."""
    extra_body: dict[str, Any] | None = None
    """Further fields of the request to an OpenAI-compatible server."""

    @field_validator("extra_body")
    @classmethod
    def _no_key_in_the_body(cls, body: dict[str, Any] | None) -> dict[str, Any] | None:
        if body is None:
            return None
        # with it comes torch, which most configs need not wait for
        from faithscope.probes.judge.providers import redact

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


class SubjectConfig(ApiSection):
    """How the models of a run that are behind APIs are asked."""

    steps_from: Literal["reply", "thinking"] = "reply"
    """What is taken for their reasoning: the reply up to where it states its answer, or the
    thinking before it, of models that show all of it."""


class SpendConfig(Section):
    """What asking by API may cost; a run that reaches a limit ends cleanly and goes on later.

    The limits hold for the run folder as a whole, whoever works in it and however often it is
    started: every call is kept in spend.*.jsonl as it ends. Parts at work together (`--shard`) look
    up each other's calls every two seconds, and can pass a limit by what the others were asking
    and were answered meanwhile; parts in folders of their own know nothing of each other.

    A call whose server tells no usage is charged an estimate, and so is one that was stopped or
    timed out, with `max_tokens` for its reply: `estimated_calls` of `tables/spend.csv`. What a
    provider's client repeats by itself after a lost connection is not seen and not counted.
    """

    max_cost: StrictFloat | None = Field(default=None, ge=0)
    """The most US dollars that the run may cost."""
    max_calls: StrictInt | None = Field(default=None, ge=0)
    """The most calls, those repeated for a malformed reply or after `timeout` included."""
    prices: StrictStr | None = None
    """A YAML file of prices, which max_cost needs; null knows none. `shipped:prices.yaml` comes
    with faithscope."""
