"""Arrays of a run: kept beside the records, whole after a kill, one file per probe at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.engine.arrays import each, pack
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.merge import _copy_units
from faithscope.experiments.engine.planfile import StoredItem, StoredPlan, write
from faithscope.experiments.engine.store import Store, read_records
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.probes.record import head

MODEL, TASK = "planted:faithful", "planted"


def config(folder: Path) -> RunConfig:
    values = {"name": "t", "out": str(folder), "model": {"name": MODEL}, "tasks": [TASK]}
    return RunConfig.model_validate(values)


def numbers(item: str) -> np.ndarray:
    return np.arange(6, dtype=np.float32).reshape(2, 3) + ord(item)


def bare(item: str) -> dict[str, Any]:
    return head(dataset=TASK, task=TASK, item=item, model=MODEL, probe="slrc", seed=0)


def add(store: Store, item: str, unit: str | None = None) -> None:
    base = bare(item)
    records: list[dict[str, Any]] = [
        base | {"arrays": {"map": numbers(item)}},
        base | {"variant": "b", "arrays": {"map": numbers(item) * 2, "n": np.array([len(item)])}},
        base | {"variant": "none"},
    ]
    store.add(unit or item, ("slrc", MODEL, TASK, item), records)


def stored(folder: Path, *items: str, worker: str = "main") -> Path:
    with Store(config(folder), {}, worker) as store:
        for item in items:
            add(store, item)
    return folder / "t"


def test_they_come_back_by_item_and_stay_out_of_the_records(tmp_path: Path) -> None:
    run_dir = stored(tmp_path, "b", "a")
    found = dict(load_run(run_dir).arrays("slrc"))
    assert list(found) == [(MODEL, TASK, "a"), (MODEL, TASK, "b")]
    of_a = found[MODEL, TASK, "a"]
    assert set(of_a) == {"map", "b/map", "b/n"}
    assert np.array_equal(of_a["map"], numbers("a"))
    assert np.array_equal(of_a["b/map"], numbers("a") * 2)
    assert of_a["map"].dtype == np.float32
    assert all("arrays" not in r for r in read_records(run_dir, "slrc"))


def test_one_ordinary_file_holds_those_of_all_workers(tmp_path: Path) -> None:
    stored(tmp_path, "b")
    run_dir = stored(tmp_path, "a", worker="2of2")
    path = pack(run_dir, Index.of(run_dir), "slrc")
    assert path == run_dir / "arrays" / "slrc.safetensors"
    found = load_file(path)
    assert len(found) == 6
    assert np.array_equal(found[f"{MODEL}|{TASK}|b|b/map"], numbers("b") * 2)
    before = path.read_bytes()
    pack(run_dir, Index.of(run_dir), "slrc")
    assert path.read_bytes() == before


def test_a_probe_without_arrays_leaves_no_file(tmp_path: Path) -> None:
    with Store(config(tmp_path), {}) as store:
        store.add("u", ("slrc", MODEL, TASK, "a"), [bare("a")])
    run_dir = tmp_path / "t"
    assert pack(run_dir, Index.of(run_dir), "slrc") is None
    assert not (run_dir / "arrays").exists()


def test_a_blob_that_no_line_names_is_passed_over(tmp_path: Path) -> None:
    run_dir = stored(tmp_path, "a")
    with (run_dir / "records" / "slrc.main.arrays").open("ab") as file:
        file.write(b"half a blo")
    stored(tmp_path, "b")
    found = dict(load_run(run_dir).arrays("slrc"))
    assert np.array_equal(found[MODEL, TASK, "b"]["map"], numbers("b"))


def test_a_unit_made_again_gives_its_latest(tmp_path: Path) -> None:
    run_dir = stored(tmp_path, "a", "b")
    with Store(config(tmp_path), {}) as store:
        records = [bare("a") | {"arrays": {"map": np.zeros(2)}}]
        store.add("other", ("slrc", MODEL, TASK, "a"), records)
    found = dict(load_run(run_dir).arrays("slrc"))
    assert np.array_equal(found[MODEL, TASK, "a"]["map"], np.zeros(2))


def test_damage_is_named_with_its_remedy(tmp_path: Path) -> None:
    run_dir = stored(tmp_path, "a", "b")
    path = run_dir / "records" / "slrc.main.arrays"
    text = bytearray(path.read_bytes())
    text[-1] ^= 1
    path.write_bytes(text)
    with pytest.raises(StoreError, match=r"slrc\.main\.arrays: the arrays at byte \d+ are damaged"):
        dict(load_run(run_dir).arrays("slrc"))


def test_a_merge_takes_them_along(tmp_path: Path) -> None:
    parts = [stored(tmp_path / x, x) for x in "ab"]
    items = tuple(StoredItem(MODEL, TASK, x, {"slrc": x}) for x in "ab")
    into = tmp_path / "m"
    (into / "records").mkdir(parents=True)
    (into / "config.yaml").write_text("name: m\n")
    write(into, StoredPlan(1, items))
    _copy_units(parts, into, [{1: 1}, {1: 2}])
    _copy_units(parts, into, [{1: 1}, {1: 2}])
    found = dict(each(Index.of(into), "slrc"))
    assert [key[3] for key in found] == ["a", "b"]
    for key, arrays in found.items():
        assert np.array_equal(arrays["b/map"], numbers(key[3]) * 2)


def test_arrays_of_any_kind_are_views_that_reach_no_file(tmp_path: Path) -> None:
    kinds = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
    arrays = {k: np.arange(6).reshape(3, 2).astype(k) for k in kinds}
    arrays |= {"none": np.empty((0, 3), np.float16), "one": np.array(2.5)}
    with Store(config(tmp_path), {}) as store:
        # three bytes before it: the next blob begins at an odd place
        store.add(
            "odd", ("slrc", MODEL, TASK, "a"), [bare("a") | {"arrays": {"x": np.ones(3, "u1")}}]
        )
        store.add("u", ("slrc", MODEL, TASK, "b"), [bare("b") | {"arrays": arrays}])
    path = tmp_path / "t" / "records" / "slrc.main.arrays"
    before = path.read_bytes()
    found = dict(load_run(tmp_path / "t").arrays("slrc"))[MODEL, TASK, "b"]
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
    found["f4"][0] = 7
    assert path.read_bytes() == before
