"""The cells of a row know which columns were asked for, whoever reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_files import write_rows

from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.tasks import LoadSettings, get_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.rows import Cells, FileRead, files_read, has
from faithscope.experiments.engine.tallies.input_report import unused_columns


def test_a_column_counts_once_its_value_is_asked_for(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", {"a": 1, "b": 2, "c": None}, {"a": 1, "d": 3, "e": ""})
    with files_read() as files:
        first, second = read_rows(path, "test")
    assert "b" in first.values
    assert list(second.values) == ["a", "d", "e"]
    assert has(first, "a")
    assert not has(first, "nowhere")
    assert files[0].unused == ("b",)
    assert (first.cells | {"x": 1})["b"] == 2
    assert files[0].unused == ()
    assert second.cells.without("d").get("a") == 1
    assert files[0].unused == ("d",)
    assert second.cells.without("a").get("d") == 3
    assert files[0].unused == ()
    assert files[0].rows == 2


def test_what_is_handed_out_whole_is_used() -> None:
    cells = Cells({"a": 1, "b": 2}, file := FileRead("a.jsonl"))
    assert dict(cells.items()) == {"a": 1, "b": 2}
    assert file.asked == {"a", "b"}


def test_columns_of_rows_that_a_limit_leaves_out_are_not_missed(tmp_path: Path) -> None:
    rows = [{"question": f"{i} + 4?", "answer": i + 4, "note": "x"} for i in range(3)]
    path = write_rows(tmp_path / "a.jsonl", *rows, {"question": "1?", "gold": 1, "source": "y"})
    for limit, unused in ((2, ("note",)), (None, ("note", "source"))):
        with files_read() as files:
            list(get_task("own").load(LoadSettings(path=path, limit=limit)))
        assert files[0].unused == unused
        assert files[0].rows == 4


def test_readings_inside_each_other_both_see_a_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", {"a": 1})
    with files_read() as outer:
        with files_read() as inner:
            read_rows(path, "test")
        read_rows(path, "test")
    assert (len(inner), len(outer)) == (1, 2)


ROW = {"question": "What is 3 + 4?", "reasoning": "3 and 4 make 7 in all. So it is 7 indeed."}
ADD = {"problem": "What is 3 + 4?", "steps": ["We add the two.", "They make 7."]}


@pytest.mark.parametrize(
    ("row", "unused"),
    [
        (ROW | {"gold": "7", "note": "x"}, ("note",)),
        (ROW | {"label_ok": True, "labels": {"a": 1}, "labelled_by": "me"}, ("labelled_by",)),
        (ROW | {"kind": "number", "answer": "7", "Answer": "8"}, ("Answer",)),
        (ADD | {"ratings": [1, 1], "row": 4, "time": 3}, ("time",)),
        (
            ADD | {"label": -1, "final_answer_correct": True, "id": "math-1", "source": "x"},
            ("source",),
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "What is 3 + 4?"},
                    {"role": "assistant", "content": "It is 7."},
                ],
                "usage": {"n": 3},
            },
            ("usage",),
        ),
    ],
)
def test_every_layout_of_chains_says_what_it_did_not_use(
    row: dict[str, object], unused: tuple[str, ...], tmp_path: Path
) -> None:
    with files_read() as files:
        read_chains(write_rows(tmp_path / "c.jsonl", row))
    assert tuple(unused_columns(files).values()) == (unused,)


def test_questions_say_what_they_did_not_use(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "q.jsonl", {"question": "2 + 2?", "answer": 4, "topic": "sums"})
    with files_read() as files:
        list(get_task("own").load(LoadSettings(path=path)))
    assert unused_columns(files) == {str(path): ("topic",)}
