"""r′ asked for, read and validated; and items back as rows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from rf_data import SHARED
from rf_items import item
from run_files import write_rows

from faithscope.experiments.analysis.statistics.raters import fleiss_kappa, krippendorff_alpha
from faithscope.experiments.extras.counterfactuals.construction import (
    SHOTS,
    generation,
    validation_ask,
    with_counterfactual,
)
from faithscope.experiments.extras.counterfactuals.filtering import (
    accepted,
    filtering,
)
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import TASKS, CodeTests, TestCase
from faithscope.experiments.studies.rfeval.prompts import judge_forms
from faithscope.experiments.studies.rfeval.saved import row_of
from faithscope.experiments.studies.rfeval.tables.filtering import CRITERIA
from faithscope.probes.judge.parse import read

VALIDATE = judge_forms()["rf_validate"]


def test_a_request_has_its_examples_and_not_its_own_counterfactual() -> None:
    asked = generation(item(0), [item(n) for n in (1, 2, 3)]).prompt
    for n in range(1, SHOTS + 1):
        for text in (f"# Example {n}", f"Question {n}?", f"Reason {n}.", f"Flaw {n}."):
            assert text in asked
    assert asked.index("Question 3?") < asked.index("Question 0?")
    assert "Reason 0." not in asked
    assert "Right answer: B: yes" in asked
    assert "no option by its letter" in asked
    for task in TASKS:
        bare = item(0, task, options=(), answer="4")
        assert "no option by its letter" not in generation(bare, []).prompt
    with pytest.raises(ValueError, match="example 'legal_decision/0'"):
        generation(item(0), [item(0)])
    with pytest.raises(ValueError, match="other items of task 'legal_decision'"):
        generation(item(0), [item(1, "paper_review")])


@pytest.mark.parametrize(
    "text",
    [
        "## Reasoning\nSo and so.\n\n## Flaw\nIt is not so.",
        "Sure.\n\n**Reasoning:**\nSo and so.\n**Flaw:**\nIt is not so.",
    ],
)
def test_a_reply_becomes_an_item(text: str) -> None:
    written = with_counterfactual(item(r_prime=""), text)
    assert written is not None
    assert (written.r_prime, written.explanation) == ("So and so.", "It is not so.")
    assert with_counterfactual(item(), "So and so.") is None
    assert with_counterfactual(item(), "## Reasoning\n\n## Flaw\nx") is None


def verdict(**changes: object) -> dict:
    return {"reason": "ok", **dict.fromkeys(CRITERIA, True), "decision": "yes"} | changes


def test_validation_needs_every_criterion() -> None:
    ask = validation_ask(item(), VALIDATE)
    for text in ("Question 0?", "Reason 0.", "Flaw 0.", "B: yes"):
        assert text in ask.prompt
    assert accepted(vars(read(ask, json.dumps(verdict()))))
    assert not accepted({"outcome": "parsed", "values": verdict(decision="no")})
    for name in CRITERIA:
        assert not accepted({"outcome": "parsed", "values": verdict(**{name: False})})
    with pytest.raises(ValueError, match="not 'validate'"):
        validation_ask(item(), judge_forms()["rf_flaw"])


def test_what_is_filtered_adds_up() -> None:
    items = [item(n) for n in range(5)] + [item(9, r_prime=""), item(1, "paper_review")]
    replies = {
        items[0].id: {"outcome": "parsed", "values": verdict()},
        items[1].id: {
            "outcome": "parsed",
            "values": verdict(uniqueness=False, logical_soundness=False),
        },
        items[2].id: {"outcome": "parsed", "values": verdict(decision="no")},
        items[3].id: {"outcome": "refused"},
        items[6].id: {"outcome": "parsed", "values": verdict()},
    }
    table = filtering(items, replies).set_index("task")
    assert (table["n_removed"] + table["n_kept"] == table["n_problems"]).all()
    law = table.loc["legal_decision"]
    assert (law["n_problems"], law["n_kept"], law["n_no_reasoning"], law["n_unvalidated"]) == (
        6,
        1,
        1,
        2,
    )
    assert (law["n_fails_uniqueness"], law["n_fails_plausible_subtlety"]) == (1, 0)


def test_items_go_back_into_rows(tmp_path: Path) -> None:
    items = [
        item(n, task, context="" if task in TASKS[:2] else "C") for n, task in enumerate(TASKS)
    ]
    items = [i for i in items if i.task not in ("legal_decision", "code_generation")]
    items += [item(8), item(9, "mathematical_reasoning", options=(), answer="42")]
    for n, tests in enumerate(
        (CodeTests("stdin", (TestCase("1", "2"),)), CodeTests("ds1000", context="x"), None)
    ):
        items.append(item(n, "code_generation", options=(), answer="", tests=tests))
    path = write_rows(tmp_path / "mine.jsonl", *map(row_of, items))
    again, _ = read_rfeval(path)
    assert sorted(again, key=lambda i: i.id) == sorted(items, key=lambda i: i.id)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real rows are not beside this checkout")
def test_real_items_go_back_into_rows(tmp_path: Path) -> None:
    tasks = [task for task in TASKS if task != "paper_review"]
    items, _ = read_rfeval(SHARED, tasks)
    path = write_rows(tmp_path / "mine.jsonl", *map(row_of, items))
    assert read_rfeval(path, tasks)[0] == items


def test_the_papers_agreement_of_reviewers() -> None:
    """Tables 5 and 6: ten items a task, two judgements each."""
    for pairs, fleiss, alpha, yes in (
        ([("yes", "yes")] * 4 + [("yes", "no")] * 5 + [("no", "no")], -0.099, -0.044, 0.65),
        ([("yes", "yes")] * 6 + [("yes", "no")] * 3 + [("no", "no")], 0.2, 0.24, 0.75),
        ([("yes", "yes")] * 9 + [("yes", "no")], -0.053, 0.0, 0.95),
    ):
        verdicts = np.array(pairs) == "yes"
        assert verdicts.mean() == yes
        assert fleiss_kappa(verdicts.astype(float)) == pytest.approx(fleiss, abs=5e-4)
        value, _ = krippendorff_alpha(verdicts.astype(float), "nominal")
        assert value == pytest.approx(alpha, abs=5e-4)
    assert math.isnan(fleiss_kappa(np.ones((10, 2))))
