"""The config of a run of C2-Faith."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import API, SpendConfig, no_temperature_problem
from faithscope.experiments.config.base import (
    AnyNumber,
    FiguresConfig,
    FolderConfig,
    OneOrMany,
    Section,
)
from faithscope.experiments.config.judge import (
    JUDGING_FREE,
    JudgeConfig,
    JudgeName,
    room_to_think,
)
from faithscope.experiments.config.model import ModelName, StatedMarks
from faithscope.experiments.config.yaml_source import Key

Signal = Literal[
    "surprisal",
    "peak_surprisal",
    "excess_surprisal",
    "answer_tracing",
    "necessity",
    "information_flow",
]
BUNDLED = "bundled:"
Share = Annotated[StrictFloat, Field(ge=0, le=1)]


class ChainsConfig(Section):
    """Choice of the chains of reasoning that are perturbed."""

    path: StrictStr | None = None
    """A file or folder of PRM800K, as released or as plain rows; null reads it from the hub."""
    splits: Annotated[
        list[Literal["phase1_train", "phase1_test", "phase2_train", "phase2_test"]], *OneOrMany
    ] = Field(default=["phase1_train", "phase2_train"])
    """Splits of PRM800K to read; a path to one file is read whatever its name."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """Number of perfect chains, the first N; for a saved benchmark, its first N."""
    least: StrictInt = Field(default=5, ge=2)
    """Fewest steps of a perfect chain (4.1)."""
    answered: StrictBool = False
    """Whether only chains that reach an answer are taken."""
    one_per_problem: StrictBool = False
    """Whether only the first chain of each problem is taken."""
    benchmark: StrictStr | None = None
    """Folder of a benchmark that another run saved. Its items are taken as they are, whatever else
    stands here but `limit`."""


class PerturbConfig(Section):
    """Perturbation of the chains (3.1, 3.2)."""

    acausal: Literal["rule", "llm"] = "rule"
    """Replacement of a step: by a rule, which needs no model, or by a model's rewriting (the
    paper)."""
    rules: Annotated[list[Literal["numeric", "operator", "comparator"]], *OneOrMany] = Field(
        default=["numeric", "operator", "comparator"]
    )
    """Rules that may change a step."""
    writer: JudgeName | None = None
    """Model that rewrites steps, for `llm`."""
    temperature: StrictFloat = Field(default=0.7, ge=0)
    """Temperature of the writer."""
    seen: Literal["preceding", "all"] = "preceding"
    """Steps that the writer sees before the one to be rewritten: one step, or all."""
    draws: StrictInt = Field(default=3, ge=1, le=10_000)
    """Most times that the writer is asked for one step, if what it wrote is refused (unchanged,
    several lines …); once if its temperature is 0."""
    low: Share = 0.3
    """Beginning of the middle region, from which targets are drawn, as a share of the chain."""
    high: Share = 0.9
    """End of the middle region, as a share of the chain."""
    levels: Annotated[list[Annotated[StrictFloat, Field(gt=0, le=1)]], *OneOrMany] = Field(
        default=[0.1, 0.3, 0.5, 0.7]
    )
    """Shares of the middle steps that are left out."""

    @model_validator(mode="after")
    def _a_region(self) -> PerturbConfig:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is over high {self.high}: no step lies between them")
        return self

    @model_validator(mode="after")
    def _a_writer_where_one_is_needed(self) -> PerturbConfig:
        if self.acausal == "llm" and self.writer is None:
            raise ValueError("acausal 'llm' needs a writer: name a model, or take 'rule'")
        return self


class InternalsConfig(Section):
    """Reading of local models' internals while they read the same chains."""

    model: Annotated[list[ModelName], *AnyNumber] = Field(default=[])
    """Models whose internals are read; an empty list skips this."""
    signals: Annotated[list[Signal], *OneOrMany] = Field(default=list(get_args(Signal)))
    """Signals to read; `necessity` costs the most by far."""
    answer_cue: StrictStr = "The final answer is"
    """Text put after the steps where the answer is asked for."""
    layer: StrictInt | None = Field(default=None, ge=1)
    """Layer whose cosine similarity with the answer token is used as a signal; null takes the
    middle layer. All layers are stored."""
    thinking: StrictBool | None = None
    """Whether a hybrid model reads the chain as its thinking."""
    marks: StatedMarks | None = None
    """Marks of a model's reasoning, if its chat template does not show them: a name (`think_tags`,
    `seed_think`, …; see `faithscope docs given`), [OPENER, CLOSER], or `none`; null reads them off
    the template."""


