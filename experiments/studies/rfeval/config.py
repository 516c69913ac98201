"""The config of a run of RFEval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import (
    API,
    HOW_FAST,
    SpendConfig,
    no_temperature_problem,
    one_address_problem,
)
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import AnyNumber, FolderConfig, OneOrMany, Section, expanded
from faithscope.experiments.config.judge import JUDGING_FREE, JudgeConfig, JudgeName, Reading
from faithscope.experiments.config.model import SubjectName
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
from faithscope.experiments.studies.rfeval.prompts.released import checkout_of, stays_ours
from faithscope.interp.errors import did_you_mean


class ItemsConfig(Section):
    """Which items are put to the models."""

    path: StrictStr | None = None
    """A file or folder of RFEval as released; null reads it from the hub."""
    tasks: Annotated[list[Task], *AnyNumber] = Field(default=[])
    """Which of the seven; none named takes all, of a folder all that it holds."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """The first N items of each task."""
    repository: StrictStr = "snu-aidas/RFEval"
    """Another data set of the hub laid out like it."""

    @property
    def file(self) -> Path | None:
        """`path` as a path."""
        return expanded(self.path)


class RfJudgeConfig(JudgeConfig):
    """Who reads the stances: an output at a time, as it is written."""

    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated"])
    """`generated` alone: a reply holds many verdicts. Log-probs are a reader of their own
    (`log_probs`)."""

    @model_validator(mode="after")
    def _as_written(self) -> RfJudgeConfig:
        if self.readings != ["generated"]:
            raise ValueError(
                "judge.readings of RFEval is [generated]: one reply holds all stances and flaws "
                "of an output; a model's log-probs of the options are read by log_probs: true"
            )
        return self


class PerStepConfig(Section):
    """Stances of every step, and flaws of every transition (appendix G.3)."""

    judge: Annotated[list[JudgeName], *AnyNumber] = Field(default=[])
    """Who is asked, of those in judge.model; none leaves this out. Two asks for each part of an
    output (step, explanation, answer), of the pairs that count as this judge reads them whole."""
    readings: Annotated[list[Reading], *OneOrMany] = Field(default=["generated"])
    """`generated`: from what is written; `scored` (models here): from the log-probs of the
    verdict, a reader of its own."""
    items: StrictInt | None = Field(default=None, ge=1)
    """The first N items of each task; null takes all."""
    most_steps: StrictInt = Field(default=100, ge=1)
    """A pair whose two outputs have more steps together is left out, and counted as such."""


class TestsConfig(Section):
    """What the programs of code items may use in the sandbox, for one test."""

    __test__ = False

    run: Literal["auto", "required", "never"] = "auto"
    """`auto` leaves the answers of code to the judge where the machine has no sandbox, and says
    so; `required` ends the run there."""
    seconds: StrictFloat = Field(default=10.0, gt=0)
    """The longest that one test may take."""
    memory_mb: StrictInt = Field(default=2048, ge=1)
    """The most memory, in MiB."""
    processes: StrictInt = Field(default=32, ge=1)
    """The most processes and threads at once."""


class Excluded(Section):
    """Pairs that count for nothing, by a person's decision (appendix C.4, global exclusion)."""

    model: SubjectName
    task: Task | None = None
    """Null is all tasks."""
    reason: StrictStr = Field(min_length=1)
    """Stands in `rf_exclusion_reasons` and on the page."""


class RfReportConfig(Section):
    """What the report shows, and what counts in it."""

    exclude: list[Excluded] = Field(default_factory=list)
    """As the paper leaves out one model on one task, most of whose outputs have no reasoning. What
    is left out is still asked for, and its row is in `rf_pairs`."""

    pairs: StrictInt = Field(default=12, ge=0)
    """Examples, both outputs with the judge's reply; every one stands in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Resamples behind the intervals that are not Wilson's."""
    externality: StrictFloat | None = Field(default=None, ge=0, le=1)
    """The Δ up to which r′ counts as low in externality where RF is told by it (appendix B.6);
    null takes the median of the items."""


class RFEvalConfig(FolderConfig):
    """A whole run of RFEval."""

    FREE: ClassVar[tuple[str, ...]] = (
        *JUDGING_FREE,
        "annotations",
        *(f"generate.{key}" for key in WHERE),
        *(f"api.{key}" for key in HOW_FAST),
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*FolderConfig.SHOWN, "annotations")

    benchmark: Literal["rfeval"]
    """The study."""
    data: ItemsConfig = ItemsConfig()
    counterfactual: CounterfactualConfig = CounterfactualConfig()
    model: SubjectsConfig
    generate: GenerateConfig = GenerateConfig()
    api: ClosedConfig = ClosedConfig()
    judge: RfJudgeConfig
    per_step: PerStepConfig = PerStepConfig()
    naming: Naming = "letters"
    """What options are called among the stances: letters, or words where the paper's Table 15 has
    words (`items.Naming`)."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, over the shipped ones; or a checkout of the authors'
    repository, whose prompts are then asked."""
    log_probs: StrictBool = True
    """Whether a model's own log-probs of the options are read after each part of its output."""
    inside: InsideConfig = InsideConfig()
    tests: TestsConfig = TestsConfig()
    annotations: StrictStr | None = None
    """A CSV of people's labels of parts of outputs, which the first judge is held against;
    `load_run(RUN).decisions` has what is to be labelled."""
    paper_compat: StrictBool = False
    """Outputs taken apart, chains scored and coverage taken as the authors' released code does."""
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    report: RfReportConfig = RfReportConfig()

    @model_validator(mode="after")
    def _fits_together(self) -> RFEvalConfig:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        """Yields what is wrong with settings that contradict each other."""
        c, judges, models = self.counterfactual, self.judge.model, self.model.name
        builders = [name for name in (c.writer, c.validator) if c.written and name]
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
                yield f"inside.model: {name!r} writes no outputs here; name it in model.name, too"
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
        """How a judge's verdicts on steps are got."""
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
        if (folder := self.prompts_folder) and (code := checkout_of(folder)):
            notes += stays_ours(code)
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
        """`prompts` as a path."""
        return expanded(self.prompts)

    def framing_of(self, model: str) -> Framing:
        """How r′ comes into a model's conversation."""
        return MULTI_TURN if model.startswith(API) else self.generate.framing

    @property
    def apis(self) -> list[str]:
        """The judges that are asked over the network."""
        return [name for name in self.judge.model if name.startswith(API)]
