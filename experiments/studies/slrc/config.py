"""What a run over traces is told: models, tasks, probes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    create_model,
    model_validator,
)

from faithscope.experiments.config.api import (
    API,
    HOW_FAST,
    SpendConfig,
    SubjectConfig,
    one_address_problem,
)
from faithscope.experiments.config.backend import WHERE, BackendSection
from faithscope.experiments.config.base import FolderConfig, OneOrMany, Section
from faithscope.experiments.config.errors import shown
from faithscope.experiments.config.model import SubjectName
from faithscope.experiments.data.tasks import base_name, task_problem
from faithscope.experiments.studies.slrc import registry
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig
from faithscope.interventions.segment import MIN_CHARS, Mode
from faithscope.probes import PROBES, Settings

T = TypeVar("T")


def _known(check: Callable[[str], str | None]) -> AfterValidator:
    def validate(name: str) -> str:
        if problem := check(name):
            raise ValueError(problem)
        return name

    return AfterValidator(validate)


TaskName = Annotated[StrictStr, _known(task_problem)]
ProbeName = Annotated[StrictStr, _known(registry.probe_problem)]


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


def _limit_problem(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return None
    return f"must be a whole number, at least 1, got {shown(value)}"


def _path_problem(value: Any) -> str | None:
    return None if isinstance(value, str) and value else f"must be a path, got {shown(value)}"


def _of_task(value: T | dict[str, T] | None, task: str) -> T | None:
    """A task's own entry, else that of the task it is a variant of, else the default."""
    if not isinstance(value, dict):
        return value
    for name in (task, base_name(task), "default"):
        if name in value:
            return value[name]
    return None


class DataConfig(Section):
    """Which questions."""

    path: Annotated[str | dict[str, str] | None, _per_task(_path_problem)] = None
    """A local file or folder for tasks that read one; or a mapping from task to path. A variant
    of a task (`sst2:alternative`) goes by its task's entry where it has none of its own."""
    limit: Annotated[int | dict[str, int] | None, _per_task(_limit_problem)] = None
    """The first N items of each task; or a mapping from task to N, with `default`."""
    split: StrictStr | None = None
    """Which split, for tasks that have several; null is the task's own default."""

    def limit_of(self, task: str) -> int | None:
        return _of_task(self.limit, task)

    def path_of(self, task: str) -> Path | None:
        path = _of_task(self.path, task)
        return None if path is None else Path(path).expanduser()


class GenerationConfig(BackendSection):
    """Who writes the traces, and how; with vLLM, `model.quantize` and `device_map` do not hold."""

    max_new_tokens: StrictInt = Field(default=320, ge=256)
    """Most tokens of reasoning and answer; below 256 most answers would be cut off."""
    temperature: StrictFloat = Field(default=0.0, ge=0)
    """0 is greedy."""
    top_p: StrictFloat = Field(default=1.0, gt=0, le=1)
    """Nucleus of sampling, where temperature > 0."""

    def decides(self) -> dict[str, Any]:
        own = {"max_new_tokens", "temperature", "top_p"}
        return self.model_dump(include=own) | super().decides()


class StepsConfig(Section):
    """How reasoning is cut into steps (SLRC, 4.1)."""

    segmentation: Mode = "auto"
    """By sentences, numbered items or paragraphs; `auto` sees which of them it is."""
    min_chars: StrictInt = Field(default=MIN_CHARS, ge=0)
    """Shorter stretches are not steps of their own."""
    conclusion: Literal["strip", "keep"] = "strip"
    """Whether the statement of the answer that ends the text is a step (`keep`)."""


class SizeConfig(Section):
    """How large a model is whose weights are not at hand."""

    total: StrictInt = Field(ge=1)
    """Parameters."""
    active: StrictInt | None = Field(default=None, ge=1)
    """Parameters that one token goes through; null is not known, of a dense model all."""

    @property
    def sizes(self) -> dict[str, int | None]:
        """As a run counts them of weights that it has loaded."""
        return {"parameters": self.total, "active_parameters": self.active}


class ReportConfig(Section):
    """What the report shows."""

    traces: StrictInt = Field(default=6, ge=0)
    """Example traces, with steps coloured by necessity."""
    bootstrap: StrictInt = Field(default=1000, ge=1)
    """Resamples behind the interval of SLRC."""
    least_label_mass: StrictFloat = Field(default=0.1, ge=0, le=1)
    """Scored readings are left out of items whose labels all together have less of the model's
    probability after the unedited reasoning."""
    parameters: dict[StrictStr, SizeConfig] = Field(default_factory=dict)
    """By model, its size, where the run cannot count it: a model behind an API."""


