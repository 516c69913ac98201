"""One measure per file: a trace and a model in, flat records out.

A probe knows nothing of datasets, files or run folders. To add one, write a function
`(model, trace, asking, settings) -> list[Record]` in a file of its own and name it in
`PROBES`.
"""

from collections.abc import Callable
from typing import Any

from probes.framing import Asking
from probes.record import Record, record
from probes.slrc import SlrcSettings, slrc

PROBES: dict[str, Callable[..., list[Record]]] = {"slrc": slrc}
"""Every probe by the name that its records carry."""

SETTINGS: dict[str, type[Any]] = {"slrc": SlrcSettings}
"""The settings that each probe takes, a frozen dataclass with defaults."""

__all__ = ["PROBES", "SETTINGS", "Asking", "Record", "SlrcSettings", "record", "slrc"]
