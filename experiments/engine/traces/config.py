"""Config of a run over traces: models, tasks and probes, and which of them fit each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import (
    Field,
    PrivateAttr,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
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
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import AnyNumber, FolderConfig
from faithscope.experiments.config.model import checked_name, model_names
from faithscope.experiments.config.yaml_source import Key
from faithscope.experiments.data.tasks import TASKS, get_task
from faithscope.experiments.engine.traces.sections import (
    SHORT,
    DataConfig,
    GenerationConfig,
    GivenConfig,
    ModelConfig,
    SampledStepsConfig,
    TaskName,
    known,
)
from faithscope.interp.adapters import adapter_folder, base_of
from faithscope.interp.backends.choice import Choice
from faithscope.interp.errors import did_you_mean
from faithscope.interp.extensions import extensions, why_broken
from faithscope.probes import PROBES, Settings
from faithscope.probes.declared_cues import CueChoices, PutsCues
from faithscope.probes.spans import Spans, TakesSpans


def probe_problem(name: str) -> str | None:
    """Why `name` is no probe; None if it is one."""
    # without its report a measure would be stored and shown nowhere
    extensions("reports", begins=name)
    if problem := why_broken(name, "probes", "reports"):
        return problem
    if name in PROBES:
        return None
    words = name.lower().split()
    summaries = {p: of.summary.lower() for p, of in PROBES.items() if words}
    by_summary = [p for p, summary in summaries.items() if all(word in summary for word in words)]
    about = f"; the word is in the summary of {' and '.join(by_summary)}" if by_summary else ""
    guess = did_you_mean(name, list(PROBES)) or about or f"; known: {', '.join(PROBES)}"
    return f"unknown probe {name!r}{guess}"


def probes_of(model: str, probes: Sequence[str]) -> list[str]:
    """The part of `probes` that can measure `model`: for an API model, those that only ask it."""
    return [p for p in probes if PROBES[p].from_outside is not None or not model.startswith(API)]


def possible_from_outside(probe: str) -> Mapping[str, tuple[str, ...]]:
    """Setting -> its values that an API model can be asked with; empty if an API model cannot be
    measured by the probe."""
    return PROBES[probe].from_outside or {}


def fits(model: str, task: str) -> bool:
    """Whether a model can be asked a task: planted models, and adapters that are trained on them,
    know only their own language."""
    folder = adapter_folder(model)
    name = base_of(folder) if folder else model
    return any(fnmatchcase(name, pattern) for pattern in get_task(task).models)


def _without_idle_tasks(values: dict[str, Any], models_asked: bool) -> dict[str, Any]:
    """The values of a config without tasks that nobody asked for: all where chains are given, and
    else those that none of the user's models can do, unless these can do none."""
    traces, model, tasks = (values.get(key) for key in ("traces", "model", "tasks"))
    if isinstance(traces, dict) and traces.get("path") is not None:
        return values | {"tasks": []}
    names = model.get("name") if isinstance(model, dict) else None
    names = [names] if isinstance(names, str) else names
    if not (models_asked and isinstance(names, list) and isinstance(tasks, list)):
        return values
    done = [t for t in tasks if any(isinstance(m, str) and fits(m, str(t)) for m in names)]
    return values | {"tasks": done} if done else values


ProbeName = Annotated[StrictStr, known(probe_problem)]
AFTERWARDS = tuple(
    f"{name}.{key}"
    for name, probe in PROBES.items()
    for key in probe.settings.afterwards()
    if key != "limit"
)
"""Keys of probes that concern the analysis of a finished run: no record depends on them."""


