"""Files as other people's tools leave them, each laid out like the real one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.reading import read_chains
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Sent

ROWS = [
    {"question": f"What is {i} + 1?", "reasoning": f"{i} and one. So {i + 1}.", "gold": i + 1}
    for i in range(3)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
YAML = "".join(
    f"- question: {r['question']}\n  reasoning: {r['reasoning']}\n  gold: {r['gold']}\n"
    for r in ROWS
)


def _chains(path: Path) -> list[tuple[str, str, str | None]]:
    return [(c.question, c.reasoning, c.gold) for c in read_chains(path).chains]


WANTED = [(r["question"], r["reasoning"], str(r["gold"])) for r in ROWS]


def test_packed_files_and_yaml_are_read_like_others(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(LINES.encode()))
    (tmp_path / "x.yaml").write_text(YAML)
    assert _chains(tmp_path / "x.jsonl.gz") == _chains(tmp_path / "x.yaml") == WANTED
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(LINES.encode())[:-9])
    with pytest.raises(UserError, match=r"cut\.jsonl\.gz: is no whole gzip file"):
        read_chains(tmp_path / "cut.jsonl.gz")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- question: a\n  question: b\n", "line 2: key 'question' stands twice"),
        ("- [", "is no YAML"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_yaml_that_says_two_things_or_runs_something_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UserError, match=problem):
        read_chains(tmp_path / "x.yaml")


def test_no_in_yaml_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "question: Can it fly?\nreasoning: It is a stone. So no.\noptions: [Yes, No]\ngold: No\n"
        "kind: label\nlabel_seen: true\n"
    )
    (chain,) = read_chains(tmp_path / "x.yaml").chains
    assert (chain.options, chain.gold, chain.labels) == (("Yes", "No"), "No", {"seen": True})


def test_a_data_set_that_was_saved_is_read_and_so_is_a_folder_of_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra: faithscope[data]")
    table = pyarrow.Table.from_pylist([r | {"gold": str(r["gold"])} for r in ROWS])
    for folder in (tmp_path / "saved", tmp_path / "dict" / "test"):
        folder.mkdir(parents=True)
        with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as stream:
            stream.write_table(table)
        for name in ("state.json", "dataset_info.json"):
            (folder / name).write_text("{}")
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    assert _chains(tmp_path / "saved") == _chains(tmp_path / "dict") == WANTED
    folder = tmp_path / "runs"
    for i, row in enumerate(ROWS):
        (folder / f"seed_{i}").mkdir(parents=True)
        write_rows(folder / f"seed_{i}" / "out.jsonl", row)
    assert _chains(folder) == WANTED
    (folder / "notes.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=r"traces\.path: .* has no file of split 'test'"):
        read_chains(folder)


def test_turns_of_sharegpt_are_messages(tmp_path: Path) -> None:
    turns = [
        {"from": "human", "value": "What is 1 + 1?"},
        {"from": "gpt", "value": "<think>\nOne and one.\n</think>\n\nTwo: 2"},
    ]
    row = {"system": "Be brief.", "conversations": turns}
    (chain,) = read_chains(write_rows(tmp_path / "x.jsonl", row)).chains
    assert (chain.reasoning.strip(), chain.answer) == ("One and one.", "Two: 2")
    assert (chain.question, chain.prompt) == ("What is 1 + 1?", "Be brief.\n\nWhat is 1 + 1?")
    (long,) = read_chains(write_rows(tmp_path / "y.jsonl", {"conversations": turns * 2})).chains
    asked = ("user", "What is 1 + 1?")
    assert long.sent is not None
    assert long.sent.prompt == (asked, ("assistant", "Two: 2"), asked)


def test_a_list_of_conversations_needs_no_columns(tmp_path: Path) -> None:
    one = [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "One more. 2."}]
    for name, held in (("one.json", one), ("two.json", [one, one])):
        (tmp_path / name).write_text(json.dumps(held))
        read = read_chains(tmp_path / name)
        assert (read.format, read.total) == ("chat", len(held) if held is not one else 1)
        assert read.chains[-1].reasoning == "One more. 2."


PARAMS = "answer: 'NO', comparison: gt, {}: 1, {}: animals-speed, uuid: e4"
SET = "animals-speed_gt_NO_1_e4"


def _chainscope(folder: Path) -> Path:
    (folder / "questions" / "gt_NO_1").mkdir(parents=True)
    (folder / "questions" / "gt_NO_1" / f"{SET}.yaml").write_text(
        f"params: {{{PARAMS.format('max_comparisons', 'prop_id')}}}\n"
        "question_by_qid:\n  10ba:\n    q_str: Can a snail run faster than a hare?\n"
        "    x_name: snail\n    x_value: 1\n    y_name: hare\n    y_value: 80\n"
    )
    (folder / "instructions.yaml").write_text(
        "instr-v0:\n  cot: |\n    Answer YES or NO:\n\n    {question}\n\n    Think first.\n"
    )
    file = folder / "cot_responses/instr-v0/T0.7_P0.9_M2000/gt_NO_1" / SET / "m__x.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f"ds-params: {{{PARAMS.format('max-comparisons', 'prop-id')}}}\n"
        "instr-id: instr-v0\nmodel-id: m/x\nresponses-by-qid:\n  10ba:\n"
        '    0b54: "Snails creep. Hares run.\\n\\nTherefore, the answer is: NO."\n'
        "    1fa5: 'A snail is slow.\n\n      A hare is not. **YES**'\n"
        "sampling-params: {temperature: 0.7}\n"
    )
    return file


def test_responses_of_chainscope_are_read_with_their_questions(tmp_path: Path) -> None:
    file = _chainscope(tmp_path / "data")
    read = read_chains(file)
    assert (read.format, read.total) == ("chainscope", 2)
    first = read.chains[0]
    assert first.question == "Can a snail run faster than a hare?"
    assert first.prompt == f"Answer YES or NO:\n\n{first.question}\n\nThink first."
    assert (first.kind, first.options, first.gold) == ("label", ("YES", "NO"), "NO")
    assert (first.model, first.reasoning[-3:]) == ("m/x", "NO.")
    # all files of a folder are one file
    assert read_chains(tmp_path / "data" / "cot_responses").total == 2
    (tmp_path / "data" / "questions").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"questions/gt_NO_1/animals-speed_gt_NO_1_e4\.yaml, which"):
        read_chains(file)


def test_verdicts_of_chainscope_are_labels_and_reversed_questions_are_chains(
    tmp_path: Path,
) -> None:
    said = {"response": "It creeps. **Answer:** NO", "final_answer": "NO", "equal_values": "FALSE"}
    file = tmp_path / "data" / "llama-8b" / "animals-speed.yaml"
    file.parent.mkdir(parents=True)
    held = {
        "faithful_responses": {"0b54": said},
        "unfaithful_responses": {"1fa5": said | {"final_answer": "UNKNOWN"}},
        "unknown_responses": {},
        "prompt": "Answer YES or NO: Can a snail run faster than a hare?",
        "metadata": {
            **{"answer": "NO", "prop_id": "animals-speed", "reversed_q_id": "99"},
            **{"comparison": "gt", "x_name": "snail", "y_name": "hare"},
            "q_str": "Can a snail run faster than a hare?",
            "reversed_q_str": "Can a hare run faster than a snail?",
            "reversed_q_incorrect_responses": {"2c": said},
        },
    }
    file.write_text(json.dumps({"10ba": held}))  # JSON is YAML
    chains = read_chains(file).chains
    assert [(c.id, c.labels, c.answer, c.gold) for c in chains] == [
        ("10ba#0b54", {"unfaithful": False}, "NO", "NO"),
        ("10ba#1fa5", {"unfaithful": True}, None, "NO"),
        ("99#2c", {}, "NO", "YES"),
    ]
    assert {c.model for c in chains} == {"llama-8b"}
    assert {c.pair for c in chains} == {"animals-speed gt: hare / snail"}
    assert [c.condition for c in chains] == ["reversed", "reversed", "forward"]
    assert [c.prompt is None for c in chains] == [False, False, True]


def _problem(folder: Path) -> dict[str, str]:
    texts = ["Let me set up the problem.", "1. 3 boxes of 4 are 12.", "She loses 2: 10."]
    rollouts = [{"answer": "10", "is_correct": True}, {"answer": "9", "is_correct": False}]
    files: dict[str, Any] = {
        "problem.json": {"problem": "How many pens?", "level": "Level 5", "gt_answer": "10"},
        "base_solution.json": {
            "prompt": "Solve this. How many pens? Solution: \n<think>\n",
            "solution": f"{texts[0]} 1.\n\n{texts[1][3:]} {texts[2]}\n</think>\n\\boxed{{10}}",
            "answer": "10",
            "is_correct": True,
        },
        "chunks_labeled.json": [
            {"chunk": c, "chunk_idx": i, "function_tags": ["plan"], "importance_kl": i / 10}
            for i, c in enumerate(texts)
        ],
        "chunk_1/solutions.json": [*rollouts, {"error": "timeout"}],
    }
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return {name: json.dumps(value) for name, value in files.items()}


def test_rollouts_from_every_step_label_the_steps(tmp_path: Path) -> None:
    of_model = "qwen-14b/temperature_0.6_top_p_0.95/correct_base_solution/problem_1"
    files = _problem(tmp_path / of_model)
    table = [{"path": f"{of_model}/{n}", "content": text} for n, text in files.items()]
    of_folder = read_chains(tmp_path / "qwen-14b")
    of_table = read_chains(write_rows(tmp_path / "hub.jsonl", *table))
    for read in (of_folder, of_table):
        (chain,) = read.chains
        assert (read.format, chain.model, chain.gold, chain.answer) == (
            *("rollouts", "qwen-14b", "10", "10"),
        )
        assert [chain.reasoning[a:b] for a, b in chain.steps or ()] == [
            "Let me set up the problem.",
            "1.\n\n3 boxes of 4 are 12.",
            "She loses 2: 10.",
        ]
        assert chain.labels == {"correct": True, "level": "Level 5"}
        assert chain.sent == Sent("Solve this. How many pens? Solution: \n<think>\n")
        assert chain.step_labels == {
            "tags": ("plan", "plan", "plan"),
            "importance_kl": (0.0, 0.1, 0.2),
            "rollouts_correct": (None, 0.5, None),
            "rollouts_same_answer": (None, 0.5, None),
            "rollouts": (None, 2, None),
        }
    (tmp_path / of_model / "problem.json").unlink()
    with pytest.raises(UserError, match=r"problem_1: problem\.json is missing"):
        read_chains(tmp_path / "qwen-14b")
