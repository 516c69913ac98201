"""The config of a run of SLRC, beside the settings shared by all runs over traces: probes, report,
taxonomy."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, StrictStr

from faithscope.experiments.config.base import OneOrMany, Section
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig
from faithscope.experiments.engine.traces.sections import DirectPromptName

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


class ReportConfig(Section):
    """Settings of the report."""

    traces: StrictInt = Field(default=6, ge=0)
    """Number of example traces on the page, with steps coloured by necessity."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Number of bootstrap resamples for intervals, such as that of SLRC."""
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
    """The whole config of a run over traces: models write the traces, probes measure them."""

    FREE: ClassVar[tuple[str, ...]] = (*TracesConfig.FREE, "report.")

    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=["slrc"])
    """Names of the probes that measure each trace (`faithscope list probes`)."""
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    report: ReportConfig = ReportConfig()

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        in_lists = [*self.report.groups.values(), *self.report.pairs.values()]
        named = [*self.report.parameters, *(m for models in in_lists for m in models)]
        strangers = [m for m in dict.fromkeys(named) if m not in self.model.name]
        if strangers:
            keys = "report.parameters, groups, pairs" if in_lists else "report.parameters"
            notes.append(f"{keys}: no models of this run: {', '.join(strangers)}")
        return notes


CONFIG = RunConfig
