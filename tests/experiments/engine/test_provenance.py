"""What runs may be believed: who made the records, and what is said where that differs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithscope import load_run
from faithscope.experiments.cli import main
from faithscope.experiments.engine import environment
from faithscope.experiments.engine.environment import ROOT, commit, source
from faithscope.experiments.engine.folder import read_environment
from faithscope.experiments.engine.merge import merge
from faithscope.experiments.engine.planfile import Shard, StoredItem, StoredPlan
from faithscope.experiments.engine.provenance import check_same, made_by
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.status import status
from faithscope.experiments.engine.store import Store, read_failures, read_records
from faithscope.experiments.engine.units import versions
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes import PROBES
from faithscope.probes.record import head

MODEL, TASK = "planted:faithful", "planted"
HERE = {"packages": {"torch": "2.13.0"}, "source": "aaaa", "commit": "1" * 40}
ELSEWHERE = HERE | {"source": "bbbb"}
LOADED = {"dtype": "float32", "device": "cuda:0"}
PLAN = StoredPlan(1, (StoredItem(MODEL, TASK, "x", {"trace": "xt", "slrc": "xs"}),))


def config(folder: Path, **changes: Any) -> RunConfig:
    values = {"name": "t", "model": {"name": MODEL}, "tasks": [TASK]}
    return RunConfig.model_validate(values | {"out": str(folder)} | changes)


def add(store: Store, stage: str, item: str = "x", **values: Any) -> None:
    record = head(dataset=TASK, task=TASK, item=item, model=MODEL, probe=stage, seed=0)
    store.add(f"{item}{stage[0]}", (stage, MODEL, TASK, item), [record | values])


def begun(folder: Path, facts: dict[str, Any], environment: dict[str, Any] = HERE) -> Path:
    with Store(config(folder), environment, plan=PLAN) as store:
        store.note_model(MODEL, facts)
        add(store, "trace", pieces=["3 + 4 = 7."], steps=[], answer="7", origin={})
    return folder / "t"


@pytest.mark.parametrize(
    ("environment", "facts", "said"),
    [
        (ELSEWHERE, LOADED, "state of faithscope's code: 1111111 aaaa (1 unit), 1111111 bbbb"),
        (
            HERE | {"packages": {"torch": "2.14"}},
            LOADED,
            "version of torch: 2.13.0 (1 unit), 2.14",
        ),
        (HERE | {"devices": ["H100"]}, LOADED, ""),
        (HERE, LOADED | {"dtype": "bfloat16"}, "dtype: bfloat16 (1 unit), float32 (1 unit)"),
        (HERE, LOADED | {"device": "cuda:1"}, ""),
        (HERE, LOADED, ""),
        (
            HERE,
            LOADED | {"adapter": {"weights of the base model": "bbbb"}},
            "weights of the base model: aaaa (1 unit), bbbb (1 unit)",
        ),
    ],
)
def test_a_run_made_by_more_than_one_says_so(
    tmp_path: Path, environment: dict[str, Any], facts: dict[str, Any], said: str
) -> None:
    adapter = {"adapter": {"weights of the base model": "aaaa"}} if "adapter" in facts else {}
    run_dir = begun(tmp_path, LOADED | adapter)
    with Store(config(tmp_path), environment, plan=PLAN) as store:
        store.note_model(MODEL, facts)
        add(store, "slrc")
    lines = made_by(run_dir)
    assert len(lines) == bool(said)
    assert said in "".join(lines)
    assert status(run_dir).lines()[-len(lines) :] == lines or not lines


def test_cautions_about_a_model_stand_with_its_run(tmp_path: Path) -> None:
    run_dir = begun(tmp_path, LOADED | {"cautions": ["3 weights are not part of it"]})
    assert made_by(run_dir) == [f"{MODEL}: 3 weights are not part of it"]
    assert status(run_dir).lines()[-1] == f"{MODEL}: 3 weights are not part of it"


def test_a_session_that_made_nothing_is_not_spoken_of(tmp_path: Path) -> None:
    run_dir = begun(tmp_path, LOADED)
    with Store(config(tmp_path), ELSEWHERE, plan=PLAN):
        pass
    assert made_by(run_dir) == []


@pytest.mark.parametrize(
    ("facts", "environment", "differs"),
    [
        (LOADED | {"dtype": "bfloat16"}, HERE, "dtype: float32 then, bfloat16 now"),
        (LOADED | {"device": "cpu"}, HERE, "kind of place: cuda then, cpu now"),
        (LOADED, HERE | {"packages": {"torch": "2.14"}}, "torch: 2.13.0 then, 2.14 now"),
        (LOADED, HERE | {"devices": ["H100"]}, "device:  then, H100 now"),
    ],
)
def test_an_item_is_not_finished_otherwise_than_it_was_begun(
    tmp_path: Path, facts: dict[str, Any], environment: dict[str, Any], differs: str
) -> None:
    run_dir = begun(tmp_path, LOADED)
    with Store(config(tmp_path), environment, plan=PLAN) as store:
        store.note_model(MODEL, facts)
        with pytest.raises(StoreError, match=f"1 item of {MODEL} was begun.*{differs}.*--mixed"):
            check_same(run_dir, store.index, PLAN.items, MODEL, store.session)
        add(store, "slrc")
        check_same(run_dir, store.index, PLAN.items, MODEL, store.session)


def test_texts_from_elsewhere_are_no_mixture(tmp_path: Path) -> None:
    """What servers or vLLM wrote, a model that is loaded here measures."""
    run_dir = begun(tmp_path, {"generation_backend": "vllm"})
    with Store(config(tmp_path), HERE, plan=PLAN) as store:
        store.note_model(MODEL, LOADED)
        check_same(run_dir, store.index, PLAN.items, MODEL, store.session)


def half(folder: Path) -> RunConfig:
    """A run on a planted model, whose second half is gone, begun in another dtype."""
    probes = {"probes": ["slrc", "flow"], "data": {"limit": 2}, "report": {"bootstrap": 20}}
    whole = config(folder, **probes)
    run(whole, Shard(0, 2))
    for path in (whole.run_dir / "records").glob("flow.*"):
        path.unlink()
    environment = read_environment(whole.run_dir)
    environment["sessions"][0]["models"][MODEL]["dtype"] = "float16"
    (whole.run_dir / "environment.json").write_text(json.dumps(environment))
    return whole


@pytest.mark.slow
def test_a_run_refuses_and_mixes_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = half(tmp_path)
    path = str(whole.run_dir / "config.yaml")
    with pytest.raises(SystemExit, match="2"):
        main(["run", path])
    assert "2 items of planted:faithful were begun otherwise" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["run", path, "--mixed"])
    page = (whole.run_dir / "report.html").read_text("utf-8")
    above, _, _ = page.partition("<h2")
    assert "more than one dtype" in above
    assert "more than one dtype" in capsys.readouterr().err


@pytest.mark.slow
def test_a_merge_keeps_which_session_made_what(tmp_path: Path) -> None:
    for name, dtype in (("a", "float32"), ("b", "float16")):
        whole = config(
            tmp_path / name, probes=["slrc"], data={"limit": 2}, generation={"batch_size": 1}
        )
        run(whole, Shard("ab".index(name), 2))
        environment = read_environment(whole.run_dir)
        environment["sessions"][0]["models"][MODEL]["dtype"] = dtype
        (whole.run_dir / "environment.json").write_text(json.dumps(environment))
    merged, _ = merge([tmp_path / "a/t", tmp_path / "b/t"], tmp_path / "m")
    (line,) = made_by(merged)
    assert "more than one dtype: float" in line
    # as after a merge that was stopped
    shutil.rmtree(merged / "records")
    again, _ = merge([tmp_path / "a/t", tmp_path / "b/t"], tmp_path / "m")
    assert made_by(again) == [line]


def test_sessions_are_counted_on_where_their_facts_are_lost(tmp_path: Path) -> None:
    run_dir = begun(tmp_path, LOADED)
    key = ("slrc", MODEL, TASK, "x")
    with Store(config(tmp_path), HERE, plan=PLAN) as store:
        store.add("xs", key, [], failed="ValueError: once")
    (run_dir / "environment.json").unlink()
    said = "what made 2 units of this run is not known"
    assert any(said in line for line in status(run_dir).lines())
    with Store(config(tmp_path), HERE, plan=PLAN) as store:
        assert store.session == 3
        add(store, "slrc")
    assert read_failures(run_dir) == []
    assert len(read_records(run_dir, "slrc")) == 1
    assert [s["worker"] for s in read_environment(run_dir)["sessions"]] == ["unknown"] * 2 + [
        "main"
    ]
    assert "what made 1 unit of this run is not known" in "".join(made_by(run_dir))


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": 3, "sessions": [1], "models": {}}', "{"])
def test_a_damaged_environment_is_named(tmp_path: Path, text: str) -> None:
    run_dir = begun(tmp_path, LOADED)
    (run_dir / "environment.json").write_text(text)
    with pytest.raises(StoreError, match=r"environment\.json: is damaged .*faithscope repair"):
        read_environment(run_dir)


def test_units_whose_arrays_are_gone_are_done_again(tmp_path: Path) -> None:
    plan = StoredPlan(1, tuple(StoredItem(MODEL, TASK, x, {"slrc": f"{x}s"}) for x in "ab"))

    def put(store: Store, *items: str) -> None:
        for x in items:
            add(store, "slrc", x, arrays={"n": np.full(4, ord(x))})

    with Store(config(tmp_path), HERE, plan=plan) as store:
        put(store, "b", "a")
    run_dir = tmp_path / "t"
    load = lambda: {k[2]: v["n"][0] for k, v in load_run(run_dir).arrays("slrc")}  # noqa: E731
    assert load() == {"a": ord("a"), "b": ord("b")}
    (run_dir / "records/slrc.main.arrays").unlink()
    assert load() == {}
    assert "slrc.main.arrays: lacks the arrays of 2 units" in "\n".join(status(run_dir).lines())
    with Store(config(tmp_path), HERE, plan=plan) as store:
        assert store.index.losses() != []
        # killed after the first, whose arrays lie where those of the other lay
        put(store, "a")
    assert load() == {"a": ord("a")}
    with Store(config(tmp_path), HERE, plan=plan) as store:
        assert not store.index.is_done(("slrc", MODEL, TASK, "b"), "bs")
        put(store, "b")
    assert load() == {"a": ord("a"), "b": ord("b")}


def test_the_code_has_a_name_that_its_changes_change(tmp_path: Path) -> None:
    for room in ("experiments/engine", "interp", "interventions", "probes"):
        (tmp_path / room).mkdir(parents=True)
    (tmp_path / "probes/a.py").write_text("1")
    before = source(tmp_path)
    assert source(tmp_path) == before
    (tmp_path / "probes/a.py").write_text("2")
    assert source(tmp_path) != before


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_a_run_of_a_checkout_keeps_its_commit() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    assert (commit() or "").removesuffix("+changes") == head.stdout.strip()


def test_the_index_of_a_checkout_is_only_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git would refresh it under a lock, which a killed run leaves in the user's checkout."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    file, index = tmp_path / "a", tmp_path / ".git/index"
    file.write_text("a")
    for words in (["init", "-q"], ["add", "a"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    os.utime(file, (1, 1))
    before = index.read_bytes()
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert not (commit() or "+changes").endswith("+changes")
    assert index.read_bytes() == before


@pytest.mark.slow
def test_a_new_version_of_a_measure_is_never_mixed_with_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"probes": ["slrc"], "data": {"limit": 2}, "generation": {"batch_size": 1}}
    shared, alone = config(tmp_path / "a", **changes), config(tmp_path / "b", **changes)
    run(shared, Shard(0, 2))
    monkeypatch.setitem(PROBES, "slrc", replace(PROBES["slrc"], version=2))
    run(shared, Shard(1, 2))
    run(alone, Shard(1, 2))
    with pytest.raises(StoreError, match="part 1/2 lacks 1 of 1 items"):
        merge([shared.run_dir])
    monkeypatch.undo()
    run(shared, Shard(0, 2))
    with pytest.raises(StoreError, match="or another version of the measure"):
        merge([shared.run_dir, alone.run_dir], tmp_path / "m")


def test_a_first_version_leaves_ids_as_they_were() -> None:
    assert versions(measure=1, replies=1) == {}
    assert versions(measure=2, replies=1) == {"version_of_measure": 2}


def test_a_name_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "run\x1b]0;owned\x07"
    run_dir = begun(tmp_path, LOADED).rename(tmp_path / name)
    for command in (["status", str(run_dir)], ["list", "runs", "--out", str(tmp_path)]):
        with pytest.raises(SystemExit, match="0"):
            main(command)
    path, model = tmp_path / "c.yaml", "model.name=planted:faithful"
    path.write_text("tasks: [planted]\nprobes: [slrc]\nname: t\n")
    out = f"out={json.dumps(str(tmp_path / name))}"
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(path), "--dry-run", "--set", model, "--set", out])
    said = "".join(capsys.readouterr())
    assert "\x1b" not in said
    assert "run␛" in said
