"""The page of a run: a study declares its contents as data, and one template renders them.

This module knows no study. All plain text is escaped, and control or reordering characters are made
visible; only `Markup`, which `html.markup` makes of trusted words, is HTML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from markupsafe import Markup

from faithscope.experiments.analysis.columns import Columns
from faithscope.experiments.analysis.failures import Failures, Kind
from faithscope.experiments.analysis.html import (
    Cell,
    HtmlTable,
    environment,
    html_table,
    markup,
    table_of,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.wording import VerdictWord
from faithscope.experiments.engine.models.account import in_words
from faithscope.experiments.engine.tallies.tally import tally_of_run
from faithscope.experiments.engine.units import Unit
from faithscope.probes.judge.spend import Call

LONG, MOST_ROWS = 20, 40
"""Rows from which a table is folded away, and most rows of a table that a page shows."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with a CSS class; a plain string among the blocks is a paragraph without one."""

    text: str
    css: str


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 3


@dataclass(frozen=True)
class Verbatim:
    """Text that a model, a judge or a data set wrote."""

    text: str
    whole: bool = False
    """Whether a long text keeps its middle and its long lines."""


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
    """A figure: the name of one of the page's, or a `Picture`."""

    name: str | Picture


@dataclass(frozen=True)
class Grid:
    """A table: the name of one of the page's tables, or a finished `HtmlTable`."""

    table: str | HtmlTable
    caption: str
    heading: str = ""
    """Heading above the table; left out if the run has no such table."""
    rows: pd.DataFrame | None = None
    """The rows and columns to show of the named table; None shows all of it."""


@dataclass(frozen=True)
class Count:
    """A line of `Counts`: a label, a number, and its share of the total."""

    label: str
    n: int
    share: float | None = None
    """A share from 0 to 1, drawn as a bar; None in a line that counts losses."""


@dataclass(frozen=True)
class Counts:
    """A waterfall: the number of items at the start and after each stage."""

    lines: Sequence[Count]


MARKS = {"all": "●", "some": "◐", "none": "○", "moot": "◌", "unknown": "·"}
"""Level of a step -> its sign, for readers who do not see colours."""


def level_of(flags: Iterable[bool | None]) -> str:
    """Level of a step by whether all, some or none of its flags are set; `unknown` without any."""
    known = [flag for flag in flags if flag is not None]
    return "unknown" if not known else "all" if all(known) else "some" if any(known) else "none"


@dataclass(frozen=True)
class Step:
    """A step of a chain of reasoning, with its measurements folded away."""

    text: str
    number: int | None = None
    """Number of the step; None for text that does not count as a step."""
    level: str = "unknown"
    """Colour of the step: `all`, `some`, `none`, `moot` (tested, but a control moves too) or
    `unknown`."""
    meaning: str = ""
    """The level in words, for readers who see neither colour nor sign."""
    hint: str = ""
    """Text shown under the pointer; empty = `meaning`."""
    marks: Sequence[tuple[str, str, str]] = ()
    """(level, sign, word) of further measures of the step; a reader can choose a word and have all
    steps marked by it instead."""
    blocks: Sequence[Block] = ()

    @property
    def mark(self) -> str:
        """The sign of the step's level."""
        return MARKS[self.level]


@dataclass(frozen=True)
class Steps:
    steps: Sequence[Step]


@dataclass(frozen=True)
class Fold:
    """Blocks folded away under a summary.

    Left out if it names tables or figures and the run has none of them.
    """

    summary: str
    blocks: Sequence[Block]
    css: str = ""
    """CSS class; a fold of class `printed` is opened for printing."""
    open: bool = False


