from __future__ import annotations

from pydantic import StrictInt

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.model import ModelName


class ToyConfig(FolderConfig):
    """What the toy study is told."""

    benchmark: str
    model: ModelName
    n: StrictInt = 5
    fails_at: StrictInt | None = None
    """An item that fails."""
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = None