class InjectionConfig(Section):
    """Test whether a line inside the chain can talk a judge round: the same asks once more, with
    the line."""

    kinds: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Texts to put into chains, by name: neutral, command, polite, system, forged_reply, or of
    `texts`; an empty list skips this. Every one but `neutral` costs an ask of every item for each
    demand."""
    demands: Annotated[list[Literal["best", "worst"]], *OneOrMany] = Field(
        default=["best", "worst"]
    )
    """The verdict that a text demands: the best that can be said of a chain, or the worst."""
    chains: StrictInt | None = Field(default=None, ge=1)
    """Number of chains that get a text, drawn with the seed; null takes all."""
    texts: StrictStr | None = None
    """YAML file of your own texts, which are added to the shipped ones or replace them."""


class C2ReportConfig(FiguresConfig):
    """Settings of the report."""

    judgements: StrictInt = Field(default=12, ge=0)
    """Number of example judgements on the page, with prompt and raw reply; all stand in
    records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for the intervals."""


class C2FaithConfig(FolderConfig):
    """A whole run of C2-Faith."""

    FREE: ClassVar[tuple[str, ...]] = JUDGING_FREE

    benchmark: Literal["c2faith"]
    """Name of the study."""
    data: ChainsConfig = ChainsConfig()
    perturb: PerturbConfig = PerturbConfig()
    judge: JudgeConfig
    forms: Annotated[list[StrictStr], *OneOrMany] = Field(
        default=["c2_detection", "c2_localisation", "c2_coverage"]
    )
    """Prompts that are asked, by name (`faithscope list prompts`)."""
    prompts: StrictStr | None = None
    """Folder of your own prompt files, which are added to the shipped ones or replace them."""
    reference: JudgeName | None = None
    """Model that rates coverage with the whole chain at hand; null compares with the share kept
    only."""
    internals: InternalsConfig = InternalsConfig()
    injection: InjectionConfig = InjectionConfig()
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null takes a number that suits the
    device."""
    report: C2ReportConfig = C2ReportConfig()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Give a judge behind an API room to think (`room_to_think`)."""
        return room_to_think(super().as_asked(values, asked, shipped), asked, shipped)

    @model_validator(mode="after")
    def _one_service_for_all(self) -> C2FaithConfig:
        if problem := self.judge.misfit([self.reference, self._writer]):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _a_reference_with_a_temperature(self) -> C2FaithConfig:
        asked = [] if self.reference is None else [self.reference]
        if problem := no_temperature_problem(self.judge.temperature, asked):
            raise ValueError(f"judge.{problem} (reference is asked as judges are)")
        return self

    @property
    def _writer(self) -> str | None:
        """Model that rewrites steps; None if steps are replaced by rule."""
        return self.perturb.writer if self.perturb.acausal == "llm" else None

    @property
    def models(self) -> list[str]:
        """All models that are asked anything, each once: judges, the reference, models read
        inside."""
        reference = [self.reference] if self.reference else []
        return list(dict.fromkeys([*self.judge.model, *reference, *self.internals.model]))

    @property
    def notes(self) -> list[str]:
        closed = [name for name in self.judge.model if name.startswith(API)]
        notes: list[str] = []
        if "scored" in self.judge.readings:
            notes += [
                f"{name}: its verdicts are read as written; log-probs of verdicts need the weights"
                for name in closed
            ]
        if closed and self.reference is not None and self.reference.startswith(BUNDLED):
            notes.append(
                f"reference: {self.reference} rates what {', '.join(closed)} is held against: bias "
                "and MAE of coverage then say little; name a strong model (the paper has GPT-4.1: "
                "--set reference=api:openai/gpt-4.1), or null for the share kept alone"
            )
        asked = [*self.judge.model, *filter(None, [self.reference, self._writer])]
        return notes + self.judge.short_of_thought(asked)


CONFIG = C2FaithConfig
