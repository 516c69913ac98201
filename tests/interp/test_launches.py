"""Bounds on what a GPU pays for, counted on an emulated device: launches and waits."""

from __future__ import annotations

from typing import Any

import emulated_devices
import forest
import launches
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from faithscope.interp import attention, decoding, execute, prefill
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    emulated_devices.require()
    return launches.narrow("emulated:0", layers=6)


@pytest.fixture(scope="module")
def probes() -> dict[str, list[list[int]]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, tokens in {"QUESTION": 9, "STEP": 3, "SUFFIX": 2}.items():
            patch.setattr(forest, name, tokens)
        return forest.probe_set(8, 256)


def test_a_pack_costs_little_more_than_one_plain_forward(model: Model, probes):
    plain = launches.launches_of(model.device, lambda: launches.plain_forward(model, range(40)))
    assert plain.attention_calls == model.n_layers
    for name, sequences in probes.items():
        branches = [Branch(tuple(s)) for s in sequences]
        pack = launches.launches_of(model.device, lambda b=branches: model.run(b))
        assert pack.attention_calls == model.n_layers, name
        # each branch's readings are one operation more, however many layers there are
        assert pack.ops - len(branches) <= 1.3 * plain.ops, name


def test_nothing_in_the_forward_of_a_pack_waits(model: Model, probes):
    cut = Knockout(queries=(12, None), keys=(2, 9), heads=(0, 2))
    sequences = [*probes["full"], probes["full"][8]]
    edits = [()] * len(probes["full"]) + [(cut,)]
    trie = Forest.of(sequences, edits)
    asked = [int(path[-1]) for path in trie.paths]
    counted = launches.launches_of(
        model.device,
        lambda: execute.prefill(model, trie, asked, lambda *_: None, chunk=model.chunk),
    )
    assert counted.ops
    assert not counted.syncs


def test_a_step_of_decoding_costs_little_more_than_one_of_a_padded_batch(model: Model, probes):
    prompts = probes["necessity"][:4]
    plain = launches.step_of(model.device, lambda n: launches.plain_decoding(model, prompts, n))
    for stop in (None, lambda text: False):
        step = launches.step_of(
            model.device,
            lambda n, stop=stop: model.generate(prompts, n, end_ids=frozenset({-1}), stop=stop),
        )
        assert step.ops <= 1.15 * plain.ops
        assert step.syncs <= 1
        assert step.attention_calls == plain.attention_calls == model.n_layers
    sampled = launches.step_of(
        model.device,
        lambda n: model.generate(prompts, n, end_ids=frozenset({-1}), temperature=1.0),
    )
    assert sampled.syncs <= 1


class Shapes(TorchDispatchMode):
    """Notes every operation on a device, with the shapes of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [x for x in tree_leaves([args, kwargs]) if isinstance(x, torch.Tensor)]
        if any(x.device.type != "cpu" for x in tensors):
            self.calls.append((str(func), *(tuple(x.shape) for x in tensors)))
        return func(*args, **(kwargs or {}))


def test_steps_of_a_block_of_columns_have_the_same_shapes(model: Model, probes):
    cache, paths, first = execute.prefill_prompts(model, probes["necessity"][:3])
    state = decoding.Decode(cache, paths, 16, model.structure.reaches, spend=True)
    steps = []
    with torch.inference_mode():
        tokens = first.argmax(-1)
        for _ in range(4):
            with Shapes() as noted:
                state.advance()
                logits = execute.forward(model, state, tokens, state.positions)
                tokens = logits.argmax(-1)
            steps.append(noted.calls)
    assert steps[1] == steps[2] == steps[3]


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
def test_masks_of_a_long_text_are_bounded(
    model: Model, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefill, "_BLOCK_ELSEWHERE", 32)
    monkeypatch.setattr(prefill, "_ENTRIES_EAGER", 16 * 200)
    monkeypatch.setattr(model.hf.config, "_attn_implementation", attention.register(kernel))
    most = {"sdpa": 32, "eager": 16}[kernel]
    monkeypatch.setattr(model, "chunk", 100)
    with Shapes() as noted:
        model.run([Branch(tuple(range(200)))])
    masks = {s for _, *shapes in noted.calls for s in shapes if s[-1:] == (200,) and len(s) == 4}
    assert masks
    assert max(s[-2] for s in masks) <= most
