"""The benchmark of generation backends: its arguments, and equal texts of all methods."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import generation_backends as bench
import pytest
from tiny_models import saved, tiny

from faithscope import interp, questions
from faithscope.interp.backends.here import Here
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Sampling


def test_all_ways_write_the_same_tokens() -> None:
    model = tiny("llama")
    rounds = [[(5, 6, 7, 8, 9), (5, 6, 7), (40, 41, 42, 43)], [(9, 8), (50, 51), (1, 2, 3, 4)]]
    ways = {
        "one_by_one": bench.one_by_one(model),
        "padded": bench.padded(model),
        "here": bench.backend(Here(model)),
    }
    table = bench.measure(ways, rounds, Sampling((), 6, repetition_penalty=1.2))
    assert list(table["way"]) == list(ways)
    assert (table["same_tokens"] == 1).all()
    assert (table["ratio_least"] <= table["ratio_to_one_by_one"]).all()
    assert (table["ratio_to_one_by_one"] <= table["ratio_greatest"]).all()
    assert table["ratio_to_one_by_one"][0] == 1
    told = table[["prompts", "prompt_tokens", "new_tokens", "repeats"]]
    assert (told == [3, 10, 6, 2]).all(axis=None)


def test_every_repeat_has_questions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama")
    rounds = bench.asked(model, "sequential_math", 2, 3)
    assert [len(prompts) for prompts in rounds] == [4, 4, 4]
    assert len({prompt for prompts in rounds for prompt in prompts}) == 12
    words = model.encode(bench.R_PRIME)
    for prompts in rounds:
        for bare, forced in zip(prompts[::2], prompts[1::2], strict=True):
            assert forced == (*bare, *words)
    few = questions("sequential_math", 5)
    monkeypatch.setattr(bench, "questions", lambda task, n: few)
    with pytest.raises(UserError, match="has 5 questions, 2 for each of 3 repeats are 6; lower"):
        bench.asked(model, "sequential_math", 2, 3)


def test_a_server_that_ends_at_its_start_is_noticed_at_once(tmp_path: Path) -> None:
    # this interpreter lacks vLLM
    model = interp.load(saved(tiny("llama"), tmp_path))
    began = time.monotonic()
    with (
        pytest.raises(UserError, match=r"(?s)server ended with code 1.*No module named 'vllm'"),
        bench.serving(Path(sys.executable), model, 64),
    ):
        pass
    assert time.monotonic() - began < 60
