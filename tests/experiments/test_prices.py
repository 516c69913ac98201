"""The shipped price table, and what a table of one's own is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from faithscope.experiments.config.api import ApiSection, SpendConfig
from faithscope.experiments.engine.models.prices import (
    Price,
    cost_lines,
    price_of,
    prices_of,
    read_prices,
    spending_lines,
)
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask, Field, Form, Usage
from faithscope.probes.judge.parse import request
from faithscope.probes.judge.spend import most_used, tokens_of

SHIPPED = Path(__file__).parents[2] / "configs" / "prices.yaml"


def price(read: float, written: float, cached: float | None = None) -> Price:
    return Price(input=read, output=written, cached=cached, source="a test")


def test_a_price_by_hand():
    usage = Usage(1, input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert price(2, 8, cached=0.5).of(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert price(1, 1).of(usage) == pytest.approx(1.5)
    assert usage + Usage(1, 1, 2, 3, 4) == Usage(2, 1_000_001, 500_002, 3, 400_004)


def test_the_judges_of_the_papers_are_there():
    table = read_prices(SHIPPED)
    judges = {"gpt-4.1", "deepseek-v3.1", "together/deepseek-ai/DeepSeek-V3.1", "o3", "gpt-5"}
    assert judges | {"o4-mini"} <= set(table.models)
    subjects = {"gpt-4o-mini", "gemini-2.5-flash"}
    assert subjects <= set(table.models)
    assert len(set(table.models) - judges - subjects) == 16
    for entry in table.models.values():
        assert 0 < (entry.cached or entry.input) <= entry.input < entry.output
        assert entry.source


def test_a_judge_is_found_by_its_whole_name_first():
    prices = {"azure/m": price(1, 1), "m": price(2, 2)}
    assert price_of("openai/azure/m", prices) == price(2, 2)
    assert price_of("azure/m", prices) == price(1, 1)
    assert price_of("openai/other", prices) is None


def test_a_name_is_found_in_whatever_case_it_is_spelt():
    prices = {"deepseek-v3.1": price(1, 1), "M": price(2, 2), "m": price(3, 3)}
    assert price_of("together/deepseek-ai/DeepSeek-V3.1", prices) == price(1, 1)
    assert price_of("DEEPSEEK-V3.1", prices) == price(1, 1)
    assert [price_of(name, prices) for name in ("x/M", "x/m")] == [price(2, 2), price(3, 3)]
    of_reseller = prices | {"together/deepseek-ai/DeepSeek-V3.1": price(4, 4)}
    assert price_of("Together/deepseek-ai/deepseek-v3.1", of_reseller) == price(4, 4)


def named() -> list[tuple[str, str]]:
    """Every `api:` model in a shipped config, in its comments too: (file, name)."""
    found = {
        (path.name, name.rstrip("."))
        for path in SHIPPED.parent.rglob("*.yaml")
        for name in re.findall(r"api:([\w./-]+)", path.read_text("utf-8"))
    }
    return sorted(found - {("rfeval.yaml", "PROVIDER/MODEL")})


def test_every_model_that_a_shipped_config_names_has_a_price():
    prices = read_prices(SHIPPED).models
    assert ("c2faith.yaml", "together/deepseek-ai/DeepSeek-V3.1") in named()
    assert [pair for pair in named() if price_of(pair[1], prices) is None] == []


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


def test_prices_are_read_where_the_config_says(tmp_path: Path) -> None:
    shipped = read_prices(SHIPPED).models
    for named in ("shipped:prices.yaml", str(SHIPPED)):
        assert prices_of(SpendConfig(prices=named)) == shipped
    assert prices_of(SpendConfig()) == {}
    with pytest.raises(UserError, match=r"none.yaml: no such file"):
        prices_of(SpendConfig(prices=str(tmp_path / "none.yaml")))


def test_a_dated_name_is_priced_by_its_base_and_says_so():
    prices = {"o3": price(2, 8), "gpt-5-2025-08-07": price(9, 9), "gpt-5": price(1, 10)}
    assert price_of("openai/o3-2025-04-16", prices) == price(2, 8)
    assert price_of("openai/o3-20250416", prices) == price(2, 8)
    assert price_of("openai/gpt-5-2025-08-07", prices) == price(9, 9)
    assert price_of("openai/o3-pro", prices) is None


def test_a_dry_run_says_by_which_name_a_model_is_priced() -> None:
    usage = dict.fromkeys(("api:openai/o3-2025-04-16", "api:openai/o3", "api:x/O3"), Usage(1, 1))
    lines = cost_lines(usage, SpendConfig(prices=str(SHIPPED)), ("judge", "", "", "", ""), "a note")
    assert lines[-2:] == ["a note", "openai/o3-2025-04-16 is priced as o3"]


def test_a_dry_run_multiplies(tmp_path):
    form = Form("f", "Rate {x}.", (Field("score", "integer", 0, 4),), "score", system="Be strict.")
    asks = [Ask(str(i), form, {"x": "y" * 100 * i}) for i in range(3)]
    tokens = sum(tokens_of(["Be strict.", ask.prompt, request(ask)]) for ask in asks)
    prices = tmp_path / "prices.yaml"
    entry = {"input": 20_000.0, "output": 8.0, "source": "a test"}
    prices.write_text(yaml.safe_dump({"as_of": "2026-01-01", "models": {"m": entry}}))
    settings = (ApiSection(max_tokens=200), SpendConfig(prices=str(prices)))
    put = {"api:openai/m": asks, "api:openai/other": asks[:1], "planted:faithful": asks}
    lines = spending_lines(put, *settings)
    dollars = f"{(tokens * 20_000 + 600 * 8) / 1e6:.2f}"
    other = f"{most_used(asks[0], 200).input_tokens:,}"
    assert [line.split() for line in lines[2:4]] == [
        ["api:openai/m", "3", f"{tokens:,}", "600", dollars],
        ["api:openai/other", "1", other, "200", "no", "price"],
    ]
    assert "without a tokenizer" in lines[4]
    assert spending_lines({"planted:faithful": asks}, *settings) == []
