"""Every layout of given chains, as its documentation has it, on small files made for the test."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import READERS, read_chains
from faithscope.experiments.data.traces import TraceSettings
from faithscope.interp.errors import UserError
from faithscope.probes.text_model import TextModel

C2 = Path(__file__).parents[2] / "studies" / "c2faith"
SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "prm800k" / "subset.jsonl"

PROCESS = {
    "id": "gsm8k-7",
    "generator": "Qwen2-7B-Instruct",
    "problem": "Sue has 3 + 4 apples. How many?",
    "steps": ["First, 3 + 4 = 8.", "So she has 8.", "The answer is \\boxed{8}."],
    "final_answer_correct": False,
    "label": 0,
}


def steps_of(chain: GivenChain) -> list[str]:
    return [chain.reasoning[a:b] for a, b in chain.steps or ()]


def one(path: Path, format: str) -> GivenChain:
    read = read_chains(path)
    assert read.format == format
    (chain,) = read.chains
    return chain


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
        ({"reasoning": None}, "line 1: neither 'reasoning' nor 'steps'"),
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


COT = "The hint says B. I recall a book on it. So B."


def label(kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    start = COT.index(text) if text else 0
    return {
        "row_id": "r1",
        "label_type": kind,
        "sentence_span_start": start,
        "sentence_span_end": start + len(text) if text else -1,
        "target_model": "Qwen/Qwen3-4B-Thinking-2507",
        "question": "Which?",
        "prompt": "Which? Hint: B.",
        "prompted_hint": "B",
        "cot": COT,
        "model_answer": "B",
    } | more


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
    # ends are exclusive: another reading of a span is refused
    start, end = 0, len("The hint says B.") - 1
    row = label("FAITHFUL_STEP", sentence_span_start=start, sentence_span_end=end, **said)
    with pytest.raises(UserError, match="the span 0 to 15 of 'cot' is 'The hint says B', and"):
        read_chains(write_rows(tmp_path / "inclusive.jsonl", row))


def test_a_writer_may_have_another_name_here(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "reasoning": "So."}
    path = write_rows(tmp_path / "m.jsonl", row | {"model": "x"}, row | {"model": "y"})
    read = read_chains(path, writers={"x": "org/x", "z": "org/z"})
    assert [(c.model, c.id) for c in read.chains] == [
        ("org/x", "own/a by org/x"),
        ("y", "own/a by y"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "B.", "reasoning_content": "It swims."},
        {"content": "<think>It swims.</think>\n\nB."},
        {"content": "It swims.</think>B."},
        {
            "content": [
                {"type": "thinking", "thinking": "It swims."},
                {"type": "text", "text": "B."},
            ]
        },
    ],
)
def test_chat_keeps_what_was_thought_apart(tmp_path: Path, message: dict[str, Any]) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Which?"},
        {"role": "assistant", **message},
    ]
    row = {"messages": messages, "model": "m", "options": ["owl", "otter"], "target": "B"}
    chain = one(write_rows(tmp_path / "chat.jsonl", row), "chat")
    assert (chain.reasoning, chain.answer, chain.gold) == ("It swims.", "B", "B")
    # a cue may stand in the system message: who reads the chain reads it, too
    assert (chain.prompt, chain.question) == ("Be brief.\n\nWhich?", "Which?")
    assert chain.model == "m"


def test_chat_without_thinking_is_a_chain_itself(tmp_path: Path) -> None:
    user, reply = {"role": "user", "content": "Which?"}, "It swims. So it is B."
    choices = [{"message": {"role": "assistant", "content": reply}}]
    chain = one(
        write_rows(tmp_path / "chat.jsonl", {"messages": [user], "choices": choices}), "chat"
    )
    assert (chain.reasoning, chain.answer) == (reply, None)
    turns = [user, {"role": "assistant", "content": "?"}, user, choices[0]["message"]]
    bad = write_rows(tmp_path / "bad.jsonl", {"messages": turns})
    with pytest.raises(UserError, match="2 turns of the user"):
        read_chains(bad)


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


def test_a_log_that_inspect_wrote(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
        get_model,
    )
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    def reply(*content: Any) -> ModelOutput:
        message = ChatMessageAssistant(content=list(content))
        # with a usage of its own it counts no tokens, for which it would ask the network
        choices, usage = [ChatCompletionChoice(message=message)], ModelUsage(output_tokens=1)
        return ModelOutput(model="mockllm/model", choices=choices, usage=usage)

    long = "Otters swim well. " * 200  # longer than what a log keeps in place
    replies = [
        reply(ContentReasoning(reasoning=long), ContentText(text="ANSWER: B")),
        reply(ContentReasoning(reasoning="abc=", redacted=True), ContentText(text="ANSWER: A")),
    ]
    samples = [
        Sample(id=i, input="Which swims?", choices=["owl", "otter"], target="B") for i in "xy"
    ]
    task = Task(
        dataset=MemoryDataset(samples, name="zoo"), solver=multiple_choice(), scorer=choice()
    )
    model = get_model("mockllm/model", custom_outputs=replies)
    (log,) = eval(task, model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    read = read_chains(Path(log.location.removeprefix("file://")))
    assert read.format == "inspect"
    thought, hidden = read.chains
    assert thought.reasoning == long
    assert (thought.kind, thought.options, thought.gold) == ("choice", ("owl", "otter"), "B")
    assert (thought.id, thought.dataset, thought.model) == ("x", "zoo", "mockllm/model")
    assert thought.labels == {"score_choice": "C"}
    assert hidden.labels == {"score_choice": "I"}
    assert thought.answer == "B"
    assert thought.question == "Which swims?"
    assert "Which swims?" in (thought.prompt or "")
    assert "A) owl" in (thought.prompt or "")
    # what a service keeps to itself is no reasoning
    assert hidden.reasoning == ""


def logged(path: Path, target: Any, choices: list[str] | None = None, **more: Any) -> GivenChain:
    """A sample of a log of Inspect, as it is read back."""
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalSample,
        EvalSpec,
        write_eval_log,
    )
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput

    reply = ChatMessageAssistant(content="<think>Fish swim.</think>A")
    output = ModelOutput.from_message(reply)
    sample = EvalSample(
        id="s",
        epoch=1,
        input="Which?",
        target=target,
        choices=choices,
        messages=[ChatMessageUser(content="Which?"), reply],
        output=output,
        **more,
    )
    spec = EvalSpec(
        task="zoo",
        created="2025-01-01T00:00:00+00:00",
        dataset=EvalDataset(name="zoo"),
        model="m",
        config=EvalConfig(),
    )
    write_eval_log(EvalLog(eval=spec, samples=[sample]), str(path / "log.eval"))
    (chain,) = read_chains(path / "log.eval").chains
    return chain


@pytest.mark.parametrize(
    ("target", "choices", "gold", "kept"),
    [
        ("B", ["owl", "otter"], "B", None),
        (["B"], ["owl", "otter"], "B", None),
        (["B", "b "], ["owl", "otter"], "B", None),
        (["A", "C"], ["trout", "owl", "salmon"], None, ["A", "C"]),
        ([], ["owl", "otter"], None, None),
        ("", ["owl", "otter"], None, None),
        ("nan", ["owl", "otter"], None, None),
        ("None", ["owl", "None"], "B", None),
        ("B", ["(A) owl", "(B) otter"], "B", None),
        (["nine", "9"], None, "9", None),
        (["9", "9.0"], None, "9", None),
        (["9", "10"], None, None, ["9", "10"]),
        (["Paris", "paris"], None, "Paris", None),
        (["Paris", "Lutetia"], None, None, ["Paris", "Lutetia"]),
        ([], None, None, None),
        ("None", None, None, None),
    ],
)
def test_targets_of_inspect_are_one_answer_or_none(
    tmp_path: Path, target: Any, choices: list[str] | None, gold: str | None, kept: Any
) -> None:
    chain = logged(tmp_path, target, choices)
    assert (chain.gold, chain.labels.get("targets")) == (gold, kept)
    if choices is not None:
        assert chain.answer == "A"
        assert chain.options == tuple(c.removeprefix("(A) ").removeprefix("(B) ") for c in choices)


def test_choices_of_inspect_whose_letters_are_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sample 's', epoch 1: the options that the data calls A, "):
        logged(tmp_path, "A", ["(B) owl", "(A) otter"])
    with pytest.raises(UserError, match="option B is empty"):
        logged(tmp_path, "A", ["owl", ""])


def test_a_score_of_inspect_that_is_nan_is_unknown(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")
    from inspect_ai.scorer import Score

    chain = logged(tmp_path, "9", scores={"g": Score(value=float("nan")), "h": Score(value=1)})
    assert chain.labels == {"score_g": None, "score_h": 1}


def test_auto_refuses_what_it_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.jsonl: its columns \(a\) are of no known format"):
        read_chains(write_rows(tmp_path / "x.jsonl", {"a": 1}))
    both = {"question": "?", "reasoning": "So.", "messages": []}
    with pytest.raises(UserError, match=r"of the formats rows and chat; .* traces\.format: rows"):
        read_chains(write_rows(tmp_path / "both.jsonl", both))
    assert read_chains(tmp_path / "both.jsonl", "rows").format == "rows"
    with pytest.raises(UserError, match="unknown format 'row'; did you mean 'rows'"):
        read_chains(tmp_path / "both.jsonl", "row")


def test_labels_without_an_end_are_refused_in_one_line(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    rows = [{"question": "?", "reasoning": "So."}]
    with pytest.raises(UserError, match=r"^row 0: holds lists or objects nested more than 100"):
        read_chains([rows[0] | {"labels": {"a": deep}}])
    text = json.dumps(rows[0])[:-1] + ', "labels": {"a": ' + "[" * 900 + "]" * 900 + "}}\n"
    (tmp_path / "c.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"c\.jsonl, line 1: holds lists or objects nested"):
        read_chains(tmp_path / "c.jsonl")
    (tmp_path / "c.csv").write_text(f"question,reasoning,label_a\n?,So.,{'[' * 9000}\n")
    assert read_chains(tmp_path / "c.csv").chains[0].labels == {"a": "[" * 9000}


def test_every_reader_is_told_apart_from_the_others() -> None:
    rows = [
        {"question": "?", "reasoning": "So."},
        PROCESS,
        {"problem": "?", "steps": [], "ratings": []},
        label("FAITHFUL_COT"),
        {"messages": []},
    ]

    def names(row: dict[str, Any]) -> list[str]:
        return [reader.name for reader in READERS if reader.recognises(row)]

    assert [names(row) for row in rows] == [
        ["rows"],
        ["processbench"],
        ["prm800k"],
        ["bonafide"],
        ["chat"],
    ]
    assert all(isinstance(reader, Reader) for reader in READERS)


def test_two_chains_of_one_id_are_named_by_who_wrote_them(tmp_path: Path) -> None:
    row = {"id": "a", "question": "?", "reasoning": "So."}
    path = write_rows(tmp_path / "m.jsonl", row | {"model": "x"}, row | {"model": "y"})
    assert [c.id for c in read_chains(path).chains] == ["own/a by x", "own/a by y"]
    kept = read_chains(path, own_ids=False).chains
    assert [(c.model, c.id) for c in kept] == [("x", "a"), ("y", "a")]
    for own_ids in (True, False):
        with pytest.raises(UserError, match=r"line 2: id 'a' is that of .*line 1"):
            read_chains(write_rows(tmp_path / "n.jsonl", row, row), own_ids=own_ids)


def test_a_limit_draws_from_the_whole_file_and_a_greater_one_adds_to_it(tmp_path: Path) -> None:
    rows = [
        label(kind) | {"row_id": f"{kind}-{i}", "cot": f"{kind} {i}."}
        for kind in ("FAITHFUL_COT", "UNFAITHFUL_COT")
        for i in range(30)
    ]
    path = write_rows(tmp_path / "sorted.jsonl", *rows)

    def ids(limit: int | None, seed: int = 0) -> list[str]:
        return [chain.id for chain in read_chains(path, limit=limit, seed=seed).chains]

    ten = read_chains(path, limit=10).chains
    assert {chain.labels["unfaithful"] for chain in ten} == {True, False}
    assert len(ten) == 10
    assert ids(10) == [name for name in ids(None) if name in ids(10)]
    assert set(ids(10)) < set(ids(20)) < set(ids(None))
    assert ids(10, seed=1) != ids(10)
    assert ids(500) == ids(None)
