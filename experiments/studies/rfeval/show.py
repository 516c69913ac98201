"""The pairs of an item in the terminal, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from faithscope.experiments.analysis.item_view import Narrowing, narrowed, print_item
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.report.pairview import pair_block
from faithscope.experiments.studies.rfeval.results import RfResults, results
from faithscope.interp.errors import UserError


def show_item(
    run_dir: Path, item: str, model: str | None, task: str | None, console: Console
) -> None:
    """Print every pair of an item that a run folder holds, as every reader judged it.

    Args:
        item: the id, `legal_decision/12`, or its row alone, `12`, of whatever task.
        model, task: only pairs of these.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant; or the
            run holds no outputs yet.
    """
    show_pairs(results(run_dir), item, model, task, console)


def show_pairs(
    run: RfResults, item: str, model: str | None, task: str | None, console: Console
) -> None:
    """`show_item` of results."""
    pairs = rows(run.tables["rf_pairs"])
    if not pairs:
        raise UserError("the run holds no outputs yet; start it again with `faithscope run`")
    by: list[Narrowing[dict[str, Any]]] = [
        ("model", model, lambda pair: [pair["model"]]),
        ("task", task, lambda pair: [pair["task"]]),
        ("item", item, lambda pair: [pair["item"], pair["item"].rpartition("/")[2]]),
    ]
    for pair in narrowed(pairs, by, "pairs"):
        print_item(console, pair_block(run.example(pair), run.config.paper_compat))
