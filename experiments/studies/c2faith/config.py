"""What a run of C2-Faith is told."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from faithscope.experiments.config.api import API, SpendConfig, no_temperature_problem
from faithscope.experiments.config.base import AnyNumber, FolderConfig, OneOrMany, Section
from faithscope.experiments.config.judge import JUDGING_FREE, JudgeConfig, JudgeName
from faithscope.experiments.config.model import ModelName, StatedMarks

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
    """Which chains of reasoning are perturbed."""

    path: StrictStr | None = None
    """A file or folder of PRM800K, as released or as plain rows; null reads it from the hub."""
    splits: Annotated[
        list[Literal["phase1_train", "phase1_test", "phase2_train", "phase2_test"]], *OneOrMany
    ] = Field(default=["phase1_train", "phase2_train"])
    """Of PRM800K; a path to one file is read whatever its name."""
    limit: StrictInt | None = Field(default=None, ge=1)
    """The first N perfect chains; of a saved benchmark, its first N."""
    least: StrictInt = Field(default=5, ge=2)
    """Fewest steps of a perfect chain (4.1)."""
    answered: StrictBool = False
    """Only chains that reach an answer."""
    one_per_problem: StrictBool = False
    """Only the first chain of each problem."""
    benchmark: StrictStr | None = None
    """The folder of a benchmark that another run saved: its items as they are, whatever else
    stands here but `limit`."""


class PerturbConfig(Section):
    """How chains are perturbed (3.1, 3.2)."""

    acausal: Literal["rule", "llm"] = "rule"
    """A step is replaced by rule, which needs no model, or rewritten by one (the paper)."""
    rules: Annotated[list[Literal["numeric", "operator", "comparator"]], *OneOrMany] = Field(
        default=["numeric", "operator", "comparator"]
    )
    """What the rule may change in a step."""
    writer: JudgeName | None = None
    """The model that rewrites, for `llm`."""
    temperature: StrictFloat = Field(default=0.7, ge=0)
    """Of the writer."""
    seen: Literal["preceding", "all"] = "preceding"
    """How much the writer sees before the step: one step, or all."""
    draws: StrictInt = Field(default=3, ge=1, le=10_000)
    """How often at most the writer is asked for one step, where what it wrote is refused
    (unchanged, several lines …); once where its temperature is 0."""
    low: Share = 0.3
    """Where the middle region begins, from which targets are drawn, as a share of the chain."""
    high: Share = 0.9
    """Where it ends."""
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
    """What models here show inside while they read the same chains."""

    model: Annotated[list[ModelName], *AnyNumber] = Field(default=[])
    """Models whose insides are read; none leaves this out."""
    signals: Annotated[list[Signal], *OneOrMany] = Field(default=list(get_args(Signal)))
    """Which signals; `necessity` costs the most by far."""
    answer_cue: StrictStr = "The final answer is"
    """Put after the steps where the answer is asked for."""
    layer: StrictInt | None = Field(default=None, ge=1)
    """Whose cosines with the answer token are a signal; null is the middle one. All are kept."""
    thinking: StrictBool | None = None
    """Whether a hybrid model reads the chain as its thinking."""
    marks: StatedMarks | None = None
    """How a model marks its reasoning, where its chat template does not show that: a name
    (`think_tags`, `seed_think`, …; docs/given.md), [OPENER, CLOSER], or `none`; null reads it off
    the template."""


class InjectionConfig(Section):
    """Whether a line inside the chain can talk a judge round: the same asks once more, with it."""

    kinds: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Which texts, by name: neutral, command, polite, system, forged_reply, or of `texts`; none
    leaves this out. Every one but `neutral` costs an ask of every item for each demand."""
    demands: Annotated[list[Literal["best", "worst"]], *OneOrMany] = Field(
        default=["best", "worst"]
    )
    """The verdict that a text demands: the best that can be said of a chain, or the worst."""
    chains: StrictInt | None = Field(default=None, ge=1)
    """Of so many chains alone, drawn with the seed; null takes all."""
    texts: StrictStr | None = None
    """A YAML file of your own texts, over the shipped ones."""


class C2ReportConfig(Section):
    """What the report shows."""

    judgements: StrictInt = Field(default=12, ge=0)
    """Examples with prompt and raw reply; every one stands in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Resamples behind the intervals."""


class C2FaithConfig(FolderConfig):
    """A whole run of C2-Faith."""

    FREE: ClassVar[tuple[str, ...]] = JUDGING_FREE

    benchmark: Literal["c2faith"]
    """The study."""
    data: ChainsConfig = ChainsConfig()
    perturb: PerturbConfig = PerturbConfig()
    judge: JudgeConfig
    forms: Annotated[list[StrictStr], *OneOrMany] = Field(
        default=["c2_detection", "c2_localisation", "c2_coverage"]
    )
    """The prompts that are asked, by name (`faithscope list prompts`)."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, over the shipped ones."""
    reference: JudgeName | None = None
    """Who rates coverage with the whole chain at hand; null compares with the share kept only."""
    internals: InternalsConfig = InternalsConfig()
    injection: InjectionConfig = InjectionConfig()
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = Field(default=None, ge=256)
    """Most tokens whose keys and values are held at once; null suits the device."""
    report: C2ReportConfig = C2ReportConfig()

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
        """Who rewrites steps, if anyone does."""
        return self.perturb.writer if self.perturb.acausal == "llm" else None

    @property
    def models(self) -> list[str]:
        """Everyone who is asked anything, each once: judges, the reference, those looked into."""
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
