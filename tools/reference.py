"""Maker of the pages of config keys, columns and measures in `docs`: `python tools/reference.py`,
or of some of them: `python tools/reference.py measures/filler.md`.

The pages, or the parts of a page that stand between `<!-- made: NAME -->` and `<!-- end -->`, are
made from the code's declarations, `docs/planted.csv` and `docs/results`; a test checks that they
are up to date.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import measure_pages
import results_pages
from measure_pages import DOCS, made, table
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import faithscope.experiments.studies  # noqa: F401, registers them
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.published import Paper, read_cells
from faithscope.experiments.analysis.published.deviations import leaves, paper_config
from faithscope.experiments.analysis.published.runs import paper_of, papers
from faithscope.experiments.analysis.run import Report
from faithscope.experiments.analysis.wording import VerdictWord
from faithscope.experiments.config.errors import shown
from faithscope.experiments.config.study import STUDIES, Study
from faithscope.experiments.engine.tallies.reasons import REMEDIES, WORDS
from faithscope.experiments.studies.c2faith import words as c2faith
from faithscope.experiments.studies.rfeval import words as rfeval
from faithscope.experiments.studies.rfeval.subjects.model_files import ModelFile
from faithscope.experiments.studies.slrc import words as slrc
from faithscope.probes import PROBES

MADE = "This page is made by `python tools/reference.py`"
COLUMNS = f"""# Columns of the tables

{MADE} of what the studies declare.
Pages, Markdown and LaTeX tables have the headings, CSV files the names.

Numbers are shares from 0 to 1 or counts where no unit stands with them. `<name>_low` and
`<name>_high`, which are in no list here, are the ends of the 95 % interval of `<name>`. An interval
of fewer than five outcomes, or one from drawing fewer than five items or questions, is empty. What
stands under the name of a table holds there instead of what stands under its study. A study has the
columns of all studies and of several studies, too, where these name it.

`paper_PAPER_TABLE.csv` has the numbers of one printed table of a paper, one a row: our keys of it
(`model`, `task`, …), the paper's `heading`, `value` with `low` and `high`, and the number of cases
`n`. The Markdown and LaTeX files beside it have the paper's layout.
"""
KEYS = f"""# Keys of a config

{MADE} of the classes that check configs. A key is set in the YAML file or with `--set KEY=VALUE`.
The first table has the keys that several studies have alike; each study's table has the others.
"""


def _studies() -> Iterator[Study]:
    # leaves out a study that only the tests register
    return (s for s in STUDIES.values() if s.config().__module__.startswith("faithscope."))


_HEAD_OF_COLUMNS = ("column", "heading", "what it is")


def _of_columns(columns: Iterable[Column]) -> list[tuple[str, ...]]:
    return [(f"`{c.name}`", c.heading, c.meaning) for c in columns]


def _by_study(
    head: tuple[str, ...], rows_of: Mapping[str, Iterable[tuple[str, ...]]]
) -> Iterator[tuple[str, Iterator[str]]]:
    """(studies, a table) of rows: first those that several studies have alike, then each study's
    own.

    Args:
        rows_of: study -> its rows.
    """
    studies: dict[tuple[str, ...], list[str]] = {}
    for study, of_study in rows_of.items():
        for row in of_study:
            studies.setdefault(row, []).append(study)
    shared = [
        (*row, "all" if len(names) == len(rows_of) else ", ".join(names))
        for row, names in sorted(studies.items(), key=lambda entry: -len(entry[1]))
        if len(names) > 1
    ]
    yield "", table((*head, "studies"), shared)
    for study in rows_of:
        yield study, table(head, [row for row, names in studies.items() if names == [study]])


def columns() -> str:
    """Text of the page of columns in `docs`."""
    lines = [COLUMNS, "## All studies", ""]
    lines += table(_HEAD_OF_COLUMNS, _of_columns(SHARED.values()))
    rows_of = {s.name: _of_columns(s.report().columns.values()) for s in _studies()}
    for name, listed in _by_study(_HEAD_OF_COLUMNS, rows_of):
        lines += [f"## {name or 'Several studies'}", "", *listed]
        if not name:
            continue
        report: Report = STUDIES[name].report()
        alike: dict[tuple[Column, ...], list[str]] = {}
        for name, own in report.columns_of.items():
            alike.setdefault(tuple(own.values()), []).append(f"`{name}`")
        for own, tables in alike.items():
            if own:
                lines += [f"### {', '.join(tables)}", ""]
                lines += table(_HEAD_OF_COLUMNS, _of_columns(own))
    return "\n".join(lines).rstrip() + "\n"


def _kinds(annotation: Any) -> Iterator[str]:
    """The types that a value may have, in words."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        yield from (f"`{value}`" for value in args)
    elif origin in (Union, UnionType):
        for arg in args:
            yield from _kinds(arg)
    elif origin is Annotated:
        yield from _kinds(args[0])
    elif origin in (list, tuple):
        yield f"list of {', '.join(_kinds(args[0]))}"
    elif origin is dict:
        yield "mapping"
    elif isinstance(annotation, type):
        words = {"NoneType": "null", "int": "whole number", "float": "number", "str": "text"}
        words |= {"bool": "true or false"}
        yield words.get(annotation.__name__, "mapping")


