"""The paper's six tasks from folders laid out like the hub's, and from real rows."""

from __future__ import annotations

import csv
import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from run_files import write_rows

from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.tasks.exams import ARC_CHALLENGE
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data"
LETTERS = ["A", "B", "C", "D", "E"]
SST2 = [
    {"idx": 0, "sentence": "it 's a charming journey . ", "label": 1},
    {"idx": 1, "sentence": "unflinchingly bleak", "label": 0},
]
AG_NEWS = [
    {"text": "Stocks fell.", "label": 2},
    {"text": "A chip was shown.", "label": 3},
    {"text": "Talks went on.", "label": 0},
    {"text": "They won 3-2.", "label": 1},
]
MEDQA = [
    {
        "question": "Which vitamin?",
        "answer": "C",
        "options": {"A": "A", "B": "C", "C": "D", "D": "K"},
        "meta_info": "step1",
        "answer_idx": "B",
        "metamap_phrases": ["vitamin"],
    }
]
CSQA = [
    {
        "id": "1afa02df02c908a558b4036e80242fac",
        "question": "A revolving door is a security measure at a what?",
        "question_concept": "revolving door",
        "choices": {"label": LETTERS, "text": ["bank", "library", "store", "mall", "new york"]},
        "answerKey": "A",
    }
]
ARC = [
    {
        "id": "Mercury_7175875",
        "question": "What is true of a faster planet?",
        "choices": {"text": ["one", "two", "three", "four"], "label": LETTERS[:4]},
        "answerKey": "C",
    },
    {
        "id": "NYSEDREGENTS_2010_4_1",
        "question": "How many legs has an insect?",
        # options that are numbers, called by other numbers
        "choices": {"text": ["4", "6", "2", "1"], "label": ["1", "2", "3", "4"]},
        "answerKey": "2",
    },
    {
        "id": "three",
        "question": "Which?",
        "choices": {"text": ["x", "y", "z"], "label": LETTERS[:3]},
        "answerKey": "C",
    },
    {
        "id": "five",
        "question": "Which?",
        "choices": {"text": list("vwxyz"), "label": LETTERS},
        "answerKey": "E",
    },
]
LAYOUTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "sst2": ("data/validation-00000-of-00001", SST2),
    "ag_news": ("data/test-00000-of-00001", AG_NEWS),
    "medqa": ("phrases_no_exclude_test", MEDQA),
    "commonsense_qa": ("data/validation-00000-of-00001", CSQA),
    "arc_challenge": ("ARC-Challenge/test-00000-of-00001", ARC),
}
GOLD = {
    "sst2": ["positive", "negative"],
    "ag_news": ["Business", "Sci/Tech", "World", "Sports"],
    "medqa": ["B"],
    "commonsense_qa": ["A"],
    "arc_challenge": ["C", "B", "C", "E"],
}


def load(task: str, path: Path, **settings: Any) -> list[Question]:
    return list(get_task(task).load(LoadSettings(path=path, **settings)))


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pyarrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(
            pyarrow.Table.from_pylist(rows), path
        )
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(
                {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()}
                for row in rows
            )
    else:
        write_rows(path, *rows)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("task", LAYOUTS)
def test_a_folder_laid_out_like_the_hubs(tmp_path: Path, task: str, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow comes with the data extra")
    stem, rows = LAYOUTS[task]
    write(tmp_path / f"{stem}.{suffix}", rows)
    for other in ("train", "ARC-Easy/test-00000-of-00001"):
        write(tmp_path / f"{other}.{suffix}", rows[:1]) if task == "arc_challenge" else None
    found = load(task, tmp_path)
    assert [q.gold for q in found] == GOLD[task]
    assert {q.dataset for q in found} == {task}
    assert load(task, tmp_path, limit=1) == found[:1]
    assert all(q.text == q.text.strip() for q in found)


def test_the_letters_follow_the_order_of_the_options(tmp_path: Path) -> None:
    path = write(tmp_path / "arc.jsonl", ARC)
    found = load("arc_challenge", path)
    assert [len(q.options or ()) for q in found] == [4, 4, 3, 5]
    assert [q.id for q in found] == [row["id"] for row in ARC]
    assert "A. 4\nB. 6\nC. 2\nD. 1" in ARC_CHALLENGE.cot_prompt(found[1])
    labels = list(dict.fromkeys(answer for answer, _ in ARC_CHALLENGE.labels(found[3], None)))
    assert labels == LETTERS
    assert ARC_CHALLENGE.parse("So it must be E.", found[3]) == "E"
    assert ARC_CHALLENGE.parse("So it must be E.", found[2]) is None


def test_exams_as_they_were_first_published(tmp_path: Path) -> None:
    choices = [{"text": t, "label": x} for t, x in zip(("fire", "ice"), "AB", strict=True)]
    row = {"id": "1", "question": {"stem": "Hot?", "choices": choices}, "answerKey": "A"}
    (question,) = load("arc_challenge", write(tmp_path / "test.jsonl", [row]))
    assert (question.text, question.options, question.gold) == ("Hot?", ("fire", "ice"), "A")


@pytest.mark.parametrize(
    ("label", "topic"),
    [(0, "World"), ("3", "Sci/Tech"), (1.0, "Sports"), ("business", "Business")]
    + [(name, "Sci/Tech") for name in ("Sci/Tech", "SCI/TECH", "Sci-Tech")],
)
def test_topics_by_index_and_by_name(tmp_path: Path, label: Any, topic: str) -> None:
    path = write(tmp_path / "a.jsonl", [{"text": "t", "label": label}])
    assert load("ag_news", path)[0].gold == topic


def test_a_split_without_labels_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", [{"sentence": "s", "label": -1}])
    with pytest.raises(UserError, match=r"label -1 .*the test split of SST-2 has no labels"):
        load("sst2", path)
    path = write(tmp_path / "c.jsonl", [CSQA[0] | {"answerKey": ""}])
    with pytest.raises(UserError, match=r"c\.jsonl, line 1: 'answerKey' is empty"):
        load("commonsense_qa", path)


def test_words_for_a_split_as_the_hub_knows_them(tmp_path: Path) -> None:
    write(tmp_path / "dev_rand_split.jsonl", CSQA)
    assert load("commonsense_qa", tmp_path)[0].gold == "A"
    write(tmp_path / "validation.csv", CSQA)
    assert [q.gold for q in load("commonsense_qa", tmp_path)] == ["A"], "the exact name first"
    write(tmp_path / "validation.jsonl", CSQA)
    with pytest.raises(UserError, match="several times"):
        load("commonsense_qa", tmp_path)


def test_a_missing_shard_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "test-00000-of-00002.jsonl", AG_NEWS[:2])
    with pytest.raises(UserError, match="has 1 of 2 files of split 'test'"):
        load("ag_news", tmp_path)
    write(tmp_path / "test-00001-of-00002.jsonl", AG_NEWS[2:])
    assert [q.gold for q in load("ag_news", tmp_path)] == GOLD["ag_news"]


