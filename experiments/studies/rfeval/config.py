"""The config of a run of RFEval."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import (
    API,
    HOW_FAST,
    SpendConfig,
    no_temperature_problem,
    one_address_problem,
)
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import (
    AnyNumber,
    FiguresConfig,
    FolderConfig,
    OneOrMany,
    Section,
    expanded,
)
from faithscope.experiments.config.judge import JUDGING_FREE, JudgeConfig, JudgeName, Reading
from faithscope.experiments.config.model import SubjectName
from faithscope.experiments.config.yaml_source import Key
from faithscope.experiments.engine.models.prompt_files import reader_of
from faithscope.experiments.studies.rfeval.config_sections import (
    MULTI_TURN,
    ClosedConfig,
    CounterfactualConfig,
    Framing,
    GenerateConfig,
    InsideConfig,
    SubjectsConfig,
)
from faithscope.experiments.studies.rfeval.items import Naming, Task
from faithscope.interp.errors import did_you_mean
from faithscope.probes.settings import as_several


class ItemsConfig(Section):
    """Choice of the items that are put to the models."""

    path: StrictStr | None = None
    """A file or folder of RFEval as released; null reads the data set from the hub."""
    tasks: Annotated[list[Task], *AnyNumber] = Field(default=[])
    """Tasks to run, out of RFEval's seven; an empty list takes all seven from the hub, or all that
    a file or folder holds."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """Number of items of each task, the first N; null takes all."""
    repository: StrictStr = "snu-aidas/RFEval"
    """Name of the data set on the hub; another one has to be laid out like it."""
    group: Annotated[StrictStr | None, Field(min_length=1)] = None
    """Column of the data that names the group of each item, the unit of intervals and tests; null
    groups items of the same question, and of questions that are nearly the same (`faithscope docs
    data`)."""

    @property
    def file(self) -> Path | None:
        """The file or folder that `path` names."""
        return expanded(self.path)


class RfJudgeConfig(JudgeConfig):
    """Judges that read stances, one output per call, from the text of their replies."""

    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated"])
    """Reading of the judge's verdicts: `generated` only, since one reply holds many verdicts. A
    model's own log-probs are a separate reader (`log_probs`)."""

    @model_validator(mode="after")
    def _as_written(self) -> RfJudgeConfig:
        if self.readings != ["generated"]:
            raise ValueError(
                "judge.readings of RFEval is [generated]: one reply holds all stances and flaws "
                "of an output; a model's log-probs of the options are read by log_probs: true"
            )
        return self


class PerStepConfig(Section):
    """Judging step by step: stances of every step, flaws of every transition (appendix G.3)."""

    judge: Annotated[list[JudgeName], *AnyNumber] = Field(default=[])
    """Judges, out of judge.model, that judge step by step; an empty list skips it. Each part of an
    output (r′, step, explanation, answer) takes up to two calls, for the pairs that count as this
    judge reads them whole."""
    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated"])
    """Readings of the verdicts on steps. `generated`: from the text of the reply; `scored` (local
    models only): from the log-probs of the verdict, as a separate reader."""
    items: StrictInt | None = Field(default=None, ge=1)
    """Number of items of each task that are judged step by step, the first N; null takes all."""
    most_steps: StrictInt = Field(default=100, ge=1)
    """A pair whose two outputs have more steps together is left out, and counted as such."""


class TestsConfig(Section):
    """Running the programs of code items in a sandbox, with limits for one test."""

    __test__ = False

    run: Literal["auto", "required", "never"] = "auto"
    """Whether tests are run. `auto` leaves answers of code items to the judge, with a note, where
    the machine has no sandbox; `required` stops the run there; `never` runs no tests."""
    checker: StrictStr = "sandbox"
    """Checker that runs the tests: `sandbox`, or one that an installed package adds (`faithscope
    docs extending`)."""
    seconds: StrictFloat = Field(default=10.0, gt=0)
    """Most seconds that one test may take."""
    memory_mb: StrictInt = Field(default=2048, ge=1)
    """Most memory that one test may use, in MiB."""
    processes: StrictInt = Field(default=32, ge=1)
    """Most processes and threads that one test may have at once."""


class Excluded(Section):
    """Pairs that a person excludes from every number (appendix C.4, global exclusion)."""

    model: SubjectName
    task: Task | None = None
    """Task whose pairs are excluded; null means all tasks."""
    reason: StrictStr = Field(min_length=1)
    """Reason for the exclusion, shown in `rf_exclusion_reasons` and on the page."""


class RfReportConfig(FiguresConfig):
    """What the report shows, and what counts in it."""

    exclude: list[Excluded] = Field(default_factory=list)
    """Pairs to exclude, as the paper excludes one model on one task, most of whose outputs have no
    reasoning. Models are still asked for excluded pairs, which keep their rows in `rf_pairs`."""

    pairs: StrictInt = Field(default=12, ge=0)
    """Number of example pairs on the page, each with both outputs and the judge's reply; all pairs
    stand in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for the intervals that are not Wilson's."""
    externality: StrictFloat | None = Field(default=None, ge=0, le=1)
    """Largest externality Δ at which r′ counts as low in externality, where RF is split by it
    (appendix B.6); null takes the median of the items."""


