"""A judge whose model is behind the server of `fault_server`, and the account of its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from fault_server import FaultServer
from judge_replies import replies_of

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.engine.models.account import RunAccount
from faithscope.experiments.engine.models.prices import Price
from faithscope.probes.judge.api import ApiJudge
from faithscope.probes.judge.form import Ask, Field, Form, Reply, Usage

FORM = Form(
    "coverage",
    "item={item}; Rate this.",
    (Field("rationale", "text"), Field("score", "integer", 0, 4)),
    "score",
    system="You are strict.",
)
NAME = "openai/gpt-4.1"
ONE = Usage(1, 100, 20, 5, 40)
"""Usage that the server reports for one completion."""
PRICE = Price(input=10, cached=5, output=30, source="a test")
SETTINGS = ("attempts", "structured", "max_connections", "cache", "account")
"""Settings of a judge besides those of a call."""


def asks(names) -> list[Ask]:
    return [Ask(str(name), FORM, {"item": str(name)}) for name in names]


def judge(server: FaultServer, **changes: Any) -> ApiJudge:
    """A judge that repeats no failed call and asks for the form in its prompt, but for `changes`
    of its settings or of Inspect's."""
    settings = {"max_retries": 0, "structured": "prompt"} | changes
    config = {name: settings.pop(name) for name in list(settings) if name not in SETTINGS}
    return ApiJudge(NAME, config, base_url=server.url, **settings)


def account(folder: Path, **limits: Any) -> RunAccount:
    """The account of a run whose folder is `folder`, with the price of the judge."""
    prices = folder / "prices.yaml"
    models = {"gpt-4.1": PRICE.model_dump()}
    prices.write_text(yaml.safe_dump({"as_of": "2026-01-01", "models": models}))
    return RunAccount(SpendConfig(prices=str(prices), **limits), folder, "main")


def ask_all(judge: ApiJudge, names) -> dict[str, Reply]:
    return replies_of(judge, asks(names))
