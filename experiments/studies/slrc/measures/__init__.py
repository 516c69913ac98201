"""The report of every measure, in the order of the measures; see `measure_report`.

To add one, write `REPORT` in a file named for its probe.
"""

from importlib import import_module
from importlib.util import find_spec

from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.interp.extensions import extensions
from faithscope.probes import PROBES

REPORTS: dict[str, MeasureReport] = {
    name: import_module(f"{__name__}.{name}").REPORT
    for name in PROBES
    if find_spec(f"{__name__}.{name}") is not None
}
"""Probe -> the report of its measure."""
REPORTS |= extensions("reports", MeasureReport, taken=frozenset(REPORTS))
