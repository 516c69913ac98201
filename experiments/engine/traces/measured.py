"""What `faithscope.measure` returns: records that print as a short table, results first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.interventions.trace import Trace
from faithscope.probes import PROBES
from faithscope.probes.record import ARRAYS, COST, KEYS, Record, mean_of_steps

_COLUMNS, _WIDTH = 12, 60
"""Most columns of a printed table, of which `frame` has all; most characters of a printed value."""
_HOW = {*COST, "unit", "n_packs", "baseline_moved", "baseline_moved_tv", "baseline_redecided"}
"""Fields on how it was measured, beside counts (`n_…`), label masses and the probe's settings."""


class MeasuredRecord(Record):
    """A record that prints a field a line, results first, with long values cut short."""

    def __repr__(self) -> str:
        arrays = {f"arrays[{k!r}]": _shape(x) for k, x in (self.get(ARRAYS) or {}).items()}
        shown = {k: repr(self[k]) for k in (*KEYS, *_ordered([self]))} | arrays
        width = max(map(len, shown))
        return "\n".join(
            f"{k:<{width}}  {v if len(v) <= _WIDTH else v[: _WIDTH - 1] + '…'}"
            for k, v in shown.items()
        )


class Measured(list[Record]):
    """Records, as a run would store them, that print as a table of their numbers.

    In a notebook the steps of the trace are shown with them, coloured by what the probe found.
    """

    def __init__(self, records: Iterable[Record] = (), trace: Trace | None = None) -> None:
        """
        Args:
            trace: the trace that was measured, if it is at hand.
        """
        super().__init__(map(MeasuredRecord, records))
        self.trace = trace

    @property
    def frame(self) -> pd.DataFrame:
        """A frame with a row per record: texts, numbers and lists by name, without raw arrays; the
        results stand first after the keys, settings and counts last."""
        names = [*KEYS, *_ordered(self)] if self else []
        return pd.DataFrame([{k: r.get(k) for k in names} for r in self])

    def __repr__(self) -> str:
        if not self:
            return "[]"
        table = self.numbers
        left = len(_ordered(self)) - len(table.columns) + ("variant" in table)
        more = f"\n… {left} more fields in .frame" if left > 0 else ""
        return f"{self.head}\n{table.to_string(index=False)}{more}"

    def _repr_html_(self) -> str | None:
        drawn = Trace.drawing
        return drawn(self.trace, self) if drawn and self.trace is not None and self else None

    @property
    def head(self) -> str:
        """One line that says of which probe and item the records are."""
        first, n = self[0], len(self)
        means = "; of a list over steps, the mean" if any(map(_of_steps, self[:1])) else ""
        return f"{n} record{'s' * (n > 1)} of {first['probe']} about item {first['item']}{means}"

    @property
    def numbers(self) -> pd.DataFrame:
        """One value per record and field: results first (of a list over the steps its mean), then
        texts, settings and counts; one of the latter that all records share is left out."""
        short: dict[str, list[Any]] = {}
        for name in ("variant", *_ordered(self)):
            values = [_value(r, name) for r in self]
            apart = len(self) == 1 or len(set(map(str, values))) > 1 or _rank(self, name) == 0
            if apart and all(len(str(v)) < 30 for v in values) and {*values} - {None, ""}:
                short[name] = values
        return pd.DataFrame({name: short[name] for name in list(short)[:_COLUMNS]})


def _ordered(records: Sequence[Record]) -> list[str]:
    """Fields of records in the order in which they are shown: results, whole numbers and yes or no,
    texts, then what says how was measured; the record's own order among those of one kind."""
    names = dict.fromkeys(name for r in records for name in r if name not in (*KEYS, ARRAYS))
    return sorted(names, key=lambda name: _rank(records, name))


def _rank(records: Sequence[Record], name: str) -> int:
    probe = PROBES.get(records[0]["probe"])
    settings = probe.settings.model_fields if probe else {}
    if name in _HOW or name in settings or name.startswith("n_") or "mass" in name.split("_"):
        return 3
    values = [_value(r, name) for r in records]
    kinds = (i for i, kind in enumerate((float, int)) if any(isinstance(v, kind) for v in values))
    return next(kinds, 2)


def _of_steps(record: Record) -> list[str]:
    """Fields that hold a number, or a yes or no, for each of the record's steps."""
    n = len(record.get("steps") or ())
    return [
        name
        for name, values in record.items()
        if n
        and isinstance(values, list)
        and len(values) == n
        and name != "steps"
        and not name.endswith("_by_layer")
        and all(v is None or isinstance(v, int | float) for v in values)
    ]


def _value(record: Record, name: str) -> Any:
    """The field as one value: of a list over the steps its mean; "" of other lists."""
    value = record.get(name)
    if not isinstance(value, list | dict):
        return value
    if name not in _of_steps(record):
        return ""
    mean = mean_of_steps(value, record.get("inclusion"))
    return None if mean is None else round(mean, 6)


def _shape(array: Any) -> str:
    array = np.asarray(array)
    return f"{array.dtype} {array.shape}"
