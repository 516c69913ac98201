"""Columns of tables, each declared once for CSV header, heading, tooltip and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from faithscope.probes.record import KEYS


@dataclass(frozen=True)
class Column:
    """Declaration of one column of a table: its names, meaning and unit."""

    name: str
    """Name in code and in the CSV header."""
    label: str = ""
    """Heading for readers; empty takes the name with spaces for underscores."""
    meaning: str = ""
    """One line that says how the number is computed and what it tells."""
    unit: str = ""
    """Unit of the numbers; empty for a share from 0 to 1, a count, or text."""
    interval: bool = False
    """Whether the table also has `<name>_low` and `<name>_high`, the ends of a 95 % interval."""

    @property
    def names(self) -> list[str]:
        """Names in the CSV header: the column itself, then the ends of its interval if it has
        one."""
        return [self.name, *(f"{self.name}_{end}" for end in ("low", "high") if self.interval)]

    @property
    def heading(self) -> str:
        """Heading on the page: the label, with the unit in brackets."""
        label = self.label or self.name.replace("_", " ")
        return f"{label} ({self.unit})" if self.unit else label


Columns = Mapping[str, Column]
"""Column name -> declaration."""


def by_name(columns: Iterable[Column]) -> dict[str, Column]:
    """The given columns as a mapping from their names."""
    return {column.name: column for column in columns}


def plain(meanings: Mapping[str, str]) -> dict[str, Column]:
    """Columns without a label of their own, from name -> meaning."""
    return by_name(Column(name, meaning=meaning) for name, meaning in meanings.items())


Words = str | tuple[str, str] | tuple[str, str, str]
"""Texts of a column: its meaning alone, or (label, meaning), or (label, meaning, unit)."""


def described(**words: Words) -> tuple[Column, ...]:
    """Columns in the order of the arguments, from column name -> `Words`."""
    said = {name: ("", x) if isinstance(x, str) else x for name, x in words.items()}
    return tuple(Column(name, x[0], x[1], "".join(x[2:])) for name, x in said.items())


def with_intervals(*columns: Column) -> tuple[Column, ...]:
    """The given columns, each with an interval."""
    return tuple(replace(column, interval=True) for column in columns)


def estimates(**words: Words) -> tuple[Column, ...]:
    """Columns as `described` makes them, each with an interval."""
    return with_intervals(*described(**words))


SHARED = plain(
    {
        **{
            name: f"{meaning[0].upper()}{meaning[1:]}."
            for name, meaning in KEYS.items()
            if name != "seed"
        },
        "reading": "Whether an answer or verdict is written and parsed (generated) or read off "
        "the log-probs of its labels (scored).",
        "prompt": "The prompt that was asked.",
        "measure": "The measure that the row is of.",
        "other": "What it is compared with: another measure, judge, reader or run.",
        "family": "What a measure is read off: answers, their probabilities, the internals of "
        "the model, or a judge.",
        "layer": "Number of the layer, from 1; 0 stands for the embeddings.",
        "bin": "Number of the bin, from 0.",
        "stage": "What items were left out of: the trace, or a probe and its variant.",
        "reason": "Why there is no number, or why items are left out; `total` and `included` are "
        "the ends of such a list.",
        "calls": "Calls of the API; replies from the cache are none.",
        "input_tokens": "Tokens sent, also those that the provider had cached.",
        "output_tokens": "Tokens that came back, also those of the model's reasoning.",
        "reasoning_tokens": "Of the output tokens, those of the model's reasoning.",
        "cached_tokens": "Of the input tokens, those that the provider had cached.",
        "cost": "Dollars, at the prices of each call's time, of the calls that had a price.",
        "priced": "Whether all calls had a price.",
        "estimated_calls": "Calls charged the most that was allowed: the server told no usage, or "
        "nobody saw the reply.",
        "estimated_cost": "Dollars of the calls charged the most that was allowed.",
    }
)
"""Columns with one meaning in all studies. Tables name them by a bare string; their meaning stands
in the documentation and is not repeated on every page."""


def named(columns: Columns, name: str) -> Column:
    """The declaration of a column, or one made from the name alone where there is none."""
    return columns.get(name) or Column(name)
