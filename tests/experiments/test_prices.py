"""The shipped price table, and what a table of one's own is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.prices import read_prices
from interp.errors import UserError
from probes.judge.spend import Price, price_of

SHIPPED = Path(__file__).parents[2] / "configs" / "prices.yaml"


def test_the_judges_of_the_papers_are_there_or_said_to_be_missing():
    table = read_prices(SHIPPED)
    assert {"gpt-4.1", "o4-mini", "deepseek-v3.1"} <= set(table.prices)
    slrc = len(set(table.prices) - {"gpt-4.1", "deepseek-v3.1"}) + len(table.unknown)
    assert slrc == 16
    assert not set(table.prices) & set(table.unknown)
    for price in table.prices.values():
        assert 0 < (price.cached or price.input) <= price.input < price.output
    assert all(table.sources.values())


def test_a_judge_is_found_by_its_whole_name_first():
    prices = {"azure/m": Price(1, 1), "m": Price(2, 2)}
    assert price_of("openai/azure/m", prices) == Price(2, 2)
    assert price_of("azure/m", prices) == Price(1, 1)
    assert price_of("openai/other", prices) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: {}", "as_of: missing"),
        ("as_of: 2026-01-01\nmodels: {m: {input: 1, source: x}}", "models.m.output: missing"),
        (
            "as_of: 2026-01-01\nmodels: {m: {input: -1, output: 1, source: x}}",
            "models.m.input: must be at least 0",
        ),
        ("as_of: 2026-01-01\nmodels: {}\nmodel: 1", "model: unknown key"),
    ],
)
def test_a_table_that_is_none_is_told_why(tmp_path, text, message):
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        read_prices(path)
    assert str(path) in str(error.value)
