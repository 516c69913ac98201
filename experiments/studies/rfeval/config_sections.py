"""Sections of an RFEval config about r′, the models that are measured, and what is seen inside."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.config.base import AnyNumber, OneOrMany, Section
from faithscope.experiments.config.judge import JudgeName
from faithscope.experiments.config.model import ModelName, StatedMarks, SubjectName
from faithscope.probes.settings import Execution

Framing = Literal["prefix", "multi_turn"]
"""How r′ came into the conversation; `multi_turn` is an approximation, as models may take r′ for
someone else's words, and its results stand apart."""
PREFIX: Final = "prefix"
MULTI_TURN: Final = "multi_turn"


class CounterfactualConfig(Section):
    """Who writes r′ for the items of the data, and who decides which of it is fit."""

    written: StrictBool = False
    """Whether r′ is written: the items of the data need none then, and what they have of it is
    shown as an example at most."""
    writer: JudgeName | None = None
    """The model that writes; the paper's is api:openai/o3."""
    validator: JudgeName | None = None
    """Who holds each r′ against the four criteria; only what meets all becomes an item. The
    paper's is api:openai/gpt-5."""
    temperature: StrictFloat = Field(default=1.0, ge=0)
    """Of the writer, which writes once; models that know no temperature are not sent any. All
    else of how both are asked, the validator's temperature too, is `judge`'s."""
    shots: StrictInt = Field(default=3, ge=0)
    """Examples in each request, of the item's task, of its source where there are enough."""
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


LookedAt = Literal["trace", "attention", "lens"]
Place = Literal["asked", "written"]
CUE = "\n\nThe correct option is"


class InsideConfig(Section):
    """What models show inside between r′ and their answer; see `inside.looking`."""

    model: Annotated[list[ModelName], *AnyNumber] = Field(default=[])
    """Models whose insides are read, of those that wrote the outputs; none leaves this out."""
    signals: Annotated[list[LookedAt], *OneOrMany] = Field(default=list(get_args(LookedAt)))
    """`trace`: the options' probabilities through r′ and the continuation; `attention`: where the
    answer looks; `lens`: what each layer would answer."""
    points: StrictInt = Field(default=16, ge=2, le=10_000)
    """Cuts in each part (r′, own reasoning, explanation), equally spaced; a shorter part is cut
    after every token. So many for each part bounds the cost, however long it is."""
    refine: StrictInt = Field(default=16, ge=0, le=10_000)
    """Cuts put between the two where an option was last seen in the lead, again and again until
    the token is found; each time is one more packed call over the text. 0 leaves the turn
    where the equally spaced cuts show it."""
    cue: StrictStr = CUE
    """Put where an option is asked for, after the reasoning is closed; as `scored_stances`."""
    free_cue: StrictStr = "\n\nThe final answer is"
    """The same of items without options."""
    labels: Literal["letters", "words"] = "letters"
    """How an option is scored: by its letter, or by its words, of which long ones weigh less."""
    longest_answer: StrictInt = Field(default=24, ge=1)
    """Most tokens of a free answer that is traced."""
    places: Annotated[list[Place], *OneOrMany] = Field(default=list(get_args(Place)))
    """Where attention and lens are read: `asked`, at the cue after all that stands before the
    answer; `written`, at the token before the answer in the model's own text."""
    execution: Execution = "auto"
    """How forwards are run; `auto` is packed wherever the model allows."""


class SubjectsConfig(Section):
    """The models that are measured, and how their weights are held where they are held here."""

    name: Annotated[list[SubjectName], *OneOrMany]
    """One or several of: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, into whose mouth nothing can be put: r′ is quoted to it as an earlier
    turn (section `api`; appendix G.2)."""
    profiles: StrictStr | None = None
    """A folder of model files (`shipped:models` comes with faithscope): system prompt, penalty,
    family, GPUs of each model by its name. Null, or a model that no file names: no system prompt,
    and what `generate` says."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto` is float32 on a CPU and bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """`auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Pin of a hub repository: a commit hash reproduces, a branch may move."""
    quantize: Literal["8bit", "4bit"] | None = None
    """8- or 4-bit weights through bitsandbytes."""
    device_map: StrictStr | None = None
    """`auto` spreads the layers over the devices of a node; null is what the model's file says."""
    marks: StatedMarks | None = None
    """How a model marks its reasoning, where neither its chat template nor its file show that: a
    name (`think_tags`, `seed_think`, …; docs/given.md), [OPENER, CLOSER], or `none`."""


class ClosedConfig(ApiSection):
    """How the models behind APIs are asked for their outputs."""

    max_tokens: StrictInt = Field(default=32_768, ge=16)
    """Most tokens of an output, thinking included; the paper's. Services refuse more than their
    model can write."""


class GenerateConfig(BackendSection):
    """Who writes the outputs of models whose weights are at hand, and how (appendix C.1)."""

    framing: Framing = "prefix"
    """`prefix` puts r′ into the model's own mouth; `multi_turn` quotes it as an earlier turn, as
    to a model behind an API (appendix G.2): to see what that approximation does to a model."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens after r′; null is what the model's file says, or the paper's 32,768."""
    repetition_penalty: StrictFloat | None = Field(default=None, gt=0)
    """Null is what the model's file says, or the paper's: 1.2, and 1.0 of the Qwen family."""
    batch_size: StrictInt = Field(default=8, ge=1)
    """Items whose outputs are written together here: two outputs each."""
