"""What a run keeps in memory and in its folder as the items become many."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pandas as pd
import pytest
from own_peak import peak_of
from resume import nearly_done

from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.units import Unit


def kept(folder: Path, text: str, units: int = 2000) -> int:
    """Bytes that an index of so many units keeps."""
    (folder / "records").mkdir(parents=True)
    with (folder / "records" / "slrc.main.jsonl").open("wb") as file:
        for i in range(units):
            unit = Unit(f"{i:024}", "slrc", "m", "t", f"item-{i}", 1, [{"text": text}])
            file.write(unit.to_line())
    tracemalloc.start()
    index = Index.of(folder)
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == units
    return now


def test_what_is_kept_of_a_unit_does_not_grow_with_its_records(tmp_path: Path) -> None:
    short, long = kept(tmp_path / "a", "x" * 10), kept(tmp_path / "b", "x" * 10_000)
    assert long < 1.2 * short  # 60 times as much on the disk
    assert long < 2000 * 1000


@pytest.mark.slow
def test_twenty_thousand_items_resume_in_little_memory_and_few_files(tmp_path: Path) -> None:
    few, many = nearly_done(tmp_path / "few", 2_000), nearly_done(tmp_path / "many", 20_000)
    little, much = (peak_of("run", str(path)) / 2**20 for path in (few, many))
    assert (much - little) / 18_000 < 0.025, "more than 25 kB of memory for each item"
    folder = many.parent / "scale"
    assert sum(p.is_file() for p in folder.rglob("*")) < 100
    table = pd.read_csv(folder / "tables" / "slrc.csv")
    assert list(table["n"]) == [20_000]
