"""An installed measure with a wrong report costs no table and no figure but its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from new_packages import faithscope, installed
from pages import Page

from faithscope.experiments.cli.new import write
from faithscope.experiments.console import FAILED_ITEMS

WRONG = {
    "wrong_figure": """
TABLES = [replace(t, draw=t.draw and (lambda table: table["no_such_column"])) for t in TABLES]
REPORT = replace(REPORT, tables=tuple(TABLES))
""",
    "wrong_table": """
TABLES[0] = replace(TABLES[0], prepare=lambda source: {}["no_such_field"])
REPORT = replace(REPORT, tables=tuple(TABLES))
""",
    "wrong_section": """
REPORT = replace(REPORT, section=replace(REPORT.section, blocks=[object()]))
""",
    "wrong_score": """
REPORT = replace(REPORT, measures=(replace(REPORT.measures[0], score=lambda of: of["no_such"]),))
""",
}
"""Name of a measure -> lines that spoil its report."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A run with three spoilt measures and a good one."""
    folder = tmp_path_factory.mktemp("broken")
    packages = [folder / name for name in WRONG]
    for package, lines in zip(packages, WRONG.values(), strict=True):
        write("probe", package.name, package)
        report = package / f"{package.name}_report.py"
        text = report.read_text("utf-8").replace(
            "\nfrom faithscope", "\nfrom dataclasses import replace\n\nfrom faithscope", 1
        )
        report.write_text(f"{text}\nTABLES = list(REPORT.tables)\n{lines}", "utf-8")
    installed(folder, *packages)
    settings = (
        "name=t",
        f"out={folder}",
        "model.name=[planted:faithful,planted:hint]",
        "tasks=[planted]",
        "data.limit=3",
        f"probes=[tracing,{','.join(WRONG)}]",
        "report.bootstrap=20",
    )
    given = [word for setting in settings for word in ("--set", setting)]
    return faithscope(folder, "run", "quickstart", *given), folder / "t"


@pytest.mark.slow
def test_what_is_wrong_is_told_and_nothing_else_is_lost(
    ran: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    done, folder = ran
    assert done.returncode == FAILED_ITEMS, done.stderr
    said = done.stderr.splitlines()
    for failure in (
        "failed: the table 'wrong_table' could not be made: KeyError: 'no_such_field'",
        "failed: the figure 'wrong_figure' could not be made: KeyError: 'no_such_column'",
        "failed: the section 'wrong_section' could not be made: TypeError: object is no block",
        "failed: the score 'wrong_score_flips' could not be made: TypeError: list indices",
    ):
        assert any(line.startswith(failure) for line in said), done.stderr
    assert "(wrong_figure_report.py, line " in done.stderr
    tables = {path.stem for path in folder.glob("tables/*.csv")}
    assert "wrong_table" not in tables
    assert tables >= {
        *("tracing", "exclusions", "wrong_figure", "wrong_section", "wrong_score"),
        *(f"{name}_by_step" for name in WRONG),
    }
    scores = pd.read_csv(folder / "tables/measures.csv")
    assert set(scores["measure"]) >= {"tracing_rise", "wrong_figure_flips"}
    assert "wrong_score_flips" not in set(scores["measure"])
    figures = {path.stem for path in folder.glob("figures/*.png")}
    assert figures >= {"tracing", "wrong_table", "wrong_section"}
    assert "wrong_figure" not in figures


@pytest.mark.slow
def test_a_box_on_the_page_says_why_something_is_missing(
    ran: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    page = Page((ran[1] / "report.html").read_text("utf-8"))
    for kind, name in (("figure", "wrong_figure"), ("table", "wrong_table")):
        assert f"The {kind} '{name}' could not be made: KeyError" in page.text
    assert "The section 'wrong_section' could not be made" in page.text


@pytest.mark.slow
def test_a_report_that_failed_is_made_again(
    ran: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    _, folder = ran
    again = faithscope(folder.parent, "report", str(folder))
    assert again.returncode == FAILED_ITEMS
    assert again.stdout.strip() == str(folder / "report.html")
    assert not (folder / "outputs.json").exists()
