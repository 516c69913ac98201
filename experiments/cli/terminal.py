"""Prints the items of a run in a terminal (`faithscope show`): page blocks as plain text.

Colour only repeats what a mark already says, and nothing that a model, a judge or a data set wrote
reaches the terminal as anything but text.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from faithscope.experiments.analysis.html import Cell, HtmlTable, table_of
from faithscope.experiments.analysis.item_view import Item, Items, Part
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Drawing,
    Fold,
    Grid,
    Heading,
    Paragraph,
    Step,
    Steps,
    Terms,
    Verbatim,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.folder import stored_config
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible

LISTED = 8
"""Maximum number of names that an error lists."""
# Colour-blind readers can tell blue and orange apart, on dark and on light backgrounds.
COLOURS = {"all": "bold dark_orange3", "some": "dark_orange3", "none": "blue", "unknown": "dim"}
_DIM = ("quiet", "tail")


def show_item(
    console: Console,
    run_dir: str | Path,
    item: str,
    *,
    model: str | None = None,
    task: str | None = None,
    by: str | None = None,
) -> None:
    """Print everything that a run holds of an item, planted models first.

    Args:
        item: a name of the item, as the study's function `Items.of` says.
        model: only what this model, or judge, did with it.
        task: only of this task, or judge's form.
        by: edit that steps are marked by.

    Raises:
        UserError: no such run, item, model or task, with what was probably meant; no edit that
            steps can be marked by.
    """
    run = load_run(run_dir)
    study = study_of(stored_config(run.path))
    declared: Items = study.report().items
    if by is not None and not declared.marks:
        raise UserError(f"--by: items of {study.name} have no steps that an edit marks")
    if by is not None and by not in declared.marks:
        guess = did_you_mean(by, declared.marks) or f"; there are {', '.join(declared.marks)}"
        raise UserError(f"steps cannot be marked by {by!r}{guess}")
    items = declared.of(run) if by is None else declared.of(run, by)
    print_items(console, declared, items, item, model, task)


def show_overview(console: Console, run_dir: str | Path) -> None:
    """Print the finding of a run, with its picture as a table.

    Raises:
        UserError: no such run, or its study has no picture, with how to show an item.
    """
    run = load_run(run_dir)
    if not run.overview:
        declared = study_of(stored_config(run.path)).report().items
        names = dict.fromkeys(
            visible(name) for of in declared.of(run) for part in of.parts for name in part.names[:1]
        )
        if not names:
            raise UserError(_none_yet(run.path, declared.what))
        raise UserError(
            f"show: name an item: faithscope show {run_dir} --item {shlex.quote(next(iter(names)))}"
            f"{_listed([*names])}; the page of all is {run.path / 'report.html'}"
        )
    console.print(_group(run.overview))
    console.print(Text(f"All of it: {run.path / 'report.html'}", "dim"), soft_wrap=True)


def _none_yet(run: Path, what: str) -> str:
    config = shlex.quote(str(run / "config.yaml"))
    return f"show: {run} holds no {what} yet; to go on with it: faithscope run {config}"


def print_items(
    console: Console,
    declared: Items,
    items: Iterable[Item],
    item: str,
    model: str | None,
    task: str | None,
) -> None:
    """Print the items of a name with their parts of a model and task, then the legend.

    Args:
        items: all items of the run.

    Raises:
        UserError: there are no items, or none matches; names the first of model, task and item
            without a match, and likely alternatives.
    """
    parts = [(of, part) for of in items for part in of.parts]
    parts.sort(key=lambda pair: (model_order(pair[1].model), pair[1].task))
    wanted: dict[Item, list[Part]] = {}
    for of, part in _narrowed(parts, declared.what, item, model, task):
        wanted.setdefault(of, []).append(part)
    for of, chosen in wanted.items():
        print_card(console, of.view().card())
        for card in (card for part in chosen for card in part.cards()):
            print_card(console, card)
    if declared.legend:
        console.print(_group(declared.legend))


def _narrowed(
    parts: Sequence[tuple[Item, Part]], what: str, item: str, model: str | None, task: str | None
) -> Sequence[tuple[Item, Part]]:
    """The parts that match the given names, as stored or as the terminal shows them."""
    if not parts:
        raise UserError(f"the run holds no {what} yet; `faithscope run` goes on with it")
    choices: dict[str, tuple[str | None, Callable[[Part], Sequence[str]]]] = {
        "model": (model, lambda part: [part.model]),
        "task": (task, lambda part: [part.task]),
        "item": (item, lambda part: part.names),
    }
    for kind, (wanted, names_of) in choices.items():
        if wanted is None:
            continue
        names = [names_of(part) for _, part in parts]
        fits = [wanted in (n for x in of for n in (x, visible(x))) for of in names]
        if not any(fits):
            known = list(dict.fromkeys(visible(name) for of in names for name in of))
            guess = did_you_mean(wanted, known) or _listed(known)
            raise UserError(f"no {kind} {wanted!r} among the {what} of this run{guess}")
        parts = [part for part, fit in zip(parts, fits, strict=True) if fit]
    return parts


def _listed(known: Sequence[str]) -> str:
    more = f", … ({len(known)} in all)" if len(known) > LISTED else ""
    return f"; there are {', '.join(map(repr, known[:LISTED]))}{more}"


def print_card(console: Console, card: Fold) -> None:
    """Print the blocks of a card under its title."""
    console.rule(_text(card.summary, "bold"), align="left")
    console.print(_group(card.blocks))
    console.print()


def _group(blocks: Sequence[Block]) -> Group:
    return Group(*(line for block in blocks for line in _lines(block)))


def _lines(block: Block) -> list[RenderableType]:
    """The lines of one block.

    Raises:
        TypeError: the block can only be shown on a page: a drawing without a form as text, counts,
            a table by its name.
    """
    match block:
        case str():
            return [_text(block)]
        case Paragraph(text, css):
            return [_text(text, "dim" if css in _DIM else "")] if text else []
        case Heading(text, level):
            return [Text(), _text(text, "bold")] if level < 4 else [_text(text, "dim")]
        case Verbatim(text):
            return [Padding(_text(text), (0, 0, 0, 2))]
        case Bullets(items):
            return [Text("- ") + _text(item) for item in items]
        case Terms(meanings):
            return [
                _text(f"{word}: ", "bold") + _text(meaning) for word, meaning in meanings.items()
            ]
        case Grid(table=HtmlTable() as table):
            return [_grid(table)]
        case Drawing(Picture(text=pd.DataFrame() as text)):
            lines = text.to_numpy(dtype=object).tolist()
            return [Text(), _grid(table_of([*map(str, text.columns)], lines)), Text()]
        case Drawing(Picture(figure=None, absent=absent)):
            return [_text(f"No figure: {absent}", "dim")]
        case Steps(steps):
            return [line for step in steps for line in _step(step)]
        case Fold(summary, blocks):
            return [_text(summary, "dim"), Padding(_group(blocks), (0, 0, 0, 2))]
        case Box(blocks):
            return [_group(blocks)]
        case _:
            raise TypeError(f"no terminal view of {block}")


def _step(step: Step) -> list[RenderableType]:
    if step.number is None:
        return [Padding(_text(step.text.strip(), "dim"), (0, 0, 0, 6))]
    line = Table.grid(padding=(0, 1))
    line.add_column(width=1)
    line.add_column(width=3, justify="right")
    line.add_column(ratio=1)
    style = COLOURS[step.level]
    line.add_row(_text(step.mark, style), Text(f"{step.number}."), _text(step.text.strip(), style))
    return [line, Padding(_group(step.blocks), (0, 0, 0, 6))] if step.blocks else [line]


def _grid(table: HtmlTable) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(table.heading))
    columns = table.heading or [""] * max(map(len, table.rows), default=0)
    for i, heading in enumerate(columns):
        right = bool(table.numeric) and table.numeric[i]
        grid.add_column(_text(heading), justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _cell(cell: Cell) -> Text:
    text = _text(cell.text)
    return text.append(f" [{cell.interval}]") if cell.interval else text


def _text(text: str, style: str = "") -> Text:
    """Text made safe for a terminal; markup that faithscope wrote loses its HTML tags."""
    return Text(visible(text.striptags() if isinstance(text, Markup) else text), style)
