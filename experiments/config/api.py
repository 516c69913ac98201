"""Config sections for models behind an API: how they are asked, and what that may cost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
)

from faithscope.experiments.config.base import Section
from faithscope.probes.judge.secrets import address_problem, redact

WITH_THOUGHT = 8000
"""Number of reply tokens that is room for a model that thinks."""
ENOUGH_TO_THINK = 2000
"""Number of reply tokens below which a model that thinks seldom reaches its answer."""
API = "api:"
"""Prefix in the name of a model that is asked over the network; any other model runs here."""
HOW_FAST = ("max_connections", "max_retries", "timeout", "cache")
"""Config keys that leave a model's replies as they are, so they are no part of a unit's id."""
DECIDES = ("temperature", "top_p", "max_tokens", "attempts")
DECIDES_API = ("base_url", "reasoning_effort", "reasoning_tokens", "extra_body")
"""Config keys that change an API model's replies, so they are part of a unit's id. The keys in
`DECIDES` also change the replies of a judge whose weights are here."""


_NAMED_AS_KEY = re.compile(
    r'"([^"]*(authorization|(api|access|auth|secret|bearer)[_-]?(keys?|token)|secret|password)|'
    r'key|token)": ',
    re.I,
)
"""Name in JSON under which a key or password stands; such an entry must not be written into the run
folder and its page."""


def _usable(url: str) -> str:
    if problem := address_problem(url):
        raise ValueError(problem)
    return url


Address = Annotated[StrictStr, AfterValidator(_usable)]
"""Address of a server. An address that may hold a key is refused, since the run folder keeps it."""


def service_of(name: str) -> str:
    """The service that a model behind an API belongs to: `openai`, `openai-api/SERVICE`."""
    parts = name.removeprefix(API).split("/")
    return "/".join(parts[: 2 if parts[0] == "openai-api" else 1])


_SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|20\d{6})$")
_OF_SERVICE = re.compile(
    r"^(?:[a-z-]+\.)+(?=[a-z])|-v\d+:\d+$|:(?:free|nitro|floor|exacto)$|-latest$"
)
"""What services put around a model's name: regions and makers before it (`us.anthropic.`),
versions of the service (`-v1:0`), ways of serving (`:nitro`), and `-latest` after it."""


def same_model(one: str, other: str) -> bool:
    """Whether two names are of one model behind APIs, by name: through another service, as an Azure
    deployment that is called like the model, and with or without the date of a snapshot.

    Two snapshots of different dates are two models; so is one behind an API and one with weights
    here. A deployment with a name of its own is not recognised.
    """
    if one == other:
        return True
    if not (one.startswith(API) and other.startswith(API)):
        return False
    (name, date), (other_name, other_date) = _dated(one), _dated(other)
    return name == other_name and (not date or not other_date or date == other_date)


def _dated(name: str) -> tuple[str, str]:
    """A model's name as all services have it, and the date of its snapshot; "" without one."""
    plain = name.rpartition("/")[2].lower()
    while (short := _OF_SERVICE.sub("", plain)) != plain:
        plain = short
    date = found[1].replace("-", "") if (found := _SNAPSHOT.search(plain)) else ""
    return re.sub(r"[._]", "-", _SNAPSHOT.sub("", plain)), date


def one_address_problem(key: str, url: str | None, names: Iterable[str]) -> str | None:
    """Why one `base_url` cannot serve these models; None if it can.

    Models of several services cannot share an address: it would be sent the key of each service.
    """
    services = dict.fromkeys(service_of(name) for name in names if name.startswith(API))
    if not url or len(services) < 2:
        return None
    return (
        f"{key} is one address for {' and '.join(services)}; leave it out and name addresses in "
        f"the environment (VLLM_BASE_URL, or SERVICE_BASE_URL of {API}openai-api/SERVICE/MODEL)"
    )


def no_temperature_problem(temperature: float | None, names: Iterable[str]) -> str | None:
    """Why these models cannot run with `temperature: null`; None if they can, or have a
    temperature."""
    here = next((name for name in names if not name.startswith(API)), None)
    if temperature is not None or here is None:
        return None
    return (
        f"temperature is null, which leaves it to a provider, and {here!r} runs here and has none; "
        "give a number, 0 for greedy, or ask models behind APIs alone"
    )


