"""The config of a run over chains: readers, judges, probes, labels, taxonomy and report, beside the
settings shared by all runs over traces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.experiments.config.api import HOW_FAST
from faithscope.experiments.config.backend import WHERE
from faithscope.experiments.config.base import AnyNumber, OneOrMany, Section
from faithscope.experiments.config.comparison import ComparisonConfig
from faithscope.experiments.config.judge import JudgeConfig, room_to_think
from faithscope.experiments.config.model import SubjectName
from faithscope.experiments.config.yaml_source import Key
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig
from faithscope.experiments.engine.traces.sections import (
    DirectPromptName,
    GivenConfig,
    ModelConfig,
)

FORMS = ("step_judge", "faithful_judge", "c2_detection", "c2_localisation", "c2_coverage")
GOOD = ("correct", "final_answer_correct", "faithful", "sound")

Share = Annotated[StrictFloat, Field(ge=0, le=1)]
Names = Annotated[list[StrictStr], Field(min_length=1)]


class SizeConfig(Section):
    """The size of a model whose weights are not at hand."""

    total: StrictInt = Field(ge=1)
    """Total number of parameters."""
    active: StrictInt | None = Field(default=None, ge=1)
    """Number of parameters used per token (all of them in a dense model); null if unknown."""

    @property
    def sizes(self) -> dict[str, int | None]:
        """The size in the fields that a run stores for weights it has loaded."""
        return {"parameters": self.total, "active_parameters": self.active}


class ReadersConfig(ModelConfig):
    """The models that write or read the chains, and how their weights are held."""

    name: Annotated[list[SubjectName], *AnyNumber] = Field(default=[])
    """One or several models: `bundled:NAME`, `planted:NAME`, a hub id, a folder, a .gguf file; or
    `api:PROVIDER/MODEL`, which only probes that ask questions can measure (section `api`). With an
    empty list no model reads the given chains, and only judges are asked about them."""


class ChainsConfig(GivenConfig):
    """Given chains (written elsewhere), in place of chains that models write here."""

    written_by: Annotated[list[StrictStr], *AnyNumber] = Field(default=[])
    """Without a model that reads the chains: judge only those written by these models; names as in
    `writers`, and an empty list takes all chains."""


class JudgesConfig(JudgeConfig):
    """The judges of the chains, what they are asked, and the settings by which they are asked."""

    KEY: ClassVar[str] = "judges"

    forms: Annotated[list[StrictStr], *OneOrMany] = Field(default=[*FORMS, "legibility"])
    """Names of the prompts to ask (`faithscope list prompts`)."""
    prompts: StrictStr | None = None
    """A folder of your own prompt files, which take precedence over the shipped ones of the same
    name."""


class LabelsConfig(Section):
    """The labels that come with chains."""

    good: Annotated[list[StrictStr], *AnyNumber] = Field(default=list(GOOD))
    """Names of labels whose true means that all is well; the true of any other label means that
    something is wrong."""


class ReportConfig(Section):
    """Settings of the report."""

    traces: StrictInt = Field(default=6, ge=0)
    """Number of example traces on the page, with steps coloured by necessity, or by what judges say
    of them; every judgement is in records/."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for intervals, such as that of SLRC."""
    cut: Literal["left_out", "kept"] = "left_out"
    """Whether tables of judges leave out chains that a token limit cut off, or keep them; they are
    counted either way (`n_cut`)."""
    comparison: ComparisonConfig = ComparisonConfig()
    """Settings of the comparison of probes and judges, in runs that have both."""
    least_label_mass: StrictFloat = Field(default=0.1, ge=0, le=1)
    """Minimum label mass: items whose labels together have less of the model's probability after
    the unedited reasoning are left out of scored readings."""
    parameters: dict[StrictStr, SizeConfig] = Field(default_factory=dict)
    """Model name -> size, for models whose parameters the run cannot count, such as API models."""
    groups: dict[StrictStr, Names] = Field(default_factory=dict)
    """Name of a group -> its models. Table 1 lists the models by group, with the mean of each group
    (table `model_groups`)."""
    pairs: dict[StrictStr, Annotated[Names, Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict
    )
    """Name of a pair -> two models, which are compared on the items that both have (table
    `model_pairs`), such as two models of one lab (3.2)."""


def _as_shares(value: object) -> object:
    return [value] if isinstance(value, int | float) else value


class TaxonomyConfig(Section):
    """Thresholds of the four modes genuine, scaffolding, decorative and empty (2.3, 4.3)."""

    necessity: Share = 0.30
    """Necessity at or above which steps matter."""
    gap: Share = 0.10
    """Gain in accuracy at or above which reasoning helps."""
    prompt: DirectPromptName = "unformatted"
    """The direct prompt whose accuracy is the baseline for accuracy with reasoning."""
    sensitivity: Annotated[list[Share], BeforeValidator(_as_shares), Field(min_length=1)] = Field(
        default=[0.20, 0.25, 0.30, 0.35]
    )
    """Necessity thresholds for the sensitivity analysis (Extended Data 3)."""
    robustness: Share = 0.05
    """Change in necessity at or above which a change of prompt matters (2.6)."""


class RunConfig(TracesConfig):
    """The whole config of a run: models write or read chains, which probes and judges measure."""

    FREE: ClassVar[tuple[str, ...]] = (
        *TracesConfig.FREE,
        "report.",
        "labels.",
        "traces.written_by",  # a chain is a unit, whoever wrote others
        "judges.prompts",  # a form's text decides by itself what was asked
        *(f"judges.{key}" for key in (*HOW_FAST, *WHERE)),
    )
    SHOWN: ClassVar[tuple[str, ...]] = (*TracesConfig.SHOWN, "labels")

    OPTIONAL: ClassVar[Mapping[str, str]] = {"model": "name", "judges": "model"}

    model: ReadersConfig = ReadersConfig()
    traces: ChainsConfig = ChainsConfig()
    probes: Annotated[list[ProbeName], *AnyNumber] = Field(default=["slrc"])
    """Names of the probes that measure each trace (`faithscope list probes`); none where no model
    reads the chains."""
    judges: JudgesConfig | None = None
    """Models that judge each chain, as a whole or step by step; null asks no judge."""
    labels: LabelsConfig = LabelsConfig()
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    report: ReportConfig = ReportConfig()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Give judges behind an API room to think (`room_to_think`)."""
        return room_to_think(super().as_asked(values, asked, shipped), asked, shipped, "judges")

    @model_validator(mode="before")
    @classmethod
    def _no_probe_without_a_reader(cls, values: Any) -> Any:
        """Without a model that reads the chains, no probe is the default."""
        model = values.get("model") if isinstance(values, dict) else None
        if isinstance(values, dict) and not (isinstance(model, dict) and model.get("name")):
            return {"probes": [], **values}
        return values

    @model_validator(mode="after")
    def _somebody_reads_or_judges(self) -> Self:
        if self.judges is not None and (problem := self.judges.misfit()):
            raise ValueError(problem)
        if self.model.name:
            if self.traces.written_by:
                raise ValueError(
                    "traces.written_by: is of chains that judges alone read; models of model.name "
                    "read their own chains by traces.read_by: writer"
                )
            if not self.probes and self.judges is None:
                raise ValueError("probes: name one, or judges in judges.model; nothing is measured")
            return self
        if self.judges is None:
            raise ValueError(
                "model.name: missing; name a model that writes or reads the chains, or one that "
                "judges them in judges.model"
            )
        if self.probes:
            raise ValueError(
                f"probes: {', '.join(self.probes)}: no model reads the chains; name one in "
                "model.name, or take the probes out"
            )
        of_readers = {"groups": None, "conclusion": "strip"}
        if named := [k for k, unset in of_readers.items() if getattr(self.steps, k) != unset]:
            raise ValueError(
                f"steps.{named[0]}: is of chains that a model reads, and model.name names none"
            )
        return self

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        in_lists = [*self.report.groups.values(), *self.report.pairs.values()]
        named = [*self.report.parameters, *(m for models in in_lists for m in models)]
        strangers = [m for m in dict.fromkeys(named) if m not in self.model.name]
        if strangers:
            keys = "report.parameters, groups, pairs" if in_lists else "report.parameters"
            notes.append(f"{keys}: no models of this run: {', '.join(strangers)}")
        if self.judges is not None:
            notes += self.judges.short_of_thought(self.judges.model)
        return notes


CONFIG = RunConfig
