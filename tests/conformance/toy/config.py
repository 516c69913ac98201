from __future__ import annotations

from typing import ClassVar

from pydantic import StrictInt

from faithscope.experiments.config.api import HOW_FAST, SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.judge import JudgeConfig


class ToyConfig(FolderConfig):
    """The settings of the toy study."""

    FREE: ClassVar[tuple[str, ...]] = (
        *FolderConfig.FREE,
        "spend.",
        *(f"judge.{key}" for key in HOW_FAST),
    )

    benchmark: str
    judge: JudgeConfig
    """The models that are asked."""
    n: StrictInt = 5
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = None
