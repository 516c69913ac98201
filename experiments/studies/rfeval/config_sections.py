"""Sections of an RFEval config on r′, on the models that are measured, and on their internals."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.config.base import AnyNumber, OneOrMany, Section
from faithscope.experiments.config.judge import JudgeName
from faithscope.experiments.config.model import ModelName, StatedMarks, SubjectName
from faithscope.probes.settings import Execution

Framing = Literal["prefix", "multi_turn"]
"""Framing of r′ in the conversation: `prefix` prefills it as the model's own reasoning;
`multi_turn` quotes it as an earlier turn. The latter is an approximation, as models may take r′ for
someone else's words, and its results stand apart."""
PREFIX: Final = "prefix"
MULTI_TURN: Final = "multi_turn"


class CounterfactualConfig(Section):
    """Models that write r′ for the items of the data and check whether it is fit."""

    written: StrictBool = False
    """Whether a model writes r′. Items of the data then need none; an r′ that they have serves as
    an example at most."""
    writer: JudgeName | None = None
    """Model that writes r′; the paper's is api:openai/o3."""
    validator: JudgeName | None = None
    """Model that checks each r′ against the four criteria; only an r′ that meets all of them
    becomes an item. The paper's is api:openai/gpt-5."""
    temperature: StrictFloat = Field(default=1.0, ge=0)
    """Temperature of the writer, which is called once per item; a model without a temperature
    setting is sent none. All other settings of writer and validator, the validator's temperature
    included, are those of `judge`."""
    shots: StrictInt = Field(default=3, ge=0)
    """Number of examples in each request, of the item's source first, then of its task."""
    examples: StrictStr | None = None
    """A file or folder of items with r′ that examples are taken from; null takes other items of
    the data, which then have to have one."""

    @model_validator(mode="after")
    def _both_where_it_is_written(self) -> CounterfactualConfig:
        for name in ("writer", "validator"):
            if self.written and getattr(self, name) is None:
                raise ValueError(
                    f"written: true needs a {name}; name a model, as {name}: api:openai/o3"
                )
        return self


CUE = "\n\nThe correct option is"


class InsideConfig(Section):
    """Reading of models' internals under r′; see `probes.prefilled_reasoning`."""

    model: Annotated[list[ModelName], *AnyNumber] = Field(default=[])
    """Models whose internals are read, out of those in model.name; an empty list skips this."""
    points: StrictInt = Field(default=16, ge=2, le=10_000)
    """Number of cuts in each part (r′, own reasoning, explanation), equally spaced; a shorter part
    is cut after every token. So a longer part has no more cuts."""
    cue: StrictStr = CUE
    """Text put where an option is asked for, after the reasoning is closed; the default is that of
    `scored_stances`."""
    free_cue: StrictStr = "\n\nThe final answer is"
    """Text put where the answer to an item without options is asked for."""
    labels: Literal["letters", "words"] = "letters"
    """Label by which an option is scored: its letter, or its words (longer words then get lower
    log-probs)."""
    longest_answer: StrictInt = Field(default=24, ge=1)
    """Most tokens of a free answer that is traced."""
    execution: Execution = "auto"
    """Execution of forward passes; `auto` is packed wherever the model allows."""


class SubjectsConfig(Section):
    """Models that are measured, and how the weights of local ones are loaded."""

    name: Annotated[list[SubjectName], *OneOrMany]
    """One or several of: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, which accepts no prefilled reasoning: r′ is quoted to it as an earlier
    turn (section `api`; appendix G.2)."""
    profiles: StrictStr | None = None
    """Folder of model files (`shipped:models` comes with faithscope): system prompt, penalty,
    family, GPUs of each model by its name. With null, or for a model that no file names, there is
    no system prompt and `generate` decides the rest."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto` is float32 on a CPU and bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """`auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Pin of a hub repository: a commit hash reproduces, a branch may move."""
    quantize: Literal["8bit", "4bit"] | None = None
    """8- or 4-bit weights through bitsandbytes."""
    device_map: StrictStr | None = None
    """Placement of layers: `auto` spreads them over the devices of a node; null takes what the
    model's file says."""
    marks: StatedMarks | None = None
    """Marks of a model's reasoning, if neither its chat template nor its file shows them: a name
    (`think_tags`, `seed_think`, …; see `faithscope docs given`), [OPENER, CLOSER], or `none`."""
    template: StrictStr | None = None
    """Chat template (Jinja, as text) under which every model of the run is asked, or `own` for that
    of each tokenizer; null takes what the model's file says, and the tokenizer's own otherwise."""


class ClosedConfig(ApiSection):
    """Settings for the outputs of models behind APIs."""

    max_tokens: StrictInt = Field(default=32_768, ge=16)
    """Most tokens of an output, thinking included; the default is the paper's. Services refuse more
    than their model can write."""


class GenerateConfig(BackendSection):
    """Generation settings for models whose weights are local (appendix C.1)."""

    framing: Framing = "prefix"
    """Framing of r′: `prefix` prefills it as the model's own reasoning; `multi_turn` quotes it as
    an earlier turn, as for a model behind an API (appendix G.2), to see what that approximation
    does to a model."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens generated after r′; null takes what the model's file says, or the paper's
    32,768."""
    repetition_penalty: StrictFloat | None = Field(default=None, gt=0)
    """Repetition penalty; null takes what the model's file says, or the paper's: 1.2, and 1.0 for
    the Qwen family."""
    batch_size: StrictInt = Field(default=8, ge=1)
    """Number of items whose outputs (two each) are generated together on this machine."""
