"""What a run is told to do: typed, checked before any weights are read."""

from experiments.config.run_config import ConfigError, ReportConfig, RunConfig, load_config

__all__ = ["ConfigError", "ReportConfig", "RunConfig", "load_config"]
