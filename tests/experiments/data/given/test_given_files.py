"""Files of given chains, whatever their layout: which it is, whose chains, and how many of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from given_rows import PROCESS, label
from run_files import write_rows

from faithscope.experiments.data.given.chain import Reader
from faithscope.experiments.data.given.reading import READERS, read_chains
from faithscope.interp.errors import UserError


def test_auto_refuses_what_it_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.jsonl: its columns \(a\) are of no known format"):
        read_chains(write_rows(tmp_path / "x.jsonl", {"a": 1}))
    both = {"question": "?", "reasoning": "So.", "messages": []}
    with pytest.raises(UserError, match=r"of the formats rows and chat; .* traces\.format: rows"):
        read_chains(write_rows(tmp_path / "both.jsonl", both))
    assert read_chains(tmp_path / "both.jsonl", "rows").format == "rows"
    with pytest.raises(UserError, match="unknown format 'row'; did you mean 'rows'"):
        read_chains(tmp_path / "both.jsonl", "row")


def test_every_reader_is_told_apart_from_the_others() -> None:
    rows = [
        {"question": "?", "reasoning": "So."},
        PROCESS,
        {"problem": "?", "steps": [], "ratings": []},
        label("FAITHFUL_COT"),
        {"messages": []},
    ]

    def names(row: dict[str, Any]) -> list[str]:
        return [reader.name for reader in READERS if reader.recognises(row)]

    assert [names(row) for row in rows] == [
        ["rows"],
        ["processbench"],
        ["prm800k"],
        ["bonafide"],
        ["chat"],
    ]
    assert all(isinstance(reader, Reader) for reader in READERS)


def test_labels_without_an_end_are_refused_in_one_line(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    rows = [{"question": "?", "reasoning": "So."}]
    with pytest.raises(UserError, match=r"^row 0: holds lists or objects nested more than 100"):
        read_chains([rows[0] | {"labels": {"a": deep}}])
    text = json.dumps(rows[0])[:-1] + ', "labels": {"a": ' + "[" * 900 + "]" * 900 + "}}\n"
    (tmp_path / "c.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"c\.jsonl, line 1: holds lists or objects nested"):
        read_chains(tmp_path / "c.jsonl")
    (tmp_path / "c.csv").write_text(f"question,reasoning,label_a\n?,So.,{'[' * 9000}\n")
    assert read_chains(tmp_path / "c.csv").chains[0].labels == {"a": "[" * 9000}


ROW = {"question": "What is 1 + 1?", "reasoning": "One and one. So two."}


def test_labels_that_are_no_number_are_no_labels_and_infinite_ones_are_refused(
    tmp_path: Path,
) -> None:
    given = [float("nan"), "NaN", 1, None]
    rows = [ROW | {"label_x": v, "labels": {"y": v}} for v in given]
    read = read_chains(write_rows(tmp_path / "x.jsonl", *rows))
    assert [chain.labels for chain in read.chains] == [{}, {}, {"x": 1, "y": 1}, {}]
    with pytest.raises(UserError, match=r"line 1: the row has label 'x' = inf, with which no"):
        read_chains(write_rows(tmp_path / "y.jsonl", ROW | {"label_x": float("inf")}))


def test_damaged_parquet_is_no_parquet_whatever_is_damaged(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra: faithscope[data]")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = {key: [f"{value} {i}" for i in range(2000)] for key, value in ROW.items()}
    parquet.write_table(pyarrow.table(rows), tmp_path / "whole.parquet", compression="snappy")
    whole, path = (tmp_path / "whole.parquet").read_bytes(), tmp_path / "damaged.parquet"
    flipped = bytes(byte ^ 255 for byte in whole[200:2000])
    for damaged in (
        b"",
        whole[:900],
        whole[:200] + flipped + whole[2000:],
        whole[:-60] + whole[-20:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"damaged\.parquet: is no parquet file \("):
            read_chains(path)


def test_a_folder_of_chains_is_named_by_the_key_that_gave_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^traces\.path: .* has no file of split") as refused:
        read_chains(tmp_path)
    assert "data." not in str(refused.value)


def test_two_chains_of_one_id_are_named_by_who_wrote_them(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "reasoning": "So."}
    path = write_rows(tmp_path / "m.jsonl", row | {"model": "x"}, row | {"model": "y"})
    assert [c.id for c in read_chains(path).chains] == ["own/a by x", "own/a by y"]
    kept = read_chains(path, own_ids=False).chains
    assert [(c.model, c.id) for c in kept] == [("x", "a"), ("y", "a")]
    for own_ids in (True, False):
        with pytest.raises(UserError, match=r"line 2: id 'a' is that of .*line 1"):
            read_chains(write_rows(tmp_path / "n.jsonl", row, row), own_ids=own_ids)


def test_a_writer_may_have_another_name_here(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "reasoning": "So."}
    path = write_rows(tmp_path / "m.jsonl", row | {"model": "x"}, row | {"model": "y"})
    read = read_chains(path, writers={"x": "org/x", "z": "org/z"})
    assert [(c.model, c.id) for c in read.chains] == [
        ("org/x", "own/a by org/x"),
        ("y", "own/a by y"),
    ]


def test_a_limit_draws_from_the_whole_file_and_a_greater_one_adds_to_it(tmp_path: Path) -> None:
    rows = [
        label(kind) | {"row_id": f"{kind}-{i}", "cot": f"{kind} {i}."}
        for kind in ("FAITHFUL_COT", "UNFAITHFUL_COT")
        for i in range(30)
    ]
    path = write_rows(tmp_path / "sorted.jsonl", *rows)

    def ids(limit: int | None, seed: int = 0) -> list[str]:
        return [chain.id for chain in read_chains(path, limit=limit, seed=seed).chains]

    ten = read_chains(path, limit=10).chains
    assert {chain.labels["unfaithful"] for chain in ten} == {True, False}
    assert len(ten) == 10
    assert ids(10) == [name for name in ids(None) if name in ids(10)]
    assert set(ids(10)) < set(ids(20)) < set(ids(None))
    assert ids(10, seed=1) != ids(10)
    assert ids(500) == ids(None)
