"""A run folder survives kills, refuses strangers and reports damage."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from faithscope.experiments.engine.append import Appender, cut_torn_line
from faithscope.experiments.engine.folder import existing_run, read_config
from faithscope.experiments.engine.store import Store, read_failures, read_records
from faithscope.experiments.engine.units import UnitIds, storable
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes.record import head

ENVIRONMENT = {"python": "3"}


def config(folder: Path, **changes: Any) -> RunConfig:
    values = {"name": "t", "model": {"name": "planted:faithful"}, "tasks": ["planted"]}
    return RunConfig.model_validate(values | {"out": str(folder)} | changes)


def add(store: Store, item: str, stage: str = "slrc", **values: Any) -> None:
    store.add(
        UnitIds().of(item=item), (stage, "m", "planted", item), [record(item, stage) | values]
    )


def record(item: str, stage: str = "slrc") -> dict[str, Any]:
    return head(dataset="planted", task="planted", item=item, model="m", probe=stage, seed=0)


def items(run_dir: Path) -> list[str]:
    return [r["item"] for r in read_records(run_dir, "slrc")]


def test_records_come_back_in_an_order_that_no_history_changes(tmp_path: Path) -> None:
    with Store(config(tmp_path), ENVIRONMENT) as store:
        for item in ("b", "c"):
            add(store, item)
    with Store(config(tmp_path), ENVIRONMENT, "2of2") as store:
        add(store, "a")
        add(store, "a", "trace")
    assert items(tmp_path / "t") == ["a", "b", "c"]
    assert len(read_records(tmp_path / "t", "trace")) == 1
    assert (tmp_path / "t/records/traces.2of2.jsonl").is_file()


def without(folder: Path, section: str, key: str) -> None:
    """Makes a run as a version made it that did not have a key."""
    stored = yaml.safe_load((folder / "config.yaml").read_text())
    stored[section].pop(key)
    (folder / "config.yaml").write_text(yaml.safe_dump(stored))
    environment = json.loads((folder / "environment.json").read_text())
    environment["config"][section].pop(key)
    (folder / "environment.json").write_text(json.dumps(environment))


def test_a_key_that_an_earlier_version_lacked_is_its_default_and_nothing_else(
    tmp_path: Path,
) -> None:
    with Store(config(tmp_path), ENVIRONMENT) as store:
        add(store, "a")
    run = tmp_path / "t"
    without(run, "fur", "weights")
    without(run, "data", "limit")
    with Store(config(tmp_path), ENVIRONMENT) as store:
        add(store, "b")
    assert items(run) == ["a", "b"]
    session = json.loads((run / "environment.json").read_text())["sessions"][1]
    assert session["new_keys"] == {"data.limit": None, "fur.weights": "down_proj"}
    with pytest.raises(StoreError, match=r"fur\.weights: \"down_proj\" there, \"up\" now"):
        Store(config(tmp_path, fur={"weights": "up"}), ENVIRONMENT).__enter__()
    with pytest.raises(StoreError, match=r"fur\.updates: 5 there, 6 now"):
        Store(config(tmp_path, fur={"updates": 6}), ENVIRONMENT).__enter__()


def test_config_and_environment_are_there_from_the_start(tmp_path: Path) -> None:
    with Store(config(tmp_path, seed=4), ENVIRONMENT) as store:
        store.note_model("m", {"dtype": "float32"})
    assert read_config(tmp_path / "t").seed == 4
    environment = json.loads((tmp_path / "t/environment.json").read_text())
    models = {"m": {"dtype": "float32"}}
    assert environment["sessions"] == [{"worker": "main", "python": "3", "models": models}]
    assert environment["models"] == {"m": {"dtype": "float32"}}
    assert not list((tmp_path / "t").glob("tmp*"))


def test_only_a_folder_with_records_is_anothers(tmp_path: Path) -> None:
    with Store(config(tmp_path, seed=2), ENVIRONMENT):
        pass
    with Store(config(tmp_path), ENVIRONMENT):
        pass
    assert read_config(tmp_path / "t").seed == 0


def test_a_moved_run_folder_goes_on(tmp_path: Path) -> None:
    with Store(config(tmp_path / "a"), ENVIRONMENT) as store:
        add(store, "x")
    (tmp_path / "a").rename(tmp_path / "b")
    with Store(config(tmp_path / "b"), ENVIRONMENT) as store:
        assert [key[-1] for key in store.index] == ["x"]


def hold(folder: str, ready: Any, leave: Any) -> None:
    with Store(config(Path(folder)), ENVIRONMENT):
        ready.set()
        leave.wait(60)


@pytest.mark.slow
def test_a_second_process_of_the_same_worker_is_refused(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready, leave = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(str(tmp_path), ready, leave))
    other.start()
    assert ready.wait(60)
    with (
        pytest.raises(StoreError, match="another process is at work here as worker 'main'"),
        Store(config(tmp_path), ENVIRONMENT),
    ):
        pass
    with Store(config(tmp_path), ENVIRONMENT, "2of2"):
        pass
    with (
        pytest.raises(StoreError, match="seed: 0 there, 1 now"),
        Store(config(tmp_path, seed=1), ENVIRONMENT, "2of2"),
    ):
        pass
    other.kill()
    other.join()
    with Store(config(tmp_path), ENVIRONMENT) as store:
        assert store.session == 3


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=1, max_value=200))
def test_a_torn_last_line_is_passed_over_and_redone(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    with Store(config(folder), ENVIRONMENT) as store:
        for item in ("a", "b"):
            add(store, item, text="schön 🎉\n")
    file = folder / "t/records/slrc.main.jsonl"
    whole = file.read_bytes()
    last = len(whole) - whole.rfind(b"\n", 0, -1) - 1
    os.truncate(file, len(whole) - min(cut, last))
    assert items(folder / "t") == ["a"]
    with Store(config(folder), ENVIRONMENT) as store:
        add(store, "b", text="schön 🎉\n")
    assert items(folder / "t") == ["a", "b"]
    assert read_records(folder / "t", "slrc")[1]["text"] == "schön 🎉\n"


def test_another_workers_torn_line_is_left_to_its_owner(tmp_path: Path) -> None:
    with Store(config(tmp_path), ENVIRONMENT, "1of2") as store:
        add(store, "a")
    file = tmp_path / "t/records/slrc.1of2.jsonl"
    file.write_bytes(file.read_bytes() + b'{"unit": "half')
    before = file.read_bytes()
    with Store(config(tmp_path), ENVIRONMENT, "2of2"):
        assert items(tmp_path / "t") == ["a"]
    assert file.read_bytes() == before
    assert cut_torn_line(file) == len(b'{"unit": "half')


@pytest.mark.parametrize("damage", [b"{}", b'{"unit": "x", "st', b"\x00\x00", b"3", b"\xff\xfe"])
def test_a_damaged_line_is_named_by_file_and_number(tmp_path: Path, damage: bytes) -> None:
    with Store(config(tmp_path), ENVIRONMENT) as store:
        for item in ("a", "b", "c"):
            add(store, item)
    file = tmp_path / "t/records/slrc.main.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[1] = damage
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(StoreError, match=r"slrc\.main\.jsonl: line 2 is damaged .*redone"):
        read_records(tmp_path / "t", "slrc")
    lines[1] = b""
    file.write_bytes(b"\n".join(lines))
    assert items(tmp_path / "t") == ["a", "c"]


def test_a_failure_is_made_good_by_a_later_success(tmp_path: Path) -> None:
    key = ("slrc", "m", "planted", "a")
    with Store(config(tmp_path), ENVIRONMENT) as store:
        store.add("u", key, [], failed="OutOfMemoryError: too long")
    (failure,) = read_failures(tmp_path / "t")
    assert (failure.item, failure.failed) == ("a", "OutOfMemoryError: too long")
    assert items(tmp_path / "t") == []
    with Store(config(tmp_path), ENVIRONMENT) as store:
        store.add("u", key, [record("a")])
    assert read_failures(tmp_path / "t") == []
    assert items(tmp_path / "t") == ["a"]


def test_of_two_results_the_later_session_counts_whatever_its_file(tmp_path: Path) -> None:
    key = ("slrc", "m", "planted", "a")
    with Store(config(tmp_path), ENVIRONMENT, "2of2") as store:
        store.add("old", key, [record("old")])
    with Store(config(tmp_path), ENVIRONMENT, "1of2") as store:
        store.add("new", key, [record("new")])
    assert items(tmp_path / "t") == ["new"]


def test_timing_stays_out_of_the_records(tmp_path: Path) -> None:
    with Store(config(tmp_path), ENVIRONMENT) as store:
        store.add("u", ("slrc", "m", "planted", "a"), [record("a")], seconds=1.5)
    assert "1.5" not in (tmp_path / "t/records/slrc.main.jsonl").read_text()
    assert json.loads((tmp_path / "t/timing.main.jsonl").read_text())["seconds"] == 1.5


def test_what_json_cannot_say_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="record field 'p'"):
        storable([{"p": [0.5, float("nan")]}])
    assert storable([{"p": [0.5, None]}])


def test_folders_that_are_no_runs(tmp_path: Path) -> None:
    with Store(config(tmp_path), ENVIRONMENT):
        pass
    with pytest.raises(StoreError, match="it holds the runs t"):
        existing_run(tmp_path)
    with Store(config(tmp_path, name="quickstart"), ENVIRONMENT):
        pass
    with pytest.raises(StoreError, match=r"no such run folder; did you mean '.*/quickstart'"):
        existing_run(tmp_path / "quikstart")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have no names here")
def test_what_is_on_the_disk_has_its_name_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is synced, and then the folder that it was made, or renamed, in."""
    synced: list[str] = []
    sync = os.fsync

    def noted(file: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{file}"), tmp_path))
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    make_folder(tmp_path / "a/b")
    assert synced == ["a", "."]
    synced.clear()
    write_atomically(tmp_path / "a/b/c", "text")
    assert synced == ["a/b/.c.writing", "a/b"]
    synced.clear()
    with Appender(sync=True) as files:
        files.add(tmp_path / "a/b/d", b"one")
        files.add(tmp_path / "a/b/d", b"two")
    assert synced == ["a/b", "a/b/d", "a/b/d"]
    synced.clear()
    with Appender(sync=True) as files, files.in_groups():
        files.add(tmp_path / "a/b/d", b"three")
        files.add(tmp_path / "a/b/d", b"four")
        assert synced == []
        files.flush()
        assert synced == ["a/b/d"]
        files.flush()
        files.add(tmp_path / "a/b/d", b"five")
    assert synced == ["a/b/d", "a/b/d"]
