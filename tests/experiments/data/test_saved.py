"""A benchmark on disk is what was written, or the file that is not is named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from faithscope.experiments.data.saved import (
    MANIFEST,
    SavedBenchmark,
    differing,
    json_lines,
    rows_of,
)
from faithscope.interp.errors import UserError


@dataclass(frozen=True)
class Word:
    text: str
    parts: tuple[str, ...]


WORDS = (Word("σ-field", ("σ", "field")), Word("line\u2028break", ()))


def test_a_benchmark_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    saved = SavedBenchmark({"words.jsonl": json_lines(WORDS)}, {"seed": 1}, {"words": 2})
    saved.save(tmp_path)
    assert SavedBenchmark.load(tmp_path) == saved
    assert rows_of(Word, saved.files["words.jsonl"], tmp_path) == WORDS
    with pytest.raises(UserError, match="line 1: has the fields text, expected parts, text"):
        rows_of(Word, '{"text": "a"}\n', tmp_path)


def test_a_file_that_is_not_what_was_written_is_named(tmp_path: Path) -> None:
    SavedBenchmark({"words.jsonl": json_lines(WORDS)}, {}).save(tmp_path)
    file, manifest = tmp_path / "words.jsonl", tmp_path / MANIFEST
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.index(b"\n") + 1])
    with pytest.raises(UserError, match=r"words\.jsonl: is not what was written: 1 rows.* 2 rows"):
        SavedBenchmark.load(tmp_path)
    file.unlink()
    with pytest.raises(UserError, match=r"words\.jsonl: cannot be read .*manifest\.json names it"):
        SavedBenchmark.load(tmp_path)
    manifest.write_text(json.dumps({"format": 9}))
    with pytest.raises(UserError, match="has format 9, this version reads 1"):
        SavedBenchmark.load(tmp_path)
    manifest.write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        SavedBenchmark.load(tmp_path)
    with pytest.raises(UserError, match="give the folder of a saved benchmark"):
        SavedBenchmark.load(tmp_path / "none")


def test_what_two_benchmarks_are_made_of_is_compared_value_by_value() -> None:
    before, now = {"seed": 1, "of": {"n": 2, "same": 0}}, {"seed": 1, "of": {"n": 3, "same": 0}}
    assert differing(before, before) == []
    assert differing(before, now | {"new": "x"}) == [
        "of.n was 2 and is 3",
        "new was None and is 'x'",
    ]
