"""The section of a config that names judges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from faithscope.experiments.config.api import (
    API,
    HOW_FAST,
    ApiSection,
    no_temperature_problem,
    one_address_problem,
)
from faithscope.experiments.config.backend import WHERE, BackendSection
from faithscope.experiments.config.base import FolderConfig, OneOrMany
from faithscope.experiments.config.model import StatedMarks, checked_name
from faithscope.probes.settings import Reading

ENOUGH_TO_THINK = 2000
"""Tokens of a reply below which a model that thinks seldom gets to the form."""
_PROVIDERS = ("openai", "anthropic", "google", "groq", "together", "vllm", "openai-api")


def _judge(name: str, info: ValidationInfo) -> str:
    known = name.partition("/")[0] in _PROVIDERS
    return checked_name(name, info, True, f"; over its API: '{API}{name}'" if known else "")


JudgeName = Annotated[StrictStr, AfterValidator(_judge)]


JUDGING_FREE = (
    *FolderConfig.FREE,
    "report.",
    "spend.",
    "prompts",  # a form's text decides by itself what was asked
    "token_budget",
    *(f"judge.{key}" for key in (*HOW_FAST, *WHERE)),
)
"""Keys that decide nothing of what is stored of a run in which judges are asked
(`FolderConfig.FREE`)."""


class JudgeConfig(ApiSection, BackendSection):
    """Who judges, and how each is asked.

    `backend` is who writes the replies of models whose weights are at hand; the log-probs of a
    verdict (reading `scored`) are read here whoever writes.
    """

    model: Annotated[list[JudgeName], *OneOrMany]
    """One or several of: a model here as in `model.name`, or `api:PROVIDER/MODEL`."""
    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated", "scored"])
    """How the verdict is got: from what is written, or (models here) from its log-probs."""
    max_tokens: StrictInt = Field(default=1024, ge=16)
    """Most tokens of a reply, thinking included; a thinking model wants thousands."""
    attempts: StrictInt = Field(default=3, ge=1)
    """How often an ask is put while its replies do not parse; once where a model here is greedy."""
    structured: Literal["auto", "schema", "prompt"] = "auto"
    """Whether replies are held to the form while they are written, or it is asked for in the
    prompt; `auto` holds those of providers that can, and of models that do not think and that
    transformers writes here."""
    thinking: StrictBool | None = None
    """Ask a hybrid model here to think, or not to; null leaves it to its template."""
    batch_size: StrictInt = Field(default=8, ge=1)
    """Asks that a model here answers together."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """The number format of a model here; `auto` is float32 on a CPU, bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """The device of a model here; `auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """The revision that a hub repository is pinned to."""
    quantize: Literal["8bit", "4bit"] | None = None
    """Whether weights are held in 8 or 4 bits, through bitsandbytes."""
    device_map: StrictStr | None = None
    """`auto` spreads the layers over the devices of a node."""
    marks: StatedMarks | None = None
    """How a model here marks its reasoning, where its chat template does not show that: a name
    (`think_tags`, `seed_think`, …; docs/given.md), [OPENER, CLOSER], or `none`; null reads it off
    the template."""

    @model_validator(mode="after")
    def _a_temperature_where_one_is_needed(self) -> Self:
        if problem := no_temperature_problem(self.temperature, self.model):
            raise ValueError(f".{problem}")
        return self

    @model_validator(mode="after")
    def _a_form_that_the_backend_can_hold_to(self) -> Self:
        if self.structured == "schema" and self.backend != "here":
            raise ValueError(
                f"structured 'schema' is of models behind APIs and of backend 'here', and backend "
                f"is {self.backend!r}; take structured 'auto', or a vLLM server as the judge "
                f"{API}vllm/MODEL with base_url"
            )
        return self

    def readings_of(self, name: str) -> list[Reading]:
        """An API gives no log-probs of whole verdicts: what it writes is all there is."""
        return ["generated"] if name.startswith(API) else list(self.readings)

    def misfit(self, others: Iterable[str | None] = ()) -> str | None:
        """Why these judges, and others who are asked as they are, cannot all be asked by one
        section, if they cannot."""
        names = list(dict.fromkeys([*self.model, *filter(None, others)]))
        return one_address_problem(
            "judge.base_url", self.base_url, names
        ) or self.several_models_problem("judge", names)

    def short_of_thought(self, names: Iterable[str]) -> list[str]:
        """A note for each of those behind an API that could not think in so few tokens."""
        if self.max_tokens >= ENOUGH_TO_THINK:
            return []
        return [
            f"{name}: judge.max_tokens is {self.max_tokens}; if it thinks before it replies, that "
            "is too few, and a reply that is cut off is lost and costs: --set judge.max_tokens=8000"
            for name in dict.fromkeys(names)
            if name.startswith(API)
        ]
