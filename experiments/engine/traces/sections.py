"""The sections of a config of a run over traces that no probe brings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.config.base import OneOrMany, Section, expanded
from faithscope.experiments.config.errors import shown
from faithscope.experiments.config.model import StatedMarks, SubjectName
from faithscope.experiments.data.given.reading import AUTO, Chains
from faithscope.experiments.data.tasks import base_name, task_problem
from faithscope.experiments.engine.traces.given import format_problem, read_given
from faithscope.interventions.segment import MIN_CHARS, Mode
from faithscope.interventions.trace import AnswerKind

T = TypeVar("T")
DirectPromptName = Literal["unformatted", "formatted", "system"]
DIRECT_PROMPTS = get_args(DirectPromptName)


class ModelConfig(Section):
    """The models to measure, and how their weights are held."""

    name: Annotated[list[SubjectName], *OneOrMany]
    """One or several of: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, which is asked what can be asked from outside (section `api`)."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto` is float32 on a CPU and bfloat16 on an accelerator."""
    device: StrictStr = "auto"
    """`auto` takes cuda, then mps, then cpu."""
    revision: StrictStr | None = None
    """Pin of a hub repository: a commit hash reproduces, a branch may move."""
    quantize: Literal["8bit", "4bit"] | None = None
    """8- or 4-bit weights through bitsandbytes."""
    device_map: StrictStr | None = None
    """`auto` spreads the layers over the devices of a node."""
    thinking: StrictBool | None = None
    """Ask a hybrid model to think, or not to; null leaves it to the model's template."""
    marks: StatedMarks | None = None
    """How a model marks its reasoning, where its chat template does not show that: a name
    (`think_tags`, `seed_think`, …; docs/given.md), [OPENER, CLOSER], or `none`; null reads it off
    the template."""


def _per_task(check: Callable[[Any], str | None]) -> PlainValidator:
    """One value for every task, or a mapping from task (or `default`) to value."""

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
"""Of a task in one run."""


def _limit_problem(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        # a task that draws its questions has as many as it is asked for
        return f"must be at most {MOST_ITEMS:,}" if value > MOST_ITEMS else None
    return f"must be a whole number, at least 1, got {shown(value)}"


def _path_problem(value: Any) -> str | None:
    return None if isinstance(value, str) and value else f"must be a path, got {shown(value)}"


def _of_task(value: T | Mapping[str, T | None] | None, task: str) -> T | None:
    """A task's own entry, else that of the task it is a variant of, else the default."""
    if not isinstance(value, Mapping):
        return value
    for name in (task, base_name(task), "default"):
        if name in value:
            return value[name]
    return None


def known(check: Callable[[str], str | None]) -> AfterValidator:
    """A name, unless `check` says why it is none."""

    def validate(name: str) -> str:
        if problem := check(name):
            raise ValueError(problem)
        return name

    return AfterValidator(validate)


TaskName = Annotated[StrictStr, known(task_problem)]


class GivenConfig(Section):
    """Chains that were written elsewhere, in place of those that models would write here."""

    path: StrictStr | None = None
    """A file or folder of them, or the folder of another run; null has models write."""
    format: Annotated[StrictStr, known(format_problem)] = AUTO
    """The layout (docs/given.md); `auto` tells it by the columns."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """N chains, drawn with the seed from the whole file; a greater N draws these and more."""
    task: TaskName | None = None
    """The task whose words are used about them; null is the task that a chain's data set is the
    name of, else `own`, which has words for every kind of answer."""
    kind: AnswerKind | None = None
    """How they are answered (`choice`, `label`, `number`), where neither file nor task tell; null
    leaves out the probes that read answers."""
    writers: dict[str, str] = Field(default={})
    """A writer's name in the file -> the model here that it is (a folder of its weights, a hub id);
    other writers are called as in the file."""
    read_by: Literal["all", "writer"] = "all"
    """`all`: every model reads every chain. `writer`: each reads those that it wrote; chains of
    other writers are read by none, and are counted in `exclusions.csv`."""

    def read(self, seed: int) -> Chains:
        """The chains, whose layout is told where it was not named.

        Args:
            seed: of the draw of `limit` chains.

        Raises:
            UserError: a file that cannot be read, or a row that does not fit.
        """
        path = Path(str(self.path)).expanduser()
        chains = read_given(path, self.format, self.limit, self.writers, seed)
        if self.format == AUTO:
            print(f"note: traces.path: {chains.file} is read as {chains.format}", file=sys.stderr)
        return chains


class DataConfig(Section):
    """Which questions."""

    path: Annotated[str | dict[str, str] | None, _per_task(_path_problem)] = None
    """A local file or folder for tasks that read one; or a mapping from task to path. A variant
    of a task (`sst2:alternative`) goes by its task's entry where it has none of its own."""
    limit: Annotated[int | dict[str, int | None] | None, _per_task(_limit_problem)] = None
    """The first N items of each task; or a mapping from task to N, with `default`; null is all. The
    limits of shipped configs do not hold for `own`: your questions are read whole unless you say
    otherwise."""
    split: StrictStr | None = None
    """Which split, for tasks that have several; null is the task's own default."""

    def limit_of(self, task: str) -> int | None:
        return _of_task(self.limit, task)

    def path_of(self, task: str) -> Path | None:
        return expanded(_of_task(self.path, task))


SHORT = 256
"""Fewer tokens cut much reasoning off before its answer."""


class GenerationConfig(BackendSection):
    """Who writes the traces, and how; with vLLM, `model.quantize` and `device_map` do not hold."""

    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of reasoning and answer. Null is 320, or 8,192 of a model that marks its
    reasoning: it thinks in thousands. Where it is below 256 a note says that much reasoning may be
    cut off before its answer."""
    temperature: StrictFloat = Field(default=0.0, ge=0)
    """0 is greedy."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling, where temperature > 0."""

    def decides(self) -> dict[str, Any]:
        own = {"max_new_tokens", "temperature", "top_p"}
        return self.model_dump(include=own) | super().decides()


class CutConfig(Section):
    """How text is cut into steps (SLRC, 4.1)."""

    segmentation: Mode = "auto"
    """By sentences, numbered items or paragraphs; `auto` sees which of them it is."""
    min_chars: StrictInt = Field(default=MIN_CHARS, ge=0)
    """Shorter stretches are not steps of their own; a Han character counts as three."""


class StepsConfig(CutConfig):
    """How reasoning is cut into steps (SLRC, 4.1)."""

    conclusion: Literal["strip", "keep"] = "strip"
    """Whether the statement of the answer that ends the text is a step (`keep`)."""
