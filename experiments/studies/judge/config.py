"""What a run of judges on given chains is told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import AnyNumber, FolderConfig, OneOrMany, Section
from faithscope.experiments.config.judge import JUDGING_FREE, JudgeConfig
from faithscope.experiments.engine.traces.sections import CutConfig, GivenConfig

FORMS = ("step_judge", "faithful_judge", "c2_detection", "c2_localisation", "c2_coverage")


class JudgedGivenConfig(GivenConfig):
    """The chains that are judged."""

    written_by: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Only the chains that these models wrote, as `writers` calls them; none named takes all. A
    comparison of `common` traces sets it where another source has each model read its own alone."""


class JudgeReportConfig(Section):
    """What the report shows."""

    chains: StrictInt = Field(default=6, ge=0)
    """Example chains, steps marked by what judges said; every judgement stands in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Resamples behind the intervals of means and AUROC."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether chains that a token limit cut off, where their file says so, are left out of the
    tables, or kept in them; either way they are counted (`n_cut`)."""


class JudgeStudyConfig(FolderConfig):
    """A run of judges on given chains."""

    FREE: ClassVar[tuple[str, ...]] = (
        *JUDGING_FREE,
        "good",
        "traces.written_by",  # a chain is a unit, whoever wrote others
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*FolderConfig.SHOWN, "good")

    benchmark: Literal["judge"]
    """The study."""
    traces: JudgedGivenConfig = JudgedGivenConfig()
    """The chains that are judged; a run needs their path."""
    steps: CutConfig = CutConfig()
    """How chains are cut that have no steps of their own."""
    judge: JudgeConfig
    forms: Annotated[list[StrictStr], *OneOrMany] = Field(default=[*FORMS, "legibility"])
    """The prompts that are asked, by name (`faithscope list prompts`)."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, over the shipped ones."""
    good: Annotated[list[StrictStr], *AnyNumber] = Field(
        default=["correct", "final_answer_correct", "faithful", "sound"]
    )
    """Labels of which true says that all is well; of any other it says that something is wrong."""
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    report: JudgeReportConfig = JudgeReportConfig()

    @model_validator(mode="after")
    def _one_address_for_one_service(self) -> JudgeStudyConfig:
        if problem := self.judge.misfit():
            raise ValueError(problem)
        return self

    @property
    def notes(self) -> list[str]:
        return self.judge.short_of_thought(self.judge.model)
