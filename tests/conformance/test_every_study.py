"""What holds of every study's runs: done once, whatever happens meanwhile, and the same bytes."""

from __future__ import annotations

import itertools
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from bad_input import refused
from browser import browser
from cases import CASES, Case, Setting, run_folder
from pages import faults
from run_files import write_config
from run_folders import (
    Start,
    every_run,
    every_study,
    every_study_in_time,
    half_written,
    keys,
    lines,
    outputs,
    starting,
)
from synthetic_comparison import records_of

import faithscope
from faithscope import load_run
from faithscope.experiments.analysis.comparison.scores import FAMILIES
from faithscope.experiments.cli import execute
from faithscope.experiments.config.study import STUDIES
from faithscope.experiments.engine.store import read_failures
from faithscope.probes.record import KEYS

OUTPUTS = "tables"


HELD_ELSEWHERE = {"compare", "training"}
"""Studies that are held to these rules elsewhere: the units of a comparison are whole runs of
others; a training asks no API and is killed within its one unit
(tests/experiments/studies/training)."""


def test_every_registered_study_has_a_case() -> None:
    assert set(CASES) >= set(STUDIES) - HELD_ELSEWHERE


@every_run
def test_every_unit_is_stored_once(case: Case, undisturbed: Path) -> None:
    stored = keys(undisturbed)
    stages = {key[0].partition(".")[0] for key in stored}
    assert stages >= {s.replace("traces", "trace") for s in case.stages[:1]}
    assert max(stored.values()) == 1
    assert read_failures(undisturbed) == []
    assert outputs(undisturbed)
    assert half_written(undisturbed) == []
    for unit in load_run(undisturbed).index.each():
        assert all(list(record)[: len(KEYS)] == list(KEYS) for record in unit.records)


@every_study
def test_a_dry_run_leaves_nothing(
    case: Case, here: Setting, capfd: pytest.CaptureFixture[str]
) -> None:
    path = case.here(here)
    assert execute(["run", str(path), "--dry-run"]) == 0
    assert "loading" not in capfd.readouterr().err
    assert not run_folder(path).exists()


