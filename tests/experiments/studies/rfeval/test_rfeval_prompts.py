"""Prompts, stance sets, and what a judge is shown of an item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rf_posed import CODE, FORMS, LOGIC, NUMBER, OUTPUT, TABLE, VITAMINS, WORDS, YES_NO, item, reply

from faithscope.experiments.studies.rfeval.items import TASKS, Item
from faithscope.experiments.studies.rfeval.judging.stances import (
    UNKNOWN,
    gold_stance,
    stance_of_answer,
    stance_of_letter,
    stance_set,
)
from faithscope.experiments.studies.rfeval.pairs import (
    judged_parts,
    names_flaw,
    output_ask,
    part_ask,
)
from faithscope.experiments.studies.rfeval.prompts import (
    as_files,
    judge_forms,
    questions,
    without_explanation,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.interp.errors import UserError
from faithscope.probes.judge.parse import read, schema


def test_stance_sets_by_letter_and_as_the_paper_names_them() -> None:
    assert stance_set(TABLE) == ("A", "B", "C", UNKNOWN)
    assert stance_set(TABLE.posed(WORDS, "paper")) == (
        "supports",
        "not enough info",
        "refutes",
        UNKNOWN,
    )
    assert stance_set(LOGIC.posed(WORDS, "paper")) == ("correct", "incorrect", UNKNOWN)
    assert stance_set(NUMBER) == stance_set(CODE) == ("correct", "incorrect", UNKNOWN)
    assert stance_set(item().posed(WORDS, "paper")) == ("A", "B", "C", UNKNOWN)
    named = LOGIC.posed(WORDS, "paper")
    assert [stance_of_letter(named, x) for x in "AB"] == ["incorrect", "correct"]
    assert gold_stance(TABLE) == "C"
    assert gold_stance(TABLE.posed(WORDS, "paper")) == "refutes"
    assert gold_stance(named) == "correct"
    with pytest.raises(ValueError, match="no option 'D'; it has A, B, C"):
        stance_of_letter(TABLE, "D")


@pytest.mark.parametrize(
    ("of", "answer", "stance"),
    [
        (item(), "B", "B"),
        (item(), "b.", "B"),
        (item(), "(A) not guilty", "A"),
        (item(), "**C: no trial**", "C"),
        (item(), "\\boxed{\\text{B: guilty}}", "B"),
        (item(), "Option C", "C"),
        (item(), "Guilty.", "B"),
        (item(), "He is not guilty", "A"),
        (item(), "guilty or no trial", UNKNOWN),
        (item(), "A man is guilty", "B"),
        (item(), "D", UNKNOWN),
        (item(), "", UNKNOWN),
        (item(), "B) Guilty, as he ran. E.g. the seller saw him.", "B"),
        (item(), "B: because A is wrong", "B"),
        (item(), "Guilty (B)", "B"),
        (VITAMINS, "D: vitamin C.", "D"),
        (VITAMINS, "It is vitamin C.", "D"),
        (YES_NO, "B: No, it does not.", "B"),
        (TABLE, "B: Not enough info.", "B"),
        *((item(), said, UNKNOWN) for said in ("(A) or (B)", "A, B", "A/B", "A and B", "A. B. C.")),
        *((item(), said, UNKNOWN) for said in ("not B", "B, not A", "A: guilty", "guilty: A")),
        *(
            (YES_NO, said, UNKNOWN)
            for said in ("A - no, B", "not yes", "It isn't a yes", "Yes (B)")
        ),
        *((TABLE, said, UNKNOWN) for said in ("not supports", "does not refutes")),
        (NUMBER, "It is 1080.", "correct"),
        (NUMBER, "$1{,}080$ apples", "correct"),
        (NUMBER, "12 times 9 is 108", "incorrect"),
        (NUMBER, "many", UNKNOWN),
    ],
)
def test_a_stance_by_matching(of: Item, answer: str, stance: str) -> None:
    assert stance_of_answer(of, answer) == stance


def test_matching_does_not_decide_code() -> None:
    with pytest.raises(ValueError, match="its tests give it"):
        stance_of_answer(CODE, "print(1)")


def test_every_task_is_asked_in_its_own_words() -> None:
    for task in TASKS:
        of = item(task, context="The facts.", options=("yes", "no"), answer="A")
        asked = of.posed(WORDS).asked
        assert "Guilty?" in asked
        shown = task not in ("code_generation", "mathematical_reasoning", "legal_decision")
        assert ("The facts." in asked) == shown
        assert ("A: yes\nB: no" in asked) == (task != "code_generation")
    assert NUMBER.posed(WORDS).asked == "Guilty?"


def test_an_intervened_output_shows_r_prime_and_a_baseline_does_not() -> None:
    """The authors' released code has the two exchanged."""
    one = output_ask("m", item(), "intervened", OUTPUT, FORMS["rf_intervened"])
    other = output_ask("m", item(), "baseline", OUTPUT, FORMS["rf_baseline"])
    assert "He was not there." in one.prompt
    assert "He was not there." not in other.prompt
    for ask in (one, other):
        for text in (OUTPUT.reasoning, OUTPUT.explanation, "B: guilty", f'"C", "{UNKNOWN}"'):
            assert text in ask.prompt
        assert item().explanation not in ask.prompt.replace(OUTPUT.reasoning, "")
        assert ask.labels == stance_set(item())
    assert one.id == "m legal_decision/1.intervened"
    with pytest.raises(ValueError, match="is of task 'baseline', not 'intervened'"):
        output_ask("m", item(), "intervened", OUTPUT, FORMS["rf_baseline"])
    cut = Output("r", "", "", "truncated")
    with pytest.raises(ValueError, match="is truncated"):
        output_ask("m", item(), "baseline", cut, FORMS["rf_baseline"])


