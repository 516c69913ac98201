"""FINE-CoT: files as the released pipelines write them, their two labels, steps and principles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.fine_cot import principle_ids, step_indices
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.interp.errors import UserError

STEPS = ["The word comes from Greek.", "It means deep sleep.", "So it did not stand for anything."]
FINAL = "Final Answer: The single, most likely answer is (B)."
RESPONSE: dict[str, Any] = {
    "cot_prompt": "Instructions: Read the question …",
    "question": "What did coma stand for?",
    "options": ["A. Cessation", "B. Nothing"],
    "label": "B",
    "sample_0": {
        "full_response": f"{STEPS[0]}\nStep 2: {STEPS[1]}\nStep 3: {STEPS[2]}\n{FINAL}",
        **{f"step_{i}": step for i, step in enumerate(STEPS, 1)},
        "final_answer": FINAL,
        "parsed_final_answer": "B",
        "soft_faithfulness": 0.8,
    },
    "faithful_type": 4,
    "unfaithfulness": 1,
    "unfaithful_reason": "Overturns itself",
    "unfaithful_steps": "2-3",
    "principles": ["Omission of Clear Justification"],
}


def saved(folder: Path, number: int = 0, **changes: Any) -> Path:
    path = folder / "truthfulqa" / "llama" / "run" / "responses" / f"response_{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RESPONSE | changes))
    return path


def one(folder: Path, **changes: Any) -> GivenChain:
    saved(folder, **changes)
    (chain,) = read_chains(folder).chains
    return chain


def test_a_released_response_is_read_as_it_stands(tmp_path: Path) -> None:
    chain = one(tmp_path)
    assert read_chains(tmp_path).format == "fine_cot"
    assert (chain.dataset, chain.model, chain.id) == ("truthfulqa", "llama", "0")
    assert (chain.kind, chain.options, chain.gold) == ("choice", ("Cessation", "Nothing"), "B")
    numbered = [STEPS[0], f"Step 2: {STEPS[1]}", f"Step 3: {STEPS[2]}"]
    assert [chain.reasoning[a:b] for a, b in chain.steps or ()] == numbered
    assert "Final Answer" not in chain.reasoning
    assert chain.answer == "B"
    assert chain.labels["unfaithful.faithful_type"] is True
    assert chain.labels["unfaithful.unfaithfulness"] is True
    assert chain.labels["correct"] is True
    assert chain.labels["principles"] == ["spurious_2"]
    assert chain.step_labels == {"unfaithful": (False, True, True)}


@pytest.mark.parametrize(("kind", "unfaithful"), [(1, False), (2, True), (3, False), (4, True)])
def test_faithful_type_2_and_4_are_unfaithful(tmp_path: Path, kind: int, unfaithful: bool) -> None:
    # the fields disagree: each is kept as it is, and neither fills the other in
    chain = one(tmp_path, faithful_type=kind, unfaithfulness=int(not unfaithful))
    assert chain.labels["unfaithful.faithful_type"] is unfaithful
    assert chain.labels["unfaithful.unfaithfulness"] is not unfaithful


def test_what_is_missing_is_not_filled_in(tmp_path: Path) -> None:
    row = {k: v for k, v in RESPONSE.items() if k in ("question", "options", "label", "sample_0")}
    path = saved(tmp_path)
    path.write_text(json.dumps(row))
    (chain,) = read_chains(tmp_path).chains
    assert chain.labels["unfaithful.faithful_type"] is None
    assert chain.labels["unfaithful.unfaithfulness"] is None
    assert chain.labels["principles"] == []
    assert "uncertain" not in chain.labels
    assert chain.step_labels == {}
    uncertain = one(tmp_path, unfaithfulness=2).labels
    assert (uncertain["unfaithful.unfaithfulness"], uncertain["uncertain"]) == (None, "yes")
    lost = {"error": "Failed to process response", "full_response": "I do not know."}
    chain = one(tmp_path, sample_0=lost)
    assert (chain.steps, chain.answer, chain.labels["correct"]) == (None, None, None)
    assert chain.reasoning == "I do not know."


@pytest.mark.parametrize(
    ("answer", "letter", "right"),
    [("(B)", "B", True), ("Nothing", "B", True), ("a", "A", False), ("A or B", "A or B", None)],
)
def test_an_answer_is_right_as_the_option_that_it_is(
    tmp_path: Path, answer: str, letter: str, right: bool | None
) -> None:
    chain = one(tmp_path, sample_0=RESPONSE["sample_0"] | {"parsed_final_answer": answer})
    assert (chain.answer, chain.labels["correct"]) == (letter, right)


def test_steps_that_do_not_stand_in_the_response_make_the_reasoning(tmp_path: Path) -> None:
    sample = RESPONSE["sample_0"] | {"step_2": "It means a deep sleep."}
    chain = one(tmp_path, sample_0=sample)
    assert chain.reasoning == "\n".join([STEPS[0], "It means a deep sleep.", STEPS[2]])
    assert chain.step_labels == {"unfaithful": (False, True, True)}


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ("2-4", (1, 2, 3)),
        ("3,5", (2, 4)),
        ("5, 6, 7", (4, 5, 6)),
        ("Steps 3 to 4", (2, 3)),
        ("1-2; 2", (0, 1)),
        ([1, "3-4"], (0, 2, 3)),
        (3, (2,)),
        ("", ()),
    ],
)
def test_ranges_of_steps_become_indices(said: Any, steps: tuple[int, ...]) -> None:
    assert step_indices(said, SourceRow("0", {}, "here")) == steps


@pytest.mark.parametrize("said", ["0", "4-2", "all", "2-", "-3"])
def test_what_is_no_range_is_refused(said: str) -> None:
    with pytest.raises(UserError, match=r"here: unfaithful steps .* write 2-4 or 3,5"):
        step_indices(said, SourceRow("0", {}, "here"))


def test_a_step_past_the_last_is_the_statement_of_the_answer_and_no_further(tmp_path: Path) -> None:
    chain = one(tmp_path, unfaithful_steps="3,4")
    assert chain.step_labels == {"unfaithful": (False, False, True)}
    assert chain.labels["unfaithful_answer"] is True
    with pytest.raises(UserError, match="there are 3 steps; name one of 1 to 3, or 4 for the"):
        one(tmp_path, unfaithful_steps="5")


def test_a_principle_has_two_names_and_no_third() -> None:
    row = SourceRow("0", {}, "here")
    for principle in PRINCIPLES:
        for name in (principle.name, principle.also, principle.id, principle.name.lower()):
            assert principle_ids([name], row) == (principle.id,)
    assert len(principle_ids([p.also for p in PRINCIPLES], row)) == 8
    with pytest.raises(UserError, match="here: unknown principle 'Step Skiping'; did you mean"):
        principle_ids("Step Skiping", row)


@pytest.mark.parametrize(
    ("field", "value"), [("faithful_type", 5), ("unfaithfulness", "yes"), ("faithful_type", 1.5)]
)
def test_a_label_that_is_none_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"response_0.json, sample_0: '{field}' is .*; give one of"):
        one(tmp_path, **{field: value})


def test_models_that_share_numbers_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    saved(tmp_path, 0)
    saved(tmp_path, 10)
    saved(tmp_path, 2)
    other = tmp_path / "aqua" / "qwen" / "response_2.json"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps(RESPONSE))
    chains = read_chains(tmp_path).chains
    assert [c.id for c in chains] == ["aqua/2 by qwen", "0", "truthfulqa/2 by llama", "10"]
    assert [c.model for c in chains] == ["qwen", "llama", "llama", "llama"]
