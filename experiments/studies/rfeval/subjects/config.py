"""What a run of RFEval is told of the models it measures, and of who writes their outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from faithscope.experiments.config.api import ApiSection
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.config.base import OneOrMany, Section
from faithscope.experiments.config.model import SubjectName
from faithscope.experiments.studies.rfeval.subjects.injection import Framing


class SubjectsConfig(Section):
    """The models that are measured, and how their weights are held where they are held here."""

    name: Annotated[list[SubjectName], *OneOrMany]
    """One or several of: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, into whose mouth nothing can be put: r′ is quoted to it as an earlier
    turn (section `api`; appendix G.2)."""
    profiles: StrictStr | None = None
    """A folder of model files like configs/models: system prompt, penalty, family, GPUs of each
    model by its name. Null, or a model that no file names: no system prompt, and what `generate`
    says."""
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