class _RunConfig(FolderConfig):
    """What is the same whichever probes there are."""

    FREE: ClassVar[tuple[str, ...]] = (
        *FolderConfig.FREE,
        "report.",
        "spend.",
        *(f"api.{key}" for key in HOW_FAST),
        *(f"generation.{key}" for key in WHERE),
    )

    model: ModelConfig
    api: SubjectConfig = SubjectConfig()
    spend: SpendConfig = SpendConfig()
    tasks: Annotated[list[TaskName], *OneOrMany]
    data: DataConfig = DataConfig()
    generation: GenerationConfig = GenerationConfig()
    steps: StepsConfig = StepsConfig()
    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=["slrc"])
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    report: ReportConfig = ReportConfig()

    @model_validator(mode="after")
    def _every_model_has_a_task(self) -> Self:
        problems = [
            f"model.name: {model!r} can do none of the tasks {', '.join(self.tasks)}; "
            f"{registry.partner_hint_for_model(model)}"
            for model in self.model.name
            if not any(m == model for m, _ in self.pairs)
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @model_validator(mode="after")
    def _one_model_behind_servers(self) -> Self:
        if problem := self.generation.several_models_problem("generation", self.model.name):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _what_apis_can_be_asked(self) -> Self:
        closed = [m for m in self.model.name if m.startswith(API)]
        if not closed:
            return self
        asked = registry.probes_of(closed[0], self.probes)
        problems = [
            f"{probe}.{key}: {closed[0]!r} is behind an API and can be asked by "
            f"{' or '.join(map(repr, possible))} alone; add that, or take out the probe or the "
            "model"
            for probe in asked
            for key, possible in registry.possible_from_outside(probe).items()
            if not set(possible) & set(getattr(self.settings(probe), key))
        ]
        if problem := one_address_problem("api.base_url", self.api.base_url, closed):
            problems.append(problem)
        if not asked:
            problems = [
                f"probes: {closed[0]!r} is behind an API and can do none of "
                f"{', '.join(self.probes)}; add one of {', '.join(registry.outside_probes())}"
            ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @model_validator(mode="after")
    def _settings_fit_the_run(self) -> Self:
        problems = []
        for probe in PROBES:
            settings = self.settings(probe)
            mine = [key for key in Settings.OF_A_CALL if key in self._given(probe)]
            problems += [f"{probe}.{key}: no config sets this for one probe alone" for key in mine]
            misfits = settings.misfits(tuple(self.model.name))
            problems += [f"{probe}.{problem}" for problem in misfits]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _given(self, probe: str) -> set[str]:
        section = getattr(self, probe, None)
        return set() if section is None else section.model_fields_set

    def settings(self, probe: str) -> Settings:
        """Of a probe, with the seed of the run."""
        given = getattr(self, probe, None) or PROBES[probe].settings()
        if "seed" not in type(given).model_fields:
            return given
        return given.model_copy(update={"seed": self.seed})

    def of(self, model: str) -> Self:
        """What of it holds for one model: those behind APIs can be asked in one way only."""
        if not model.startswith(API):
            return self
        probes = registry.probes_of(model, self.probes)
        changes: dict[str, Any] = {"probes": probes}
        for probe in probes:
            section = getattr(self, probe)
            only = {
                key: tuple(x for x in getattr(section, key) if x in possible)
                for key, possible in registry.possible_from_outside(probe).items()
            }
            changes[probe] = section.model_copy(update=only)
        return self.model_copy(update=changes)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """(model, task), models outermost, without those that do not fit each other."""
        return registry.pairs(self.model.name, self.tasks)

    @property
    def idle_tasks(self) -> list[str]:
        """Tasks that none of the models can do: left out, so that `--set model.name=…` need
        not name the tasks again."""
        return [task for task in self.tasks if not any(t == task for _, t in self.pairs)]

    @property
    def notes(self) -> list[str]:
        found = [
            f"task {task!r} is left out: no model here can do it; "
            f"{registry.partner_hint_for_task(task)}"
            for task in self.idle_tasks
        ]
        closed = [m for m in self.model.name if m.startswith(API)]
        inside = [p for p in self.probes if closed and p not in self.of(closed[0]).probes]
        if inside:
            needed = f"without {', '.join(inside)}, which need a model's weights"
            found += [f"{model}: {needed}" for model in closed]
        left = [
            f"{probe}.{key} without {', '.join(out)}"
            for probe in (self.of(closed[0]).probes if closed else ())
            for key, possible in registry.possible_from_outside(probe).items()
            if (out := [x for x in getattr(getattr(self, probe), key) if x not in possible])
        ]
        if left:
            needed = f"{'; '.join(left)}, which need a model's weights"
            found += [f"{model}: {needed}" for model in closed]
        strangers = [m for m in self.report.parameters if m not in self.model.name]
        if strangers:
            found.append(f"report.parameters: no models of this run: {', '.join(strangers)}")
        return found


if TYPE_CHECKING:

    class RunConfig(_RunConfig):
        """A run over traces, with a section of settings for every probe that has any."""

        def __getattr__(self, name: str) -> Any: ...
else:
    RunConfig = create_model(
        "RunConfig",
        __base__=_RunConfig,
        __doc__="A run over traces: models write them, probes measure them.",
        __module__=__name__,
        **{
            name: (probe.settings, probe.settings())
            for name, probe in PROBES.items()
            if probe.settings.of_a_config()
        },
    )
