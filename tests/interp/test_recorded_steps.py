"""Recorded steps of decoding, replayed on an emulated device: operations are noted as a CUDA graph
notes them, and run again on the same tensors."""

from __future__ import annotations

from typing import Any

import emulated_devices
import pytest
import torch
from tiny_configs import byte_tokenizer
from tiny_models import random_weights
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from faithscope.interp import decoding, graphs, verify
from faithscope.interp.edits import Edit, Knockout, Steer
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interp.reference import Tree

TRUNK = tuple(range(40, 70))
PROMPTS = [(*TRUNK[: 5 + 7 * i % 23], *range(i, 2 * i + 1)) for i in range(7)]
LIMITS = [19, 23, 30, 9, 24, 14, 30]


class Recording(TorchDispatchMode):
    """Notes operations, and refuses what a graph of a GPU would not repeat: a read by the host, or
    what comes from the host's memory."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self.calls: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        tensors = [x for x in tree_leaves([args, kwargs, out]) if isinstance(x, torch.Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device != torch.device("cpu")}
        if self._device.type in places and "cpu" in places:
            raise RuntimeError(f"{func} joins the host and the device")
        if func._schema.name == "aten::_local_scalar_dense":
            raise RuntimeError("the host waits")
        if self._device.type in places:
            self.calls.append((func, args, kwargs, out))
        return out

    def replay(self) -> None:
        for func, args, kwargs, out in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(out), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps are recorded and replayed here; the number of operations of every replay."""
    emulated_devices.require()
    monkeypatch.setattr(decoding, "BLOCK", 8)
    done: list[int] = []

    def recorded(self: Any, tokens: torch.Tensor) -> bool:
        self._tokens = tokens.to(self._model.device, copy=True)
        noted = Recording(self._model.device)
        with noted:
            self._logits = self._forward(self._tokens)
        self._state.forget()

        class Graph:
            def replay(self) -> None:
                done.append(len(noted.calls))
                noted.replay()

        self._graph = Graph()
        return True

    monkeypatch.setattr(graphs.Steps, "_recorded", recorded)
    return done


def on_device(family: str, recorded: bool) -> Model:
    hf = random_weights(family).to(torch.device("emulated:0"))
    model = wrap(hf, byte_tokenizer(), name=family, verify_model=False)
    if recorded:
        model.graph_reason = model.graph_edit_reason = None
    return model


def under() -> list[tuple[Edit, ...]]:
    cut = Knockout(queries=(12, None), keys=(2, 9), heads=(0, 2))
    ends = Knockout(queries=(20, 35), keys=(1, 4))
    steer = Steer("residual", 1, torch.randn(64, generator=torch.Generator().manual_seed(1)), 3.0)
    ablated = Steer("mlp", 0, torch.ones(64), ablate=True)
    return [(), (cut,), (steer,), (), (cut, steer, ends), (ablated,), (steer, ablated)]


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
@pytest.mark.parametrize("edits", [None, under()], ids=["plain", "edits"])
@pytest.mark.parametrize("way", ["rows", "queue", "shared"])
def test_replayed_steps_write_what_started_ones_write(
    family: str, edits: Any, way: str, monkeypatch: pytest.MonkeyPatch, replays: list[int]
):
    monkeypatch.setattr(decoding.Shared, "serves", lambda *_: way == "shared")
    texts = []
    for recorded in (False, True):
        model = on_device(family, recorded)
        if way == "queue":
            model.token_budget = 180
        texts.append(model.generate(PROMPTS, LIMITS, end_ids=frozenset(), edits=edits))
        assert bool(replays) == recorded
    assert texts[0] == texts[1]


def test_steps_under_edits_are_started_anew_where_nothing_was_verified(replays: list[int]):
    model = on_device("llama", recorded=True)
    model.graph_edit_reason = "not tried"
    model.generate(PROMPTS, 12, end_ids=frozenset(), edits=under())
    assert not replays
    model.generate(PROMPTS, 12, end_ids=frozenset())
    assert replays


def test_the_check_at_load_finds_steps_that_are_not_run_anew(
    monkeypatch: pytest.MonkeyPatch, replays: list[int]
):
    model = on_device("llama", recorded=True)
    tree = Tree.of(model, 0)
    assert verify._edited_steps_fault(tree) is None
    assert replays
    monkeypatch.setattr(Recording, "replay", lambda self: None)
    fault = verify._edited_steps_fault(tree)
    assert fault is not None
    assert "max |Δlogit|" in fault
    assert model.graph_edit_reason == "not tried"
