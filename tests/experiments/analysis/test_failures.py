"""What cannot be made of a report is told in its place, and everything else is there."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from pages import Page as Html

from faithscope.experiments.analysis.cells import Count, every_row
from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.page import (
    MOST_ROWS,
    Drawing,
    Fold,
    Grid,
    Page,
    Section,
    rendered,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tables import Table, make_tables
from faithscope.experiments.analysis.write import write_figures

FRAME = pd.DataFrame({"model": ["a", "b"]})


def table(name: str, of: str = "items") -> Table:
    return Table(name, of, ("model",), (Count("n", every_row, "items", "All of them."),))


def no_column(frame: pd.DataFrame) -> pd.DataFrame:
    return frame["no_such_column"]


def test_a_table_that_fails_costs_only_those_that_are_made_of_it() -> None:
    broken = Table("broken", "items", ("model",), prepare=no_column)
    tables, failed = (table("first"), broken, table("second", "broken"), table("last")), Failures()
    assert list(make_tables(tables, {"items": FRAME}, failed=failed)) == ["first", "last"]
    said = failed.lines()
    assert said[0].startswith(
        "the table 'broken' could not be made: KeyError: 'no_such_column' (test_failures.py, line "
    )
    assert said[1].startswith("the table 'second' could not be made: KeyError: 'broken'")
    with pytest.raises(KeyError):
        make_tables(tables, {"items": FRAME})


def test_a_figure_that_cannot_be_saved_costs_no_other(tmp_path: Path) -> None:
    whole, broken = Figure(), Figure()
    broken.add_subplot().set_title(r"$\no_such_symbol$")
    drawn = [Picture(n, n, n, FRAME, f, "") for n, f in (("broken", broken), ("whole", whole))]
    failed = Failures()
    assert [p.name for p in write_figures(tmp_path, drawn, failed)] == ["whole"]
    assert list(failed.reasons) == [("figure", "broken")]
    assert (tmp_path / "figures/whole.png").is_file()


def test_the_page_says_in_its_place_what_is_missing(tmp_path: Path) -> None:
    failed = Failures({("table", "t"): "KeyError: 'x'", ("figure", "f"): "ValueError: y"})
    sections = [
        Section("good", "Good", blocks=["Here it is."]),
        Section("one", "One", blocks=[Fold("More", [Grid("t", "T"), Grid("absent", "A")])]),
        Section("two", "Two", blocks=[Drawing("f")]),
        Section("bad", "Bad", blocks=[object()]),  # pyright: ignore[reportArgumentType]
        Section("gone", "Gone", blocks=[Drawing("absent")]),
    ]
    page = Page(tmp_path, "?", "Lead.", sections, {}, {}, {}, failed=failed)
    text = Html(rendered(page, "run", [])).text
    for kind, name, reason in (
        ("table", "t", "KeyError: 'x'."),
        ("figure", "f", "ValueError: y."),
        ("section", "bad", "TypeError: object is no block of a page"),
    ):
        assert text.count(f"The {kind} '{name}' could not be made: {reason}") == 2, text
    assert "Here it is." in text
    assert text.count("Gone") == 1
    assert "Nothing to show of: Gone." in text


def test_a_long_table_opens_on_demand_and_an_empty_one_is_not_shown(tmp_path: Path) -> None:
    tables = {"long": pd.DataFrame({"n": range(300)}), "none": pd.DataFrame({"n": []})}
    sections = [
        Section("one", "One", tables=("long",)),
        Section("two", "Two", tables=("none",), absent="nothing was asked: --set x=1"),
        Section("three", "Three", blocks=["Said.", Grid("none", "N", "Title")], always=True),
    ]
    text = rendered(Page(tmp_path, "?", "Lead.", sections, tables, {}, {}), "run", [])
    assert text.count("<tr>") == 1 + MOST_ROWS
    assert "<summary>Long: 300 rows</summary>" in text
    assert "The first 40 of 300 rows; all are in tables/long.csv." in text
    assert "Nothing to show of: Two (nothing was asked: --set x=1)." in text
    assert "<h3>Title" not in text


def test_of_many_warnings_the_first_three_are_open(tmp_path: Path) -> None:
    def folded(n: int) -> tuple[int, str]:
        warnings = [f"Fault {i}." for i in range(n)]
        text = rendered(Page(tmp_path, "?", "Lead.", [], {}, {}, {}, warnings=warnings), "run", [])
        head = text[: text.index("</header>")]
        assert head.count("Fault ") == n
        return head.split("<details")[0].count("Fault "), head

    assert folded(4)[0] == 4
    shown, head = folded(6)
    assert shown == 3
    assert "3 more warnings</summary>" in head
