"""The page of a run: a study says what stands on it, as data, and one template shows it.

A page knows no study. Plain text is escaped wherever it stands, and characters that steer or
reorder are made visible; only `Markup`, which `html.markup` makes of words of ours, is HTML.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from faithscope.experiments.analysis.columns import Columns
from faithscope.experiments.analysis.html import Cell, HtmlTable, environment, html_table
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.engine.models.account import in_words
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.files import write_atomically
from faithscope.interp.plain import visible
from faithscope.probes.judge.spend import Call


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with a class of the style sheet; a string among the blocks is one without."""

    text: str
    css: str


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 3


@dataclass(frozen=True)
class Verbatim:
    """What a model, a judge or a data set wrote."""

    text: str
    whole: bool = False
    """Whether it keeps its middle, and its long lines, however long it is."""


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]
    css: str = "prose"


@dataclass(frozen=True)
class Terms:
    """Words with their meanings."""

    meanings: Mapping[str, str]


@dataclass(frozen=True)
class Drawing:
    """A figure of the page, by its name."""

    name: str


@dataclass(frozen=True)
class Grid:
    """A table: one of the page by its name, or one that is ready."""

    table: str | HtmlTable
    caption: str
    heading: str = ""
    """What stands above the table, and is left out with it."""


@dataclass(frozen=True)
class Count:
    """A line of `Counts`: how many, and of how many that is a share."""

    label: str
    n: int
    share: float | None = None
    """From 0 to 1, drawn as a bar; None for those that were lost on the way."""


@dataclass(frozen=True)
class Counts:
    """How many there were, and how many were left after each stage."""

    lines: Sequence[Count]


@dataclass(frozen=True)
class Step:
    """A step of a chain of reasoning; what is known of it is folded away."""

    text: str
    number: int | None = None
    """None for a stretch that is not counted as a step."""
    level: str = "unknown"
    """`all`, `some`, `none` or `unknown`: gives its colour."""
    mark: str = ""
    """A sign for the level, so that colour is never needed."""
    meaning: str = ""
    """The level in words, for those who see neither."""
    hint: str = ""
    """Shown under the pointer."""
    marks: Sequence[tuple[str, str, str]] = ()
    """(level, sign, word) of more that is known of it; a reader may mark steps by one of the
    words instead."""
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Steps:
    steps: Sequence[Step]


@dataclass(frozen=True)
class Fold:
    """Blocks under a summary; left out where it names tables and figures and none is there."""

    summary: str
    blocks: Sequence[Block]
    css: str = ""
    """`printed` for one that is opened for printing."""
    open: bool = False


@dataclass(frozen=True)
class Box:
    """Blocks with a class of the style sheet; left out as a `Fold`."""

    blocks: Sequence[Block]
    css: str = ""


