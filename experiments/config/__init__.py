"""What a run is told to do: typed, checked before any weights are read."""

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.load import load_config

__all__ = ["ConfigError", "FolderConfig", "load_config"]
