"""`faithscope review`: a sheet for people written, filled in, read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_rfeval_construction import item

from faithscope.experiments.cli import execute
from faithscope.experiments.studies.rfeval.counterfactuals.construction import item_lines
from faithscope.experiments.studies.rfeval.data import read_rfeval


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    made = [item(n, r_prime=f'Reason {n},\n"so".') for n in range(4)]
    table = [item(n, "table_reasoning", context="|a|") for n in range(3)]
    path.write_text(item_lines([*table, *made]))
    return path


def rows(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(sheet: Path, made: list[dict[str, str]]) -> None:
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)


def written(tmp_path: Path, data: Path, *more: str) -> Path:
    sheet = tmp_path / "sheet.csv"
    names = ["--reviewers", "ann,bob,cal", "--out", str(sheet)]
    assert execute(["review", "write", str(data), *names, *more]) == 0
    return sheet


def test_a_sheet_is_written_and_what_people_accepted_kept(
    tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sheet = written(tmp_path, data)
    assert capfd.readouterr().out == f"{sheet}\n"
    made = rows(sheet)
    assert len(made) == 14
    no = {"legal_decision/1": 2, "legal_decision/2": 1}
    for one in made:
        one["decision"] = "no" if no.get(one["item"], 0) > 0 else "Yes"
        no[one["item"]] = no.get(one["item"], 0) - 1
    made[-1]["decision"] = ""
    fill(sheet, made)
    kept, tables = tmp_path / "kept.jsonl", tmp_path / "tables"
    back = ["review", "read", str(sheet), "--out", str(tables)]
    assert execute([*back, "--keep", str(kept), "--from", str(data)]) == 0
    told = capfd.readouterr().out
    for text in (
        "rejected: 1 of 7 items\n  legal_decision/1  0 yes, 2 no",
        "disputed: 1 of 7 items\n  legal_decision/2  1 yes, 1 no",
        "open: 1 rows",
        "krippendorff_alpha",
    ):
        assert text in told
    agreed = pd.read_csv(tables / "rf_review_agreement.csv").set_index("task")
    # of the legal ones the last was decided once: (yes, yes), (no, no), (no, yes)
    assert agreed.loc["legal_decision", "n_double"] == 3
    assert agreed.loc["legal_decision", "percent_agreement"] == pytest.approx(2 / 3)
    assert agreed.loc["legal_decision", "pabak"] == pytest.approx(1 / 3)
    # Fleiss: 3 of 6 are "yes", so chance gives one half
    assert agreed.loc["legal_decision", "fleiss_kappa"] == pytest.approx(1 / 3)
    assert set(agreed.index) == {"legal_decision", "table_reasoning", "overall"}
    before = {one.id: one for one in read_rfeval(data)[0]}
    after, _ = read_rfeval(kept)
    assert [one.id for one in after] == [
        *("table_reasoning/0", "table_reasoning/1", "table_reasoning/2"),
        *("legal_decision/0", "legal_decision/3"),
    ]
    assert all(before[one.id] == one for one in after)

    # adjudicated: a row more decides
    one = next(r for r in made if r["item"] == "legal_decision/2")
    fill(sheet, [*made, one | {"reviewer": "judge", "decision": "yes"}])
    other = tmp_path / "other.jsonl"
    assert execute([*back, "--keep", str(other), "--from", str(data)]) == 0
    assert "legal_decision/2" in {one.id for one in read_rfeval(other)[0]}


def test_so_many_of_each_task_are_drawn_with_the_seed(tmp_path: Path, data: Path) -> None:
    drawn = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        (tmp_path / name).mkdir()
        sheet = written(tmp_path / name, data, "--limit", "2", "--each", "1", "--seed", seed)
        drawn.append([(r["item"], r["reviewer"]) for r in rows(sheet)])
        assert [r["task"] for r in rows(sheet)] == ["table_reasoning"] * 2 + ["legal_decision"] * 2
    assert drawn[0] == drawn[1] != drawn[2]


def test_items_of_a_run_folder(tmp_path: Path, data: Path) -> None:
    folder = tmp_path / "runs/rf"
    (folder / "benchmark").mkdir(parents=True)
    (folder / "config.yaml").write_text("name: rf\n")
    names = ["--reviewers", "ann,bob", "--out", str(tmp_path / "sheet.csv")]
    assert execute(["review", "write", str(folder), *names]) == 2
    (folder / "benchmark/items.jsonl").write_bytes(data.read_bytes())
    assert execute(["review", "write", str(folder), *names]) == 0
    assert len(rows(tmp_path / "sheet.csv")) == 14


def test_bad_input_is_told_in_one_line(
    tmp_path: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sheet = written(tmp_path, data)
    read = ["review", "read", str(sheet)]

    def told(*arguments: str) -> str:
        capfd.readouterr()
        assert execute(list(arguments)) == 2
        said = capfd.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        return said.err

    def with_changed(at: int, **cells: Any) -> str:
        made = rows(sheet)
        fill(sheet, [r | cells if i == at else r for i, r in enumerate(made)])
        said = told(*read, "--keep", str(tmp_path / "k.jsonl"), "--from", str(data))
        fill(sheet, made)
        return said

    out = ["--out", str(tmp_path / "new.csv")]
    assert "is there already" in told(
        "review", "write", str(data), "--reviewers", "a,b", "--out", str(sheet)
    )
    assert "1 reviewers, 2 to an item" in told(
        "review", "write", str(data), "--reviewers", "a", *out
    )
    assert "'a' is named twice" in told("review", "write", str(data), "--reviewers", "a,a", *out)
    assert "--limit 0: give 1" in told(
        "review", "write", str(data), "--reviewers", "a,b", *out, "--limit", "0"
    )
    assert f"{tmp_path / 'x'}: no such file or folder" in told(
        "review", "write", str(tmp_path / "x"), "--reviewers", "a,b", *out
    )
    assert "no such file; give the sheet of" in told("review", "read", str(tmp_path / "x.csv"))
    assert f"{sheet}: no decision in 14 rows" in told(*read)
    assert "give both, or neither" in told(*read, "--keep", "k.jsonl")
    assert "sheet.csv, line 2: decision 'maybe'; give yes or no" in with_changed(
        0, decision="maybe"
    )
    assert "sheet.csv, line 4: task of item 'table_reasoning/0' is not that of" in with_changed(
        1, task="legal_decision"
    )
    assert "line 2: item 'table_reasoning/9' is not in " in with_changed(
        0, item="table_reasoning/9", decision="yes"
    )
    second = [rows(sheet)[1]["reviewer"], rows(sheet)[0]["reviewer"]]
    fill(sheet, [r | {"decision": "yes"} for r in rows(sheet)])
    assert f"'{second[1]}' has decided 'table_reasoning/0' in " in with_changed(
        1, reviewer=second[1]
    )
    changed = [
        r | {"r_prime": "Other."} if r["item"] == "table_reasoning/1" else r for r in rows(sheet)
    ]
    fill(sheet, changed)
    assert "r_prime of item 'table_reasoning/1' is not that of " in told(
        *read, "--keep", str(tmp_path / "k.jsonl"), "--from", str(data)
    )
    fill(sheet, [r | {"decision": "no"} for r in changed])
    data.write_text(data.read_text().replace(json.dumps("Reason 1.")[1:-1], "Other."))
    assert "no item was accepted" in told(
        *read, "--keep", str(tmp_path / "k.jsonl"), "--from", str(data)
    )
    assert not (tmp_path / "k.jsonl").exists()
