"""Which tests a change can touch: `make test-changed`."""

from __future__ import annotations

import pytest
from changed_tests import all_reached, touched
from imports import ROOT


def reaches(test: str, *changed: str) -> bool:
    return {ROOT / name for name in changed} <= all_reached(ROOT / "tests" / test)


@pytest.mark.takes("the first case parses every file that it reaches")
@pytest.mark.parametrize(
    ("test", "changed"),
    [
        # by imports: of its own, of a helper, of a fixture that it uses, of the package's names
        ("probes/test_filler.py", "probes/filler.py"),
        ("experiments/engine/test_bad_input.py", "experiments/engine/store.py"),
        ("experiments/engine/test_closed_models.py", "tests/fault_server.py"),
        ("experiments/test_interactive.py", "experiments/engine/traces/interactive.py"),
        # by names in its own config, in a helper's and in a shipped one
        ("experiments/engine/test_sampled_steps.py", "probes/filler.py"),
        ("experiments/studies/rfeval/test_rfeval_run.py", "experiments/studies/rfeval/page.py"),
        ("experiments/test_cli.py", "configs/quickstart.yaml"),
        # a run that names no study is of the one without a name
        ("experiments/engine/test_bad_input.py", "experiments/studies/slrc/__init__.py"),
        # a whole registry
        ("test_versions.py", "probes/knockout.py"),
    ],
)
@pytest.mark.in_time(1)
def test_it_reaches_what_it_runs(test: str, changed: str) -> None:
    assert reaches(test, changed)


def test_a_measure_is_not_reached_through_the_registry_of_all() -> None:
    assert not reaches("interp/test_trunk.py", "experiments/__init__.py")
    assert not reaches("experiments/studies/rfeval/test_rfeval_run.py", "probes/filler.py")


@pytest.mark.slow
def test_files_of_every_kind_touch_the_tests_that_read_them() -> None:
    every = sorted((ROOT / "tests").rglob("test_*.py"))
    assert touched(["pyproject.toml"]) == every
    assert touched(["tests/conftest.py"]) == every
    assert 2 < len(touched(["probes/filler.py"])) < len(every) / 4
    named = {path.name for path in touched(["docs/given.md"])}
    assert "test_docs.py" in named
    assert len(named) < 20
    page = {path.name for path in touched(["experiments/analysis/assets/report.css"])}
    assert {"test_every_study.py", "test_charts.py"} <= page
    unread = "LICENSE".lower()  # in no string of a test
    assert touched([unread]) == []
