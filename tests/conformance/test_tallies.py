"""Every run says how many items it measured, at its end and first on its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import Case, Setting
from run_folders import every_run, every_study

from faithscope.experiments.cli import execute
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.tallies.tally import tally_of_run

FORECAST = re.compile(r"^(\d+) of (\d+) \w+ can be measured", re.MULTILINE)
MEASURED = re.compile(r"(\d+) of (\d+) \w+ measured")


@every_study
def test_a_dry_run_says_how_many_items_can_be_measured(
    case: Case, here: Setting, capfd: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", str(case.here(here)), "--dry-run"]) == 0
    said = FORECAST.search(capfd.readouterr().err)
    assert said is not None
    can, items = map(int, said.groups())
    assert 0 < can <= items


@pytest.mark.takes("a whole run of a study, and its conclusion")
@every_run
def test_a_run_ends_with_how_many_items_are_measured(
    undisturbed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (path,) = undisturbed.parents[1].glob("*.yaml")
    assert execute(["run", str(path)]) == 0
    said = MEASURED.search(capfd.readouterr().err)
    assert said is not None
    planned = planfile.read(undisturbed)
    assert planned is not None
    measured, items = map(int, said.groups())
    assert items == len(planned.items)
    tally = tally_of_run(undisturbed)
    assert measured + sum(tally.lost.values()) == items
    assert not tally.nothing_measured


@every_run
def test_the_page_begins_with_how_many_items_are_measured(undisturbed: Path) -> None:
    text = (undisturbed / "report.html").read_text("utf-8")
    said = MEASURED.search(text)
    assert said is not None
    assert text.index("<h1>") < said.start() < text.index("<nav")
    assert said.group() == tally_of_run(undisturbed).lines()[0].partition(";")[0]