def test_a_reply_becomes_columns() -> None:
    ask = output_ask("m", item(), "intervened", OUTPUT, FORMS["rf_intervened"])
    reading = read(ask, json.dumps(reply()))
    assert reading.problem == ""
    assert judged_parts(reading.values, "intervened") == {
        "intervened_r_prime": "A",
        "intervened_r": "A",
        "intervened_e": "B",
        "intervened_a": "B",
        "intervened_flaw_pr": False,
        "intervened_flaw_re": True,
        "intervened_flaw_ea": False,
        "intervened_flaw_ra": False,
    }


@pytest.mark.parametrize("where", [None, "", "  ", "null", "None.", '"N/A"'])
def test_a_flaw_that_is_named_nowhere_is_none(where: str | None) -> None:
    judgement = reply()
    e_of_r = "model_subsequent_reasoning_to_model_explanation"
    judgement["transition_analysis"][e_of_r] = {"identifies_flaw": True, "flaw_location": where}
    ask = output_ask("m", item(), "intervened", OUTPUT, FORMS["rf_intervened"])
    values = read(ask, json.dumps(judgement)).values
    assert judged_parts(values, "intervened")["intervened_flaw_re"] is False
    assert judged_parts(values, "intervened", paper_compat=True)["intervened_flaw_re"] is True
    # what was said is kept as it was
    assert values[f"transition_analysis.{e_of_r}.identifies_flaw"] is True


def test_a_form_that_asks_for_no_words_is_taken_at_its_word() -> None:
    values = {"transition_analysis.model_reasoning_to_model_final_answer.identifies_flaw": True}
    assert judged_parts(values, "baseline")["baseline_flaw_ra"] is True
    assert names_flaw(True, {"flaw_location": "That premise is wrong."})
    assert not names_flaw(False, {"flaw_location": "That premise is wrong."})


def test_an_output_without_an_explanation_is_judged_without() -> None:
    bare = Output("He was seen.", "", "B", "complete")
    ask = output_ask("m", item(), "intervened", bare, FORMS["rf_intervened"])
    assert ask.form.name == "rf_intervened_bare"
    assert ask.form == without_explanation(FORMS["rf_intervened"].form)
    explanation = schema(ask)["properties"]["stance_analysis"]["properties"]["model_explanation"]
    assert {"type": "null"} in explanation["anyOf"]
    values = read(ask, json.dumps(reply(model_explanation=None))).values
    assert judged_parts(values, "intervened")["intervened_e"] == ""
    with_one = read(ask, json.dumps(reply()))
    assert with_one.outcome == "unparsed"


def test_one_part_and_one_transition_alone() -> None:
    named = TABLE.posed(WORDS, "paper")
    stance = part_ask("r", named, FORMS["rf_stance"].form, part="It refutes.")
    assert stance.choices() == ("supports", "not enough info", "refutes", UNKNOWN)
    assert "It refutes." in stance.prompt
    flaw = part_ask("re", named, FORMS["rf_flaw"].form, before="one", part="the other")
    assert flaw.choices() == (False, True)


def test_forms_survive_a_folder(tmp_path: Path) -> None:
    for name, text in as_files(FORMS).items():
        (tmp_path / name).write_text(text, "utf-8")
    again = judge_forms(tmp_path)
    assert again == FORMS
    assert {n: f.form.sha256 for n, f in again.items()} == {
        n: f.form.sha256 for n, f in FORMS.items()
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"template": "{problem} {stances} {part} {r_prim}"}, "unknown place {r_prim}"),
        ({"template": "{problem} {stances}"}, "no {part}"),
        ({"fields": [{"name": "stance", "kind": "text"}]}, "no label 'stance'"),
        ({"verdict": "reasoning"}, "verdict 'reasoning'"),
        ({"tasks": "stance"}, "did you mean 'task'"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_named(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    values = yaml.safe_load(as_files(FORMS)["rf_stance.yaml"]) | change
    (tmp_path / "rf_stance.yaml").write_text(yaml.safe_dump(values), "utf-8")
    with pytest.raises(UserError) as raised:
        judge_forms(tmp_path)
    assert said in str(raised.value)
    assert "rf_stance.yaml" in str(raised.value)


def test_words_of_a_folder_stand_for_the_packaged_ones(tmp_path: Path) -> None:
    (tmp_path / "rf_questions.yaml").write_text("legal_decision: 'Law. {question}'\n", "utf-8")
    own_words = questions(tmp_path)
    assert item().posed(own_words).asked == "Law. Guilty?"
    assert own_words["paper_review"] == WORDS["paper_review"]
    (tmp_path / "rf_questions.yaml").write_text("legal_decisions: '{question}'\n", "utf-8")
    with pytest.raises(UserError, match="did you mean 'legal_decision'"):
        questions(tmp_path)