def _default(field: FieldInfo) -> str:
    if field.default is not PydanticUndefined:
        return f"`{_value(field.default)}`"
    factory: Any = field.default_factory
    if factory is None:
        return "must be given"
    return (
        "by the model" if field.default_factory_takes_validated_data else f"`{_value(factory())}`"
    )


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).replace("\n", "⏎") if isinstance(value, str) else shown(value)


@cache
def _meanings(kind: type[BaseModel]) -> Mapping[str, str]:
    """Field of a config class -> the text below it; pydantic would read the sources of all classes
    at the start of every command."""
    found = {}
    for cls in (c for c in reversed(kind.__mro__) if issubclass(c, BaseModel) and c != BaseModel):
        (tree,) = ast.parse(dedent(inspect.getsource(cls))).body
        assert isinstance(tree, ast.ClassDef)
        for field, below in pairwise(tree.body):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                found[ast.unparse(field.target)] = " ".join(ast.literal_eval(below.value).split())
    return found


def _keys(kind: type[BaseModel], place: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, field in kind.model_fields.items():
        key = f"{place}{name}"
        if name in getattr(kind, "OF_A_CALL", ()):
            continue
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{key}.")
            continue
        may_be = ", ".join(dict.fromkeys(_kinds(field.annotation)))
        yield f"`{key}`", may_be, _default(field), _meanings(kind).get(name, "")


def keys() -> str:
    """Text of the page of config keys in `docs`."""
    head = ("key", "may be", "without it", "what it decides")
    lines = [KEYS]
    for name, listed in _by_study(head, {s.name: list(_keys(s.config())) for s in _studies()}):
        if not name:
            lines += ["## Keys that several studies have alike", "", *listed]
            continue
        named = "no `benchmark:`" if STUDIES[name].unnamed else f"`benchmark: {name}`"
        lines += [f"## {name} ({named})", "", *listed]
    lines += ["## A model file of RFEval (`model.profiles`)", "", *table(head, _keys(ModelFile))]
    return "\n".join(lines).rstrip() + "\n"


def paper(name: str) -> str:
    """The made part of the page of a paper: its printed tables that a run can stand beside."""
    one = paper_of(name)
    # a cell whose number the text has lost is no printed number
    cells = Counter(cell.table for cell in read_cells(one.cells) if cell.value is not None)
    head = ("table", "what the paper shows there", "printed cells", "carried out by")
    rows = (
        (
            f"`{name}.{t.name}`",
            t.title,
            str(cells[t.name]),
            f"`{' '.join((t.config, *t.sets))}`" if t.config else f"Nothing: {t.why_not}",
        )
        for t in one.tables
    )
    differs = {line: None for t in one.tables for line in t.differs}
    lines = [*table(head, rows), "Known differences between these configs and the paper:", ""]
    lines = [*lines, *(f"- {line}" for line in differs)] if differs else lines[:-2]
    return "\n".join([*lines, "", *_stated(one)]).rstrip()


def _stated(one: Paper) -> Iterator[str]:
    """What a paper states of its settings, and what it leaves open."""
    theirs: dict[str, Any] = {}
    for t in one.tables:
        theirs |= dict(leaves(paper_config(t))) if t.config and not t.why_not else {}
    rows = (
        (
            f"`{s.key}`",
            s.says or f"`{shown(theirs[s.key])}`",
            s.section,
            f"No: {s.stand_in}." if s.stand_in else "yes",
        )
        for s in one.states
    )
    yield "A run deviates from the paper where one of these settings, which it states, is another:"
    yield ""
    yield from table(("key", "the paper", "section", "in the shipped config"), rows)
    yield "What a run has in these keys costs no verdict, since the paper says nothing of them:"
    yield f"{', '.join(f'`{key}`' for key in one.leaves_open)}."


def reasons() -> str:
    """Table of the reasons for leaving out an item that all studies share."""
    head = ("reason", "what it means", "what would avoid it")
    rows = ((f"`{reason}`", words, REMEDIES.get(reason, "–")) for reason, words in WORDS.items())
    return "\n".join(table(head, rows))


def verdicts(words: Mapping[str, VerdictWord]) -> str:
    """Table of a study's verdicts in words, with the rule of each."""
    lines = ((f"“{w.text}”", f"{w.when[:1].upper()}{w.when[1:]}.") for w in words.values())
    return "\n".join(table(("verdict", "when it is said"), lines))


def settings(probe: str) -> list[tuple[str, ...]]:
    """Rows on the config keys of a probe."""
    return list(_keys(PROBES[probe].settings, f"{probe}."))


def linked(text: str, page: str) -> str:
    """The text of a page with the command that prints another page made a link to it."""
    up = "../" * page.count("/")
    return _COMMAND.sub(lambda found: f"[`{found[1]}`]({up}{found[2]}.md)", text)


PARTS = {
    "short table": measure_pages.planted,
    "measures": measure_pages.pages,
    "reasons": reasons,
    "verdicts slrc": partial(verdicts, slrc.WORDS),
    "verdicts c2faith": partial(verdicts, c2faith.WORDS),
    "verdicts rfeval": partial(verdicts, rfeval.WORDS),
    **{f"paper {name}": partial(paper, name) for name in papers()},
    **results_pages.PARTS,
    **{
        f"measure {name}": lambda name=name: measure_pages.measure(name, settings(name))
        for name in PROBES
    },
}
"""Name of a made part of a page -> maker of its text."""
_COMMAND = re.compile(r"`?(faithscope docs ([\w/]+))`?")
_PART = re.compile(r"<!-- made: (.+?) -->\n.*?<!-- end -->", re.S)


def filled(page: Path) -> str:
    """Text of a page with its made parts as the code declares them; a measure without a page gets
    one."""
    if page.exists():
        text = page.read_text(encoding="utf-8")
    else:
        text = made(f"measure {page.stem}", "") + "\n" + measure_pages.CHOICES
    name = page.relative_to(DOCS).as_posix()
    return _PART.sub(lambda part: made(part[1], linked(PARTS[part[1]](), name)), text)


def _pages() -> Iterator[tuple[str, Callable[[], str]]]:
    """Every page with made parts, by its path below `docs`, with its maker."""
    yield "columns.md", columns
    yield "configuration.md", lambda: linked(keys(), "configuration.md")
    of_measures = {DOCS / "measures" / f"{name}.md" for name in PROBES}
    for page in sorted({*DOCS.rglob("*.md"), *of_measures}):
        if not page.exists() or _PART.search(page.read_text(encoding="utf-8")):
            yield page.relative_to(DOCS).as_posix(), partial(filled, page)


PAGES = dict(_pages())

if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - PAGES.keys():
        sys.exit(f"no such page: {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    for page in sys.argv[1:] or PAGES:
        text = PAGES[page]()
        (DOCS / page).parent.mkdir(exist_ok=True)
        (DOCS / page).write_text(text, encoding="utf-8")
