"""People's labels of parts of outputs: the sheet that is written, and what comes back of it."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
import yaml
from rf_runs import R_PRIME, Case, Said, Servers
from test_rfeval_construction import item

from faithscope.experiments.cli import execute
from faithscope.experiments.studies.rfeval.counterfactuals.annotations import (
    annotations_of,
    read_annotations,
)
from faithscope.experiments.studies.rfeval.results import results
from faithscope.interp.errors import UserError

HEAD = "item,component,decision,annotator,label\n"
CASES = [
    Case("plain"),
    Case("spots", intervened=Said(("A", "B", "B", "B"), ("pr",))),
    Case("bare", baseline=Said(("C", "", "C"))),
    Case("torn", intervened=Said(ends=False)),
]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, made: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)


def test_labels_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        f"{HEAD}1,baseline_r,stance,ann,I don't know\n1,baseline_flaw_re,flaw,ann,Yes\n"
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
        path.write_text(f"{HEAD}{line}\n")
        with pytest.raises(UserError, match=said):
            read_annotations(path)


def test_labels_must_be_of_the_run(tmp_path: Path) -> None:
    path, items = tmp_path / "labels.csv", [item(0), item(1)]
    name = items[1].id
    path.write_text(f"{HEAD}{name},baseline_r,stance,ann,A\nother,baseline_r,stance,ann,Z\n")
    assert len(annotations_of(path, items, ["m"], "letters")) == 2
    with pytest.raises(UserError, match=rf"none of its 2 labels .* has '{name}', the run 'm "):
        annotations_of(path, items, ["m", "n"], "letters")
    path.write_text(f"{HEAD}n {name},baseline_r,stance,ann,A\n")
    assert len(annotations_of(path, items, ["m", "n"], "letters")) == 1
    path.write_text(f"{HEAD}{name},baseline_r,stance,ann,a\n")
    with pytest.raises(
        UserError, match=rf"label 'a' of item '{name}' is none of its stances; .*'A'"
    ):
        annotations_of(path, items, ["m"], "letters")


def test_a_sheet_is_written_filled_in_and_held_against_the_judge(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    run, sheet = servers.config(tmp_path, CASES), tmp_path / "sheet.csv"
    folder = tmp_path / "runs/rf"
    write = ["review", "write", str(folder), "--of", "stances", "--out", str(sheet)]
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    capfd.readouterr()
    assert execute([*write, "--reviewers", "ann,bob,cal"]) == 0
    assert capfd.readouterr().out == f"{sheet}\n"

    made = rows(sheet)
    found = results(folder)
    decided = found.frames.evaluator.set_index(["item", "component", "decision"])["label"]
    keys = Counter((r["item"], r["component"], r["decision"]) for r in made)
    assert set(keys) == set(decided.index)
    assert set(keys.values()) == {2}
    assert not any(r["label"] for r in made)
    assert len({r["annotator"] for r in made}) == 3
    by_key = {(r["item"].partition("/")[2], r["component"]): r for r in made}
    # an output that was cut off, and an explanation that is not there, are no decisions
    assert not any(i == "torn" and c.startswith("intervened") for i, c in by_key)
    assert ("bare", "baseline_e") not in by_key
    flaw = by_key["spots", "intervened_flaw_pr"]
    assert (flaw["before"], flaw["part"], flaw["choices"]) == (R_PRIME, "I think of B.", "yes | no")
    stance = by_key["plain", "baseline_e"]
    assert (stance["before"], stance["r_prime"]) == ("", "")
    assert stance["part"] == "It was B, I explain."
    assert stance["choices"] == "A | B | C | I don't know"
    assert "item=plain; Who?" in stance["question"]
    assert "B: two" in stance["answer"]

    # labelled as the judge did, but one person says no to the one flaw, and one row stays open
    for r in made:
        label = decided[r["item"], r["component"], r["decision"]]
        r["label"] = {"True": "yes", "False": "no"}.get(label, label)
    no = next(r for r in made if r["label"] == "yes")
    no["label"] = "no"
    first = next(r for r in made if r["decision"] == "stance")
    first["label"] = ""
    fill(sheet, made)
    values = yaml.safe_load(run.read_text()) | {"annotations": str(sheet)}
    run.write_text(yaml.safe_dump(values))
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    table = results(folder).tables["rf_evaluator"].set_index(["decision", "statistic", "annotator"])
    n = Counter(r["decision"] for r in made)
    assert table.loc[("stance", "micro_f1", "all"), ["value", "n"]].tolist() == [1, n["stance"] - 1]
    flaws = table.loc[("flaw", "micro_f1", "all")]
    assert flaws["n"] == n["flaw"]
    assert flaws["value"] == pytest.approx(1 - 1 / n["flaw"])
    assert (table["n_unmatched"] == 0).all()

    # of another run: told before anything is asked
    sheet.write_text(sheet.read_text().replace("legal_decision/", "elsewhere/"))
    capfd.readouterr()
    assert execute(["run", str(run), "--shard", "1/2"]) == 2
    told = capfd.readouterr().err
    assert "labels is of an item of this run: it has 'elsewhere/" in told
    assert "faithscope review write RUN --of stances" in told


def test_so_many_pairs_are_drawn_and_a_sheet_is_never_written_over(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, sheet = tmp_path / "runs/rf", tmp_path / "sheet.csv"
    run = servers.config(tmp_path, CASES[:3])
    write = ["review", "write", str(folder), "--of", "stances", "--reviewers", "ann,bob"]
    assert execute([*write, "--out", str(sheet)]) == 2
    assert "no such run folder" in capfd.readouterr().err
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
        assert execute([*write, *more]) == 2
        assert said in capfd.readouterr().err
    assert not (tmp_path / "new.csv").exists()
