"""`load(device_map=…)`: where accelerate puts weights, and what is said where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulated_devices
import pytest
import torch
from broken_models import saved
from emulated_devices import memories
from tiny_models import tiny

from faithscope import interp
from faithscope.interp.backends.here import Here
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.placement import is_offloaded
from faithscope.interp.size import size_of

LARGE = 2**30


@pytest.fixture(scope="module", autouse=True)
def devices() -> None:
    emulated_devices.require()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tiny("llama")
    return saved(tmp_path_factory.mktemp("llama"), model.hf, model.tokenizer)


@pytest.fixture(scope="module")
def weights(folder: Path) -> int:
    """Bytes of all tensors in memory."""
    hf = interp.load(str(folder)).hf
    return sum(x.nbytes for x in [*hf.parameters(), *hf.buffers()])


def places(model: interp.Model) -> set[Any]:
    return set(getattr(model.hf, "hf_device_map", {}).values())


def logits(model: interp.Model) -> torch.Tensor:
    branches = [Branch((5, 6, 7, 8, 9)), Branch((5, 6, 7, 1))]
    return torch.cat([r.logits for r in model.run(branches).branches]).cpu()


@pytest.mark.in_time(1)
def test_auto_spreads_over_two_devices(folder: Path):
    plain = interp.load(str(folder))
    with memories(LARGE, LARGE):
        model = interp.load(str(folder), device_map="auto")
        assert places(model) == {0, 1}
        assert model.device == torch.device("emulated:0")
        assert not is_offloaded(model.hf)
        assert Here(model).describe()["devices"] == "2"
        assert size_of(model.hf) == size_of(plain.hf)
        torch.testing.assert_close(logits(model), logits(plain), atol=1e-4, rtol=0)


@pytest.mark.parametrize("sizes", [(LARGE,), ()])
def test_auto_on_one_device_and_on_none(folder: Path, sizes: tuple[int, ...]):
    with memories(*sizes):
        model = interp.load(str(folder), device_map="auto")
        assert model.device == torch.device("emulated:0" if sizes else "cpu")
        assert {p.device for p in model.hf.parameters()} == {model.device}
        assert Here(model).describe().get("devices") == ("1" if sizes else None)
        whole = logits(interp.load(str(folder)))
        torch.testing.assert_close(logits(model), whole, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("cpu", "kept"), [(LARGE, "cpu"), (1, "disk")])
def test_auto_keeps_what_does_not_fit_elsewhere(folder: Path, weights: int, cpu: int, kept: str):
    plain = interp.load(str(folder))
    with memories(int(weights * 0.6), cpu=cpu):
        model = interp.load(str(folder), device_map="auto")
        assert places(model) == {0, kept}
        assert is_offloaded(model.hf)
        assert Here(model).describe()["devices"] == "1"
        assert size_of(model.hf) == size_of(plain.hf)
        emulated_devices.set_room(0, LARGE)
        torch.testing.assert_close(logits(model), logits(plain), atol=1e-4, rtol=0)
        with pytest.raises(UserError, match="offloaded to CPU or disk"):
            model.to_nnsight()


def test_weights_that_would_have_to_be_written_to_disk_say_what_to_do(tmp_path: Path):
    model = tiny("qwen3_moe")
    saved(tmp_path, model.hf, model.tokenizer)
    with memories(100_000, cpu=1), pytest.raises(UserError) as caught:
        interp.load(str(tmp_path), device_map="auto")
    assert "does not fit into the memory of the devices and of the CPU" in str(caught.value)
    assert "quantize" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("device_map", [None, "emulated:0", {"": "emulated:0"}])
def test_a_device_without_room_says_what_to_do(folder: Path, device_map: Any):
    device = "emulated:0" if device_map is None else "auto"
    with memories(100_000), pytest.raises(UserError) as caught:
        interp.load(str(folder), device=device, device_map=device_map)
    assert "does not fit into memory (emulated:0 is out of memory" in str(caught.value)
    assert "device_map: auto" in str(caught.value)


def test_a_device_that_fills_up_at_the_first_forward_says_so(folder: Path, weights: int):
    with memories(weights + 64), pytest.raises(UserError) as caught:
        interp.load(str(folder), device="emulated:0", dtype="float32")
    assert "does not fit into memory" in str(caught.value)
    assert "wrap" in [entry.name for entry in caught.traceback]


@pytest.mark.parametrize("device_map", ["atuo", "cuda:7"])
def test_a_device_map_that_is_none_is_refused(folder: Path, device_map: str):
    with pytest.raises(UserError, match=f"device '{device_map}' is not usable here.*try 'auto'"):
        interp.load(str(folder), device_map=device_map)


def test_a_split_that_cannot_run_is_an_error_of_the_user(tmp_path: Path):
    # accelerate keeps one copy of a tied weight, and runs the head where it is not
    small = tiny("llama", tie_word_embeddings=True)
    saved(tmp_path, small.hf, small.tokenizer)
    split = {"model.embed_tokens": 0, "model.layers": 1, "model.norm": 1, "model.rotary_emb": 1}
    with pytest.raises(UserError) as caught:
        interp.load(str(tmp_path), device_map=split | {"lm_head": 1})
    assert "cannot be run: RuntimeError: Expected all tensors to be on the same" in str(
        caught.value
    )
    assert "load it on one device (device_map: null)" in str(caught.value)
