"""The config of a run of judges on given chains."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import AnyNumber, FolderConfig, OneOrMany, Section
from faithscope.experiments.config.judge import JUDGING_FREE, JudgeConfig, room_to_think
from faithscope.experiments.config.yaml_source import Key
from faithscope.experiments.engine.traces.sections import CutConfig, GivenConfig

FORMS = ("step_judge", "faithful_judge", "c2_detection", "c2_localisation", "c2_coverage")


class JudgedGivenConfig(GivenConfig):
    """The chains that are judged."""

    written_by: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Judge only chains written by these models; names as in `writers`, and an empty list takes all
    chains. A comparison of `common` traces sets it where another source lets each model read only
    its own chains."""


class JudgeReportConfig(Section):
    """Settings of the report: examples, bootstrap, and chains that were cut off."""

    chains: StrictInt = Field(default=6, ge=0)
    """Number of example chains on the page, steps marked by what judges said; every judgement is in
    records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for the intervals of means and AUROC."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether the tables leave out chains that a token limit cut off, as their file says, or keep
    them; they are counted either way (`n_cut`)."""


class JudgeStudyConfig(FolderConfig):
    """The whole config of a run of judges on given chains."""

    FREE: ClassVar[tuple[str, ...]] = (
        *JUDGING_FREE,
        "good",
        "traces.written_by",  # a chain is a unit, whoever wrote others
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*FolderConfig.SHOWN, "good")

    benchmark: Literal["judge"]
    """Name of the study: `judge`."""
    traces: JudgedGivenConfig = JudgedGivenConfig()
    """The chains to judge; `traces.path` is required."""
    steps: CutConfig = CutConfig()
    """How to cut chains that came without steps."""
    judge: JudgeConfig
    forms: Annotated[list[StrictStr], *OneOrMany] = Field(default=[*FORMS, "legibility"])
    """Names of the prompts to ask (`faithscope list prompts`)."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, which take precedence over the shipped ones of the same
    name."""
    good: Annotated[list[StrictStr], *AnyNumber] = Field(
        default=["correct", "final_answer_correct", "faithful", "sound"]
    )
    """Names of labels whose true means that all is well; the true of any other label means that
    something is wrong."""
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Limit on the tokens whose keys and values are in memory at once; null chooses one for the
    device."""
    report: JudgeReportConfig = JudgeReportConfig()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Give a judge behind an API room to think (`room_to_think`)."""
        return room_to_think(super().as_asked(values, asked, shipped), asked, shipped)

    @model_validator(mode="after")
    def _one_address_for_one_service(self) -> JudgeStudyConfig:
        if problem := self.judge.misfit():
            raise ValueError(problem)
        return self

    @property
    def notes(self) -> list[str]:
        return self.judge.short_of_thought(self.judge.model)


CONFIG = JudgeStudyConfig
