"""Prints items of a run in a terminal (`faithscope show`): page blocks as plain text.

A study describes an item once, as blocks of `analysis.page`; the page shows them as HTML and
`print_item` prints them. Colour only repeats what a mark already says, and nothing that a model, a
judge or a data set wrote reaches the terminal as anything but text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from markupsafe import Markup
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from faithscope.experiments.analysis.html import Cell, HtmlTable
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Fold,
    Grid,
    Heading,
    Paragraph,
    Step,
    Steps,
    Terms,
    Verbatim,
)
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.engine.units import Key
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.plain import visible
from faithscope.probes.record import Record

LISTED = 8
"""Maximum number of names that an error lists."""
# Colour-blind readers can tell blue and orange apart, on dark and on light backgrounds.
COLOURS = {"all": "bold dark_orange3", "some": "dark_orange3", "none": "blue", "unknown": "dim"}
_DIM = ("quiet", "tail")
P = TypeVar("P")


Names = tuple[Sequence[str], Sequence[str], Sequence[str]]
"""Names by which a place can be selected: those of its model, of its task, and of its item."""


def narrowed(
    places: Sequence[P],
    what_they_are: str,
    item: str,
    model: str | None,
    task: str | None,
    names: Callable[[Any], Names] = lambda at: (at[-3:-2], at[-2:-1], at[-1:]),
) -> list[P]:
    """The places that match the given model, task and item, as stored or as the terminal shows
    them.

    Args:
        places: all places to choose from.
        what_they_are: plural noun for the places (`traces`), for errors.
        item: name of the item.
        model: name of the model; None matches all.
        task: name of the task; None matches all.
        names: maps a place to its `Names`; by default the last three entries of a tuple.

    Raises:
        UserError: there are no places, or none matches; the error names the first of model, task
            and item without a match, and likely alternatives.
    """
    if not places:
        raise UserError(
            f"the run holds no {what_they_are} yet; start it again with `faithscope run`"
        )
    left = list(places)
    for i, (what, wanted) in enumerate((("model", model), ("task", task), ("item", item))):
        if wanted is None:
            continue
        known = list(dict.fromkeys(visible(name) for p in left for name in names(p)[i]))
        left = [p for p in left if wanted in (n for x in names(p)[i] for n in (x, visible(x)))]
        if not left:
            guess = did_you_mean(wanted, known) or _listed(known)
            raise UserError(f"no {what} {wanted!r} among the {what_they_are} of this run{guess}")
    return left


def print_records(
    console: Console, index: Index, key: Key, block: Callable[[Record], Fold | None]
) -> None:
    """Print the records of a unit, or the error of a failed unit.

    Args:
        block: maps a record to its block on the page; None skips the record.
    """
    unit = index.get(key)
    if unit is not None and unit.failed is not None:
        print_item(console, Fold(" · ".join((*key[1:], "failed")), [unit.failed]))
        return
    for shown in filter(None, map(block, index.records(key))):
        print_item(console, shown)


def reply_block(
    record: Record, parts: Sequence[str], chances: str = "", above: Sequence[Block] = ()
) -> Fold:
    """Block of one judgement: outcome, verdict, system message, prompt, thinking and reply.

    Args:
        record: the record of the judgement.
        parts: beginning of the title, before outcome and verdict.
        chances: probabilities of the verdicts, as text; empty leaves them out.
        above: blocks to show first.
    """
    texts = {
        "Told": record["system"],
        "Asked": as_sent(record),
        "Thought": record["thinking"],
        "Replied": record["text"],
        "Problem": record["problem"],
        "Probabilities": chances,
    }
    blocks = list(above)
    for heading, text in texts.items():
        if text:
            blocks += [Heading(heading, 4), Verbatim(text)]
    verdict = "none" if record["verdict"] is None else record["verdict"]
    return Fold(f"{' · '.join(parts)}: {record['outcome']}, verdict {verdict}", blocks, "printed")


def _listed(known: Sequence[str]) -> str:
    more = f", … ({len(known)} in all)" if len(known) > LISTED else ""
    return f"; there are {', '.join(map(repr, known[:LISTED]))}{more}"


def print_item(console: Console, item: Fold | Box) -> None:
    """Print an item under its title: the summary of a `Fold`, the first heading of a `Box`."""
    if isinstance(item, Fold):
        title, blocks = item.summary, item.blocks
    else:
        heading, *blocks = item.blocks
        assert isinstance(heading, Heading)
        title = heading.text
    console.rule(_text(title, "bold"), align="left")
    print_blocks(console, blocks)
    console.print()


def print_blocks(console: Console, blocks: Sequence[Block]) -> None:
    """Print blocks of a page one below the other."""
    console.print(_group(blocks))


def _group(blocks: Sequence[Block]) -> Group:
    return Group(*(line for block in blocks for line in _lines(block)))


def _lines(block: Block) -> list[RenderableType]:
    """The lines of one block.

    Raises:
        TypeError: the block can only be shown on a page: a drawing, counts, a table by its name.
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
        grid.add_column(_text(heading), justify="right" if right else "left")
    for row in table.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _cell(cell: Cell) -> Text:
    text = _text(cell.text)
    return text.append(f" [{cell.interval}]") if cell.interval else text


def _text(text: str, style: str = "") -> Text:
    """Text made safe for a terminal; markup that faithscope wrote loses its HTML tags."""
    return Text(visible(text.striptags() if isinstance(text, Markup) else text), style)
