"""What a run is told to do: typed, checked before any weights are read."""

from experiments.config.base import ConfigError, FolderConfig
from experiments.config.load import load_config
from experiments.config.run_config import ReportConfig, RunConfig

__all__ = ["ConfigError", "FolderConfig", "ReportConfig", "RunConfig", "load_config"]
