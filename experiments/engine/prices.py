"""The price table of judges behind an API, as `configs/prices.yaml` holds it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from faithscope.experiments.config.base import Section
from faithscope.experiments.config.errors import explain
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import Price


class PriceEntry(Section):
    input: float = Field(ge=0)
    """US dollars per million tokens."""
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)
    source: str
    """Whose list it was."""


class PriceFile(Section):
    as_of: date
    models: dict[str, PriceEntry]
    unknown: dict[str, str] = Field(default_factory=dict)
    """Models looked for without success, and why."""


@dataclass(frozen=True)
class PriceTable:
    """What judging costs, and since when that is known."""

    prices: dict[str, Price]
    sources: dict[str, str]
    as_of: date
    unknown: dict[str, str]


def read_prices(path: Path) -> PriceTable:
    """The price table in a YAML file.

    Raises:
        UserError: the file is missing, no YAML, or not of the form; one line per problem.
    """
    tree = read_tree(path, [], "a price table needs at least as_of and models")
    try:
        file = PriceFile.model_validate(tree.values)
    except ValidationError as error:
        raise UserError("\n".join(explain(tree, error, PriceFile))) from None
    return PriceTable(
        {name: Price(e.input, e.output, e.cached) for name, e in file.models.items()},
        {name: e.source for name, e in file.models.items()},
        file.as_of,
        dict(file.unknown),
    )
