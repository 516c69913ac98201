"""One measure per file: a trace and a model in, flat records out.

A probe knows nothing of datasets, files or run folders. To add one, write a function from a
model, a trace, what a task says about it and the settings to a list of records, in a file of its
own and of its name, with `@probe` above it: `PROBES` finds it here.
"""

from importlib import import_module
from pkgutil import iter_modules

from faithscope.probes.framing import Asking
from faithscope.probes.probe import PROBES, Probe
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Settings
from faithscope.probes.text_model import Message

_FIRST = ("slrc", "direct", "sycophancy", "error_detection", "attention", "rigidity", "flow")
_FIRST += ("linear_probe", "tracing", "information", "knockout", "causal_effects", "patching")
"""The order in which lists and tables name them; others come after these."""

_found = [m.name for m in iter_modules(__path__) if not m.ispkg]
for _name in (*_FIRST, *sorted(set(_found) - set(_FIRST))):
    import_module(f"{__name__}.{_name}")

__all__ = ["PROBES", "Asking", "Message", "Probe", "Record", "Settings", "record"]