class _TracesConfig(FolderConfig):
    """The keys of a run over traces that do not depend on the registered probes."""

    OPEN: ClassVar[Mapping[str, Any]] = {"generation.backend": "auto", "generation.probes": None}
    FREE: ClassVar[tuple[str, ...]] = (
        *FolderConfig.FREE,
        "spend.",
        "cues",  # the probes that put them decide by their own settings
        "spans",
        "spans.",
        "data.group",
        "data.group.",
        "traces.group",
        "items_at_once",
        "gpu_hour",
        *(f"api.{key}" for key in HOW_FAST),
        *(f"generation.{key}" for key in WHERE),
        *AFTERWARDS,
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*FolderConfig.SHOWN, *AFTERWARDS)

    _choice: Choice | None = PrivateAttr(default=None)

    model: ModelConfig
    api: SubjectConfig = SubjectConfig()
    spend: SpendConfig = SpendConfig()
    tasks: Annotated[list[TaskName], *AnyNumber] = Field(default=[])
    """Names of the tasks to ask (`faithscope list tasks`); needed unless chains are given."""
    data: DataConfig = DataConfig()
    traces: GivenConfig = GivenConfig()
    generation: GenerationConfig = GenerationConfig()
    steps: SampledStepsConfig = SampledStepsConfig()
    probes: Annotated[list[ProbeName], *AnyNumber]
    """Names of the probes to measure (`faithscope list probes`)."""
    cues: CueChoices = ()
    """Cues that every probe puts that puts any, unless its own section names others (`hints.cues`):
    declarations, names of those that come with faithscope, or files of declarations (`faithscope
    docs cues`). With an empty list each probe has its own default."""
    spans: Spans = Field(default={})
    """Spans by name, for every probe that takes spans: a role (`prompt`, `question`, `cue`, `step
    3`, …), `{regex: …, in: prompt|reasoning|all, which: only|first|last|all}` or `{tag: …, is: …}`,
    the steps with a label (`faithscope docs spans`). A probe's own section adds others."""
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    items_at_once: StrictInt | None = Field(default=None, ge=1)
    """Number of items whose probes run side by side, in packs and decoding steps that they share.
    On an accelerator two such groups take turns: one is read and planned while the other runs. At
    most these items are lost when a run is killed. null is 8 on an accelerator and 1 on a CPU."""
    gpu_hour: StrictFloat | None = Field(default=None, ge=0)
    """Your price of an hour of a GPU in US dollars, by which a dry run states dollars beside hours;
    null states none."""

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Drop shipped tasks that the user's chains or models leave no use for."""
        if shipped and not any(key[:1] == ("tasks",) for key in asked):
            return _without_idle_tasks(values, any(key[:1] == ("model",) for key in asked))
        return values

    @model_validator(mode="after")
    def _every_model_has_a_task(self) -> Self:
        if self.traces.path is not None or not self.model.name:
            return self
        if not self.tasks:
            raise ValueError(
                "tasks: missing; name one (`faithscope list tasks`), or give chains: "
                "--set traces.path=FILE"
            )
        problems = [
            f"model.name: {model!r} can do none of the tasks {', '.join(self.tasks)}; "
            f"add one of the tasks {', '.join(t for t in TASKS if fits(model, t))}, "
            "or take the model out"
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
        asked = probes_of(closed[0], self.probes)
        problems = [
            f"{probe}.{key}: {closed[0]!r} is behind an API and can be asked by "
            f"{' or '.join(map(repr, possible))} alone; add that, or take out the probe or the "
            "model"
            for probe in asked
            for key, possible in possible_from_outside(probe).items()
            if not set(possible) & set(getattr(self.settings(probe), key))
        ]
        if problem := one_address_problem("api.base_url", self.api.base_url, closed):
            problems.append(problem)
        if not asked:
            outside = [name for name, probe in PROBES.items() if probe.from_outside is not None]
            problems = [
                f"probes: {closed[0]!r} is behind an API and can do none of "
                f"{', '.join(self.probes)}; add one of {', '.join(outside)}"
            ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @model_validator(mode="after")
    def _a_sample_has_a_probe(self) -> Self:
        if self.steps.sample is not None and not any(PROBES[p].samples_steps for p in self.probes):
            able = ", ".join(name for name, probe in PROBES.items() if probe.samples_steps)
            raise ValueError(
                f"steps.sample: none of {', '.join(self.probes)} edits steps one by one; add one "
                f"of {able}, or take the sample out"
            )
        return self

    @model_validator(mode="after")
    def _a_screen_has_weights(self) -> Self:
        closed = [m for m in self.model.name if m.startswith(API)]
        if self.steps.screen is not None and closed:
            raise ValueError(
                f"steps.screen: {closed[0]!r} is behind an API, and effects of removal are "
                "estimated from a model's keys and values; take the screen out, or the model"
            )
        return self

    @model_validator(mode="after")
    def _samples_of_apis_differ(self) -> Self:
        closed = next((m for m in self.model.name if m.startswith(API)), None)
        if self.generation.samples > 1 and closed is not None:
            same = (
                "api.cache gives every sample of a question the first one's reply; set it to false"
            )
            if not self.api.cache:
                same = "at api.temperature 0 they are one text; set it to null, or above 0"
            if self.api.cache or self.api.temperature == 0:
                raise ValueError(f"generation.samples: {closed!r} is behind an API, and {same}")
        return self

    @model_validator(mode="after")
    def _cues_and_spans_have_a_probe(self) -> Self:
        for key, does, kind in (("cues", "puts", PutsCues), ("spans", "takes", TakesSpans)):
            able = [name for name, of in PROBES.items() if issubclass(of.settings, kind)]
            if getattr(self, key) and not set(able) & set(self.probes):
                raise ValueError(
                    f"{key}: none of {', '.join(self.probes)} {does} {key}; add one of "
                    f"{', '.join(able)}, or take the {key} out"
                )
        return self

    @model_validator(mode="after")
    def _settings_fit_the_run(self, info: ValidationInfo) -> Self:
        problems = []
        for probe in PROBES:
            settings = self.settings(probe)
            for name in settings.other_models:
                checked_name(name, info)
            forbidden = [key for key in Settings.OF_A_CALL if key in self._given(probe)]
            problems += [
                f"{probe}.{key}: no config sets this for one probe alone" for key in forbidden
            ]
            misfits = settings.misfits(tuple(self.model.name))
            if probe in self.probes:
                misfits += [f"{k}: name one, such as {v}" for k, v in settings.lacks().items()]
            problems += [f"{probe}.{problem}" for problem in misfits]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _given(self, probe: str) -> set[str]:
        return getattr(self, probe).model_fields_set

    def settings(self, probe: str) -> Settings:
        """The settings of a probe, with the seed of the run."""
        given = getattr(self, probe)
        puts = isinstance(given, PutsCues) and probe in self.probes
        if self.cues and puts and "cues" not in given.model_fields_set:
            given = given.model_copy(update={"cues": self.cues})
        if isinstance(given, TakesSpans):
            given = given.model_copy(update={"spans": {**self.spans, **given.spans}})
        if "seed" not in type(given).model_fields:
            return given
        return given.model_copy(update={"seed": self.seed})

    def mends(self, probe: str) -> Collection[str]:
        """Reasons for which a probe may leave out a given chain that the run can yet mend."""
        return ()

    def of(self, model: str) -> Self:
        """The config as it holds for one model: an API model can be asked in one way only."""
        if not model.startswith(API):
            return self
        probes = probes_of(model, self.probes)
        changes: dict[str, Any] = {"probes": probes}
        for probe in probes:
            section = getattr(self, probe)
            only = {
                key: tuple(x for x in getattr(section, key) if x in possible)
                for key, possible in possible_from_outside(probe).items()
            }
            changes[probe] = section.model_copy(update=only)
        return self.model_copy(update=changes)

    def choose(self, decide: Callable[[Self], Choice]) -> Choice:
        """The engine that writes texts, for which `decide` is asked once."""
        if self._choice is None:
            self._choice = decide(self)
        return self._choice

    @property
    def chosen(self) -> Mapping[str, Any]:
        return {} if self._choice is None else {"writer": asdict(self._choice)}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All (model, task) that fit each other, models outermost."""
        return [(m, t) for m in self.model.name for t in self.tasks if fits(m, t)]

    @property
    def idle_tasks(self) -> list[str]:
        """Tasks that none of the models can do; they are left out, so that `--set model.name=…`
        need not name the tasks again."""
        asked = [] if self.traces.path is not None else self.tasks
        return [task for task in asked if not any(t == task for _, t in self.pairs)]

    @property
    def notes(self) -> list[str]:
        given = self.traces.path
        unasked = [] if given is None else self.tasks
        notes = [
            f"tasks {', '.join(self.tasks)}: not asked, and section data is not used; the chains "
            f"are those of {given}, which traces.limit would limit"
            for _ in unasked[:1]
        ]
        notes += [
            f"task {task!r} is left out: no model here can do it; add one of the models "
            f"{', '.join(m for m in model_names() if fits(m, task))}, or take the task out"
            for task in self.idle_tasks
        ]
        most = self.generation.max_new_tokens
        if given is None and most is not None and most < SHORT:
            notes.append(
                f"generation.max_new_tokens={most}: reasoning that is longer is cut off before its "
                f"answer; {SHORT} or more leave room for most"
            )
        closed = [m for m in self.model.name if m.startswith(API)]
        notes += self.api.short_of_thought(closed)
        inside = [p for p in self.probes if closed and p not in self.of(closed[0]).probes]
        if inside:
            needed = f"without {', '.join(inside)}, which need a model's weights"
            notes += [f"{model}: {needed}" for model in closed]
        left = [
            f"{probe}.{key} without {', '.join(out)}"
            for probe in (self.of(closed[0]).probes if closed else ())
            for key, possible in possible_from_outside(probe).items()
            if (out := [x for x in getattr(getattr(self, probe), key) if x not in possible])
        ]
        if left:
            needed = f"{'; '.join(left)}, which need a model's weights"
            notes += [f"{model}: {needed}" for model in closed]
        return notes


if TYPE_CHECKING:

    class TracesConfig(_TracesConfig):
        """A run over traces, with a section of settings for every probe."""

        def __getattr__(self, name: str) -> Any: ...
else:
    TracesConfig = create_model(
        "TracesConfig",
        __base__=_TracesConfig,
        __doc__="A run over traces: models write them, probes measure them.",
        __module__=__name__,
        **{name: (probe.settings, probe.settings()) for name, probe in PROBES.items()},
    )
