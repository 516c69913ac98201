"""Config section for judges: which models judge, and their settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

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
    WITH_THOUGHT,
    ApiSection,
    no_temperature_problem,
    one_address_problem,
)
from faithscope.experiments.config.backend import WHERE, BackendSection
from faithscope.experiments.config.base import FolderConfig, OneOrMany
from faithscope.experiments.config.model import StatedMarks, checked_name
from faithscope.experiments.config.yaml_source import Key
from faithscope.probes.settings import Reading

_PROVIDERS = ("openai", "anthropic", "google", "groq", "together", "vllm", "openai-api")


def _judge(name: str, info: ValidationInfo) -> str:
    known = name.partition("/")[0] in _PROVIDERS
    return checked_name(name, info, True, f"; over its API: '{API}{name}'" if known else "")


JudgeName = Annotated[StrictStr, AfterValidator(_judge)]
"""Name of a judge: a model here, or one behind an API."""
JUDGING_FREE = (
    *FolderConfig.FREE,
    "report.",
    "spend.",
    "prompts",  # a form's text decides by itself what was asked
    "token_budget",
    *(f"judge.{key}" for key in (*HOW_FAST, *WHERE)),
)
"""`FolderConfig.FREE` of runs that ask judges: config keys that do not change what is stored."""


def room_to_think(
    values: dict[str, Any], asked: Collection[Key], shipped: bool, key: str = "judge"
) -> dict[str, Any]:
    """The values of a config, where a user's judge behind an API has room to think.

    The `max_tokens` of a shipped config suits its own judge, a small model here. A model that does
    not think ends its reply by itself.

    Args:
        asked: keys that the user has set with `--set`.
        shipped: whether the config comes with faithscope.
        key: the section of the judges.
    """
    judge = values.get(key)
    theirs = (key, "max_tokens") in asked or (key,) in asked
    if not shipped or theirs or (key, "model") not in asked or not isinstance(judge, dict):
        return values
    named = judge["model"] if isinstance(judge["model"], list) else [judge["model"]]
    if not any(str(name).startswith(API) for name in named):
        return values
    return values | {key: judge | {"max_tokens": WITH_THOUGHT}}


class JudgeConfig(ApiSection, BackendSection):
    """The judges of a run, and the settings by which all of them are asked.

    `backend` generates the replies of judges whose weights are at hand. The log-probs of a verdict
    (reading `scored`) are always computed in this process, whatever the backend.
    """

    KEY: ClassVar[str] = "judge"

    model: Annotated[list[JudgeName], *OneOrMany]
    """One or several judges: a model here as in `model.name`, or `api:PROVIDER/MODEL`."""
    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated", "scored"])
    """Sources of the verdict: `generated` parses the written reply, `scored` (models here only)
    compares the log-probs of the verdicts."""
    max_tokens: StrictInt = Field(default=1024, ge=16)
    """Maximum number of tokens of a reply, thinking included; a thinking model needs thousands."""
    attempts: StrictInt = Field(default=3, ge=1)
    """Maximum number of times that a prompt is sent while its replies do not parse; a greedy model
    here is asked once."""
    structured: Literal["auto", "schema", "prompt"] = "auto"
    """Means of getting replies of the right form: `schema` constrains decoding, `prompt` only asks
    for the form. `auto` constrains providers that can do so, and models here that do not think and
    that transformers runs."""
    thinking: StrictBool | None = None
    """Whether a hybrid model here is asked to think; null leaves it to the chat template."""
    batch_size: StrictInt = Field(default=8, ge=1)
    """Number of prompts that a model here answers together."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format of a model here; `auto` is float32 on a CPU, bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """Device of a model here; `auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Revision to which a hub repository is pinned."""
    quantize: Literal["8bit", "4bit"] | None = None
    """Quantisation of the weights to 8 or 4 bits, through bitsandbytes; null does not quantise."""
    device_map: StrictStr | None = None
    """Placement of the layers; `auto` spreads them over the devices of a node."""
    marks: StatedMarks | None = None
    """Marks around the reasoning of a model here, where its chat template does not show them: a
    name (`think_tags`, `seed_think`, …; see `faithscope docs given`), [OPENER, CLOSER], or `none`;
    null reads them off the template."""

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
        """The readings of one judge: only `generated` for an API, which gives no log-probs of whole
        verdicts."""
        return ["generated"] if name.startswith(API) else list(self.readings)

    def misfit(self, others: Iterable[str | None] = ()) -> str | None:
        """Why one section cannot serve all judges of a run; None if it can.

        Args:
            others: further models that are asked with these settings; None entries are ignored.
        """
        names = list(dict.fromkeys([*self.model, *filter(None, others)]))
        return one_address_problem(
            f"{self.KEY}.base_url", self.base_url, names
        ) or self.several_models_problem(self.KEY, names)