class RFEvalConfig(FolderConfig):
    """A whole run of RFEval."""

    FREE: ClassVar[tuple[str, ...]] = (
        *JUDGING_FREE,
        *("annotations", "data.group"),
        *(f"generate.{key}" for key in WHERE),
        *(f"api.{key}" for key in HOW_FAST),
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*FolderConfig.SHOWN, "annotations")

    benchmark: Literal["rfeval"]
    """Name of the study."""
    data: ItemsConfig = ItemsConfig()
    counterfactual: CounterfactualConfig = CounterfactualConfig()
    model: SubjectsConfig
    generate: GenerateConfig = GenerateConfig()
    api: ClosedConfig = ClosedConfig()
    judge: RfJudgeConfig
    per_step: PerStepConfig = PerStepConfig()
    naming: Naming = "letters"
    """Names of the options among the stances: letters, or words where the paper's Table 15 has
    words (`items.Naming`)."""
    prompts: StrictStr | None = None
    """Folder of your own prompt files, which replace the shipped ones; or a checkout of the
    authors' repository, whose prompts are then used."""
    log_probs: StrictBool = True
    """Whether a model's own log-probs of the options are read after each part of its output."""
    inside: InsideConfig = InsideConfig()
    tests: TestsConfig = TestsConfig()
    annotations: StrictStr | None = None
    """CSV of people's labels of parts of outputs, with which the first judge's are compared;
    `load_run(RUN).decisions` lists what is to be labelled."""
    paper_compat: StrictBool = False
    """Whether outputs are parsed, chains scored and coverage counted as in the authors' released
    code."""
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null takes a number that suits the
    device."""
    report: RfReportConfig = RfReportConfig()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Reads the inside of the models that the user asks for, where a shipped config reads that
        of others."""
        values = super().as_asked(values, asked, shipped)
        inside, model = values.get("inside"), values.get("model")
        if not (shipped and isinstance(inside, dict) and isinstance(model, dict)):
            return values
        of_model, of_inside = (
            any(key[:2] in ((section,), (section, name)) for key in asked)
            for section, name in (("model", "name"), ("inside", "model"))
        )
        if of_model and not of_inside and inside.get("model"):
            names = as_several(model.get("name") or [])
            if isinstance(names, list):  # what is no name at all is refused as model.name
                here = [n for n in names if not str(n).startswith(API)]
                return values | {"inside": inside | {"model": here}}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> RFEvalConfig:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        """Yields what is wrong with settings that contradict each other."""
        c, judges, models = self.counterfactual, self.judge.model, self.model.name
        builders = [name for name in (c.writer, c.validator) if c.written and name]
        if c.written and self.data.group is not None:
            yield (
                "data.group: r′ is written for these items (counterfactual.written), which count "
                "by their questions; leave it out"
            )
        for problem in (
            self.judge.misfit(builders),
            one_address_problem("api.base_url", self.api.base_url, models),
            self.generate.several_models_problem("generate", models),
        ):
            if problem:
                yield problem
        validators = [c.validator] if c.written and c.validator else []
        if problem := no_temperature_problem(self.judge.temperature, validators):
            yield f"judge.{problem} (counterfactual.validator is asked as judges are)"
        for one in self.report.exclude:
            if one.model not in models:
                guess = did_you_mean(one.model, models) or "; name one of model.name"
                yield f"report.exclude: {one.model!r} is no model of this run{guess}"
        for name in self.inside.model:
            if name not in models:
                yield (
                    f"inside.model: {name!r} writes no outputs here; name it in model.name, too, "
                    f"or take one of {', '.join(models)}, or none: --set inside.model=[]"
                )
        for name in self.per_step.judge:
            if name not in judges:
                yield f"per_step.judge: {name!r} reads no outputs here; name it in judge.model, too"
            if not self.readings_by_step(name):
                yield (
                    f"per_step.readings: an API gives no log-probs of verdicts, and {name!r} is "
                    "one; add generated"
                )
        if self.inside.model and self.generate.framing == MULTI_TURN:
            yield (
                "inside.model needs r′ among the model's own tokens, and generate.framing is "
                "multi_turn; take prefix, or leave inside.model empty"
            )

    def readings_by_step(self, judge: str) -> list[Reading]:
        """Ways in which a judge's verdicts on steps are read; an API judge has no log-probs."""
        readings = self.per_step.readings
        return [r for r in readings if r == "generated" or not judge.startswith(API)]

    @property
    def notes(self) -> list[str]:
        notes = [
            f"{name}: judges, and is judged by itself"
            for name in self.judge.model
            if name in self.model.name
        ]
        notes += self.judge.short_of_thought(self.judge.model)
        if (folder := self.prompts_folder) and (read := reader_of("rfeval", folder)):
            reader, place = read
            notes += reader.notes(place)
        for name in self.model.name:
            if self.framing_of(name) == MULTI_TURN:
                notes.append(
                    f"{name}: r′ is quoted as an earlier turn (multi_turn), an approximation: a "
                    "model may take it for someone else's words"
                )
            if name.startswith(API) and self.log_probs:
                notes.append(f"{name}: without log_probs, which need a model's weights")
        return notes

    @property
    def prompts_folder(self) -> Path | None:
        """The folder that `prompts` names."""
        return expanded(self.prompts)

    def framing_of(self, model: str) -> Framing:
        """Framing of r′ for a model: always `multi_turn` for a model behind an API."""
        return MULTI_TURN if model.startswith(API) else self.generate.framing

    @property
    def apis(self) -> list[str]:
        """Judges that are behind an API."""
        return [name for name in self.judge.model if name.startswith(API)]


CONFIG = RFEvalConfig
