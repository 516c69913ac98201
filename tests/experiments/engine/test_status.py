"""How far a run is, told from its folder alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan
from faithscope.experiments.engine.status import kind_of, status
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes.record import head

MODEL = "a/model-that-is-nowhere"
CHAIN = {"pieces": ["It is a good film."], "steps": [], "answer": "good", "origin": {}}


def config(folder: Path) -> RunConfig:
    values: dict[str, Any] = {"name": "t", "model": {"name": MODEL}, "tasks": ["sentiment"]}
    return RunConfig.model_validate(values | {"out": str(folder)})


def plan(n: int) -> StoredPlan:
    items = (
        StoredItem(MODEL, "sentiment", f"i{i}", {"trace": f"t{i}", "slrc": f"s{i}"})
        for i in range(n)
    )
    return StoredPlan(2, tuple(items))


def add(store: Store, stage: str, i: int, failed: str | None = None, **record: Any) -> None:
    records = (
        []
        if failed
        else [
            head(
                dataset="sentiment",
                task="sentiment",
                item=f"i{i}",
                model=MODEL,
                probe=stage,
                seed=0,
            )
            | record
        ]
    )
    key = (stage, MODEL, "sentiment", f"i{i}")
    store.add(f"{stage[0]}{i}", key, records, failed, 2.0 if stage == "trace" else 4.0)


@pytest.fixture
def running(tmp_path: Path) -> Path:
    """Six items: two done, one excluded, one failed, one traced, one not begun."""
    with Store(config(tmp_path), {}, plan=plan(6)) as store:
        for i in range(5):
            excluded = "reasoning_unclosed" if i == 2 else None
            add(store, "trace", i, excluded=excluded, **CHAIN)
        for i in range(2):
            add(store, "slrc", i)
        add(store, "slrc", 3, failed="UserError: 'x': 900 tokens do not fit; shorten it")
    return tmp_path / "t"


def test_every_item_is_in_one_place(running: Path) -> None:
    found = status(running)
    (group,) = found.groups
    assert (group.items, group.done, group.excluded, group.failed, group.left) == (6, 3, 1, 1, 2)
    assert group.made == 5
    assert found.tally is not None
    assert found.tally.lost == {"failed": 1, "reasoning_unclosed": 1}
    (kind,) = found.kinds
    assert (kind.stage, kind.reason, kind.n) == ("slrc", "UserError: …: # tokens do not fit", 1)
    assert kind.example == f"sentiment · i3 · {MODEL}"


def test_time_left_is_what_the_missing_units_are_measured_to_take(running: Path) -> None:
    found = status(running)
    assert found.groups[0].seconds_per_item == 2.0 + 4.0
    assert found.seconds_left == 2.0 + 4.0 + 4.0
    assert found.at_work == 1
    assert "12 items a minute by 1 worker; about 10 s left" in found.lines()[1]
    late = status(running, now=os.stat(running / "timing.main.jsonl").st_mtime + 1e6)
    assert late.at_work == 0
    assert late.lines()[1] == "no one is at work; about 10 s of work left"
    assert late.lines()[2] == f"to go on: faithscope run {running}/config.yaml"


@pytest.mark.parametrize("n_units", [0, 1])
def test_a_worker_that_was_killed_is_told_with_the_command_that_goes_on(
    tmp_path: Path, n_units: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "".join(f"add(store, 'trace', {i}, **CHAIN)\n    " for i in range(n_units))
    code = f"""
import os, signal, sys
sys.path[:0] = {[str(Path(__file__).parent)]!r}
from pathlib import Path
from test_status import CHAIN, Store, add, config, plan
with Store(config(Path({str(tmp_path)!r})), {{}}, "2of3", plan(2)) as store:
    {lines}print("begun", flush=True)
    sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    run = tmp_path / "t"
    assert [w.gone for w in status(run).workers] == [False] * n_units
    process.kill()
    process.communicate()
    at_work = {p: p.stat().st_mtime_ns for p in run.rglob("*")}
    execute(["list", "runs", "--out", str(tmp_path)])
    assert (
        "0 of 2 items done, 2 left, 0 failed; stopped (process is gone)" in capsys.readouterr().out
    )
    told = status(run).lines()
    assert told[2].startswith("2of3: stopped (process is gone), last seen ")
    assert told[3] == f"to go on: faithscope run {run}/config.yaml"
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*")} == at_work
    (run / "timing.1of3.jsonl").touch()
    assert status(run, now=1e12).lines()[3].endswith("/config.yaml --shard 2/3")
    with Store(config(tmp_path), {}, "2of3", plan(2)):
        assert not any(w.gone for w in status(run).workers)
    assert not any(w.gone for w in status(run).workers)


def test_a_clock_that_went_back_is_no_negative_time(running: Path) -> None:
    (worker,) = status(running, now=0.0).workers
    assert worker.silent == 0.0


def test_it_needs_neither_data_nor_models_nor_a_lock(
    running: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "copy"
    shutil.copytree(running, moved)
    shutil.rmtree(moved / ".locks")
    before = {p: p.stat().st_mtime_ns for p in moved.rglob("*")}
    assert execute(["status", str(moved)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"{moved}: 3 of 6 items done, 2 left, 1 failed"
    assert {p: p.stat().st_mtime_ns for p in moved.rglob("*")} == before


def test_units_of_other_data_do_not_count(running: Path) -> None:
    changed = tuple(
        StoredItem(i.model, i.task, i.item, {k: f"new {u}" for k, u in i.units.items()})
        if i.item == "i0"
        else i
        for i in plan(6).items
    )
    with Store(config(running.parent), {}, plan=StoredPlan(2, changed)):
        pass
    assert status(running).groups[0].done == 2


def test_a_folder_without_a_plan_is_told(tmp_path: Path) -> None:
    with Store(config(tmp_path), {}):
        pass
    with pytest.raises(ValueError, match=r"has no plan\.jsonl"):
        status(tmp_path / "t")


def test_failures_of_a_kind_read_alike() -> None:
    reasons = (
        "UserError: a/b: a sequence of 900 tokens does not fit its 512 positions; shorten it",
        "UserError: a/b: a sequence of 1012 tokens does not fit its 512 positions; shorten it",
    )
    assert len({kind_of(r) for r in reasons}) == 1
