"""The records of one probe about one trace, as a notebook shows them."""

from __future__ import annotations

import pandas as pd

from faithscope.probes.record import KEYS, Record

_SHOWN = 12
"""Most columns that are printed; `frame` has all."""


class Measured(list[Record]):
    """Records, as a run would store them, that print as a table of their numbers."""

    @property
    def frame(self) -> pd.DataFrame:
        """A frame with a row per record: texts, numbers and lists by name, without raw arrays."""
        return pd.DataFrame([{k: v for k, v in r.items() if k != "arrays"} for r in self])

    def __repr__(self) -> str:
        return f"{self._head()}\n{self._numbers().to_string(index=False)}" if self else "[]"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no records</p>"
        return f"<p>{self._head()}</p>{self._numbers().to_html(index=False)}"

    def _head(self) -> str:
        first, n = self[0], len(self)
        return f"{n} record{'s' * (n > 1)} of {first['probe']} about item {first['item']}"

    def _numbers(self) -> pd.DataFrame:
        """The columns that hold one number per record, without those that all records share."""
        columns = {name: [r.get(name) for r in self] for name in self[0] if name != "arrays"}
        short = {
            name: values
            for name, values in columns.items()
            if (name not in KEYS or name == "variant")
            and not any(isinstance(v, list | dict) or len(str(v)) >= 30 for v in values)
            and any(v is not None for v in values)
            and (len(self) == 1 or len(set(values)) > 1)
        }
        return pd.DataFrame({name: short[name] for name in list(short)[:_SHOWN]})
