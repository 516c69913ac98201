"""What a run of SLRC is told beside what every run over traces is."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from faithscope.experiments.config.base import OneOrMany
from faithscope.experiments.engine.traces.config import ProbeName, TracesConfig
from faithscope.experiments.studies.slrc.sections import ReportConfig, TaxonomyConfig


class RunConfig(TracesConfig):
    """A run over traces: models write them, probes measure them."""

    FREE: ClassVar[tuple[str, ...]] = (*TracesConfig.FREE, "report.")

    probes: Annotated[list[ProbeName], *OneOrMany] = Field(default=["slrc"])
    """What is measured, by name (`faithscope list probes`)."""
    taxonomy: TaxonomyConfig = TaxonomyConfig()
    report: ReportConfig = ReportConfig()

    @property
    def notes(self) -> list[str]:
        notes = super().notes
        strangers = [m for m in self.report.parameters if m not in self.model.name]
        if strangers:
            notes.append(f"report.parameters: no models of this run: {', '.join(strangers)}")
        return notes
