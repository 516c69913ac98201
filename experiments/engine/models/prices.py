"""Prices of API models: the file of prices, and an estimate of costs made before a run."""

from __future__ import annotations

import re
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
from faithscope.experiments.numerals import money
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Usage
from faithscope.probes.judge.spend import REPLY_TOKENS, most_used

if TYPE_CHECKING:
    from faithscope.probes.judge.form import Ask, Writing


class Price(Section):
    """Prices of a model in US dollars per million tokens."""

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Price of input tokens in the provider's prompt cache; null for the price of input."""
    output: float = Field(ge=0)
    """Price of output tokens; reasoning tokens are billed as output."""
    source: str
    """Source of the prices: the price list of a provider."""

    def of(self, usage: Usage) -> float:
        """Dollars that `usage` costs. `Usage.input_tokens` includes cached tokens."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        dollars = fresh * self.input + usage.cached_tokens * cached
        return (dollars + usage.output_tokens * self.output) / 1e6


Prices = Mapping[str, Price]
"""Model name -> its price."""


class PriceFile(Section):
    """Schema of a file of prices."""

    as_of: date
    models: dict[str, Price]


def read_prices(path: Path) -> PriceFile:
    """The prices in a YAML file.

    Raises:
        UserError: the file is missing, is no YAML, or does not fit the schema; one line per
            problem.
    """
    tree = read_tree(path, [], "a price table needs at least as_of and models")
    try:
        return PriceFile.model_validate(tree.values)
    except ValidationError as error:
        raise UserError("\n".join(explain(tree, error, PriceFile))) from None


def prices_of(spend: SpendConfig) -> Prices:
    """The prices of a run; none if its config names no file.

    Raises:
        UserError: the prices cannot be read.
    """
    if spend.prices is None:
        return {}
    try:
        return read_prices(located(spend.prices)).models
    except UserError as error:
        told = (f"spend.prices: {line}" for line in str(error).split("\n"))
        raise UserError("\n".join(told)) from None


_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def priced_as(name: str, prices: Prices) -> str | None:
    """The name under which a model has a price: its whole name, its last part, or one of these
    without the date at its end (`o3-2025-04-16` as `o3`).

    Each is looked up as written, then in any case: services spell one model in different ways.
    """
    folded = {known.casefold(): known for known in prices}
    names = (name, name.rpartition("/")[2])
    for wanted in (*names, *(_DATED.sub("", n) for n in names)):
        known = wanted if wanted in prices else folded.get(wanted.casefold())
        if known is not None:
            return known
    return None


def price_of(name: str, prices: Prices) -> Price | None:
    """The price of a model, under the name that `priced_as` finds."""
    known = priced_as(name, prices)
    return None if known is None else prices[known]


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
        model: sum((most_used(ask, judge.max_tokens) for ask in of_model), Usage())
        for model, of_model in asks.items()
        if model.startswith(API) and of_model
    }
    method = "tokens are estimated from the kind of text, without a tokenizer, and rather high"
    if judge.max_tokens is None:
        method += f"; a reply without a limit counted as {REPLY_TOKENS:,} tokens, and may be longer"
    header = (who, "calls", "input tokens", "output tokens, at most", "dollars, at most")
    return cost_lines(usage, spend, header, method)


def cost_lines(
    usage: Mapping[str, Usage], spend: SpendConfig, header: tuple[str, ...], note: str
) -> list[str]:
    """Lines of a table of calls, tokens and dollars by model; none without a model.

    Args:
        note: line below the table, on how the numbers were found.
    """
    table, notes, prices = [header], [note], prices_of(spend) if usage else {}
    for model, used in usage.items():
        name = model.removeprefix(API)
        known = priced_as(name, prices)
        cost = "no price" if known is None else money(prices[known].of(used))
        counts = (used.calls, used.input_tokens, used.output_tokens)
        table.append((model, *(f"{n:,}" for n in counts), cost))
        if known is not None and not name.casefold().endswith(known.casefold()):
            notes.append(f"{name} is priced as {known}")
    return ["", *columns(table), *notes] if usage else []