@every_run
def test_what_is_done_is_not_done_again(
    undisturbed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before, tables = lines(undisturbed), outputs(undisturbed)
    (path,) = undisturbed.parents[1].glob("*.yaml")
    assert execute(["run", str(path)]) == 0
    assert "loading" not in capfd.readouterr().err
    assert lines(undisturbed) == before
    assert outputs(undisturbed) == tables
    assert execute(["status", str(undisturbed)]) == 0
    assert "complete" in capfd.readouterr().out


@every_run
def test_it_opens_where_its_models_are_not(
    undisturbed: Path, tiny_models: dict[str, str], tmp_path: Path
) -> None:
    moved = Path(shutil.copytree(undisturbed, tmp_path / "moved"))
    config = (moved / "config.yaml").read_text("utf-8")
    for folder in tiny_models.values():
        config = config.replace(folder, f"{folder}-gone")
    write_config(moved, config)
    run, before = load_run(moved), load_run(undisturbed)
    assert run.config.seed == before.config.seed
    assert run.failures == []
    assert run.frames == before.frames
    for name, meaning in run.frames.items():
        assert meaning.startswith("A row per ")
        assert set(run.columns(name)) <= set(getattr(run, name).columns)
        assert len(getattr(run, name)) == len(getattr(before, name))
    assert run.tables
    # tables in a paper's layout are written beside those of the run
    assert set(run.tables) <= {path.stem for path in (moved / "tables").glob("*.csv")}
    for name, table in run.tables.items():
        stored = pd.read_csv(moved / "tables" / f"{name}.csv")
        assert list(stored.columns) == list(table.columns), name


@pytest.mark.slow
@every_run
def test_a_report_needs_neither_data_nor_prompts(undisturbed: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(undisturbed, tmp_path / "moved"))
    shutil.rmtree(moved / "tables")
    config, folder = (moved / "config.yaml").read_text("utf-8"), str(undisturbed.parents[1])
    write_config(moved, config.replace(folder, f"{folder}-gone"))
    assert execute(["report", str(moved)]) == 0
    assert outputs(moved) == outputs(undisturbed)


@every_study_in_time
def test_its_scores_can_be_compared(study: str, undisturbed: Path, tmp_path: Path) -> None:
    if study == "toy":
        assert "has no scores of traces to compare" in refused(
            "compare", undisturbed, "--into", str(tmp_path / "c")
        )
        return
    quick = {"bootstrap": 20, "folds": 2}
    compared = faithscope.compare([undisturbed], tmp_path / "c", report=quick)
    items, traces = compared.items, compared.traces
    assert set(items["family"]) <= set(FAMILIES)
    assert (items["value"].isna() == (items["missing"] != "")).all()
    missing = compared.tables["missing"].groupby("measure")["n"].sum()
    assert (missing == len(traces)).all()
    assert faults((tmp_path / "c" / "report.html").read_text("utf-8"), ["explore.html"]) == []
    explorer = (tmp_path / "c" / "explore.html").read_text("utf-8")
    assert faults(explorer, ["report.html"]) == []
    records = records_of(explorer)
    assert len(records) == len(traces)
    for record in records:
        assert record["question"]
        assert record["told"]
        assert all(len(of["values"]) <= len(record["steps"]) for of in record["credits"])


@every_run
def test_the_page_is_well_formed_and_holds_nothing_that_its_policy_refuses(
    undisturbed: Path,
) -> None:
    assert faults((undisturbed / "report.html").read_text("utf-8")) == []


BEYOND = """[...document.querySelectorAll("table.verdicts")].flatMap(
    (table) => [...table.tHead.rows[0].cells].slice(0, 5)
        .filter((cell) => cell.getBoundingClientRect().right > innerWidth)
        .map((cell) => cell.textContent))"""


@pytest.mark.slow
@every_run
def test_a_browser_draws_all_of_the_page(undisturbed: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as chromium:
        for width, scheme in itertools.product((1440, 800), ("light", "dark")):
            chromium.open(undisturbed / "report.html", width, scheme)
            assert chromium.problems() == []
            # what a verdict rests on is in sight, on a narrow window, too
            assert chromium.evaluate(BEYOND) == []
            # its own script ran
            assert chromium.evaluate("document.querySelectorAll('th button').length") > 0
            dark = chromium.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
            assert dark == (scheme == "dark")


@every_run
def test_another_config_is_refused(undisturbed: Path) -> None:
    before = lines(undisturbed)
    (path,) = undisturbed.parents[1].glob("*.yaml")
    message = refused("run", path, "--set", "seed=7")
    assert "was made with another config (seed: 0 there, 7 now" in message
    assert "use another name (--set name=…)" in message
    assert lines(undisturbed) == before


@pytest.mark.slow
@every_study_in_time
def test_a_torn_line_in_every_file_and_another_number_of_parts_change_nothing(
    case: Case, undisturbed: Path, here: Setting
) -> None:
    path = case.here(here)
    run_dir = run_folder(path)
    assert execute(["run", str(path)]) == 0
    for file in (run_dir / "records").glob("*.jsonl"):
        whole = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(whole[:-2]) + whole[-2][: len(whole[-2]) // 2])
    for k in (1, 2, 3):
        assert execute(["run", str(path), "--shard", f"{k}/3"]) == 0
    assert execute(["merge", str(run_dir)]) == 0
    assert outputs(run_dir) == outputs(undisturbed)


@every_study_in_time
def test_parts_in_folders_of_their_own_are_joined(
    case: Case, undisturbed: Path, here: Setting
) -> None:
    path = case.here(here)
    folders = []
    for k in (1, 2):
        part = here.folder / f"part{k}"
        assert execute(["run", str(path), "--shard", f"{k}/2", "--set", f"out={part}"]) == 0
        folders.append(str(next(part.iterdir())))
    joined = here.folder / "joined"
    assert execute(["merge", folders[0]]) == 2
    for _ in range(2):  # a second merge changes nothing
        assert execute(["merge", *folders, "--into", str(joined)]) == 0
        assert keys(joined) == keys(undisturbed)
        assert outputs(joined) == outputs(undisturbed)


@pytest.fixture
def starts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    with starting(tmp_path_factory.mktemp("starts")) as start:
        yield start


@pytest.mark.slow
@every_study_in_time
def test_after_a_signal_in_every_stage_nothing_is_lost_or_doubled(
    case: Case,
    undisturbed: Path,
    here: Setting,
    starts: Start,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path, rng = case.here(here), random.Random(0)
    run_dir = run_folder(path)
    signals = itertools.cycle((signal.SIGTERM, signal.SIGKILL))
    # the outputs of the toy are written in no time
    for stage in case.stages if case is CASES["toy"] else (*case.stages, OUTPUTS):
        before, sent = len(lines(run_dir, stage)), next(signals)

        def reached(stage: str = stage, before: int = before) -> bool:
            if stage == OUTPUTS:
                return any((run_dir / OUTPUTS).glob("*.csv"))
            if more := len(lines(run_dir, stage)) > before:
                time.sleep(rng.random() * 0.02)
            return more

        ended = starts(path, reached, sent)
        # what a reader finds is whole
        assert outputs(run_dir).items() <= outputs(undisturbed).items()
        # the last stage of a run this small may be over before the signal comes
        if stage == "length" and ended.code == 0:
            continue
        if sent == signal.SIGTERM:
            assert (ended.code, ended.out) == (130, ""), ended.err
            assert "the same command goes on from here" in ended.err
        else:
            assert ended.code == -signal.SIGKILL, f"{stage}: over before: {ended}"
    capfd.readouterr()
    assert execute(["run", str(path)]) == 0
    assert capfd.readouterr().out == f"{run_dir}\n"
    assert keys(run_dir) == keys(undisturbed)
    assert outputs(run_dir) == outputs(undisturbed)
    assert read_failures(run_dir) == []
    assert half_written(run_dir) == []
