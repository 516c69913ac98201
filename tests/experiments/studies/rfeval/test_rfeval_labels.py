"""People's labels of parts of outputs: what there is to label, and how labels are read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import yaml
from bad_input import refused
from rf_items import item
from rf_runs import R_PRIME, Case, Said, Servers

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.studies.rfeval.data import annotations_of, read_annotations
from faithscope.experiments.studies.rfeval.results import results
from faithscope.interp.errors import UserError

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
        ("1,baseline_r,mood,ann,A", "give one of stance, flaw, valid"),
        ("1,r_prime,valid,ann,A", "label 'A' of decision 'valid'; give yes or no"),
        ("1,baseline_r,valid,ann,no", "a valid has no component 'baseline_r'"),
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
    # a review of r′ is of no model
    path.write_text(f"{LABELS_HEAD}{name},r_prime,valid,ann,yes\n")
    assert annotations_of(path, items, ["m", "n"])["label"].tolist() == ["True"]
    path.write_text(f"{LABELS_HEAD}n {name},r_prime,valid,ann,yes\n")
    with pytest.raises(UserError, match="none of its 1 labels"):
        annotations_of(path, items, ["m", "n"])
    path.write_text(f"{LABELS_HEAD}{name},baseline_r,stance,ann,a\n")
    with pytest.raises(
        UserError, match=rf"label 'a' of item '{name}' is none of its stances; .*'A'"
    ):
        annotations_of(path, items, ["m"])


@pytest.mark.slow
def test_decisions_are_labelled_by_people_and_held_against_the_judge(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    run, sheet = servers.config(tmp_path, CASES), tmp_path / "sheet.csv"
    folder = tmp_path / "runs/rf"
    own_words = yaml.safe_dump({"legal_decision": "{question}\n{options}\nWhich?"})
    (tmp_path / "prompts/rf_questions.yaml").write_text(own_words)
    assert execute(["run", str(run), "--shard", "1/2"]) == 0

    opened = load_run(folder)
    decisions = opened.decisions
    assert "decisions" in opened.frames
    assert list(decisions) == list(opened.columns("decisions"))
    names = ["item", "component", "decision"]
    decided = results(folder).frames["evaluator"].set_index(names)["label"]
    read = decisions[decisions["label"] != ""].set_index(names)["label"]
    assert read.to_dict().items() <= decided.to_dict().items()
    assert {component for _, component, decision in decided.index if decision == "stance"} == {
        component for _, component, decision in read.index if decision == "stance"
    }
    by_key = {
        (r["item"].partition("/")[2], r["component"]): r for r in decisions.to_dict("records")
    }
    # an output that was cut off, and an explanation that is not there, are no decisions
    assert not any(i == "torn" and c.startswith("intervened") for i, c in by_key)
    assert ("bare", "baseline_e") not in by_key
    flaw = by_key["spots", "intervened_flaw_pr"]
    assert (flaw["before"], flaw["part"]) == (R_PRIME, "I think of B.")
    assert (flaw["choices"], flaw["label"]) == ("yes | no", "True")
    stance = by_key["plain", "baseline_e"]
    assert (stance["before"], stance["r_prime"]) == ("", "")
    assert stance["part"] == "It was B, I explain."
    assert stance["choices"] == "A | B | C | I don't know"
    assert stance["question"].startswith("item=plain; Who?")
    assert stance["question"].endswith("Which?"), "as the models were asked"
    assert "B: two" in stance["answer"]

    # labelled as the judge did, but one person says no to the one flaw, and one row stays open
    labels = pd.concat([decisions.assign(annotator=name) for name in ("ann", "bob")])
    labels = labels.reset_index(drop=True)
    n = Counter(labels.loc[labels["label"] != "", "decision"])
    labels.loc[labels["label"] == "True", "label"] = ["no", "yes"]
    labels.loc[labels["decision"].eq("stance").idxmax(), "label"] = ""
    items = [item for item in opened.items["item"] for _ in range(2)]
    reviews = pd.DataFrame({"item": items, "annotator": ["ann", "bob"] * (len(items) // 2)})
    reviews = reviews.assign(component="r_prime", decision="valid", label="yes")
    reviews.loc[0, "label"] = "no"
    pd.concat([labels, reviews]).to_csv(sheet, index=False)
    values = yaml.safe_load(run.read_text()) | {"annotations": str(sheet)}
    run.write_text(yaml.safe_dump(values))
    assert execute(["run", str(run), "--shard", "1/2"]) == 0
    table = results(folder).tables["rf_evaluator"].set_index(["decision", "statistic", "annotator"])
    assert table.loc[("stance", "micro_f1", "all"), ["value", "n"]].tolist() == [1, n["stance"] - 1]
    flaws = table.loc[("flaw", "micro_f1", "all")]
    assert flaws["n"] == n["flaw"]
    assert flaws["value"] == pytest.approx(1 - 1 / n["flaw"])
    assert (table["n_unmatched"] == 0).all()
    assert set(table.index.get_level_values("decision")) == {"stance", "flaw"}
    written = load_run(folder).tables["rf_reviews"].set_index("task").loc["overall"]
    assert (written["n"], written["n_items"]) == (len(items), len(items) // 2)
    assert written["accepted"] == pytest.approx(1 - 1 / len(items))
    assert written["agreement"] == pytest.approx(1 - 2 / len(items))

    # people's reviews stand beside the paper's, whoever wrote and judged the outputs
    capfd.readouterr()
    assert execute(["reproduce", "rfeval.table6", "--from", str(folder)]) == 0
    shown = capfd.readouterr().out
    (law,) = (line for line in shown.splitlines() if line.startswith("Legal Decision"))
    assert f"| {1 - 1 / len(items):.3f} [" in law
    compared = pd.read_csv(folder / "reproduced" / "rfeval_table6.csv")
    compared = compared.set_index(["task", "column"])
    # one no of eight, where the paper has none of twenty, contradicts nothing
    assert compared.loc[("Legal Decision", "Yes rate"), "verdict"] == "within"
    assert compared.loc[("Legal Decision", "n"), "reason"] == "another quantity"
    assert compared.loc[("Overall", "Yes rate"), "reason"] == "doubtful in the paper"
    assert compared.loc[("Paper Review", "Yes rate"), "reason"] == "not measured"

    # of another run: told before anything is asked
    sheet.write_text(sheet.read_text().replace("legal_decision/", "elsewhere/"))
    capfd.readouterr()
    error = refused("run", run, "--shard", "1/2")
    assert "labels is of an item of this run: it has 'elsewhere/" in error
    assert "load_run(RUN).decisions" in error
