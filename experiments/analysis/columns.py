"""A column of tables, declared once: CSV header, headings, tooltip and documentation have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from faithscope.probes.record import KEYS


@dataclass(frozen=True)
class Column:
    """What a column is called, and what stands in it."""

    name: str
    """In code and in CSV."""
    label: str = ""
    """For people; the name with spaces where empty."""
    meaning: str = ""
    """One line: how the number is made, and what it says."""
    unit: str = ""
    """Empty for a share from 0 to 1, a count, and a text."""
    interval: bool = False
    """Whether `<name>_low` and `<name>_high`, the ends of its 95 % interval, stand beside it."""

    @property
    def names(self) -> list[str]:
        """Its names in CSV: its own, and those of the ends of its interval."""
        return [self.name, *(f"{self.name}_{end}" for end in ("low", "high") if self.interval)]

    @property
    def heading(self) -> str:
        label = self.label or self.name.replace("_", " ")
        return f"{label} ({self.unit})" if self.unit else label


Columns = Mapping[str, Column]
"""By name."""


def by_name(columns: Iterable[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


def plain(meanings: Mapping[str, str]) -> dict[str, Column]:
    """Columns that are called as their names say: name -> meaning."""
    return by_name(Column(name, meaning=meaning) for name, meaning in meanings.items())


Words = str | tuple[str, str] | tuple[str, str, str]
"""What a column means; or its label, its meaning and, as the third, its unit."""


def described(**words: Words) -> tuple[Column, ...]:
    """Columns in order: name -> what it means, or label, meaning and unit."""
    said = {name: ("", x) if isinstance(x, str) else x for name, x in words.items()}
    return tuple(Column(name, x[0], x[1], "".join(x[2:])) for name, x in said.items())


def estimates(**words: Words) -> tuple[Column, ...]:
    """Columns as of `described`, of which each has the ends of its interval beside it."""
    return tuple(replace(column, interval=True) for column in described(**words))


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
        "family": "What a measure is read off: answers, their probabilities, the insides of the "
        "model, or a judge.",
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
        "estimated_calls": "Calls whose tokens are estimates: the server told none, or nobody saw "
        "the reply.",
        "estimated_cost": "Dollars of the calls whose tokens are estimates.",
    }
)
"""Columns that say the same in all studies; only the documentation says what, not every page."""


def named(columns: Columns, name: str) -> Column:
    """A column that was declared, or one that has nothing but its name."""
    return columns.get(name) or Column(name)
