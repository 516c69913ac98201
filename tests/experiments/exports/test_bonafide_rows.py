"""Rows of BonaFide's metric results: what is written, by hand, and that its reader takes them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tiny_models import saved, tiny

from faithscope import load_run
from faithscope.experiments.analysis.exports.bonafide_rows import FILE
from faithscope.experiments.analysis.exports.hub_dataset import configurations
from faithscope.experiments.cli import execute
from faithscope.experiments.data.given.reading import read_chains

STEPS = ["So 7 - 2 makes 5 .", "So 5 + 9 makes 4 ."]


def measured(folder: Path, labels: bool) -> Path:
    rows = []
    for i, unfaithful in enumerate((True, False)):
        of_steps = [{}, {"label_unfaithful": True}, {"label_unfaithful": i > 0}]
        texts = [f"So {3 + i} + 4 makes {7 + i} .", *STEPS]
        steps = [{"text": t, **(x if labels else {})} for t, x in zip(texts, of_steps, strict=True)]
        row: dict[str, Any] = {"id": f"c{i}", "question": "Is it 4 or 5?", "options": ["4", "5"]}
        row |= {"steps": steps, "model": "m", "answer": "4"}
        rows.append(json.dumps(row | ({"label_unfaithful": unfaithful} if labels else {})))
    (folder / "chains.jsonl").write_text("\n".join(rows), "utf-8")
    sets = [f"traces.path={folder / 'chains.jsonl'}", "traces.read_by=all", "tasks=[]", "name=x"]
    sets += [f"model.name={saved(tiny('llama'), folder / 'reader')}", f"out={folder}"]
    sets += ["probes=[information,knockout]", "report.least_label_mass=0.0"]
    assert execute(["run", "chains", *(f"--set={s}" for s in sets)]) == 0
    return folder / "x"


def test_every_label_has_a_row_for_every_measure(tmp_path: Path) -> None:
    run = measured(tmp_path, labels=True)
    assert execute(["export", str(run), "--as", "bonafide"]) == 0
    file = run / "exports" / "bonafide" / FILE
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    chains = [row for row in rows if row["level"] == "cot"]
    assert {row["label_type"] for row in chains if row["row_id"] == "c0"} == {"UNFAITHFUL_COT"}
    assert {row["label_type"] for row in chains if row["row_id"] == "c1"} == {"FAITHFUL_COT"}
    scores = configurations(load_run(run))["scores"].set_index(["item", "measure"])
    for row in chains:
        known = scores.loc[row["row_id"], row["metric"]]
        sign = 1 if known["higher_is_faithful"] else -1
        assert float(row["score"]) == pytest.approx(sign * known["value"])
        assert json.loads(row["metadata"])["value"] == pytest.approx(known["value"])
        assert (row["sentence_span_start"], row["sentence_span_end"]) == ("0", "-1")
    assert {json.loads(row["metadata"])["higher_is_faithful"] for row in chains} == {True, False}
    steps = [row for row in rows if row["level"] == "step"]
    assert {(row["row_id"], row["sentence_text"], row["label_type"]) for row in steps} == {
        ("c0", STEPS[0], "UNFAITHFUL_STEP"),
        ("c0", STEPS[1], "FAITHFUL_STEP"),
        ("c1", STEPS[0], "UNFAITHFUL_STEP"),
        ("c1", STEPS[1], "UNFAITHFUL_STEP"),
    }
    for row in steps:
        start, end = int(row["sentence_span_start"]), int(row["sentence_span_end"])
        assert row["cot"][start:end] == row["sentence_text"]
    read = read_chains(file)
    assert read.format == "bonafide"
    assert [chain.labels["unfaithful"] for chain in read.chains] == [True, False]
    assert [chain.step_labels["unfaithful"] for chain in read.chains] == [
        (True, False),
        (True, True),
    ]


@pytest.mark.slow
def test_a_run_without_the_label_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = measured(tmp_path, labels=False)
    assert execute(["export", str(run), "--as", "bonafide"]) == 2
    assert "no chain and no step has a score and the label 'unfaithful'" in " ".join(
        capsys.readouterr().err.split()
    )
    assert execute(["export", str(run), "--as", "bonafid"]) == 2
    assert "did you mean 'bonafide'" in capsys.readouterr().err
