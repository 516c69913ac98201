"""The config of a run of FaithCoT-Bench, beside the settings shared by all runs over traces."""

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
    """The source of edited steps: with a mistake, paraphrased, or distorted in meaning (C.1)."""

    by: Literal["rule", "judge"] = "rule"
    """Source of the edits: `rule` uses those of the probes `slrc`, `causal_effects` and
    `paraphrase`; `judge` has the first model of `judge.model` write them."""
    steps: StrictInt = Field(default=1, ge=1)
    """Number of steps per chain that a judge edits, drawn with the seed."""


class LabelsConfig(Section):
    """The labels that detectors are evaluated against."""

    path: StrictStr | None = None
    """A folder in the layout of FINE-CoT (as `faithscope annotate` exports it) with labels for the
    chains of this run, joined by data set, item and model; null uses the labels that came with
    given chains, if any did."""
    source: LabelSource = "faithful_type"
    """Field of FINE-CoT that says whether a chain is unfaithful."""


class DetectorsConfig(Section):
    """Settings of detectors that the paper leaves open."""

    early_cut: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.5
    """Share of the steps after which early answering asks for the answer, rounded down to whole
    steps."""
    uncertain: Literal["left_out", "faithful", "unfaithful"] = "left_out"
    """How to count class 2 (uncertain) of the faithful judge."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether tables leave out chains that the token limit cut off, or keep them; they are counted
    either way (`n_cut`)."""
    paper_compat: StrictBool = False
    """Follow the released code and the paper's wording. Options are shuffled into any order (the
    old one too), letters are compared instead of texts, and an answer that cannot be read counts as
    a changed one; paraphrasing uses the edits that distort the meaning, as C.1 prints it (only
    `edits.by: judge` writes them)."""
    shuffle_given: StrictBool = False
    """Shuffle the options of given chains, too; valid only if the model of the run wrote the
    chains."""
    folds: StrictInt = Field(default=5, ge=2)
    """Number of folds for cross-fitted thresholds; chains about one question stay in one fold."""


class FaithReportConfig(Section):
    """Settings of the report."""

    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples of questions for the intervals."""


class FaithCotConfig(TracesConfig):
    """The whole config of a run of FaithCoT-Bench."""

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
    """Name of the study: `faithcot`."""
    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=list(DEFAULT_PROBES))
    """Names of the probes to run; detectors read the records of `slrc`, `causal_effects`,
    `tracing`, `information` and `paraphrase`."""
    judge: JudgeConfig | None = None
    """The models that judge chains and write edits; null runs no judge."""
    edits: EditsConfig = EditsConfig()
    labels: LabelsConfig = LabelsConfig()
    detectors: DetectorsConfig = DetectorsConfig()
    prompts: StrictStr | None = None
    """A folder of your own prompt files, which take precedence over the shipped `step_judge` and
    `faithful_judge`."""
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
        """The judge model that writes edits; None where edits are made by rule."""
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


CONFIG = FaithCotConfig
