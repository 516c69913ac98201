"""The slice of every measure, in the order of the measures; see `slice`.

To add one, write `SLICE` in a file named for its probe.
"""

from importlib import import_module
from importlib.util import find_spec

from faithscope.experiments.studies.slrc.slice import Slice
from faithscope.probes import PROBES

SLICES: dict[str, Slice] = {
    name: import_module(f"{__name__}.{name}").SLICE
    for name in PROBES
    if find_spec(f"{__name__}.{name}") is not None
}
"""By probe."""
