"""A small run over annotated chains: what its tables say, and what it says without labels."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import faithcot_runs
import pandas as pd
import pytest
from processor_time import dear
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from faithscope import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.engine.run import write_outputs
from faithscope.experiments.engine.units import read_unit
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS
from faithscope.experiments.studies.slrc.detectors.results import FaithResults
from faithscope.experiments.studies.slrc.detectors.tables import OF_LABELS, tables_of
from faithscope.experiments.studies.slrc.scores import scores

N = 6


@pytest.fixture(scope="module")
@dear
def run_dir(tmp_path_factory: pytest.TempPathFactory, plain: str) -> Path:
    folder = tmp_path_factory.mktemp("faithcot")
    path = faithcot_runs.config(folder, plain, plain, N)
    assert execute(["run", str(path)]) == 0
    return folder / "runs" / "faithcot"


def table(run_dir: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(run_dir / "tables" / f"{name}.csv")


def test_every_detector_stands_in_the_table_with_what_its_scores_give(run_dir: Path) -> None:
    detectors = table(run_dir, "detectors")
    assert {*zip(detectors["detector"], detectors["variant"].fillna(""), strict=True)} == {
        (d.name, d.variant) for d in DETECTORS
    }
    assert set(detectors["rule"]) == {"plain", "fitted"}
    assert set(zip(detectors["dataset"], detectors["model"], strict=True)) == {("aqua", "llama")}
    by_chain = load_run(run_dir).detector_scores
    compared = 0
    for row in detectors[detectors["rule"] == "plain"].to_dict("records"):
        own = by_chain[by_chain["detector"] == row["detector"]]
        own = own[own["variant"] == ("" if row["variant"] != row["variant"] else row["variant"])]
        held = own[own["score"].notna()]
        assert row["n_scored"] == len(held)
        if not math.isnan(row["auroc"]):
            area = roc_auc_score(held["unfaithful"].astype(bool), held["score"].astype(float))
            assert row["auroc"] == pytest.approx(area, abs=1e-5)
        flagged = held[held["flag"].notna()]
        assert row["n"] == len(flagged)
        if not math.isnan(row["kappa"]):
            compared += 1
            kappa = cohen_kappa_score(
                flagged["unfaithful"].astype(bool), flagged["flag"].astype(bool)
            )
            assert row["kappa"] == pytest.approx(kappa, abs=1e-5)
    assert compared >= 4


def test_the_figure_has_every_detector_once_with_its_flags_and_what_the_table_says(
    run_dir: Path,
) -> None:
    drawn = pd.read_csv(run_dir / "figures" / "detectors.csv", keep_default_na=False)
    assert set(drawn["detector"]) == {d.name for d in DETECTORS}
    assert drawn["detector"].is_unique
    by_chain = load_run(run_dir).detector_scores
    own = by_chain[by_chain["main"]].groupby("detector")
    detectors = table(run_dir, "detectors").set_index(["detector", "variant", "rule"])["auroc"]
    for row in drawn.to_dict("records"):
        flags = own.get_group(row["detector"])["flag"].dropna()
        assert row["n_flags"] == len(flags)
        assert (row["no_flags"] == "") == (len(flags) > 0)
        if len(flags):
            assert float(row["flagged"]) == pytest.approx(flags.astype(bool).mean(), abs=1e-6)
            assert float(row["flagged_low"]) <= float(row["flagged"]) <= float(row["flagged_high"])
        auroc = detectors[row["detector"], row["variant"] or math.nan, row["rule"]]
        assert float(row["auroc"] or math.nan) == pytest.approx(auroc, nan_ok=True)
    assert "the paper publishes no threshold" in set(drawn["no_flags"])


def test_comparisons_read_every_detector_and_label_in_its_direction(run_dir: Path) -> None:
    read = scores(load_run(run_dir))
    measures = read.items[read.items["measure"].str.startswith("detector.")]
    # those of judges are measures of their own
    n = sum(not detector.judged for detector in DETECTORS)
    assert measures["measure"].nunique() == n
    assert not measures["higher_is_faithful"].any()
    assert len(measures) == N * n
    forms = set(read.items.loc[read.items["family"] == "judged", "measure"].str.split(" ").str[0])
    assert forms == {"step_judge", "faithful_judge"}
    assert (measures["missing"] == "").equals(measures["value"].notna())
    labels = read.items[read.items["measure"] == "unfaithful.faithful_type"]
    assert labels["value"].tolist() == [0, 1] * (N // 2)
    assert not labels["higher_is_faithful"].any()


def test_labels_are_counted_and_nothing_is_lost(run_dir: Path) -> None:
    (whole,) = (
        row
        for row in table(run_dir, "faithcot_quadrants").to_dict("records")
        if (row["dataset"], row["model"]) == ("all", "all")
    )
    # every second chain is unfaithful, every third answered wrongly
    counts = {k: whole[k] for k in ("correct_faithful", "correct_unfaithful", "wrong_faithful")}
    assert counts == {"correct_faithful": 2, "correct_unfaithful": 2, "wrong_faithful": 1}
    rates = table(run_dir, "faithcot_rates")
    assert rates["unfaithful"].tolist() == [0.5] * len(rates)
    principles = table(run_dir, "faithcot_principles").set_index("name")
    assert principles.loc["Step Skipping", ["n", "share"]].tolist() == [3, 1]
    exclusions = table(run_dir, "exclusions")
    of = exclusions.set_index(["stage", "reason"])["n"]
    assert of["label", "total"] == N
    assert of["label.sources", "disagree"] == 1
    for stage, rows in exclusions.groupby("stage"):
        by_reason = rows.set_index("reason")["n"]
        assert by_reason["total"] == by_reason.drop("total").sum(), stage
    steps = table(run_dir, "faithcot_steps")
    # annotators name two of three steps
    assert steps["chance"].between(0.6, 0.7).any()
    assert steps["hit_rate"].between(0, 1).all()


@pytest.mark.takes("a run with its outputs")
def test_a_chain_that_two_models_read_has_its_labels_once(run_dir: Path) -> None:
    results = FaithResults(load_run(run_dir))
    once = tables_of(results)
    both = FaithResults(load_run(run_dir))
    both.__dict__["traces"] = pd.concat([both.traces, both.traces.assign(reader="another")])
    twice = tables_of(both)
    for name in (t.name for t in OF_LABELS):
        pd.testing.assert_frame_equal(once[name], twice[name])


def test_the_page_says_what_it_comes_to_and_show_prints_a_chain(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (run_dir / "report.html").read_text()
    assert "Annotators call 50% of 6 labelled chains unfaithful" in page.replace(" %", "%").replace(
        "\u00a0%", "%"
    )
    assert "too few to tell of any detector" in page
    assert "a glance, not a reading" in page
    assert "two label sources contradict each other" in page
    assert "Too few labelled chains to tell" in page
    assert "figures/detectors.csv" in page
    item = load_run(run_dir).annotated_chains["item"].iloc[1]
    assert execute(["show", str(run_dir), "--item", item]) == 0
    out = capsys.readouterr().out
    assert "label: unfaithful (Step Skipping)" in out
    assert "Faithful judge" in out


@pytest.mark.slow
def test_without_labels_there_are_scores_and_nothing_to_hold_them_against(
    plain: str, tmp_path: Path
) -> None:
    config = faithcot_runs.config(tmp_path, plain, "", 2, judges=None)
    for file in (tmp_path / "chains").rglob("*.json"):
        row = json.loads(file.read_text())
        kept = ("question", "options", "label", "sample_0")
        file.write_text(json.dumps({k: row[k] for k in kept}))
    assert execute(["run", str(config), "--set", "detectors.edits.by=rule"]) == 0
    made = tmp_path / "runs" / "faithcot"
    detectors = table(made, "detectors")
    assert detectors["n"].sum() == 0
    assert detectors["auroc"].isna().all()
    assert (detectors["n_scored"] > 0).any()
    page = (made / "report.html").read_text()
    assert "there is nothing to hold the detectors against" in page
    assert "What needs labels is left out of this page" in page
    # no table whose numbers are all of labels, no column of them, and the flags alone are drawn
    assert "tables/faithcot_" not in page
    shown = page[page.index('id="detectors"') : page.index('id="exclusions"')]
    assert not any(word in shown for word in ("AUROC of the score", "fitted", "AC2"))
    drawn = pd.read_csv(made / "figures" / "detectors.csv")
    assert drawn["flagged"].notna().any()
    assert drawn[["auroc", "f1"]].isna().all(axis=None)
    exclusions = table(made, "exclusions").set_index(["stage", "reason"])["n"]
    assert exclusions["label", "no_label"] == 2

    # labels given later for the same chains need no new forward
    labelled = faithcot_runs.chains(tmp_path / "labels", 2, model="m")
    for file in labelled.rglob("*.json"):
        row = json.loads(file.read_text())
        item = file.stem.removeprefix("response_")
        about = {"dataset": "aqua", "item": item, "model": plain}
        file.write_text(json.dumps({**row, "annotation": about}))
    more = ["--set", "detectors.edits.by=rule", "--set", f"labels.path={labelled}"]
    assert execute(["run", str(config), *more]) == 0
    assert table(made, "detectors")["n"].max() == 2


@pytest.mark.slow
def test_an_answer_that_cannot_be_read_is_in_no_table_of_right_and_wrong(
    plain: str, tmp_path: Path
) -> None:
    config = faithcot_runs.config(tmp_path, plain, "", 4, judges=None, probes=["information"])
    first, *_ = sorted((tmp_path / "chains").rglob("*.json"))
    row = json.loads(first.read_text())
    told = row["sample_0"]
    whole = told["full_response"].removesuffix(told["final_answer"])
    told |= {"parsed_final_answer": None, "final_answer": "", "full_response": whole}
    first.write_text(json.dumps(row))
    assert execute(["run", str(config), "--set", "detectors.edits.by=rule"]) == 0
    made = tmp_path / "runs" / "faithcot"
    whole = table(made, "faithcot_quadrants").to_dict("records")[-1]
    assert (whole["n"], whole["n_unknown"]) == (3, 1)
    chains = load_run(made).annotated_chains
    assert chains["correct"].isna().sum() == 1
    assert load_run(made).traces["correct"].isna().sum() == 1
    assert "1 of 4 without an answer that could be read" in (made / "report.html").read_text()


@pytest.mark.slow
def test_chains_cut_at_the_limit_are_counted_and_in_no_number_unless_kept(
    run_dir: Path, tmp_path: Path
) -> None:
    shutil.copytree(run_dir, made := tmp_path / "faithcot")
    cut = set(load_run(run_dir).annotated_chains["item"][:2])
    _change_traces(made, {item: {"finish": "length"} for item in cut})
    run = load_run(made)
    assert set(run.annotated_chains.loc[run.annotated_chains["cut"], "item"]) == cut
    detectors = run.tables["detectors"]
    assert set(detectors["n_cut"]) == {2}
    assert detectors["n_scored"].max() == N - 2
    quadrants = run.tables["faithcot_quadrants"].to_dict("records")[-1]
    assert (quadrants["n"], quadrants["n_cut"]) == (N - 2, 2)
    assert set(run.tables["faithcot_rates"]["n"]) == {N - 2}
    of = run.tables["exclusions"].set_index(["stage", "reason"])["n"]
    assert of["detector.random", "cut_at_the_limit"] == 2
    page = write_outputs(made).page.read_text()
    assert f"2 of {N} cut at the token limit" in page
    # they were written elsewhere, where no setting lets them end
    assert "to change that: --set report.cut=kept" in page

    config = made / "config.yaml"
    config.write_text(config.read_text().replace("cut: left_out", "cut: kept"))
    kept = load_run(made)
    assert set(kept.tables["detectors"]["n_cut"]) == {2}
    assert kept.tables["detectors"]["n_scored"].max() == N
    page = write_outputs(made).page.read_text()
    assert f"2 of {N} cut at the token limit" in page
    assert "report.cut=kept" not in page


@pytest.mark.slow
def test_an_excluded_chain_leaves_the_others_on_the_page(run_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(run_dir, made := tmp_path / "faithcot")
    first, *_ = load_run(run_dir).annotated_chains["item"]
    _change_traces(made, {first: {"excluded": "reasoning_unclosed"}})
    page = write_outputs(made).page.read_text()
    assert f"{N} chains, {N - 1} of them read by the detectors, {N - 1} with a label" in page
    for item in load_run(made).annotated_chains["item"]:
        assert execute(["show", str(made), "--item", item]) == 0


def _change_traces(run_dir: Path, changes: dict[str, dict[str, str]]) -> None:
    """Writes the stored traces of some items anew, with other values; an excluded one alone."""
    changed = 0
    for file in (run_dir / "records").glob("*.jsonl"):
        units = [read_unit(line) for line in file.read_bytes().splitlines(keepends=True)]
        for i, unit in enumerate(units):
            if unit.stage == "trace" and unit.item in changes:
                changed += 1
                of_item = changes[unit.item]
                units[i] = replace(unit, records=[r | of_item for r in unit.records])
        excluded = {item for item, values in changes.items() if "excluded" in values}
        kept = [u for u in units if u.stage == "trace" or u.item not in excluded]
        file.write_bytes(b"".join(unit.to_line() for unit in kept))
    assert changed == len(changes)
