"""Loading, prompting and sampling of each model (RFEval, appendices C.1 and C.2), from files.

A file per model; the paper's twelve and the further ones of its Table 3 are in `configs/models`. A
model without a file runs too, by the rules that the fields state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import pandas as pd
from pydantic import (
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import ConfigError, Section
from faithscope.experiments.config.errors import explain
from faithscope.experiments.config.model import StatedMarks
from faithscope.experiments.config.shipped import located
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.interp.errors import UserError
from faithscope.interp.formats import detect_format, stated_format, template_of, with_template

if TYPE_CHECKING:
    from faithscope.interp.language import Language
    from faithscope.interp.model import Model

Spoken = TypeVar("Spoken", "Model", "Language")

PENALTY, QWEN_PENALTY = 1.2, 1.0
"""Repetition penalties (C.1): of all models, and of the Qwen family, to which the former does
harm."""

OWN = "own"
"""Value of `template` that takes the tokenizer's own."""
CLOSED_SYSTEM = (
    "The assistant first thinks about the reasoning process in the mind and then provides the user "
    "with the answer with brief explanation. The final answer is enclosed within <answer> "
    "</answer> tags, i.e., <answer> final answer here </answer>."
)
CLOSED_SOURCE = (
    "RFEval's released code (AIDASLab/RFEval, inference.py at 9aecc76), which sends it to OpenAI's "
    "and Anthropic's models in both conditions"
)
"""System prompt of models behind APIs that have no file, and its origin."""

Regime = Literal["Base", "SFT-only", "RL-only", "SFT+RL"]
REGIMES: tuple[Regime, ...] = ("Base", "SFT-only", "RL-only", "SFT+RL")
"""Regimes of post-training, the rows of Table 3."""


class ModelFile(Section):
    """Settings of one model, from its file."""

    name: StrictStr = Field(min_length=1)
    """Name of the model as a run gives it: a hub id, a folder, `bundled:NAME`."""
    label: StrictStr | None = None
    """Name of the model in the paper's tables."""
    family: StrictStr | None = None
    """Name of the family whose prompt format it has."""
    base: StrictStr | None = None
    """Model that it was post-trained from; models of one base stand side by side in Table 3."""
    regime: Regime | None = None
    """Kind of its post-training; null where its makers do not say."""

    system: StrictStr | None = None
    """The system prompt. "" sends an empty one; null sends none, and a template with a default of
    its own then writes that."""
    system_source: StrictStr | None = None
    """Origin of the system prompt, or why there is none."""
    card_system: StrictStr | None = None
    """System prompt that the model's makers recommend, if `system` is another."""
    card_source: StrictStr | None = None
    """Origin of the prompt in `card_system`."""
    marks: StatedMarks | None = None
    """Marks of its reasoning, if its chat template does not show them or shows others; null reads
    them off the template."""
    effort: Literal["low", "medium", "high"] | None = None
    """Reasoning effort, for a model whose template has one."""
    template: StrictStr | None = None
    """Chat template (Jinja, as text) under which the model is asked instead of its tokenizer's;
    null and `own` take the tokenizer's."""

    repetition_penalty: StrictFloat = Field(
        default_factory=lambda known: penalty_of(known.get("name", "")), gt=0
    )
    """Repetition penalty; 1 is none. The default is 1.2, and 1.0 if the name holds "qwen"."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of an output; null takes the run's number."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number type of the weights: `auto` is float32 on a CPU, else bfloat16; with vLLM, what the
    weights are stored in."""
    revision: StrictStr | None = None
    """Pin of a hub repository; null takes its newest version."""
    quantize: Literal["8bit", "4bit"] | None = None
    """Quantization of the weights, with transformers only."""
    device_map: StrictStr | None = None
    """Placement of layers, with transformers only: `auto` spreads them over the devices of a
    node."""
    trust_remote_code: StrictBool = False
    """Whether code from the model's repository is run, where its architecture is in no release."""
    tensor_parallel_size: StrictInt = Field(default=1, ge=1)
    """Devices that share each layer, with vLLM."""
    max_model_len: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a prompt and its output, with vLLM; null is the model's own limit."""
    vllm: dict[StrictStr, StrictStr | StrictBool | StrictInt | StrictFloat] = Field(
        default_factory=dict
    )
    """Further arguments of `vllm.LLM`, by name."""

    @model_validator(mode="after")
    def _prompts_have_sources(self) -> ModelFile:
        for prompt in ("system", "card"):
            key = "system" if prompt == "system" else "card_system"
            if getattr(self, key) is not None and not getattr(self, f"{prompt}_source"):
                raise ValueError(f"{key} is given without {prompt}_source; say where it is from")
        return self

    def marked(self, model: Spoken) -> Spoken:
        """The model with the chat template and the marks of its reasoning that this file states,
        if it states any.

        A base model without a chat template goes on from plain text, whatever marks the file
        states.

        Raises:
            UserError: marks are stated, and another one's tokenizer has no template.
        """
        if self.template and self.template != OWN:
            tokenizer = with_template(model.tokenizer, self.template)
            model = replace(model, tokenizer=tokenizer, format=detect_format(tokenizer))
        if self.marks is None:
            return model
        if self.regime == "Base" and template_of(model.tokenizer) is None:
            return model
        return replace(model, format=stated_format(model.tokenizer, self.marks, model.name))


