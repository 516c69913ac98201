"""Costs of API calls: the file of prices, and an estimate made before a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce
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
from faithscope.probes.judge import spend as costs

if TYPE_CHECKING:
    from faithscope.probes.judge.form import Ask, Usage, Writing


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
    def prices(self) -> dict[str, costs.Price]:
        """Model name -> its price."""
        return {name: costs.Price(e.input, e.output, e.cached) for name, e in self.models.items()}


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


def prices_of(spend: SpendConfig) -> dict[str, costs.Price]:
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
    """Lines for `--dry-run` on what the pending asks to APIs would use at most; none without any.

    One call is counted for each ask; repeats after malformed replies come on top.

    Args:
        who: role of the models, at the head of the table.
    """
    usage = {
        model: reduce(costs.add, (costs.most_used(ask, judge.max_tokens) for ask in of_model))
        for model, of_model in asks.items()
        if model.startswith(API) and of_model
    }
    method = f"tokens counted as characters / {costs.CHARACTERS_PER_TOKEN:g}, without a tokenizer"
    header = (who, "calls", "input tokens", "output tokens, at most", "dollars, at most")
    return cost_lines(usage, spend, header, method)


def cost_lines(
    usage: Mapping[str, Usage], spend: SpendConfig, header: tuple[str, ...], note: str
) -> list[str]:
    """Lines of a table of calls, tokens and dollars by model; none without a model.

    Args:
        note: line below the table, on how the numbers were found.
    """
    table, notes, prices = [header], [], prices_of(spend) if usage else {}
    for model, used in usage.items():
        price = costs.price_of(model.removeprefix(API), prices)
        cost = "no price" if price is None else f"{price.of(used):.2f}"
        counts = (used.calls, used.input_tokens, used.output_tokens)
        table.append((model, *(f"{n:,}" for n in counts), cost))
        notes += costs.dated_note(model.removeprefix(API), prices)
    return ["", *columns(table), note, *notes] if usage else []
