"""Probes that measure something with their default settings."""

from __future__ import annotations

from faithscope.probes import PROBES

AS_THEY_ARE = [name for name, probe in PROBES.items() if not probe.settings().lacks()]