@dataclass(frozen=True)
class Box:
    """Blocks with a CSS class; left out under the same condition as a `Fold`."""

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

    Left out if it names tables or figures and the run has none of them, unless `always` is set.
    """

    name: str
    """Anchor of the section in links."""
    title: str
    text: str = ""
    """Introduction under the heading."""
    short: str = ""
    """Short title for the list of sections; empty = `title`."""
    blocks: Sequence[Block] = ()
    figures: Sequence[str] = ()
    """Names of the figures shown after the blocks."""
    tables: Sequence[str] = ()
    """Names of the tables shown after the figures, collapsed if the section has figures."""
    always: bool = False
    absent: str = ""
    """Why a run lacks what the section shows, and the command that would fill it: the last line of
    the page says so in its place. Empty if the reasons of its figures say it, or nothing does."""


@dataclass(frozen=True)
class Page:
    """The contents of a run's page, except environment and config, which end every page."""

    run_dir: Path
    question: str
    """The question that the run asks, shown after its name in the title."""
    lead: str
    sections: Sequence[Section]
    tables: Mapping[str, pd.DataFrame]
    """Table names, as used in sections and blocks -> tables."""
    figures: Mapping[str, Picture]
    columns: Columns
    """Labels and meanings of the columns of all tables."""
    of_tables: Mapping[str, Columns] = field(default_factory=dict)
    """Table -> labels and meanings of its columns that differ from `columns`."""
    finding: str | None = None
    """The first line, set in bold: the narrowest count of the study's units and what they show
    (`wording.finding`). None leaves that line to the tally; empty if the first section opens with
    the finding."""
    prefix: str = ""
    """Common prefix of the table names, left out in headings above tables."""
    order: Callable[[str], Any] | None = None
    """Sort key of model names, for the rows of tables."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Column of tables -> its values that readers are shown by another name -> that name."""
    most_rows: int = MOST_ROWS
    """Most rows of a table on the page; of a longer table it shows the first, and names the
    file."""
    warnings: Sequence[str] = ()
    failed: Failures = field(default_factory=Failures)
    """What could not be made; a box stands in the place of each."""

    def columns_of(self, table: str) -> Columns:
        """Labels and meanings of the columns of one table."""
        return {**self.columns, **self.of_tables.get(table, {})}


def render(page: Page) -> str:
    """The page of a run as HTML text, with its tally above, environment and config below."""
    account = tally_of_run(page.run_dir).lines()
    return rendered(page, page.run_dir.resolve().name, account, _closing(page.run_dir))


def rendered(page: Page, name: str, account: Sequence[str], closing: Sequence[Section] = ()) -> str:
    """Any page as HTML text.

    Args:
        name: heading of the page.
        account: lines under the heading, which count what the page is of.
        closing: sections after those of the page.
    """
    whole = [(section, _blocks(section, page.prefix)) for section in page.sections]
    shown = [(s, blocks) for s, blocks in whole if s.always or _stands(blocks, page)]
    left = [(s, blocks) for s, blocks in whole if not (s.always or _stands(blocks, page))]
    sections = [
        *((section, _section(section, blocks, page)) for section, blocks in shown),
        *((section, _html(section, page)) for section in closing),
    ]
    warnings = list(dict.fromkeys([*map(_sentence, page.failed.lines()), *page.warnings]))
    template = environment().get_template("page.html.jinja")
    return template.render(
        page=page,
        account=account,
        name=name,
        sections=sections,
        warnings=warnings,
        empty=[_why_empty(section, blocks, page) for section, blocks in left],
    )


def _why_empty(section: Section, blocks: Sequence[Block], page: Page) -> str:
    """A section that is left out, with the reason why the run has nothing to show in it."""
    drawn = (b.name for b in blocks if isinstance(b, Drawing) and isinstance(b.name, str))
    figures = (page.figures[name].absent for name in drawn if name in page.figures)
    reasons = [section.absent] if section.absent else dict.fromkeys(filter(None, figures))
    return section.title + (f" ({' '.join(reasons).rstrip('.')})" if reasons else "")


def _section(section: Section, blocks: Sequence[Block], page: Page) -> Markup:
    """A section as HTML; or a box with the reason why it could not be shown."""
    with page.failed.kept("section", section.name):
        return _html(replace(section, blocks=list(_there(blocks, page))), page)
    reason = _failure(page, "section", section.name)
    return _html(Section(section.name, section.title, blocks=[reason]), page)


def _html(section: Section, page: Page) -> Markup:
    template = environment().get_template("section.html.jinja")
    return Markup(template.render(section=section, page=page))


def _failure(page: Page, kind: Kind, name: str) -> Paragraph:
    return Paragraph(_sentence(page.failed.line(kind, name)), "failed")


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


def fragments(each: Iterable[Sequence[Block]]) -> list[str]:
    """HTML of each sequence of blocks, to be put into a page; they name no tables or figures."""
    ready = environment().get_template("blocks.html.jinja").module
    return [str(ready.blocks(of)) for of in each]  # pyright: ignore[reportAttributeAccessIssue]


def _blocks(section: Section, prefix: str) -> list[Block]:
    words = [n.removeprefix(prefix).replace("_", " ") for n in section.tables]
    named = list(zip(section.tables, words, strict=True))
    if section.figures:
        tables: list[Block] = [Fold(f"Table: {word}", [Grid(n, n)]) for n, word in named]
    else:
        tables = [Grid(n, n, f"{word[:1].upper()}{word[1:]}") for n, word in named]
    return [*section.blocks, *map(Drawing, section.figures), *tables]