Block: TypeAlias = (
    str
    | Paragraph
    | Heading
    | Verbatim
    | Bullets
    | Terms
    | Drawing
    | Grid
    | Counts
    | Steps
    | Fold
    | Box
)


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading and an anchor.

    Unless it stands `always`, it is left out where it names tables and figures and none is there.
    """

    name: str
    """Its anchor."""
    title: str
    text: str = ""
    """What the reader has to know."""
    short: str = ""
    """What the list of sections calls it; the title where empty."""
    blocks: Sequence[Block] = ()
    figures: Sequence[str] = ()
    """By name, after the blocks."""
    tables: Sequence[str] = ()
    """By name, after the figures, each under its name; folded away where there are figures."""
    always: bool = False


@dataclass(frozen=True)
class Page:
    """All that is on the page of a run, but for its environment and config, which end every one."""

    run_dir: Path
    question: str
    """What the run asks, after its name in the title."""
    lead: str
    sections: Sequence[Section]
    tables: Mapping[str, pd.DataFrame]
    """By the names under which blocks show them."""
    figures: Mapping[str, Picture]
    columns: Columns
    """What its columns are called, and what stands in them."""
    of_tables: Mapping[str, Columns] = field(default_factory=dict)
    """Table -> its own columns, where they are not what they are in the others."""
    prefix: str = ""
    """Of the names of its tables; left out above a table."""
    order: Callable[[str], Any] | None = None
    """The key by which rows of different models are sorted."""
    most_rows: int | None = None
    """A longer table is named with its file instead."""
    warnings: Sequence[str] = ()

    def columns_of(self, table: str) -> Columns:
        """What the columns of one table are called, and what stands in them."""
        return {**self.columns, **self.of_tables.get(table, {})}


def write_page(page: Page) -> Path:
    """Write `report.html` of a run; gives its path."""
    path = page.run_dir / "report.html"
    write_atomically(path, render(page))
    for warning in page.warnings:
        print(f"warning: {visible(warning)}", file=sys.stderr)
    return path


def render(page: Page) -> str:
    """The page as text."""
    whole = [(section, _blocks(section, page.prefix)) for section in page.sections]
    sections = [
        replace(section, blocks=list(_there(blocks, page)))
        for section, blocks in whole
        if section.always or _stands(blocks, page)
    ]
    return (
        environment()
        .get_template("page.html.jinja")
        .render(
            page=page,
            account=tally_of_run(page.run_dir).lines(),
            name=page.run_dir.resolve().name,
            sections=[*sections, *_closing(page.run_dir)],
        )
    )


def fragments(each: Iterable[Sequence[Block]]) -> list[str]:
    """Blocks of an item as HTML that may be put into a page; its tables are ready, and it has no
    figures of a page."""
    ready = environment().get_template("blocks.html.jinja").module
    return [str(ready.blocks(of)) for of in each]  # pyright: ignore[reportAttributeAccessIssue]


def _blocks(section: Section, prefix: str) -> list[Block]:
    words = [n.removeprefix(prefix).replace("_", " ") for n in section.tables]
    named = list(zip(section.tables, words, strict=True))
    if section.figures:
        tables: list[Block] = [Fold(f"Table: {word}", [Grid(n, n)]) for n, word in named]
    else:
        tables = [Grid(n, n, word) for n, word in named]
    return [*section.blocks, *map(Drawing, section.figures), *tables]


def spent_and_failed(calls: Sequence[Call], gave_no: str, failures: Iterable[Unit]) -> list[Block]:
    """What was asked of APIs, and what failed; nothing where neither is.

    Args:
        gave_no: what a call may end without, in a word: "answer".
    """
    blocks: list[Block] = []
    if words := in_words(calls):
        sentence = f"{words}: all that were made, also those that gave no {gave_no}."
        blocks += [Box([Heading("Spent"), sentence, Grid("spend", "Spent")])]
    failed = [[u.model, u.task, u.item, u.stage, u.failed or ""] for u in failures]
    if failed:
        heading = ["model", "task", "item", "stage", "why"]
        cells = [[Cell(text, text) for text in row] for row in failed]
        again = "Running the same command again tries them again."
        table = HtmlTable(heading, [False] * 5, cells)
        blocks += [Heading("Failed"), Grid(table, "Failed items"), again]
    return blocks


def _stands(blocks: Sequence[Block], page: Page) -> bool:
    """Whether the run has one of the tables and figures that the blocks name, or they name none."""
    there = list(_is_there(blocks, page))
    return any(there) or not there


def _is_there(blocks: Sequence[Block], page: Page) -> Iterator[bool]:
    for block in blocks:
        if isinstance(block, Grid) and isinstance(block.table, str):
            yield block.table in page.tables
        elif isinstance(block, Drawing):
            yield block.name in page.figures
        elif isinstance(block, Fold | Box):
            yield from _is_there(block.blocks, page)


def _there(blocks: Sequence[Block], page: Page) -> Iterator[Block]:
    """The blocks that the run has, with its tables in the place of their names."""
    for block in blocks:
        if not _stands([block], page):
            continue
        if isinstance(block, Fold | Box):
            yield replace(block, blocks=list(_there(block.blocks, page)))
        elif isinstance(block, Grid) and isinstance(block.table, str):
            yield from _grid(block, block.table, page)
        else:
            yield block


def _grid(block: Grid, name: str, page: Page) -> Iterator[Block]:
    table = page.tables[name]
    if page.most_rows is None or len(table) <= page.most_rows:
        ready = html_table(table, page.columns_of(name), name, page.order)
        yield replace(block, table=ready)
        return
    if block.heading:
        yield Heading(block.heading)
    rest = f"{len(table):,} rows: too many for this page, see tables/{name}.csv"
    yield Paragraph(rest, "quiet")


def _closing(run_dir: Path) -> list[Section]:
    """What ran on what, and what it was told."""
    environment_file = run_dir / "environment.json"
    facts = json.loads(environment_file.read_text("utf-8")) if environment_file.is_file() else {}
    settings = [[Cell(name, name), Cell(value, value)] for name, value in _flat(facts)]
    table = HtmlTable((), (), settings, css="settings")
    config = (run_dir / "config.yaml").read_text("utf-8")
    ran = Fold("What ran, on what", [Grid(table, "Environment")], "printed")
    resolved = Fold("config.yaml, resolved", [Verbatim(config, whole=True)], "printed")
    return [
        Section("environment", "Environment", blocks=[ran]),
        Section("config", "Config", blocks=[resolved]),
    ]


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names and texts; lists of scalars on one line."""
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in _flat(v, f"{name}.{k}".lstrip("."))]
    if isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        return [pair for i, v in enumerate(value, 1) for pair in _flat(v, f"{name} {i}")]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return [(name, "–" if value in (None, "") else str(value))]
