"""What a run of SLRC is told beside what every run over traces is: probes, report, taxonomy."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, StrictStr

from faithscope.experiments.config.base import OneOrMany, Section
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig
from faithscope.experiments.engine.traces.sections import DirectPromptName

Share = Annotated[StrictFloat, Field(ge=0, le=1)]


class SizeConfig(Section):
    """How large a model is whose weights are not at hand."""

    total: StrictInt = Field(ge=1)
    """Number of parameters."""
    active: StrictInt | None = Field(default=None, ge=1)
    """Parameters that one token goes through; null is not known, of a dense model all."""

    @property
    def sizes(self) -> dict[str, int | None]:
        """As a run counts them of weights that it has loaded."""
        return {"parameters": self.total, "active_parameters": self.active}


class ReportConfig(Section):
    """What the report shows."""

    traces: StrictInt = Field(default=6, ge=0)
    """Example traces, with steps coloured by necessity."""
    bootstrap: StrictInt = Field(default=1000, ge=1, le=100_000)
    """Resamples behind the interval of SLRC."""
    least_label_mass: StrictFloat = Field(default=0.1, ge=0, le=1)
    """Scored readings are left out of items whose labels all together have less of the model's
    probability after the unedited reasoning."""
    parameters: dict[StrictStr, SizeConfig] = Field(default_factory=dict)
    """By model, its size, where the run cannot count it: a model behind an API."""


def _as_shares(value: object) -> object:
    return [value] if isinstance(value, int | float) else value


class TaxonomyConfig(Section):
    """Where genuine, scaffolding, decorative and empty part (2.3, 4.3)."""

    necessity: Share = 0.30
    """Steps matter from this necessity on."""
    gap: Share = 0.10
    """Reasoning helps from this gain in accuracy on."""
    prompt: DirectPromptName = "unformatted"
    """The direct prompt that the accuracy with reasoning is compared with."""
    sensitivity: Annotated[list[Share], BeforeValidator(_as_shares), Field(min_length=1)] = Field(
        default=[0.20, 0.25, 0.30, 0.35]
    )
    """Necessity thresholds to try (Extended Data 3)."""
    robustness: Share = 0.05
    """A change of prompt matters from this change in necessity on (2.6)."""


class RunConfig(TracesConfig):
    """A run over traces: models write them, probes measure them."""

    FREE: ClassVar[tuple[str, ...]] = (*TracesConfig.FREE, "report.")

    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=["slrc"])
    """Names of the probes that measure each trace (`faithscope list probes`)."""
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    report: ReportConfig = ReportConfig()

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        strangers = [m for m in self.report.parameters if m not in self.model.name]
        if strangers:
            notes.append(f"report.parameters: no models of this run: {', '.join(strangers)}")
        return notes
