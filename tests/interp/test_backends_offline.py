"""vLLM in this process where it goes wrong; what the real one writes: test_backends_vllm.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from planted_vllm import Vllm, planted
from tiny_models import saved, tiny

from faithscope import interp
from faithscope.interp.backends import BackendError, BackendLost
from faithscope.interp.backends.here import Here
from faithscope.interp.backends.offline import load_offline
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling

PROMPTS = [[i, 7, 8, 9 + i] for i in range(10, 15)]
GREEDY = Sampling((), max_new_tokens=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tiny("llama", vocab_size=260), tmp_path_factory.mktemp("tiny"))


def test_a_prompt_that_is_not_taken_costs_no_other(folder: str):
    expected = Here(interp.load(folder)).generate(PROMPTS, GREEDY)
    with planted(Vllm(refuses=lambda ids: ids[0] == 12)):
        backend = load_offline("org/m", folder)
        ended: dict[int, Generation | BackendError] = {}
        backend.each(PROMPTS, GREEDY, ended.__setitem__)
        with pytest.raises(BackendError, match="prompt 2"):
            backend.generate(PROMPTS, GREEDY)
        # what that left behind does not answer to the next call
        assert backend.generate(PROMPTS[:2], GREEDY) == expected[:2]
    refused = ended.pop(2)
    assert isinstance(refused, BackendError)
    assert "prompt 2: vLLM 0.0.test does not take it (ValueError: Token id 999" in str(refused)
    assert ended == {i: made for i, made in enumerate(expected) if i != 2}


def test_each_prompt_has_its_own_limit(folder: str):
    sampling = Sampling((), 6, limits=(1, 6, 2, 3, 4))
    expected = Here(interp.load(folder)).generate(PROMPTS, sampling)
    with planted(Vllm()):
        assert load_offline("org/m", folder).generate(PROMPTS, sampling) == expected


@pytest.mark.parametrize(
    "error", [None, torch.OutOfMemoryError("CUDA out of memory"), KeyError("block")]
)
def test_an_engine_that_dies_says_what_to_do_and_keeps_what_was_written(
    folder: str, error: Exception | None
):
    fault = Vllm(dies_after=2) if error is None else Vllm(dies_after=2, error=error)
    expected = Here(interp.load(folder)).generate(PROMPTS, GREEDY)
    done: dict[int, Generation] = {}
    with planted(fault):
        backend = load_offline("org/m", folder)
        with pytest.raises(
            UserError, match=r"'org/m': the engine of vLLM 0.0.test ended \("
        ) as told:
            backend.generate(PROMPTS, GREEDY, done.__setitem__)
        assert "\n" not in str(told.value)
        assert "run again" in str(told.value)
        assert "gpu_memory_utilization" in str(told.value)
        if not isinstance(error, KeyError):
            # nor does it take more
            with pytest.raises(UserError, match="run again"):
                backend.generate(PROMPTS, GREEDY)
    assert done == dict(enumerate(expected[:2]))


def test_closed_it_has_given_its_engine_back(folder: str):
    with planted(Vllm()) as vllm:
        backend = load_offline("org/m", folder)
        backend.close()
        assert vllm.open == 0
        assert backend.llm is None
        backend.close()
        with pytest.raises(UserError, match="its vLLM engine is closed; load it again"):
            backend.generate(PROMPTS, GREEDY)
        load_offline("org/m", folder).close()


def test_a_model_that_vllm_cannot_load_is_named(folder: str, tmp_path: Path):
    with (
        planted(Vllm()),
        pytest.raises(UserError, match=r"model 'org/m' cannot be loaded by vLLM: \w+: "),
    ):
        load_offline("org/m", str(tmp_path / "nothing"))


def test_it_sleeps_whenever_nothing_is_written(folder: str):
    expected = Here(interp.load(folder)).generate(PROMPTS, GREEDY)
    with planted(Vllm()) as vllm:
        backend = load_offline("org/m", folder, sleeps=True)
        assert vllm.options[0]["enable_sleep_mode"] is True
        assert vllm.slept == ["sleep"]
        assert backend.generate(PROMPTS, GREEDY) == expected
        assert backend.generate(PROMPTS[:2], GREEDY) == expected[:2]
        assert vllm.slept == ["sleep", "wake", "sleep", "wake", "sleep"]
        assert backend.describe()["sleeps"] == "between calls"

        def full(i: int, text: Generation) -> None:
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            backend.generate(PROMPTS, GREEDY, full)
        assert vllm.slept[-1] == "sleep"
        vllm.wakes = False
        with pytest.raises(BackendLost, match="CUDA out of memory"):
            backend.generate(PROMPTS, GREEDY)
    with planted(Vllm()) as vllm:
        load_offline("org/m", folder).generate(PROMPTS, GREEDY)
        assert vllm.slept == []
        assert "enable_sleep_mode" not in vllm.options[0]
