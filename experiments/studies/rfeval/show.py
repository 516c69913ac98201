"""One pair of RFEval in the terminal, word for word.

Nothing that a model, a judge or an item says reaches the terminal as anything but text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from faithscope.experiments.analysis.item_view import Narrowing, narrowed
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.pairview import OutputView, PairView, pair_view
from faithscope.interp.errors import UserError

WIDTH = 100
_Place = tuple[str, str, str, dict[str, Any]]
"""Model, task, item, row of `rf_pairs`."""


class _Settings(Protocol):
    @property
    def paper_compat(self) -> bool: ...


class Found(Protocol):
    """What is needed of a run's results."""

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]: ...
    @property
    def config(self) -> _Settings: ...
    def example(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """A row of `rf_pairs` with its texts, as `pairview.pair_view` takes it."""
        ...


def show_item(
    run_dir: Path, item: str, model: str | None, task: str | None, console: Console
) -> None:
    """`show_pairs` of a run folder.

    Raises:
        UserError: also where the run holds no outputs yet.
    """
    from faithscope.experiments.studies.rfeval.results import results

    show_pairs(results(run_dir), item, model, task, console)


def show_pairs(
    found: Found,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
) -> None:
    """Print every pair of an item that a run holds, as every reader judged it.

    Args:
        item: the id, `legal_decision/12`, or its row alone, `12`, of whatever task.
        model, task: only pairs of these.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant.
    """
    places: list[_Place] = [
        (r["model"], r["task"], r["item"], r) for r in rows(found.tables["rf_pairs"])
    ]
    if not places:
        raise UserError("the run holds no outputs yet; start it again with `faithscope run`")
    by: list[Narrowing[_Place]] = [
        ("model", model, lambda place: [place[0]]),
        ("task", task, lambda place: [place[1]]),
        ("item", item, lambda place: [place[2], place[2].rpartition("/")[2]]),
    ]
    console = console or Console()
    for *_, row in narrowed(places, by, "pairs"):
        show_pair(found.example(row), console, paper_compat=found.config.paper_compat)


def show_pair(
    example: Mapping[str, Any], console: Console | None = None, *, paper_compat: bool = False
) -> None:
    """Print a pair: the problem, r′, both outputs with stances, the judge's replies, the numbers.

    Args:
        example, paper_compat: as `pairview.pair_view` takes them.
    """
    _print(console or Console(), pair_view(example, paper_compat))


def pair_text(example: Mapping[str, Any], width: int = WIDTH) -> str:
    """What `show_pair` prints, as plain text."""
    file = io.StringIO()
    show_pair(example, Console(file=file, width=width, color_system=None))
    return file.getvalue()


def _print(console: Console, view: PairView) -> None:
    title = f"{view.model} · {view.item} · read by {view.reader}"
    console.rule(Text(title, style="bold"), align="left")
    _under(console, f"Problem ({view.task}, {view.source})", view.question)
    _under(console, "Of", view.context)
    _under(console, "Options", view.options)
    _under(console, "Right", view.gold)
    _under(console, "r′, put into the model’s mouth", view.r_prime)
    _under(console, "Its flaw", view.flaw)
    for output in view.outputs:
        _print_output(console, output)
    console.print()
    numbers = "   ".join(f"{symbol} = {value}" for symbol, value in view.numbers)
    console.print(Text(numbers, style="bold"))
    console.print(Text(view.summary))
    console.print()


def _print_output(console: Console, output: OutputView) -> None:
    console.print()
    console.print(Text(f"{output.heading}: {output.outcome}; {output.verdict}", style="bold"))
    for part in output.parts:
        if not part.text and not part.stance:
            continue
        stance = f" · stance {part.stance}" if part.stance else ""
        broken = " (chain broken)" if part.carried == "broken" else ""
        console.print(Text(f"{part.name}{stance}{broken}", style="dim"))
        if part.said:
            mark = "✓" if part.holds else "✗"
            console.print(Text(f"  {mark} {part.said}", style="" if part.holds else "bold"))
        _indented(console, part.text)
    _under(console, "Written", output.text)
    _under(console, "The judge was asked", output.asked)
    _under(console, "The judge thought", output.thought)
    _under(console, "The judge replied", output.reply)


def _under(console: Console, label: str, text: str) -> None:
    if text:
        console.print(Text(label, style="dim"))
        _indented(console, text)


def _indented(console: Console, text: str) -> None:
    if text:
        console.print(Padding(Text(text), (0, 0, 0, 2)))
