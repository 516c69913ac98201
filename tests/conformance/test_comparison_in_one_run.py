"""Behaviour, internals and judges of the same chains, compared inside one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from pages import faults

import faithscope
from faithscope.experiments.analysis.run import load_run

PLAIN_TABLES = {"sources", "joins", "missing"}
"""Tables of a comparison about its runs, which one run has no use for."""


@pytest.fixture
def folder(undisturbed_of: Callable[[str], Path]) -> Path:
    """A run of planted models with probes of behaviour and internals, and of a judge."""
    return undisturbed_of("slrc")


@pytest.mark.slow
def test_kinds_of_evidence_and_planted_truth_stand_in_one_run(folder: Path) -> None:
    tables = load_run(folder).tables
    families = tables["compared_families"][["family", "other_family"]].to_numpy().tolist()
    assert ["behavioural", "judged"] in families
    assert ["internal", "judged"] in families or ["judged", "internal"] in families
    against = tables["compared_against"]
    whole = against.loc[(against["by"] == "all") & (against["label"] == "planted_faithful")]
    assert {"behavioural", "internal", "judged"} <= set(whole["family"])
    pooled = whole.set_index("measure")["pooled"]
    assert pooled["necessity_prefix_generated"] > 0.5
    assert len(tables["compared_disagreements_items"])
    said = (folder / "report.html").read_text("utf-8")
    assert faults(said) == []
    assert "Behaviour, internals and judges compared" in said


@pytest.mark.slow
@pytest.mark.takes("a whole comparison of a run with itself")
def test_one_run_has_the_numbers_of_a_comparison_of_it(folder: Path, tmp_path: Path) -> None:
    own = load_run(folder).tables
    report = {"bootstrap": 20}
    of_runs = faithscope.compare([folder], tmp_path / "compared", report=report).tables
    of_measures = {name: t for name, t in of_runs.items() if name not in PLAIN_TABLES and len(t)}
    assert of_measures
    for name, table in of_measures.items():
        pd.testing.assert_frame_equal(table, own[f"compared_{name}"])
