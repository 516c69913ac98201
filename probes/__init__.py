"""One measure per file: a trace and a model in, flat records out.

A probe knows nothing of datasets, files or run folders. To add one, write a function from a model,
a trace, the task's words for it (`Asking`) and the settings to a list of records, in a file of the
same name, with `@probe` above it: `PROBES` then holds it, and those of installed packages
(`faithscope new probe NAME`). Probes are imported at the first use of `PROBES`, since they import
numpy and scipy, which a config or a list of commands need not wait for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from faithscope.interp.extensions import entries, extensions

if TYPE_CHECKING:
    from faithscope.probes.framing import Asking
    from faithscope.probes.probe import Probe
    from faithscope.probes.record import Record
    from faithscope.probes.settings import Settings
    from faithscope.probes.text_model import Message

    PROBES: dict[str, Probe]
    """Every probe by its name."""

__all__ = ["PROBES", "Asking", "Message", "Probe", "Record", "Settings", "probe_called"]

_MODULES = {
    "Asking": "framing",
    "Message": "text_model",
    "PROBES": "probe",
    "Probe": "probe",
    "Record": "record",
    "Settings": "settings",
}


@cache
def _files() -> frozenset[str]:
    """Names of this package's own modules."""
    return frozenset(module.name for module in iter_modules(__path__) if not module.ispkg)


@cache
def _import_all() -> None:
    # once: the names of what was added are taken a second time
    for name in sorted(_files()):
        import_module(f"{__name__}.{name}")
    probes = import_module(f"{__name__}.probe").PROBES
    extensions("probes", taken=frozenset(probes))
    ordered = sorted(probes.values(), key=lambda probe: (probe.listed, probe.name))
    probes.clear()
    probes.update((probe.name, probe) for probe in ordered)


def probe_called(name: str) -> Probe:
    """The probe `PROBES[name]`, for which only its own file is imported.

    Raises:
        KeyError: there is no such probe.
    """
    # a plan asks this for every stage of every item
    if name in _files():
        import_module(f"{__name__}.{name}")
    elif any(entry.name == name for entry in entries("probes")):
        _import_all()
    return _registered()[name]


@cache
def _registered() -> dict[str, Probe]:
    return import_module(f"{__name__}.probe").PROBES


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'faithscope.probes' has no attribute {name!r}")
    if name == "PROBES":
        _import_all()
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
