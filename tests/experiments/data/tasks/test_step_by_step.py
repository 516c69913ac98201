"""LogiQA, TruthfulQA, AQuA and HLE's biology: gold answers, drawing, options, prefilled words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_files import write_rows
from tiny_models import tiny

from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.traces import TraceSettings, asking_for, make_trace
from faithscope.interp import hub
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
MC1 = {
    "question": "What did coma stand for?",
    "mc1_targets": {"choices": ["Nothing", "Cessation", "Of", "Motor"], "labels": [1, 0, 0, 0]},
}
HLE = {
    "id": "abc",
    "question": "Which enzyme?\n\nAnswer Choices:\nA. Ligase\nB. Helicase\nC. None",
    "answer": "B",
    "answer_type": "multipleChoice",
    "category": "Biology/Medicine",
    "image": "",
}


def load(task: str, path: Path | None = None, **settings) -> list[Question]:
    return list(get_task(task).load(LoadSettings(path=path, **settings)))


@pytest.mark.parametrize(("task", "file"), [("logiqa", "logiqa_en"), ("aqua", "test")])
def test_real_rows_are_drawn_with_the_seed_and_keep_their_answers(task: str, file: str) -> None:
    path = SHARED / task / f"{file}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    drawn = load(task, path, seed=42)
    assert len(drawn) == 100
    assert drawn == load(task, path, seed=42)
    assert {q.id for q in drawn} != {q.id for q in load(task, path, seed=43)}
    assert load(task, path, seed=42, limit=7) == drawn[:7]
    everything = load(task, path, seed=42, limit=10_000)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(everything) == len(rows)
    assert everything[:100] == drawn
    for question in everything:
        row = rows[int(question.id.rpartition("-")[2])]
        gold = (question.options or ())["ABCDE".index(question.gold or "")]
        assert any(o.endswith(gold) for o in row["options"])
        assert question.gold == row.get("label", row.get("correct"))
        assert row["question"].strip() in question.text


def test_the_right_option_of_truthfulqa_is_not_always_the_first(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "validation.jsonl", *([MC1] * 40))
    questions = load("truthfulqa", path, seed=42)
    assert {q.gold for q in questions} == set("ABCD")
    assert all((q.options or ())["ABCD".index(q.gold or "")] == "Nothing" for q in questions)
    as_dict = {"question": "?", "mc1_targets": {"yes": 0, "no": 1}}
    (one,) = load("truthfulqa", write_rows(tmp_path / "mc.jsonl", as_dict))
    assert (one.options or ())["AB".index(one.gold or "")] == "no"
    two = {"question": "?", "mc1_targets": {"yes": 1, "no": 1}}
    with pytest.raises(UserError, match=r"line 1: .*names 2 right choices"):
        load("truthfulqa", write_rows(tmp_path / "two.jsonl", two))


def test_the_hubs_logiqa_counts_options_from_0(tmp_path: Path) -> None:
    row = {"context": "All a are b.", "query": "So?", "options": ["x", "y"], "correct_option": 1}
    (question,) = load("logiqa", write_rows(tmp_path / "test.jsonl", row))
    assert (question.gold, question.text) == ("B", "All a are b.\nSo?")
    with pytest.raises(UserError, match="'correct_option' is 2; give a whole number from 0 to 1"):
        load("logiqa", write_rows(tmp_path / "test.jsonl", row | {"correct_option": 2}))


def test_hle_gives_its_biology_without_pictures_from_a_local_file_alone(tmp_path: Path) -> None:
    others = [{"answer_type": "exactMatch"}, {"category": "Math"}, {"image": "data:image/png"}]
    rows = [HLE, *(HLE | {"id": str(i)} | other for i, other in enumerate(others))]
    (question,) = load("hle_bio", write_rows(tmp_path / "test.jsonl", *rows))
    assert (question.id, question.text, question.gold) == ("abc", "Which enzyme?", "B")
    assert question.options == ("Ligase", "Helicase", "None")
    with pytest.raises(UserError, match="gated"):
        load("hle_bio")
    with pytest.raises(UserError, match="none of 1 rows has category"):
        load("hle_bio", write_rows(tmp_path / "test.jsonl", *rows[1:2]))
    without = HLE | {"question": "Which?\nA. Ligase\nB. Helicase"}
    with pytest.raises(UserError, match="no line 'Answer Choices:'"):
        load("hle_bio", write_rows(tmp_path / "test.jsonl", without))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Step 1: It is so.\nFinal Answer: The single, most likely answer is (B).", "B"),
        ("Step 1: A is wrong.\nFinal Answer: The single, most likely answer is C", "C"),
        ("Step 1: It is so.\nFinal Answer: The single, most likely answer is (D) four.", "D"),
        ("Step 1: I cannot tell.", None),
    ],
)
def test_answers_are_read_as_the_prompt_asks_for_them(reply: str, answer: str | None) -> None:
    task, options = get_task("aqua"), ("one", "two", "three", "four")
    question = Question("q", "aqua", "?", "choice", "B", options)
    assert task.parse(reply, question) == answer
    # the cue by itself must read as no answer, and what follows it as the model's
    assert task.parse(task.answer_cue, question) is None
    assert task.parse_continuation(" (B). It is", question) == "B"


def test_the_reply_begins_with_the_words_it_was_prefilled_with() -> None:
    model = tiny("llama")
    settings = TraceSettings(max_new_tokens=8, min_step_chars=1)
    task = get_task("aqua")
    trace = make_trace(
        model, "What is 1 + 1?", options=("one", "two"), task="aqua", settings=settings
    )
    prefix = tuple(model.encode("Step 1: "))
    assert trace.reasoning_ids[: len(prefix)] == prefix
    assert trace.origin.prefilled == len(prefix)
    plain = model.prompt(task.cot_prompt(trace.question))
    assert trace.prompt_ids == plain.ids
    # what followed is what the model writes after prompt and prefix
    (alone,) = model.generate([plain.ids + prefix], [8])
    assert (*trace.reasoning_ids, *trace.tail_ids)[len(prefix) :] == alone.ids
    assert asking_for(model, task, trace).answer_cue.startswith("\nFinal Answer:")


def test_logiqa_is_read_from_the_branch_of_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main branch of its repository holds a script, which `datasets` 4 refuses."""
    datasets = pytest.importorskip("datasets", reason="datasets comes with the data extra")
    monkeypatch.setattr(hub, "unreachable", lambda: None)
    asked = {}

    def load_dataset(repository: str, config: str | None, **how: str | None) -> list[dict]:
        asked.update(repository=repository, config=config, **how)
        row = {"context": "p", "query": "q?", "options": ["x", "y", "z", "w"], "correct_option": 2}
        return [row]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (question,) = get_task("logiqa").load(LoadSettings())
    assert (question.text.split("\n")[:2], question.gold) == (["p", "q?"], "C")
    assert asked == {
        **{"repository": "lucasmccabe/logiqa", "config": None, "split": "test"},
        "revision": "refs/convert/parquet",
    }