def verdict_rules(words: Iterable[VerdictWord]) -> Fold:
    """Every verdict of a study with the rule by which it is said, folded away."""
    lines = [
        [
            Cell(markup('<span class="word {}">{}</span>', word.css, word.text), word.text),
            Cell(f"if {word.when}", word.when),
        ]
        for word in words
    ]
    table = HtmlTable((), (), lines, css="rules")
    return Fold("When each verdict is said", [Grid(table, "Rules of verdicts")], "printed")


def spent_and_failed(calls: Sequence[Call], gave_no: str, failures: Iterable[Unit]) -> list[Block]:
    """Blocks about calls to APIs and about failed units; empty if there are neither.

    Args:
        gave_no: a word for what an unsuccessful call lacks, such as "answer".
    """
    blocks: list[Block] = []
    if words := in_words(calls):
        sentence = f"{words}: all calls, including those that gave no {gave_no}."
        blocks += [Box([Heading("Spent"), sentence, Grid("spend", "Spent")])]
    failed = [[u.model, u.task, u.item, u.stage, u.failed or ""] for u in failures]
    if failed:
        table = table_of(("model", "task", "item", "stage", "why"), failed)
        again = "Running the same command again tries them again."
        blocks += [Heading("Failed"), Grid(table, "Failed items"), again]
    return blocks


def _stands(blocks: Sequence[Block], page: Page) -> bool:
    """Whether the run has any of the tables and figures named in the blocks, or none is named."""
    there = list(_is_there(blocks, page))
    return any(there) or not there


def _is_there(blocks: Sequence[Block], page: Page) -> Iterator[bool]:
    for block in blocks:
        if isinstance(block, Grid) and isinstance(block.table, str):
            rows = page.tables.get(block.table, ()) if block.rows is None else block.rows
            yield len(rows) > 0 or ("table", block.table) in page.failed
        elif isinstance(block, Drawing) and isinstance(block.name, str):
            picture = page.figures.get(block.name)
            drawn = picture is not None and picture.figure is not None
            yield drawn or ("figure", block.name) in page.failed
        elif isinstance(block, Fold | Box):
            yield from _is_there(block.blocks, page)


def _there(blocks: Sequence[Block], page: Page, folded: bool = False) -> Iterator[Block]:
    """The blocks whose tables and figures the run has, with tables in place of their names.

    Args:
        folded: whether the blocks are folded away, so that their long tables need not be.
    """
    for block in blocks:
        if not _stands([block], page):
            if (
                isinstance(block, Drawing)
                and isinstance(block.name, str)
                and block.name in page.figures
            ):
                # why there is no figure, in the place of one among things that are shown
                yield block
        elif isinstance(block, Fold | Box):
            inside = folded or isinstance(block, Fold)
            yield replace(block, blocks=list(_there(block.blocks, page, inside)))
        elif (
            isinstance(block, Drawing)
            and isinstance(block.name, str)
            and block.name not in page.figures
        ):
            yield _failure(page, "figure", block.name)
        elif isinstance(block, Grid) and isinstance(block.table, str):
            if block.table in page.tables:
                yield from _grid(block, block.table, page, folded)
            else:
                yield _failure(page, "table", block.table)
        else:
            yield block


def _grid(block: Grid, name: str, page: Page, folded: bool) -> Iterator[Block]:
    """A table ready for the template: a long one folded away, of a very long one its first rows."""
    table = page.tables[name] if block.rows is None else block.rows
    n, first = len(table), table
    if page.order is not None and "model" in table:
        first = table.sort_values("model", key=lambda of: of.map(page.order), kind="stable")
    first = first.head(page.most_rows)
    renamed = {n: first[n].replace(dict(to)) for n, to in page.values.items() if n in first}
    ready = html_table(first.assign(**renamed), page.columns_of(name), name)
    shown: list[Block] = [replace(block, table=ready, heading="")]
    if n > len(first):
        rest = f"The first {len(first):,} of {n:,} rows; all are in tables/{name}.csv."
        shown.append(Paragraph(rest, "quiet"))
    if block.heading:
        yield Heading(block.heading)
    if n <= LONG or folded:
        yield from shown
    else:
        yield Fold(f"{block.caption[:1].upper()}{block.caption[1:]}: {n:,} rows", shown)


def _closing(run_dir: Path) -> list[Section]:
    """The closing sections of every page: environment and config."""
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
    """Nested settings as (dotted name, text); a list of scalars is one text."""
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in _flat(v, f"{name}.{k}".lstrip("."))]
    if isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        return [pair for i, v in enumerate(value, 1) for pair in _flat(v, f"{name} {i}")]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return [(name, "–" if value in (None, "") else str(value))]
