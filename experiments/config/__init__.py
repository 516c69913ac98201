"""What a run is told to do: typed, checked before any weights are read."""

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.load import load_config
from faithscope.experiments.studies.slrc.config import ReportConfig, RunConfig

__all__ = ["ConfigError", "FolderConfig", "ReportConfig", "RunConfig", "load_config"]
