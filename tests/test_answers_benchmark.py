"""The benchmark of the readers of answers counts right, wrong and missing reads, and finds none but
right ones where a solution marks its answer."""

from __future__ import annotations

from pathlib import Path

import answers as bench
import pytest
from answer_texts import Text, sources

DATA = Path(__file__).resolve().parents[2] / "shared/data"


def test_right_other_and_missing_reads_are_told_apart() -> None:
    texts = [
        Text("0", "number", "So the answer is 12.50.", "25/2"),
        Text("1", "number", "The answer is 7.", "8"),
        Text("2", "choice", "It is B or C.", "B", ("x", "y", "z")),
        Text("3", "label", "The answer is yes.", None, ("yes", "no")),
    ]
    source = bench.counted(texts, "here", peer_texts=2)
    ours = source.ours
    assert (ours.rows, ours.agreed, ours.wrong, ours.none) == (3, 1, 1, 1)
    assert (ours.unstated, ours.made_up) == (1, 1)
    assert [t.key for t in source.failed] == ["1", "2"]
    assert ours.examples == [{"key": "1", "read": "7", "states": "8"}]
    assert (source.theirs.rows, source.theirs.agreed) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["GSM8K, `####` kept", "PRM800K, heading kept"])
def test_marked_answers_of_real_solutions_are_read_as_they_stand(name: str) -> None:
    if not DATA.is_dir():
        pytest.skip("the real rows are not beside this checkout")
    texts = dict(sources(DATA, DATA))[name]()
    by_eye = bench.judged(bench.HERE / "answers_judged.json")
    ours = bench.counted(list(bench.labelled(name, texts, by_eye)), texts.at, 0).ours
    assert ours.rows > 150
    assert (ours.wrong, ours.made_up) == (0, 0)
