"""What judging by API costs a run: its budget, and an estimate before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from faithscope.experiments.config.api import API, ApiSection, SpendConfig
from faithscope.experiments.engine.ledger import Ledger
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.prices import read_prices
from faithscope.interp.errors import UserError
from faithscope.probes.judge.spend import Budget

if TYPE_CHECKING:
    from faithscope.experiments.engine.store import Store
    from faithscope.probes.judge.form import Ask, Writing
    from faithscope.probes.judge.spend import Price


def prices_of(spend: SpendConfig) -> dict[str, Price]:
    """The prices of a run; none where its config names no file.

    Raises:
        UserError: they cannot be read; of a file that is not there, with where it was looked for.
    """
    if spend.prices is None:
        return {}
    path = Path(spend.prices).expanduser()
    try:
        return dict(read_prices(path).prices)
    except UserError as error:
        if path.exists():
            raise
        where = "" if path.is_absolute() else f", looked for from {Path.cwd()}"
        raise UserError(
            f"spend.prices: {error}{where}; say where it is: --set spend.prices=PATH (the shipped "
            "one is configs/prices.yaml in faithscope's repository)"
        ) from error


def budget_of(spend: SpendConfig, store: Store, models: Iterable[str]) -> Budget:
    """What may still be spent in a run: all that any worker has spent there is counted already.

    Calls of this worker go into its ledger as they end, and those of other workers are looked up
    while it asks (`Budget` says how far they can pass a limit together). Of a run folder without
    ledgers, the stored replies are counted, once (`Ledger`).

    Args:
        models: who is still to be asked; prices are read, and the ledger is, where one of them
            is behind an API.

    Raises:
        UserError: the prices cannot be read.
        StoreError: a ledger is damaged.
    """
    if not any(name.startswith(API) for name in models):
        return Budget(spend.max_cost, spend.max_calls)
    ledger = Ledger(store)
    budget = Budget(spend.max_cost, spend.max_calls, prices_of(spend), ledger)
    for line in ledger.lines:
        budget.charge(line.spent.judge, line.usage, line.cost)
    return budget


def spending_lines(
    asks: Mapping[str, Sequence[Ask | Writing]],
    judge: ApiSection,
    spend: SpendConfig,
    who: str = "judge",
) -> list[str]:
    """What the asks still to be put to APIs would use, for `--dry-run`; none without any.

    Args:
        who: they are, at the head of the table.
    """
    from faithscope.probes.judge.spend import estimate

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
    header = (who, "calls", "input tokens", "output tokens, at most", "dollars, at most")
    return ["", *columns([header, *table]), f"tokens counted as {method}"]
