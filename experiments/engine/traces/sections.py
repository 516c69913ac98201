"""The sections of the config of a run over traces, but for those of probes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.config.base import OneOrMany, Section, expanded
from faithscope.experiments.config.errors import shown
from faithscope.experiments.config.model import StatedMarks, SubjectName
from faithscope.experiments.data.given.columns import columns_problem
from faithscope.experiments.data.given.reading import AUTO, Chains
from faithscope.experiments.data.given.rules import GoldIs, ReadingRules
from faithscope.experiments.data.question_groups import groups_read
from faithscope.experiments.data.tasks import base_name, task_problem
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.experiments.engine.traces.given import format_problem, read_given
from faithscope.interventions.segment import MIN_CHARS, Mode
from faithscope.interventions.trace import AnswerKind

T = TypeVar("T")
DirectPromptName = Literal["unformatted", "formatted", "system"]
DIRECT_PROMPTS = get_args(DirectPromptName)


class ModelConfig(Section):
    """The models to measure, and how their weights are held."""

    name: Annotated[list[SubjectName], *OneOrMany]
    """One or several models: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, which only probes that ask questions can measure (section `api`)."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number type of the weights; `auto` is float32 on a CPU and bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """Device of the model; `auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Revision of a hub repository: a commit hash is reproducible, a branch may move."""
    quantize: Literal["8bit", "4bit"] | None = None
    """8- or 4-bit weights through bitsandbytes."""
    device_map: StrictStr | None = None
    """Placement of the layers: `auto` spreads them over the devices of a node."""
    thinking: StrictBool | None = None
    """Whether a hybrid model thinks; null leaves it to the model's template."""
    marks: StatedMarks | None = None
    """Marks of the model's reasoning, if its chat template does not show them: a name
    (`think_tags`, `seed_think`, …; see `faithscope docs given`), [OPENER, CLOSER], or `none`; null
    reads them off the template."""


def _per_task(check: Callable[[Any], str | None]) -> PlainValidator:
    """Validator of one value for every task, or a mapping from task (or `default`) to value."""

    def validate(value: Any) -> Any:
        if value is None:
            return None
        entries = value if isinstance(value, dict) else {"": value}
        problems = [
            f".{task}: {problem}" if task else problem
            for task, v in entries.items()
            if (problem := (None if task in ("", "default") else task_problem(str(task))))
            or (problem := check(v))
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return value

    return PlainValidator(validate)


MOST_ITEMS = 1_000_000
"""Most items of a task in one run."""


def _limit_problem(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        # a task that draws its questions has as many as the limit says
        return f"must be at most {MOST_ITEMS:,}" if value > MOST_ITEMS else None
    return f"must be a whole number, at least 1, got {shown(value)}"


def _path_problem(value: Any) -> str | None:
    return None if isinstance(value, str) and value else f"must be a path, got {shown(value)}"


def _column_problem(value: Any) -> str | None:
    is_name = isinstance(value, str) and value.strip()
    return None if is_name else f"must be the name of a column, got {shown(value)}"


def _of_task(value: T | Mapping[str, T | None] | None, task: str) -> T | None:
    """A task's own entry in `value`, else that of its base task, else the default."""
    if not isinstance(value, Mapping):
        return value
    for name in (task, base_name(task), "default"):
        if name in value:
            return value[name]
    return None


def known(check: Callable[[Any], str | None]) -> AfterValidator:
    """Validator of a value, for which `check` returns a problem or None."""

    def validate(value: Any) -> Any:
        if problem := check(value):
            raise ValueError(problem)
        return value

    return AfterValidator(validate)


TaskName = Annotated[StrictStr, known(task_problem)]


class GivenConfig(Section):
    """Given chains (written elsewhere), in place of chains that models write here."""

    path: StrictStr | None = None
    """A file or folder of given chains, or another run's folder; null lets models write chains."""
    format: Annotated[StrictStr, known(format_problem)] = AUTO
    """The file layout (`faithscope docs given`); `auto` detects it by the columns."""
    columns: Annotated[dict[str, str | list[str] | dict[str, str]], known(columns_problem)] = Field(
        default={}
    )
    """What the file's columns hold, if they have other names: `{question: problem, reasoning:
    output.cot}`. A dotted path reads into objects and lists; `labels` and `options` may name
    several. A mapping `NAME.columns.yaml` beside the file is used, too."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """Number of chains, drawn with the seed from the whole file; a greater one draws these and
    more."""
    task: TaskName | None = None
    """The task whose words are used to ask about chains; null is the task named like a chain's data
    set, else `own`, which has words for every kind of answer."""
    kind: AnswerKind | None = None
    """Kind of the answers (`choice`, `label`, `number`), if neither file nor task tells; null
    leaves out the probes that read answers."""
    options: list[StrictStr] = Field(default=[])
    """The options of every question, if the file has none: `["YES", "NO"]`, in quotes, since
    YAML reads bare ones as true and false. They are answered by their words (`label`)."""
    writers: dict[str, str] = Field(default={})
    """A writer's name in the file -> its model here (a folder of its weights, a hub id); other
    writers keep their names."""
    read_by: Literal["all", "writer"] = "all"
    """Models that read a chain. `all`: every model reads every chain. `writer`: each model reads
    the chains that it wrote; `exclusions.csv` counts chains of other writers."""
    marks: StatedMarks | None = None
    """Marks around the reasoning in the replies of the file: a name (`think_tags`, `seed_think`, …;
    see `faithscope docs given`), [OPENER, CLOSER], or `none` where marks are text; null knows all
    of the table, and refuses replies with others."""
    edits: StrictStr | None = None
    """A file of edits of the chains' steps that were made elsewhere: rows of `id`, `step`, `kind`
    (`mistake`, `paraphrase`, `rollout`) and `text`. Probes that make such edits take these."""
    gold_is: GoldIs | None = None
    """How the right answer names an option: by its index from 0 (`index0`) or from 1 (`index1`),
    by its letter (`letter`), or by its text (`text`); null reads a letter or a text, and refuses
    whole numbers that are neither."""
    group: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Column of the file that names the group of each chain, the unit of intervals and tests:
    chains of one template, passage or topic. null groups chains of the same question, and of
    questions that are nearly the same (`faithscope docs data`)."""

    def read(self, seed: int) -> Chains:
        """Read the chains, detecting the layout if it is `auto`; with the groups of the column
        `group`, if there is one.

        Args:
            seed: seed of the draw of `limit` chains.

        Raises:
            UserError: a file cannot be read, or a row does not fit.
        """
        path = Path(str(self.path)).expanduser()
        with files_read(self.group) as files:
            rules = ReadingRules(self.marks, tuple(self.options), self.gold_is)
            named = self.writers, seed, self.columns
            edits = expanded(self.edits)
            chains = read_given(path, self.format, self.limit, *named, rules, edits)
        if self.group is not None:
            places = [chain.where for chain in chains.chains]
            groups = groups_read(files, places, self.group, "traces.group")
            grouped = (replace(c, group=groups[c.where]) for c in chains.chains)
            chains = replace(chains, chains=tuple(grouped))
        if self.format == AUTO:
            print(f"note: traces.path: {chains.file} is read as {chains.format}", file=sys.stderr)
        if chains.columns_from:
            print(f"note: traces.columns: as in {chains.columns_from}", file=sys.stderr)
        return chains


class DataConfig(Section):
    """The data that questions are loaded from, and their number."""

    path: Annotated[str | dict[str, str] | None, _per_task(_path_problem)] = None
    """A local file or folder for tasks that read one; or a mapping from task to path. A variant of
    a task (`sst2:alternative`) uses its task's entry if it has none of its own."""
    limit: Annotated[int | dict[str, int | None] | None, _per_task(_limit_problem)] = None
    """Number of items of each task, the first ones; or a mapping from task to number, with
    `default`; null is all. Shipped configs say `own: null`: all your own questions are read."""
    split: StrictStr | None = None
    """The dataset split, for tasks that have several; null is the task's default."""
    group: Annotated[str | dict[str, str] | None, _per_task(_column_problem)] = None
    """Column of the data that names the group of each question, the unit of intervals and tests:
    questions of one template, passage or topic; or a mapping from task to column. null groups
    questions that are nearly the same (`faithscope docs data`)."""

    def limit_of(self, task: str) -> int | None:
        return _of_task(self.limit, task)

    def path_of(self, task: str) -> Path | None:
        return expanded(_of_task(self.path, task))

    def group_of(self, task: str) -> str | None:
        return _of_task(self.group, task)


SHORT = 256
"""Limit of tokens below which much reasoning is cut off before its answer."""


class GenerationConfig(BackendSection):
    """The backend that writes the traces, and its settings; with vLLM, `model.quantize` and
    `device_map` have no effect."""

    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of reasoning and answer. Null is 320, or 8,192 for a model that marks its
    reasoning, which may think in thousands. Below 256 a note says that much reasoning may be cut
    off before its answer."""
    temperature: StrictFloat = Field(default=0.0, ge=0)
    """Sampling temperature; 0 is greedy."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """Probability mass of nucleus sampling, if temperature > 0."""
    samples: StrictInt = Field(default=1, ge=1)
    """Number of traces of each question and model. Samples of one question are one unit of every
    interval and test, and the frame and table `question_rates` has their rates; several need a
    temperature above 0."""
    backend: Literal["auto", "here", "vllm", "vllm-server"] = "auto"
    """Software that generates: `here` is transformers in this process, `vllm` is vLLM in this
    process (where installed), `vllm-server` is the servers at `endpoints`, over the completions
    API. `auto` is `vllm` on a CUDA device on which an installed vLLM has room, else `here`; a dry
    run says which and why, and a run that is resumed keeps the one that it was begun with."""
    probes: StrictBool | None = None
    """Whether the backend also writes the texts that probes need: answers after forced prefixes,
    and regenerated chains. Null is yes where backend `auto` finds room for vLLM beside the weights
    that are measured, else no. Texts under knockouts and patches, and those that they are compared
    with, are always written here."""

    @model_validator(mode="after")
    def _probes_of_another_backend(self) -> Self:
        if self.probes and self.backend == "here":
            raise ValueError(
                "probes: backend 'here' writes their texts anyway; take backend 'vllm-server' or "
                "'vllm', or leave this out"
            )
        return self

    @model_validator(mode="after")
    def _samples_differ(self) -> Self:
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples: {self.samples} samples at temperature 0 are one text; set "
                "generation.temperature (0.7, say), or leave samples out"
            )
        return self

    def decides(self) -> dict[str, Any]:
        own = {"max_new_tokens", "temperature", "top_p"}
        return self.model_dump(include=own) | super().decides()

    def decides_of_probes(self) -> dict[str, Any]:
        """The backend, where it decides which tokens are written for probes."""
        if not self.probes or self.backend == "here":
            return {}
        return {"written_by": self.backend, "under_edits": "whole calls here"}


class CutConfig(Section):
    """Settings of the segmentation of text into steps (SLRC, 4.1)."""

    segmentation: Mode = "auto"
    """Unit of steps: sentences, numbered items, paragraphs, or thoughts, which are paragraphs cut
    where the text turns ("Wait, …") and joined to their formulas; `auto` chooses by the text."""
    min_chars: StrictInt = Field(default=MIN_CHARS, ge=0)
    """Least length of a step in characters, below which a stretch is no step; a Han character is
    three."""


class StepsConfig(CutConfig):
    """Settings of the segmentation of reasoning into steps (SLRC, 4.1)."""

    groups: StrictInt | None = Field(default=None, ge=2)
    """Most steps of a chain: where there are more, neighbouring steps are joined, and each of these
    groups is a step. null joins none; the steps of a chain that was given with steps stay."""
    conclusion: Literal["strip", "keep"] = "strip"
    """Whether the statement of the answer that ends the text is a step (`keep`)."""


class SampledStepsConfig(StepsConfig):
    """Settings of the steps of reasoning, and of how many of them are edited."""

    sample: StrictInt | None = Field(default=None, ge=2)
    """Most steps of a chain that are edited one by one, drawn at random by the run's seed; null
    edits all. Probes that read every step in one forward, or that need neighbouring steps, measure
    all steps, and `faithscope run --dry-run` names them. Means over steps count each edited step by
    the inverse of the probability with which it is drawn."""
    screen: StrictInt | None = Field(default=None, ge=1)
    """Number of the steps in `steps.sample` that are not drawn at random, but are those with the
    largest effect by a cheap estimate of their removal (`faithscope docs long_chains`); null draws
    all at random. Up to some 10 steps the estimates take as long as removing every step. Needs a
    model whose weights are here, with rotary positions."""

    @model_validator(mode="after")
    def _a_screen_leaves_a_random_rest(self) -> Self:
        if self.screen is not None and (self.sample is None or self.screen >= self.sample):
            raise ValueError(
                f"screen: {self.screen} steps by their estimated effect need a larger sample, "
                "whose other steps are drawn at random and stand for the rest; got sample "
                f"{self.sample}"
            )
        return self
