"""`faithscope review`: a sheet for people written, filled in, read back."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused
from rf_runs import R_PRIME, Case, Said, Servers
from test_rfeval_construction import item

from faithscope.experiments.cli import execute
from faithscope.experiments.studies.rfeval.counterfactuals.construction import item_lines
from faithscope.experiments.studies.rfeval.data import annotations_of, read_annotations, read_rfeval
from faithscope.experiments.studies.rfeval.results import results
from faithscope.interp.errors import UserError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    legal = [item(n, r_prime=f'Reason {n},\n"so".') for n in range(4)]
    table = [item(n, "table_reasoning", context="|a|") for n in range(3)]
    path.write_text(item_lines([*table, *legal]))
    return path


def rows(sheet: Path) -> list[dict[str, str]]:
    with sheet.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(sheet: Path, sheet_rows: list[dict[str, str]]) -> None:
    with sheet.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(sheet_rows[0]))
        writer.writeheader()
        writer.writerows(sheet_rows)


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
    sheet_rows = rows(sheet)
    assert len(sheet_rows) == 14
    # as evenly shared out as can be
    assert sorted(Counter(r["reviewer"] for r in sheet_rows).values()) == [4, 5, 5]
    no = {"legal_decision/1": 2, "legal_decision/2": 1}
    for one in sheet_rows:
        one["decision"] = "no" if no.get(one["item"], 0) > 0 else "Yes"
        no[one["item"]] = no.get(one["item"], 0) - 1
    sheet_rows[-1]["decision"] = ""
    fill(sheet, sheet_rows)
    accepted, tables = tmp_path / "kept.jsonl", tmp_path / "tables"
    back = ["review", "read", str(sheet), "--out", str(tables)]
    assert execute([*back, "--keep", str(accepted), "--from", str(data)]) == 0
    printed = capfd.readouterr().out
    for text in (
        "rejected: 1 of 7 items\n  legal_decision/1  0 yes, 2 no",
        "disputed: 1 of 7 items\n  legal_decision/2  1 yes, 1 no",
        "open: 1 rows",
        "krippendorff_alpha",
    ):
        assert text in printed
    agreed = pd.read_csv(tables / "rf_review_agreement.csv").set_index("task")
    # of the legal ones the last was decided once: (yes, yes), (no, no), (no, yes)
    assert agreed.loc["legal_decision", "n_double"] == 3
    assert agreed.loc["legal_decision", "percent_agreement"] == pytest.approx(2 / 3)
    assert agreed.loc["legal_decision", "pabak"] == pytest.approx(1 / 3)
    # Fleiss: 3 of 6 are "yes", so chance gives one half
    assert agreed.loc["legal_decision", "fleiss_kappa"] == pytest.approx(1 / 3)
    assert set(agreed.index) == {"legal_decision", "table_reasoning", "overall"}
    before = {one.id: one for one in read_rfeval(data)[0]}
    after, _ = read_rfeval(accepted)
    assert [one.id for one in after] == [
        *("table_reasoning/0", "table_reasoning/1", "table_reasoning/2"),
        *("legal_decision/0", "legal_decision/3"),
    ]
    assert all(before[one.id] == one for one in after)

    # adjudicated: a row more decides
    one = next(r for r in sheet_rows if r["item"] == "legal_decision/2")
    fill(sheet, [*sheet_rows, one | {"reviewer": "judge", "decision": "yes"}])
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


def test_bad_input_is_told_in_one_line(tmp_path: Path, data: Path) -> None:
    sheet = written(tmp_path, data)
    read = ["review", "read", str(sheet)]

    def with_changed(at: int, **cells: Any) -> str:
        sheet_rows = rows(sheet)
        fill(sheet, [r | cells if i == at else r for i, r in enumerate(sheet_rows)])
        said = refused(*read, "--keep", tmp_path / "k.jsonl", "--from", data)
        fill(sheet, sheet_rows)
        return said

    out = ["--out", str(tmp_path / "new.csv")]
    assert "is there already" in refused(
        "review", "write", str(data), "--reviewers", "a,b", "--out", str(sheet)
    )
    assert "1 reviewers, 2 to an item" in refused(
        "review", "write", str(data), "--reviewers", "a", *out
    )
    assert "'a' is named twice" in refused("review", "write", data, "--reviewers", "a,a", *out)
    assert "--limit 0: give 1" in refused(
        "review", "write", str(data), "--reviewers", "a,b", *out, "--limit", "0"
    )
    assert f"{tmp_path / 'x'}: no such file or folder" in refused(
        "review", "write", str(tmp_path / "x"), "--reviewers", "a,b", *out
    )
    assert "no such file; give the sheet of" in refused("review", "read", tmp_path / "x.csv")
    assert f"{sheet}: no decision in 14 rows" in refused(*read)
    assert "give both, or neither" in refused(*read, "--keep", "k.jsonl")
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
    assert "r_prime of item 'table_reasoning/1' is not that of " in refused(
        *read, "--keep", str(tmp_path / "k.jsonl"), "--from", str(data)
    )
    fill(sheet, [r | {"decision": "no"} for r in changed])
    data.write_text(data.read_text().replace(json.dumps("Reason 1.")[1:-1], "Other."))
    assert "no item was accepted" in refused(
        *read, "--keep", str(tmp_path / "k.jsonl"), "--from", str(data)
    )
    assert not (tmp_path / "k.jsonl").exists()


LABELS_HEAD = "item,component,decision,annotator,label\n"
CASES = [
    Case("plain"),
    Case("spots", intervened=Said(("A", "B", "B", "B"), ("pr",))),
    Case("bare", baseline=Said(("C", "", "C"))),
    Case("torn", intervened=Said(ends=False)),
]


def test_labels_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        f"{LABELS_HEAD}1,baseline_r,stance,ann,I don't know\n1,baseline_flaw_re,flaw,ann,Yes\n"
        "1,baseline_flaw_re,flaw,bob,0\n1,baseline_flaw_re,flaw,cal,\n"
    )
    assert read_annotations(path)["label"].tolist() == ["I don't know", "True", "False"]
    for line, said in (
        ("1,baseline_r,mood,ann,A", "give stance or flaw"),
        ("1,baseline_flaw_re,flaw,ann,maybe", "give yes or no"),
        ("1,,stance,ann,A", "'component' is empty"),
        ("1,baseline_rr,stance,ann,A", "no component 'baseline_rr'; did you mean 'baseline_r'"),
        ("1,baseline_r,flaw,ann,no", "a flaw has no component 'baseline_r'; .*baseline_flaw_r"),
        ("1,baseline_r,stance,ann,A\n1,baseline_r,stance,ann,B", "keep one of the two"),
        ("1,baseline_r,stance,ann,", "no label in 1 rows; fill in 'label'"),
    ):
        path.write_text(f"{LABELS_HEAD}{line}\n")
        with pytest.raises(UserError, match=said):
            read_annotations(path)


def test_labels_must_be_of_the_run(tmp_path: Path) -> None:
    path, items = tmp_path / "labels.csv", [item(0), item(1)]
    name = items[1].id
    path.write_text(f"{LABELS_HEAD}{name},baseline_r,stance,ann,A\nother,baseline_r,stance,ann,Z\n")
    assert len(annotations_of(path, items, ["m"])) == 2
    with pytest.raises(UserError, match=rf"none of its 2 labels .* has '{name}', the run 'm "):
        annotations_of(path, items, ["m", "n"])
    path.write_text(f"{LABELS_HEAD}n {name},baseline_r,stance,ann,A\n")
    assert len(annotations_of(path, items, ["m", "n"])) == 1
    path.write_text(f"{LABELS_HEAD}{name},baseline_r,stance,ann,a\n")
    with pytest.raises(
        UserError, match=rf"label 'a' of item '{name}' is none of its stances; .*'A'"
    ):
        annotations_of(path, items, ["m"])


def test_a_sheet_is_written_filled_in_and_held_against_the_judge(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    run, sheet = servers.config(tmp_path, CASES), tmp_path / "sheet.csv"
    folder = tmp_path / "runs/rf"
    own_words = yaml.safe_dump({"legal_decision": "{question}\n{options}\nWhich?"})
    (tmp_path / "prompts/rf_questions.yaml").write_text(own_words)
    write = ["review", "write", str(folder), "--of", "stances", "--out", str(sheet)]
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    capfd.readouterr()
    assert execute([*write, "--reviewers", "ann,bob,cal"]) == 0
    assert capfd.readouterr().out == f"{sheet}\n"

    sheet_rows = rows(sheet)
    run_results = results(folder)
    decided = run_results.frames.evaluator.set_index(["item", "component", "decision"])["label"]
    keys = Counter((r["item"], r["component"], r["decision"]) for r in sheet_rows)
    assert set(keys) == set(decided.index)
    assert set(keys.values()) == {2}
    assert not any(r["label"] for r in sheet_rows)
    assert len({r["annotator"] for r in sheet_rows}) == 3
    by_key = {(r["item"].partition("/")[2], r["component"]): r for r in sheet_rows}
    # an output that was cut off, and an explanation that is not there, are no decisions
    assert not any(i == "torn" and c.startswith("intervened") for i, c in by_key)
    assert ("bare", "baseline_e") not in by_key
    flaw = by_key["spots", "intervened_flaw_pr"]
    assert (flaw["before"], flaw["part"], flaw["choices"]) == (R_PRIME, "I think of B.", "yes | no")
    stance = by_key["plain", "baseline_e"]
    assert (stance["before"], stance["r_prime"]) == ("", "")
    assert stance["part"] == "It was B, I explain."
    assert stance["choices"] == "A | B | C | I don't know"
    assert stance["question"].startswith("item=plain; Who?")
    assert stance["question"].endswith("Which?"), "as the models were asked"
    assert "B: two" in stance["answer"]

    # labelled as the judge did, but one person says no to the one flaw, and one row stays open
    for r in sheet_rows:
        label = decided[r["item"], r["component"], r["decision"]]
        r["label"] = {"True": "yes", "False": "no"}.get(label, label)
    no = next(r for r in sheet_rows if r["label"] == "yes")
    no["label"] = "no"
    first = next(r for r in sheet_rows if r["decision"] == "stance")
    first["label"] = ""
    fill(sheet, sheet_rows)
    values = yaml.safe_load(run.read_text()) | {"annotations": str(sheet)}
    run.write_text(yaml.safe_dump(values))
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    table = results(folder).tables["rf_evaluator"].set_index(["decision", "statistic", "annotator"])
    n = Counter(r["decision"] for r in sheet_rows)
    assert table.loc[("stance", "micro_f1", "all"), ["value", "n"]].tolist() == [1, n["stance"] - 1]
    flaws = table.loc[("flaw", "micro_f1", "all")]
    assert flaws["n"] == n["flaw"]
    assert flaws["value"] == pytest.approx(1 - 1 / n["flaw"])
    assert (table["n_unmatched"] == 0).all()

    # of another run: told before anything is asked
    sheet.write_text(sheet.read_text().replace("legal_decision/", "elsewhere/"))
    capfd.readouterr()
    error = refused("run", run, "--shard", "1/2")
    assert "labels is of an item of this run: it has 'elsewhere/" in error
    assert "faithscope review write RUN --of stances" in error


def test_so_many_pairs_are_drawn_and_a_sheet_is_never_written_over(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, sheet = tmp_path / "runs/rf", tmp_path / "sheet.csv"
    run = servers.config(tmp_path, CASES[:3])
    write = ["review", "write", str(folder), "--of", "stances", "--reviewers", "ann,bob"]
    assert "no such run folder" in refused(*write, "--out", sheet)
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    limit = ["--limit", "2", "--each", "1"]
    assert execute([*write, *limit, "--out", str(sheet)]) == 0
    assert len({r["item"] for r in rows(sheet)}) == 2
    for more, said in (
        (["--out", str(sheet)], "is there already"),
        (["--out", str(tmp_path / "new.csv"), "--each", "3"], "2 reviewers, 3 to an item"),
        (["--out", str(tmp_path / "new.csv"), "--limit", "0"], "give 1 or more"),
    ):
        capfd.readouterr()
        assert said in refused(*write, *more)
    assert not (tmp_path / "new.csv").exists()
