"""Tables over steps never pool chains whose steps are of two units."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from sample_records import CHAIN, FAITHFUL, HINT, REAL, SENTIMENT, sample_run, write_run

import faithscope
from faithscope import interp
from faithscope.experiments.analysis.page import render
from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.data.traces import to_record
from faithscope.experiments.studies.slrc.figures.figures import pictures
from faithscope.experiments.studies.slrc.frames import Results, tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.page import page
from faithscope.experiments.studies.slrc.paper import PAPER
from faithscope.experiments.studies.slrc.words import instrument_checks, verdicts
from faithscope.probes import PROBES

ITEMS = 16


def in_units(records: Sequence[Record], units: tuple[str, ...] = ("sentence", "paragraph")):
    """The records with alternating units of removal, item by item."""
    order = {item: i for i, item in enumerate(sorted({str(r["item"]) for r in records}))}
    return [dict(r, unit=units[order[str(r["item"])] % len(units)]) for r in records]


RECORDS = in_units(sample_run(ITEMS))


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    return tables_of(RECORDS, (), SlrcAnalysis(resamples=50))


@pytest.mark.parametrize("unit", ["sentence", "paragraph"])
def test_a_row_of_a_unit_is_that_of_its_chains_alone(made, unit):
    alone = tables_of([r for r in RECORDS if r["unit"] == unit], (), SlrcAnalysis(resamples=50))
    over_steps = {name for name, table in made.items() if "unit" in table.columns}
    assert {"slrc", "edits", "edits_by_step", "agreement", "steps", "models"} <= over_steps
    for name in over_steps:
        mine = where(made[name], unit=unit).reset_index(drop=True)
        assert len(mine)
        pd.testing.assert_frame_equal(mine, alone[name], check_dtype=False)


def test_no_row_is_of_both(made):
    (pooled,) = rows(where(tables_of(sample_run(ITEMS))["slrc"], **PLACE))
    of_units = rows(where(made["slrc"], **PLACE))
    assert [r["unit"] for r in of_units] == ["sentence", "paragraph"]
    assert sum(r["n"] for r in of_units) == pooled["n"] == ITEMS


PLACE = {"model": HINT, "task": CHAIN, "framing": "prefix", "reading": "generated"}


WHOLE = {"exclusions", "label_mass", "direct"} | {
    table.name for report in REPORTS.values() if not report.over_steps for table in report.tables
}
"""Tables about whole chains, questions or items, which have no column `unit`."""
WAYS: dict[str, dict[str, float]] = {"resample": {"temperature": 2.5}}
"""The planted model is sure of every step; at temperature 1 it draws no other."""


@pytest.fixture(scope="module")
def of_every_probe() -> list[Record]:
    """Records of all probes on twelve chains of a model, with two alternating units."""
    model = interp.load("planted:faithful")
    made = faithscope.make_traces(model, faithscope.questions("planted", 12))
    traces = [
        dataclasses.replace(trace, unit=("sentence", "paragraph")[i % 2])
        for i, trace in enumerate(made)
    ]
    return [to_record(trace) for trace in traces] + [
        record
        for trace in traces
        for probe in PROBES
        for record in faithscope.measure(model, trace, probe, **WAYS.get(probe, {}))
    ]


@pytest.mark.in_time(1)
@pytest.mark.slow
def test_of_every_probe_what_is_over_steps_has_a_row_per_unit(of_every_probe):
    def arrays(probe: str) -> list[tuple[Place, dict[str, Any]]]:
        return [(place_of(r), r["arrays"]) for r in of_every_probe if r["probe"] == probe]

    found = tables_of(of_every_probe, (), SlrcAnalysis(resamples=20, arrays=arrays))
    over_steps = {name for name, table in found.items() if "unit" in table.columns}
    assert set(found) - over_steps == WHOLE & set(found)
    assert {"causal_effects", "knockout", "patching", "tracing", "information"} < over_steps
    for name in over_steps:
        table = found[name]
        assert list(table.columns).index("unit") == sum(c in table for c in ("model", "task"))
        if len(table):
            assert set(table["unit"]) == {"sentence", "paragraph"}, name
        if len(table) and "n" in table.columns and name != "agreement":
            assert max(table["n"].tolist()) <= 6, name


def test_verdicts_and_checks_are_of_each_unit(made):
    found = [(v.model, v.unit, v.n) for v in verdicts(made)]
    of_each = [
        (m, u, ITEMS // 2) for m in (FAITHFUL, HINT, REAL) for u in ("sentence", "paragraph")
    ]
    assert found == of_each
    claims = [
        c.claim for c in instrument_checks(made["slrc"], made["edits"], made["edits_by_step"])
    ]
    assert {re.sub(r".* ", "", claim) for claim in claims} == {"(sentences)", "(paragraphs)"}
    assert all(
        c.passed for c in instrument_checks(made["slrc"], made["edits"], made["edits_by_step"])
    )


def test_figures_and_the_papers_tables_name_the_unit_of_each_row(made):
    drawn = {p.name: p.data for p in pictures(made)}
    tasks = {f"{CHAIN} (sentences)", f"{CHAIN} (paragraphs)"}
    tasks |= {f"{SENTIMENT} (sentences)", f"{SENTIMENT} (paragraphs)"}
    for name in ("edits", "forest", "position", "agreement", "contrasts", "by_task"):
        assert set(drawn[name]["task"]) == tasks, name
    laid_out = {t.name: t.data for t in printed_tables(PAPER, made)}
    assert list(laid_out["paper_slrc_ed5"]["unit"].unique()) == ["sentence", "paragraph"]
    # how many responses have several steps is not a number of steps
    assert "unit" not in laid_out["paper_slrc_ed4"]
    assert not laid_out["paper_slrc_ed4"][["model", "task"]].duplicated().any()


@pytest.mark.slow
def test_the_page_says_which_chains_are_of_several_units(tmp_path):
    html = render(page(Results(load_run(write_run(tmp_path / "both", RECORDS))), []))
    said = re.search(r'<section id="units".*?</section>', html, re.DOTALL)
    assert said is not None
    assert f"<code>{HINT}</code> on {CHAIN}: sentences, paragraphs" in said[0]
    assert f"{CHAIN} (paragraphs)" in html
    one = write_run(tmp_path / "one", in_units(sample_run(ITEMS), ("sentence",)))
    plain = render(page(Results(load_run(one)), []))
    assert 'id="units"' not in plain
    assert "(sentences)" not in plain
