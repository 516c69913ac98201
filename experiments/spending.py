"""What judging by API costs a run: its budget, and an estimate before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.config.judge import API, JudgeConfig, SpendConfig
from experiments.listing import columns
from experiments.prices import read_prices
from experiments.runs.index import Index

if TYPE_CHECKING:
    from probes.judge.form import Ask, Writing
    from probes.judge.spend import Budget, Price


def prices_of(spend: SpendConfig) -> dict[str, Price]:
    """The prices of a run; none where its config names no file."""
    if spend.prices is None:
        return {}
    return dict(read_prices(Path(spend.prices).expanduser()).prices)


def budget_of(
    spend: SpendConfig, index: Index, stages: Iterable[str], judges: Iterable[str]
) -> Budget:
    """What may still be spent: what the stored judgements cost is counted already.

    Args:
        judges: who is still to be asked; the prices are read where one of them has some.
    """
    from probes.judge.form import Usage
    from probes.judge.spend import Budget

    prices = prices_of(spend) if any(name.startswith(API) for name in judges) else {}
    budget = Budget(spend.max_cost, spend.max_calls, prices)
    for unit in index.each(tuple(stages)):
        if unit.model.startswith(API):
            for r in unit.records:
                used = Usage(**{name: r[name] for name in Usage.__dataclass_fields__})
                budget.charge(unit.model.removeprefix(API), used)
    return budget


def spending_lines(
    asks: Mapping[str, Sequence[Ask | Writing]], judge: JudgeConfig, spend: SpendConfig
) -> list[str]:
    """What the asks still to be put to APIs would use, for `--dry-run`; none without any."""
    from probes.judge.spend import estimate

    table, method = [], ""
    for model, of_model in asks.items():
        if not model.startswith(API) or not of_model:
            continue
        name = model.removeprefix(API)
        found = estimate(of_model, name, judge.max_tokens, prices_of(spend))
        cost = "no price" if found.cost is None else f"{found.cost:.2f}"
        tokens = (f"{found.input_tokens:,}", f"{found.output_tokens:,}")
        table.append((model, f"{found.calls:,}", *tokens, cost))
        method = found.method
    if not table:
        return []
    header = ("judge", "calls", "input tokens", "output tokens, at most", "dollars, at most")
    return ["", *columns([header, *table]), f"tokens counted as {method}"]
