"""Where the classes of the SLRC paper part."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, StrictFloat

from faithscope.experiments.config.base import Section

DirectPromptName = Literal["unformatted", "formatted", "system"]
DIRECT_PROMPTS = get_args(DirectPromptName)

Share = Annotated[StrictFloat, Field(ge=0, le=1)]


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
