"""Every layout of given chains, as its documentation has it, on small files made for the test."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from given_rows import PROCESS, label
from run_files import write_rows

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.traces import TraceSettings
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.probes.text_model import TextModel

C2 = Path(__file__).parents[2] / "studies" / "c2faith"
SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "prm800k" / "subset.jsonl"


def steps_of(chain: GivenChain) -> list[str]:
    return [chain.reasoning[a:b] for a, b in chain.steps or ()]


def one(path: Path, format: str) -> GivenChain:
    read = read_chains(path)
    assert read.format == format
    (chain,) = read.chains
    return chain


@pytest.mark.parametrize(
    "more",
    [
        {"label_why": "cut \ud83d"},
        {"label_\ud83d": 1},
        {"steps": [{"text": "It is 5.", "label_tag": "\udc00"}]},
    ],
    ids=ascii,
)
def test_a_label_with_half_a_character_is_refused_by_name(more: dict[str, Any]) -> None:
    row = {"question": "2 + 3?", "reasoning": "It is 5.", "model": "m"}
    with pytest.raises(UserError, match=r"the label '.*' holds the character"):
        read_chains([row | more])


def test_rows_of_ones_own(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "question": "Which swims?",
        "options": ["otter", "owl"],
        "gold": "otter",
        "reasoning": "Owls fly.  Otters\nswim.",
        "steps": [
            {"text": "Owls fly.", "label": 1},
            {"text": "Otters\nswim.", "label_wrong": False},
        ],
        "answer": "A",
        "model": "org/writer",
        "labels": {"unfaithful": True},
        "label_by_ann": 2,
    }
    chain = one(write_rows(tmp_path / "mine.jsonl", row), "rows")
    assert (chain.kind, chain.options, chain.gold) == ("choice", ("otter", "owl"), "A")
    assert chain.reasoning == row["reasoning"]
    assert steps_of(chain) == ["Owls fly.", "Otters\nswim."]
    assert chain.step_labels == {"label": (1, None), "wrong": (None, False)}
    assert chain.labels == {"unfaithful": True, "by_ann": 2}
    assert (chain.model, chain.answer, chain.dataset) == ("org/writer", "A", "own")


def test_rows_say_which_cue_stood_in_the_prompt_and_other_chains_keep_their_hash(
    tmp_path: Path, llama: Model
) -> None:
    row = {"question": "Who?", "reasoning": "It is A. Yes, A.", "cue": "I think A.", "id": "x"}
    (chain,) = read_chains(write_rows(tmp_path / "c.jsonl", row | {"cue_target": "A"})).chains
    cued = question_of_chain(chain, "c.jsonl", "rows")
    given = given_trace(llama, cued, TraceSettings()).origin.given
    assert given is not None
    assert (given.cue, given.cue_target) == ("I think A.", "A")
    bare = question_of_chain(replace(chain, cue=None, cue_target=None), "c.jsonl", "rows")
    assert bare.sha256 == "c987b6f866a0929481ee3e7319476d63056e167f393b8afae9b3bdcd00812625"
    assert cued.sha256 != bare.sha256


def test_rows_say_which_text_was_prefilled(tmp_path: Path, llama: Model) -> None:
    row = {"question": "Who?", "reasoning": "It is A. No, it is B.", "prefilled": "It is A."}
    chain = one(write_rows(tmp_path / "mine.jsonl", row), "rows")
    assert chain.prefilled == len("It is A.")
    asked = question_of_chain(chain, "mine.jsonl", "rows")
    trace = given_trace(llama, asked, TraceSettings())
    assert "".join(trace.pieces[: trace.origin.prefilled]) == "It is A."
    # a token that holds text of both counts as the model's own
    inside = question_of_chain(replace(chain, prefilled=chain.prefilled + 1), "mine.jsonl", "rows")
    n = given_trace(llama, inside, TraceSettings()).origin.prefilled
    assert n - trace.origin.prefilled == (len(trace.pieces[trace.origin.prefilled]) == 1)
    bare = question_of_chain(replace(chain, prefilled=0), "mine.jsonl", "rows")
    assert given_trace(llama, bare, TraceSettings()).origin.prefilled == 0
    assert bare.sha256 != asked.sha256
    with pytest.raises(UserError, match="line 1: the reasoning does not begin with 'prefilled'"):
        read_chains(write_rows(tmp_path / "other.jsonl", row | {"prefilled": "No,"}))


def test_rows_in_csv_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["question", "gold", "steps", "label_unfaithful", "label_note"])
        table.writerow(["1 + 1?", "2", json.dumps(["It is 1 + 1.", "So 2."]), "true", "as is"])
    chain = one(path, "rows")
    assert (chain.kind, chain.gold) == ("number", "2")
    assert steps_of(chain) == ["It is 1 + 1.", "So 2."]
    assert chain.labels == {"unfaithful": True, "note": "as is"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"steps": ["Otters swim.", "Owls fly."]}, "line 1: step 1 ('Owls fly.') does not stand"),
        ({"steps": ["Owls fly.", ""]}, "line 1: steps[1] is empty"),
        ({"gold": "bat"}, "line 1: answer 'bat' is none of the options"),
        ({"kind": "word"}, "line 1: kind 'word' is none of number, label, choice"),
        ({"labels": {"a": 1}, "label_a": 0}, "line 1: the row has label 'a' twice, 1 and 0; keep"),
        (
            {"steps": [{"text": "Owls fly.", "labels": {"label": 1}, "label": 0}]},
            "line 1: steps[0] has label 'label' twice, 1 and 0",
        ),
        ({"labels": '{"a": 1, "a": 2}'}, "line 1: 'labels': key 'a' stands twice"),
        ({"labels": '{"a": ' + "[" * 900 + "]" * 900 + "}"}, "'labels': holds lists or objects"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    row = {"question": "Which?", "options": ["otter", "owl"], "reasoning": "Owls fly. Otters swim."}
    with pytest.raises(UserError) as refused:
        read_chains(write_rows(tmp_path / "mine.jsonl", row | change))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("good", "change", "other"),
    [
        (PROCESS, {"label": 9}, {"steps": "no list"}),
        (
            {"messages": [{"role": "user", "content": "1 + 1?"},
                          {"role": "assistant", "content": "<think>2.</think>2"}]},
            {"messages": [{"role": "user", "content": "1 + 1?"}]},
            {"messages": "none"},
        ),
        (
            {"question": {"problem": "1 + 1?"}, "label": {"steps": [{"completions": [
                {"text": "2.", "rating": 1}], "chosen_completion": 0}]}},
            {"label": {"steps": [{"completions": [{"text": "2.", "rating": 7}],
                                  "chosen_completion": 0}]}},
            {"question": {}, "label": {"steps": "none"}},
        ),
    ],
    ids=["processbench", "chat", "prm800k"],
)  # fmt: skip
def test_what_is_wrong_with_all_rows_is_said_together(
    tmp_path: Path, good: dict[str, Any], change: dict[str, Any], other: dict[str, Any]
) -> None:
    path = write_rows(tmp_path / "rows.jsonl", good, good | change, good | other)
    with pytest.raises(UserError) as refused:
        read_chains(path)
    first, second, last = str(refused.value).splitlines()
    assert first.startswith(f"{path}, line 2: ")
    assert second.startswith(f"{path}, line 3: ")
    assert "2 of 3 rows cannot be read, the other 1 can" in last


def test_processbench(tmp_path: Path) -> None:
    right = PROCESS | {"id": "math-1", "label": -1, "final_answer_correct": True}
    second = PROCESS | {"id": "math-2", "label": 1}
    chains = read_chains(write_rows(tmp_path / "pb.jsonl", PROCESS, right, second)).chains
    assert [c.labels["correct"] for c in chains] == [False, True, False]
    assert [c.labels["final_answer_correct"] for c in chains] == [False, True, False]
    assert [c.step_labels["correct"] for c in chains] == [
        (False, None, None),
        (True, True, True),
        (True, False, None),
    ]
    assert [c.dataset for c in chains] == ["gsm8k", "math", "math"]
    assert steps_of(chains[0]) == PROCESS["steps"]
    assert chains[0].reasoning == "\n\n".join(PROCESS["steps"])
    with pytest.raises(UserError, match=r"line 1: 'label' is 3, there are 3 steps"):
        read_chains(write_rows(tmp_path / "bad.jsonl", PROCESS | {"label": 3}))


@pytest.mark.skipif(not SHARED.is_file(), reason="no real rows of PRM800K here")
def test_real_rows_of_prm800k() -> None:
    read = read_chains(SHARED)
    assert read.format == "prm800k"
    rows = [json.loads(line) for line in SHARED.read_text("utf-8").splitlines()]
    assert len(read.chains) == len(rows)
    for chain, row in zip(read.chains, rows, strict=True):
        assert steps_of(chain) == row["steps"]
        assert chain.step_labels["rating"] == tuple(row["ratings"])
        wrong = [i for i, correct in enumerate(chain.step_labels["correct"]) if correct is False]
        assert wrong == [i for i, rating in enumerate(row["ratings"]) if rating == -1]
        assert chain.labels.get("correct") is (False if wrong else chain.labels.get("correct"))


def test_prm800k_as_released(tmp_path: Path) -> None:
    def step(text: str, rating: int) -> dict[str, Any]:
        return {"completions": [{"text": text, "rating": rating}], "chosen_completion": 0}

    steps = [step("Two and two.", 1), step("That is 5.\n\n# Answer\n\n5", -1)]
    row = {
        "question": {"problem": "2 + 2?"},
        "label": {"steps": steps, "finish_reason": "found_error"},
    }
    chain = one(write_rows(tmp_path / "phase2_train.jsonl", row), "prm800k")
    assert (chain.question, chain.answer, chain.labels) == ("2 + 2?", "5", {"correct": False})
    assert chain.step_labels["correct"] == (True, False)


def test_the_right_answer_of_prm800k_is_its_gold() -> None:
    """Real rows, of openai/prm800k: see `tests/experiments/studies/c2faith/test_prm800k.py`."""
    rows = [
        json.loads(line)
        for phase in (1, 2)
        for line in (C2 / f"prm800k_phase{phase}.jsonl").read_text("utf-8").splitlines()
    ]
    chains = [
        chain
        for phase in (1, 2)
        for chain in read_chains(C2 / f"prm800k_phase{phase}.jsonl", format="prm800k").chains
    ]
    assert [c.gold for c in chains] == [r["question"]["ground_truth_answer"] for r in rows]
    assert [c.gold for c in chains] == ["29", "440", "40_9", "28800"]
    for kind in (None, "number"):
        asked = [question_of_chain(c, "f.jsonl", "prm800k", kind=kind) for c in chains]
        # a number in base 9 is none that can be compared, whatever kind the others have
        assert [a.kind for a in asked] == ["number", "number", None, "number"]
        assert [a.question.gold for a in asked] == ["29", "440", None, "28800"]


def test_plain_rows_of_prm800k_may_have_a_right_answer(tmp_path: Path) -> None:
    row = {"problem": "2 + 2?", "steps": ["So.\n\n# Answer\n\n5"], "ratings": [-1]}
    golds = [row | {"ground_truth_answer": "4"}, row | {"ground_truth_answer": None}, row]
    read = read_chains(write_rows(tmp_path / "mine.jsonl", *golds))
    assert [c.gold for c in read.chains] == ["4", None, None]
    with pytest.raises(UserError, match=r"line 1: 'ground_truth_answer' is a list; give a text"):
        read_chains(write_rows(tmp_path / "bad.jsonl", row | {"ground_truth_answer": ["4"]}))


def test_a_path_of_prm800k_that_ends_at_an_error_is_not_correct(tmp_path: Path) -> None:
    right = {"completions": [{"text": "Two and two.", "rating": 1}], "chosen_completion": 0}
    both = [{"text": "That is 5.", "rating": -1}, {"text": "That is 6.", "rating": -1}]
    for end in ({"completions": both, "chosen_completion": None}, {"completions": []}):
        row = {
            "question": {"problem": "2 + 2?"},
            "label": {"steps": [right, end], "finish_reason": "found_error"},
        }
        read = one(write_rows(tmp_path / "phase2_train.jsonl", row), "prm800k")
        assert read.labels == {"complete": False}
        assert (read.step_labels["correct"], read.reasoning) == ((True,), "Two and two.")
    row["label"]["steps"] = [right]
    read = one(write_rows(tmp_path / "phase2_train.jsonl", row), "prm800k")
    assert read.labels == {"correct": True}


def test_bonafide_joins_the_labels_of_a_chain(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "b.jsonl",
        label("UNFAITHFUL_STEP", "I recall a book on it."),
        label("UNFAITHFUL_COT"),
        label("FAITHFUL_STEP", "The hint says B."),
        label("FAITHFUL_STEP", "So B."),
        label("UNFAITHFUL_STEP", "So B."),
        label("FAITHFUL_COT", target_model="allenai/Olmo-3-7B-Think"),
    )
    read = read_chains(path)
    assert read.format == "bonafide"
    first, second = read.chains
    assert steps_of(first) == ["The hint says B.", "I recall a book on it.", "So B."]
    # a step that has both labels has none, and is counted
    assert first.step_labels == {"unfaithful": (False, True, None)}
    assert first.labels == {"unfaithful": True, "conflicting_steps": 1, "prompted_hint": "B"}
    assert (first.prompt, first.question, first.answer) == ("Which? Hint: B.", "Which?", "B")
    assert (second.labels["unfaithful"], second.steps) == (False, None)
    assert first.id != second.id
    assert "Olmo" in second.id
    bad = write_rows(tmp_path / "bad.jsonl", label("FAITHFUL_STEP", sentence_span_end=99))
    with pytest.raises(UserError, match=r"line 1: the span 0 to 99 is none of 'cot'"):
        read_chains(bad)
    # a row_id names a question, which one model may have been asked with two hints
    again = label("FAITHFUL_COT", prompt="Which? Hint: C.")
    read = read_chains(write_rows(tmp_path / "two.jsonl", label("FAITHFUL_COT"), again))
    assert [c.id for c in read.chains] == ["r1", "r1.2"]


def test_bonafide_says_together_what_is_wrong_with_all_rows(tmp_path: Path) -> None:
    bad = write_rows(
        tmp_path / "bad.jsonl",
        label("FAITHFUL_COT"),
        label("HONEST"),
        label("FAITHFUL_STEP", sentence_span_end=99),
        label("FAITHFUL_STEP", sentence_span_start="x"),
        label("FAITHFUL_STEP", cot=None),
    )
    with pytest.raises(UserError) as error:
        read_chains(bad, "bonafide")
    said = str(error.value)
    assert "'HONEST' is none of" in said
    assert "the span 0 to 99" in said
    assert all(f"line {i}" in said for i in (2, 3, 4, 5))
    assert "line 1" not in said


def test_bonafide_as_released(tmp_path: Path) -> None:
    said = {"id": "ab12", "correct_answer": "otter", "hinted_answer": "owl", "src_type": "hinting"}
    said |= {"sentence_text": "The hint says B.", "model_answer": "owl"}
    path = write_rows(tmp_path / "b.jsonl", label("FAITHFUL_STEP", "The hint says B.", **said))
    chain = one(path, "bonafide")
    # an answer is one of the two at stake; nothing says so of a question without a hint
    assert (chain.id, chain.kind, chain.gold) == ("ab12", "label", "otter")
    assert (chain.options, chain.answer) == (("owl", "otter"), "owl")
    assert chain.labels == {"prompted_hint": "B", "src_type": "hinting"}
    for answer, kind in (("12", "number"), ("two otters", None)):
        about = {"id": "c", "correct_answer": answer, "prompted_hint": None}
        chain = one(
            write_rows(tmp_path / f"{kind}.jsonl", label("FAITHFUL_COT", **about)), "bonafide"
        )
        assert (chain.kind, chain.options, chain.gold) == (kind, None, answer)
    for name, steps in {
        "steps": '["An otter.",  "An\\nowl."]',
        "intermediate_step": "An otter.",
    }.items():
        row = label("FAITHFUL_COT", **{name: steps})
        (of,) = read_chains(write_rows(tmp_path / f"{name}.jsonl", row), "bonafide").chains
        assert of.labels["true_steps"] == ("An otter.\nAn owl." if "owl" in steps else steps)
    broken = write_rows(tmp_path / "broken.jsonl", label("FAITHFUL_COT", steps="[An otter"))
    with pytest.raises(UserError, match="'steps' is no list as JSON"):
        read_chains(broken, "bonafide")
    # ends are exclusive: another reading of a span is refused
    start, end = 0, len("The hint says B.") - 1
    row = label("FAITHFUL_STEP", sentence_span_start=start, sentence_span_end=end, **said)
    with pytest.raises(UserError, match="the span 0 to 15 of 'cot' is 'The hint says B', and"):
        read_chains(write_rows(tmp_path / "inclusive.jsonl", row))


@pytest.mark.parametrize(
    ("column", "reason", "cut"),
    [
        ("finish_reason", "length", True),
        ("finish", "length", True),
        ("stop_reason", "max_tokens", True),
        ("stop_reason", "MAX_TOKENS", True),
        ("finish_reason", "stop", False),
        ("finish_reason", None, False),
        ("finish_reason", "content_filter", False),
        ("other", "length", False),
    ],
)
def test_a_reply_that_a_limit_cut_is_known_where_the_file_says_so(
    tmp_path: Path, column: str, reason: str | None, cut: bool
) -> None:
    row = {"question": "Which?", "reasoning": "It swims. So it is", column: reason}
    chain = one(write_rows(tmp_path / "mine.jsonl", row), "rows")
    assert chain.cut == cut
    asked = question_of_chain(chain, "mine.jsonl", "rows")
    trace = given_trace(TextModel("m", lambda message: None), asked, TraceSettings())
    assert trace.finish == ("length" if cut else "stop")
    message = {"role": "assistant", "content": "It swims."}
    user = {"role": "user", "content": "Which?"}
    choices = [{"message": message, column: reason}]
    chat = write_rows(tmp_path / "chat.jsonl", {"messages": [user], "choices": choices})
    assert one(chat, "chat").cut == (cut and column == "finish_reason")
    # who is not told keeps the id that its chain had
    told = question_of_chain(replace(chain, cut=True), "mine.jsonl", "rows").sha256
    assert (told == asked.sha256) == cut