class ApiSection(Section):
    """Settings for asking a model behind an API; some also apply to models here."""

    KEY: ClassVar[str] = "api"
    """Name of the section in a config, for messages."""

    max_tokens: StrictInt | None = Field(default=4096, ge=16)
    """Maximum number of tokens of a reply, thinking included; a thinking model needs thousands.
    null sends no limit; estimates and budgets then count 4,096 tokens for a reply whose length is
    not known."""
    temperature: StrictFloat | None = Field(default=0.0, ge=0)
    """Sampling temperature; 0 is greedy. null, for models behind APIs only, sends no temperature
    and leaves it to the provider, as the authors of C2-Faith did. Models that accept no temperature
    are never sent one."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """Probability mass of nucleus sampling, used where the temperature is above 0."""
    attempts: StrictInt = Field(default=3, ge=1)
    """Maximum number of times that a prompt is sent while replies are empty or not of the form."""
    base_url: Address | None = None
    """Address of an OpenAI-compatible server. Keys come from the environment and are never
    written."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """Reasoning effort that is requested of an API model that thinks."""
    reasoning_tokens: StrictInt | None = Field(default=None, ge=1)
    """Maximum number of thinking tokens of an API model, where its provider accepts such a
    limit."""
    max_connections: StrictInt = Field(default=10, ge=1)
    """Maximum number of API calls at the same time."""
    max_retries: StrictInt = Field(default=5, ge=0)
    """How often a call is repeated after rate limits, server errors and lost connections."""
    timeout: StrictInt = Field(default=300, ge=1)
    """Seconds until a call without an answer is made again; a provider may bill both calls."""
    cache: StrictBool = False
    """Whether API replies are kept in Inspect's cache and taken from it, also by other runs; it
    lies in INSPECT_CACHE_DIR, or among the user's caches."""
    extra_body: dict[str, Any] | None = None
    """Further fields of the request to an OpenAI-compatible server."""

    @field_validator("extra_body")
    @classmethod
    def _no_key_in_the_body(cls, body: dict[str, Any] | None) -> dict[str, Any] | None:
        if body is None:
            return None
        if redact(str(body)) != str(body):
            raise ValueError(
                "holds the value of an environment variable that is a key, and the run folder "
                "would keep it; take it out: keys are read from the environment"
            )
        if named := _NAMED_AS_KEY.search(json.dumps(body)):
            raise ValueError(
                f"{named[1]!r} is named like a key, which the run folder would keep; keys come "
                "from the environment only"
            )
        return body

    def short_of_thought(self, names: Iterable[str]) -> list[str]:
        """A note for each of the named API models if `max_tokens` is too low for a model that
        thinks."""
        if self.max_tokens is None or self.max_tokens >= ENOUGH_TO_THINK:
            return []
        return [
            f"{name}: {self.KEY}.max_tokens is {self.max_tokens}; if it thinks before it replies, "
            "that is too few, and a reply that is cut off is lost and costs: "
            f"--set {self.KEY}.max_tokens={WITH_THOUGHT}"
            for name in dict.fromkeys(names)
            if name.startswith(API)
        ]

    def generate_config(self) -> dict[str, Any]:
        """The settings of a call as fields of Inspect's `GenerateConfig`."""
        names = ("temperature", "max_tokens", "reasoning_effort", "reasoning_tokens", "max_retries")
        values = {name: getattr(self, name) for name in (*names, "extra_body")}
        top_p = self.top_p if self.top_p < 1 else None
        return values | {"top_p": top_p, "attempt_timeout": self.timeout}


class SubjectConfig(ApiSection):
    """Settings for asking the subject models of a run that are behind APIs."""

    steps_from: Literal["reply", "thinking"] = "reply"
    """Text that counts as the reasoning of an API model: the reply up to where it states its
    answer, or the thinking before the reply (for models that show all of it)."""


class SpendConfig(Section):
    """Limits on the cost of API calls; a run that reaches a limit ends cleanly and can go on later.

    The limits hold for the run folder as a whole, for all its workers and all starts of the run
    together: every call is recorded in spend.*.jsonl before it begins, with the most that it may
    cost, and as it ends. No call begins that might pass a limit, and one that a kill cut off is
    charged the most. Shards that work in one folder at the same time (`--shard`) read each other's
    calls every two seconds, so they can pass a limit by the calls that the others began meanwhile.
    Shards in separate folders know nothing of each other.

    A call whose usage the server does not report, that ended without a reply though the server may
    have written one, or that was stopped or timed out, is charged the most that was allowed (its
    prompt and `max_tokens`); `estimated_calls` in `tables/spend.csv` counts such calls. Not charged
    are calls that the server refused or never got, and not seen are those that a provider's client
    repeats by itself after a lost connection, or after its own time limit (ten minutes for most) if
    `timeout` is longer.
    """

    max_cost: StrictFloat | None = Field(default=None, ge=0)
    """Maximum cost of the run in US dollars. A call whose prompt and `max_tokens` might cost more
    than is left is not made."""
    max_calls: StrictInt | None = Field(default=None, ge=0)
    """Maximum number of calls, including those repeated for a malformed reply or after
    `timeout`."""
    prices: StrictStr | None = None
    """YAML file of prices, which `max_cost` needs; null gives no prices. `shipped:prices.yaml`
    comes with faithscope."""
