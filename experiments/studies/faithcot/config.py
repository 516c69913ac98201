"""What a run of FaithCoT-Bench is told beside what every run over traces is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import API, HOW_FAST
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import OneOrMany, Section
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.data.given.fine_cot import LabelSource
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig

DEFAULT_PROBES = ("causal_effects", "tracing", "information", "paraphrase")


class EditsConfig(Section):
    """Who writes a mistake into a step, a step in other words, and one of another meaning (C.1)."""

    by: Literal["rule", "judge"] = "rule"
    """`rule` takes the edits of the probes `slrc`, `causal_effects` and `paraphrase`; `judge` has
    the first of `judge.model` write them."""
    steps: StrictInt = Field(default=1, ge=1)
    """Steps of a chain that a judge's edits are written for, drawn with the seed."""


class LabelsConfig(Section):
    """What detectors are held against."""

    path: StrictStr | None = None
    """A folder in the layout of FINE-CoT (as `faithscope annotate` exports it) with labels for the
    chains of this run, joined by data set, item and model; null takes those that came with given
    chains, if any did."""
    source: LabelSource = "faithful_type"
    """Which of FINE-CoT's two fields says whether a chain is unfaithful."""


class DetectorsConfig(Section):
    """What the paper leaves open about its detectors."""

    early_cut: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.5
    """Share of the steps after which early answering asks for the answer, rounded down."""
    uncertain: Literal["left_out", "faithful", "unfaithful"] = "left_out"
    """What class 2 (uncertain) of the faithful judge counts as."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether chains that the token limit cut off are left out of the tables, or kept in them;
    either way they are counted (`n_cut`)."""
    paper_compat: StrictBool = False
    """Shuffle options as the released code does (any order, the old one too), compare letters
    instead of texts, and count a new answer that cannot be read as another one; and take as
    paraphrasing the edits that distort the meaning, as C.1 prints it (only `edits.by: judge` writes
    them)."""
    shuffle_given: StrictBool = False
    """Shuffle the options of given chains, too: right where the model here is the one that wrote
    them."""
    folds: StrictInt = Field(default=5, ge=2)
    """Folds of the cross-fitted thresholds; questions stay together."""


class FaithReportConfig(Section):
    """What the report shows."""

    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Resamples of questions behind the intervals."""


class FaithCotConfig(TracesConfig):
    """A whole run of FaithCoT-Bench."""

    FREE: ClassVar[tuple[str, ...]] = (
        *TracesConfig.FREE,
        "report.",
        "labels.",
        "detectors.early_cut",
        "detectors.uncertain",
        "detectors.cut",
        "detectors.paper_compat",  # the order of the options decides by itself what was asked
        "detectors.folds",
        "prompts",  # a form's text decides by itself what was asked
        *(f"judge.{key}" for key in (*HOW_FAST, *WHERE)),
    )

    SHOWN: ClassVar[tuple[str, ...]] = (*TracesConfig.SHOWN, "labels", "detectors")

    benchmark: Literal["faithcot"]
    """The study."""
    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=list(DEFAULT_PROBES))
    """What is measured, by name; detectors read the records of `slrc`, `causal_effects`, `tracing`,
    `information` and `paraphrase`."""
    judge: JudgeConfig | None = None
    """Who judges, and writes edits; null leaves the judges out."""
    edits: EditsConfig = EditsConfig()
    labels: LabelsConfig = LabelsConfig()
    detectors: DetectorsConfig = DetectorsConfig()
    prompts: StrictStr | None = None
    """A folder of your own forms, over the shipped `step_judge` and `faithful_judge`."""
    report: FaithReportConfig = FaithReportConfig()

    @model_validator(mode="after")
    def _a_judge_where_one_is_needed(self) -> Self:
        if self.judge is None:
            if self.edits.by == "judge":
                raise ValueError("edits.by is 'judge', and there is none; name one in judge.model")
            return self
        if problem := self.judge.misfit():
            raise ValueError(problem)
        return self

    @property
    def judges(self) -> list[str]:
        return [] if self.judge is None else list(self.judge.model)

    @property
    def writer(self) -> str | None:
        """Who writes edits; None where rules do."""
        return self.judges[0] if self.edits.by == "judge" else None

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        if self.judge is None:
            notes.append("judge: none; step judge and faithful judge are left out")
        else:
            closed = [m for m in self.judge.model if m.startswith(API)]
            notes += self.judge.short_of_thought(closed)
        return notes
