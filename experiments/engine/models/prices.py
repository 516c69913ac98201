"""Costs of API calls: the file of prices, and an estimate made before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from faithscope.experiments.config.api import API, ApiSection, SpendConfig
from faithscope.experiments.config.base import Section
from faithscope.experiments.config.errors import explain
from faithscope.experiments.config.shipped import located
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.experiments.engine.listing import columns
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import Price, dated_note, estimate

if TYPE_CHECKING:
    from faithscope.probes.judge.form import Ask, Writing


class PriceEntry(Section):
    input: float = Field(ge=0)
    """Price of input tokens in US dollars per million."""
    cached: float | None = Field(default=None, ge=0)
    output: float = Field(ge=0)
    source: str
    """Source of the prices: the price list of a provider."""


class PriceFile(Section):
    as_of: date
    models: dict[str, PriceEntry]
    unknown: dict[str, str] = Field(default_factory=dict)
    """Model whose price was not found -> the reason."""

    @property
    def prices(self) -> dict[str, Price]:
        """Model name -> its price."""
        return {name: Price(e.input, e.output, e.cached) for name, e in self.models.items()}


def read_prices(path: Path) -> PriceFile:
    """The price table in a YAML file.

    Raises:
        UserError: the file is missing, is no YAML, or does not fit the schema; one line per
            problem.
    """
    tree = read_tree(path, [], "a price table needs at least as_of and models")
    try:
        return PriceFile.model_validate(tree.values)
    except ValidationError as error:
        raise UserError("\n".join(explain(tree, error, PriceFile))) from None


def prices_of(spend: SpendConfig) -> dict[str, Price]:
    """The prices of a run; none if its config names no file.

    Raises:
        UserError: the prices cannot be read; for a missing file, the message says where it was
            looked for.
    """
    if spend.prices is None:
        return {}
    path = located(spend.prices)
    try:
        return read_prices(path).prices
    except UserError as error:
        if path.exists():
            raise
        where = "" if path.is_absolute() else f", looked for from {Path.cwd()}"
        raise UserError(
            f"spend.prices: {error}{where}; say where it is: --set spend.prices=PATH (the shipped "
            "one is shipped:prices.yaml)"
        ) from error


def spending_lines(
    asks: Mapping[str, Sequence[Ask | Writing]],
    judge: ApiSection,
    spend: SpendConfig,
    who: str = "judge",
) -> list[str]:
    """Lines for `--dry-run` on what the pending asks to APIs would use; none without any.

    Args:
        who: role of the models, at the head of the table.
    """
    table, notes, method, prices = [], [], "", prices_of(spend)
    for model, of_model in asks.items():
        if not model.startswith(API) or not of_model:
            continue
        name = model.removeprefix(API)
        expected = estimate(of_model, name, judge.max_tokens, prices)
        notes += dated_note(name, prices)
        cost = "no price" if expected.cost is None else f"{expected.cost:.2f}"
        tokens = (f"{expected.input_tokens:,}", f"{expected.output_tokens:,}")
        table.append((model, f"{expected.calls:,}", *tokens, cost))
        method = expected.method
    if not table:
        return []
    header = (who, "calls", "input tokens", "output tokens, at most", "dollars, at most")
    return ["", *columns([header, *table]), f"tokens counted as {method}", *notes]
