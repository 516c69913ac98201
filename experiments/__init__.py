"""Data -> traces -> probes -> tables and figures; the `faithscope` command."""

from faithscope.experiments import studies

__all__ = ["studies"]
