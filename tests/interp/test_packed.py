"""Steps of decoding over packed weights write what plain steps write, and follow every change of a
weight; nothing else sees them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from faithscope.interp import packed
from faithscope.interp.edits import Steer
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interp.packed import Packed

PROMPTS = [tuple(range(40, 70)), tuple(range(30, 50)), tuple(range(5, 40)), (7, 8, 9)]
FREE = frozenset[int]()


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tiny models are packed, too; the rows of every call of a packed layer are noted."""
    monkeypatch.setattr(packed, "LEAST", 0)
    monkeypatch.setattr(packed, "_gain", lambda *_: 2.0)
    rows: list[int] = []
    linear = packed._linear

    def noted(input: torch.Tensor, weight: torch.Tensor, bias: Any) -> torch.Tensor:
        rows.append(input.shape[-2])
        return linear(input, weight, bias)

    monkeypatch.setattr(packed, "_linear", noted)
    return rows


def layers(model: Model) -> list[nn.Linear]:
    return [m for m in model.hf.modules() if isinstance(m, nn.Linear)]


@pytest.mark.in_time(4)
def test_packed_steps_write_what_plain_steps_write(tree_model: Model, monkeypatch, calls):
    monkeypatch.setattr(tree_model, "packed", None)
    plain = tree_model.generate(PROMPTS, 12, end_ids=FREE)
    monkeypatch.setattr(tree_model, "packed", Packed(tree_model.hf))
    found = tree_model.generate(PROMPTS, 12, end_ids=FREE)
    assert found == plain
    for a, b in zip(found, plain, strict=True):
        assert a.gaps == pytest.approx(b.gaps, abs=1e-3)
    if any(type(layer) is nn.Linear for layer in layers(tree_model)):
        assert calls
        assert tree_model.packed is not None
        assert tree_model.packed.reason is None
    assert not any("forward" in vars(layer) for layer in layers(tree_model))


def test_steps_alone_are_packed_and_only_of_several_rows(llama: Model, monkeypatch, calls):
    monkeypatch.setattr(llama, "packed", Packed(llama.hf))
    llama.run([Branch(PROMPTS[0])])
    llama.generate(PROMPTS[:1], 5)
    assert not calls
    llama.generate(PROMPTS[:2], [3, 9], end_ids=FREE)
    assert set(calls) == {2}
    assert len(calls) == 2 * len(layers(llama))


@pytest.mark.parametrize("way", ["in place", "unseen", "one number", "another"])
def test_a_weight_that_has_changed_is_packed_anew(way: str, llama: Model, monkeypatch, calls):
    monkeypatch.setattr(llama, "packed", Packed(llama.hf))
    before = llama.generate(PROMPTS, 8, end_ids=FREE)
    layer = layers(llama)[3]
    weight = layer.weight
    kept = weight.detach().clone()
    changed = kept.clone()
    changed[5 if way == "one number" else slice(None), 0] += 40
    try:
        if way == "in place":
            with torch.no_grad():
                weight.copy_(changed)
        elif way == "another":
            layer.weight = nn.Parameter(changed, requires_grad=False)
        else:
            weight.data.copy_(changed)
        after = llama.generate(PROMPTS, 8, end_ids=FREE)
        assert calls
        monkeypatch.setattr(llama, "packed", None)
        assert [x.ids for x in after] == [x.ids for x in llama.generate(PROMPTS, 8, end_ids=FREE)]
        assert after != before
    finally:
        layer.weight = weight
        weight.data.copy_(kept)


def test_edits_hold_and_a_failed_step_leaves_nothing_behind(llama: Model, monkeypatch, calls):
    steer = Steer("mlp", 1, torch.ones(64), 4.0)
    edits = [[steer], [], [steer], []]
    plain = llama.generate(PROMPTS, 8, edits=edits, end_ids=FREE)
    monkeypatch.setattr(llama, "packed", Packed(llama.hf))
    assert llama.generate(PROMPTS, 8, edits=edits, end_ids=FREE) == plain
    assert calls

    def fails(*_: Any) -> bool:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        llama.generate(PROMPTS, 8, stop=fails)
    assert llama.packed is not None
    with pytest.raises(RuntimeError), llama.packed.used(2):
        llama.hf(torch.zeros(1, 2, dtype=torch.bfloat16))
    assert not any("forward" in vars(layer) for layer in layers(llama))


def test_what_is_not_packed_says_why(llama: Model, monkeypatch):
    def reason() -> str:
        one = Packed(llama.hf)
        one.refresh()
        with one.used(8):
            assert not any("forward" in vars(layer) for layer in layers(llama))
        assert one.reason is not None
        return one.reason

    monkeypatch.setattr(packed, "_gain", lambda *_: 1.02)
    assert "1.02 times as fast" in reason()
    monkeypatch.setattr(packed, "memory_limit", lambda: 1 << 10)
    assert "more than one in 8" in reason()
    monkeypatch.setattr(packed, "LEAST", 1 << 40)
    assert "small" in reason()
    monkeypatch.setattr(packed, "LEAST", 0)
    monkeypatch.setattr(packed, "memory_limit", lambda: 1 << 40)
    monkeypatch.setattr(packed, "_packed", lambda _: torch.ops.mkldnn._no_such_call())
    assert "this build of PyTorch cannot" in reason()


def test_layers_that_are_exchanged_are_tried_anew(llama: Model, monkeypatch, calls):
    monkeypatch.setattr(llama, "packed", Packed(llama.hf))
    llama.generate(PROMPTS, 3)
    n = len(calls)
    block: Any = llama.structure.layers[0].mlp
    own = block.up_proj
    try:
        block.up_proj = nn.Linear(own.in_features, own.out_features, bias=True)
        found = llama.generate(PROMPTS, 3, end_ids=FREE)
        assert len(calls) > n
        monkeypatch.setattr(llama, "packed", None)
        assert found == llama.generate(PROMPTS, 3, end_ids=FREE)
    finally:
        block.up_proj = own


def test_the_trial_compares_numbers_and_times(llama: Model, monkeypatch):
    monkeypatch.undo()
    of_model = layers(llama)
    weights = [packed._packed(layer.weight) for layer in of_model]
    assert packed._gain(of_model, weights) > 0
    weights[2] = packed._packed(of_model[2].weight * 1.01)
    with pytest.raises(RuntimeError, match="other numbers"):
        packed._gain(of_model, weights)
    tiny = Packed(llama.hf)
    tiny.refresh()
    assert tiny.reason is not None
    assert "small" in tiny.reason


def test_memory_is_bounded_by_the_group_as_well(tmp_path: Path, monkeypatch):
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < packed.memory_limit() <= whole
    (tmp_path / "job" / "step").mkdir(parents=True)
    (tmp_path / "groups").write_text("4:memory:/none\n0::/job/step\n")
    monkeypatch.setattr(packed, "GROUPS", (tmp_path / "groups", tmp_path))
    assert packed.memory_limit() == whole
    (tmp_path / "job" / "step" / "memory.max").write_text("max\n")
    (tmp_path / "job" / "memory.max").write_text("5000\n")
    assert packed.memory_limit() == 5000
