"""Edits of chains that were made elsewhere, beside the chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

import faithscope
from faithscope.experiments.data.given.reading import read_chains
from faithscope.interp.errors import UserError
from faithscope.interventions import corrupt_step

CHAIN = {
    "id": "pens",
    "question": "Ann has 3 boxes of 4 pens. She loses 2. How many pens?",
    "steps": ["There are 3 boxes of 4 pens, so 12 pens.", "She loses 2, so 12 - 2 = 10."],
    "answer": "10",
    "gold": "10",
}
MISTAKE = {"id": "pens", "step": 1, "kind": "mistake", "text": "She gains 2, so 12 + 2 = 14."}
PARAPHRASE = {"id": "pens", "step": 0, "kind": "paraphrase", "text": "3 boxes hold 4 pens: 12."}


@pytest.fixture(scope="module")
def model() -> Any:
    return faithscope.load("bundled:smollm2-135m", verify_model=False)


@pytest.mark.slow
@pytest.mark.takes("a bundled model, which paraphrases and reads")
def test_probes_take_given_mistakes_and_paraphrases(model: Any, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "chains.jsonl", CHAIN)
    edits = write_rows(tmp_path / "edits.jsonl", MISTAKE, PARAPHRASE)
    (trace,) = faithscope.given_traces(model, path, edits=edits)
    wrong = corrupt_step(trace, 1, 0, model.encode, model.pieces)
    assert wrong.reasoning_text == f"{CHAIN['steps'][0]}\n\n{MISTAKE['text']}"
    assert wrong.edits[-1].detail["rule"] == "given"
    # a step without one is corrupted by rule
    assert (
        corrupt_step(trace, 0, 0, model.encode, model.pieces).edits[-1].detail["rule"] == "number"
    )
    measured = faithscope.measure(model, trace, "paraphrase", writers=["rule"])
    given = next(r for r in measured if r["variant"] == "given")
    assert [text and text.strip() for text in given["texts"]] == [PARAPHRASE["text"], None]
    (found, *_) = faithscope.measure(model, trace, "error_detection", readings=["scored"])
    assert (found["step"], found["error_text"], found["rule"]) == (1, MISTAKE["text"], "given")
    only_reworded = write_rows(tmp_path / "more.jsonl", PARAPHRASE, MISTAKE | {"id": "other"})
    two = write_rows(tmp_path / "two.jsonl", CHAIN, CHAIN | {"id": "other"})
    (without, _) = faithscope.given_traces(model, two, edits=only_reworded)
    (none, *_) = faithscope.measure(model, without, "error_detection", readings=["scored"])
    assert none["excluded"] == "no_mistake_given"
    (plain,) = faithscope.given_traces(model, path)
    assert plain.origin.given.sha256 != trace.origin.given.sha256
    assert plain.reasoning_ids == trace.reasoning_ids


def test_rollouts_from_a_step_are_shares_of_its_answers(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "chains.jsonl", CHAIN)
    rows = [{"id": "pens", "step": 0, "kind": "rollout", "answer": a} for a in ("10", 10, "14")]
    edits = write_rows(tmp_path / "edits.jsonl", *rows)
    (chain,) = read_chains(path, edits=edits).chains
    assert chain.step_labels == {
        "rollouts": (3, None),
        "rollouts_same_answer": (pytest.approx(2 / 3), None),
    }


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ({"id": "pen"}, r"line 1: no chain has the id 'pen'; did you mean 'pens'"),
        ({"step": 2}, r"'step' is 2, and 'pens' has 2 steps"),
        ({"step": True}, "'step' is True"),
        ({"kind": "mistakes"}, "unknown kind of edit 'mistakes'; did you mean 'mistake'"),
        ({"text": CHAIN["steps"][1]}, "the mistake is step 1 itself"),
        ({"original": CHAIN["steps"][0]}, "'original' .* is not step 1 of 'pens'"),
        ({"text": ""}, "'text' is empty"),
    ],
)
def test_edits_that_do_not_fit_are_refused(
    tmp_path: Path, edit: dict[str, Any], problem: str
) -> None:
    path = write_rows(tmp_path / "chains.jsonl", CHAIN)
    with pytest.raises(UserError, match=problem):
        read_chains(path, edits=write_rows(tmp_path / "edits.jsonl", MISTAKE | edit))


def test_a_step_has_one_edit_of_a_kind_and_must_be_given(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "chains.jsonl", CHAIN)
    with pytest.raises(UserError, match="line 2: step 1 of 'pens' has a second mistake"):
        read_chains(path, edits=write_rows(tmp_path / "edits.jsonl", MISTAKE, MISTAKE))
    whole = {**CHAIN, "reasoning": "So 12. Then 10."}
    del whole["steps"]
    bare = write_rows(tmp_path / "bare.jsonl", whole)
    with pytest.raises(UserError, match="the chain 'pens' has no given steps"):
        read_chains(bare, edits=write_rows(tmp_path / "edits.jsonl", MISTAKE))
    with pytest.raises(UserError, match=r"traces\.edits: no such file"):
        read_chains(path, edits=tmp_path / "none.jsonl")