@pytest.mark.parametrize("task", ["sst2", "gsm8k", "ag_news", "medqa", "arc_challenge"])
def test_the_hub_out_of_reach_names_the_set_and_the_remedy(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the datasets package, or with it and without a network (or such a split)."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError) as caught:
        list(get_task(task).load(LoadSettings(split="no-such-split")))
    message = str(caught.value)
    assert f"--set data.path.{task}=FILE_OR_FOLDER" in message
    assert "/" in message.split("hub")[0]
    assert "\n" not in message


@pytest.mark.parametrize("task", LAYOUTS)
def test_the_hubs_loader_gives_the_same_questions(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`datasets` reads a folder by the same rules as a repository of the hub."""
    datasets = pytest.importorskip("datasets", reason="datasets comes with the data extra")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    stem, rows = LAYOUTS[task]
    folder = tmp_path / "repository"
    write(folder / f"{Path(stem).name}.jsonl", rows)
    data = HubData(task, str(folder), "validation" if "validation" in stem else "test")
    ours = read_rows(folder, data.split)
    theirs = data.rows(LoadSettings())
    assert [row.values for row in theirs] == [row.values for row in ours]
    assert [row.id for row in theirs] == [f"{data.split}-{i}" for i in range(len(rows))]
    assert data.rows(LoadSettings(limit=1)) == theirs[:1]


def test_the_old_error_of_the_ag_news_parser_is_gone() -> None:
    """Extended Data 2: keywords were tried in the order of the topics, "world" first."""
    verbose = (
        "Step 1: The article is on a company known all over the world.\n"
        "Step 2: World markets and the World Bank are mentioned in passing.\n"
        "Step 3: No sports here; a technology company reports its earnings.\n"
        "Step 4: Earnings are what the article is about.\n"
        "Therefore the category is **Business**."
    )
    task = get_task("ag_news")
    question = Question("q", "ag_news", "t", "label", "Business", task.options)

    def old(text: str) -> str | None:
        return next((x for x in task.options or () if x.lower() in text.lower()), None)

    assert old(verbose) == "World"
    assert task.parse(verbose, question) == "Business"
    fallback = "It is on Sports.\n" + "\n".join(["It is what it is."] * 4)
    assert task.parse(fallback, question) == "Sports", "else the last occurrence"
    for said in ("Science/Technology", "Sci-Tech", "sci/tech"):
        assert task.parse(f"World news?\nCategory: {said}", question) == "Sci/Tech"


@pytest.mark.skipif(not (SHARED / "medqa").is_dir(), reason="the real MedQA rows are not here")
def test_real_medqa_rows() -> None:
    found = load("medqa", SHARED / "medqa")
    assert len(found) == len({q.id for q in found}) == 400
    assert all(len(q.options or ()) == 4 for q in found)
    assert (found[0].gold, found[1].gold) == ("B", "D")
    assert found[0].options
    assert found[0].options[1] == "Tell the attending that he cannot fail to disclose this mistake"
    assert min(Counter(q.gold for q in found).values()) > 60
    with (SHARED / "medqa" / "us_4_options_test.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for q, row in zip(found, rows, strict=True):
        assert (q.options or ())["ABCD".index(q.gold or "")] == row["answer"].strip()