def penalty_of(name: str, model_type: str = "") -> float:
    """The paper's repetition penalty: 1.0 for the Qwen family, 1.2 for all others (C.1).

    The authors' code (AIDASLab/RFEval, inference.py) asks whether the name holds "qwen", so the
    distilled R1-Qwen models are of the family. We also ask the type in the model's config, which
    knows a folder whatever its name.
    """
    qwen = "qwen" in name.lower() or model_type.lower().startswith("qwen")
    return QWEN_PENALTY if qwen else PENALTY


def model_files(folder: Path | str) -> dict[str, ModelFile]:
    """The model files in a folder, by model name, in the order of the files' names.

    Raises:
        UserError: there is no such folder, or no file in it; a file is no YAML or not of the
            form, one line per problem; two files are of one model.
    """
    folder = located(str(folder))
    if not folder.is_dir():
        what = "is a file" if folder.is_file() else "no such folder"
        raise UserError(
            f"{folder}: {what}; give a folder of model files, or null (profiles: null) to take "
            "every model by the paper's rules"
        )
    paths = sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".yml"))
    if not paths:
        raise UserError(
            f"{folder}: holds no model file; put MODEL.yaml there, with its name: in it"
        )
    files: dict[str, ModelFile] = {}
    came_from: dict[str, Path] = {}
    problems: list[str] = []
    for path in paths:
        try:
            file = model_file(path)
        except UserError as error:
            problems += str(error).split("\n")
            continue
        if other := came_from.get(file.name):
            problems.append(
                f"{path}: name: {file.name!r} is also the model of {other}; keep one of the two"
            )
        came_from.setdefault(file.name, path)
        files.setdefault(file.name, file)
    if problems:
        raise ConfigError(problems)
    return files


def model_file(path: Path) -> ModelFile:
    """Reads one model file; see `model_files`."""
    tree = read_tree(path, [], "a model file needs at least name")
    if "name" not in tree.values:
        raise ConfigError([f"{path}: name: missing; add the model's, as in `name: Qwen/Qwen3-8B`"])
    try:
        return ModelFile.model_validate(tree.values)
    except ValidationError as error:
        raise ConfigError(explain(tree, error, ModelFile)) from None


def profile_of(name: str, files: Mapping[str, ModelFile], model_type: str = "") -> ModelFile:
    """The file of a model. Without one, the defaults of `ModelFile`; a model behind an API then has
    the system prompt that the paper's API models were asked with (G.2, `CLOSED_SYSTEM`).

    Args:
        model_type: of the config of a folder of weights; names of the hub tell by themselves.
    """
    if name in files:
        return files[name]
    if name.startswith(API):
        return ModelFile(name=name, system=CLOSED_SYSTEM, system_source=CLOSED_SOURCE)
    return ModelFile(name=name, repetition_penalty=penalty_of(name, model_type))


LEFT_OUT = ("model", "base", "regime", "reason")
"""Columns of the models that Table 3 has no cell for; base and regime are "" where not known."""
REASONS = {
    "regime_unknown": "how it was post-trained is not known",
    "base_unknown": "what it was post-trained from is not known",
    "alone": "no model of its base under another regime is in this run",
}


def regimes(files: Mapping[str, ModelFile], models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Base and regime of the models that Table 3 can compare, in its order.

    Those are models of one base under different regimes; a model alone of its base compares
    nothing.
    """
    known = [
        (file.base, file.regime, name)
        for name in models
        if (file := files.get(name)) and file.base and file.regime
    ]
    bases = list(dict.fromkeys(base for base, _, _ in known))
    several = {b for b in bases if len({r for base, r, _ in known if base == b}) > 1}
    known.sort(key=lambda one: (bases.index(one[0]), REGIMES.index(one[1])))
    return {name: (base, regime) for base, regime, name in known if base in several}


def left_out(files: Mapping[str, ModelFile], models: Iterable[str]) -> pd.DataFrame:
    """The models that Table 3 does not have, and why (`REASONS`): no model is dropped in
    silence."""
    names = list(models)
    compared = regimes(files, names)
    rows = []
    for name in names:
        if name in compared:
            continue
        file = files.get(name, ModelFile(name=name))
        reason = "alone"
        if not file.regime or not file.base:
            reason = "base_unknown" if file.regime else "regime_unknown"
        rows.append((name, file.base or "", file.regime or "", reason))
    return pd.DataFrame(rows, columns=list(LEFT_OUT))


NO_MODEL = pd.DataFrame(columns=list(LEFT_OUT))
"""Empty result of `left_out`, for runs in which every model is compared."""
