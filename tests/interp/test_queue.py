"""More texts than have room at once: each begins in the place of one that has ended, and is written
as it is alone."""

from __future__ import annotations

from typing import Any

import emulated_devices
import pytest
import torch
from edited_alone import written_alone
from tiny_configs import byte_tokenizer
from tiny_models import random_weights, tiny

from faithscope.interp import decoding, execute, lockstep
from faithscope.interp.edits import Edit, Knockout, Steer
from faithscope.interp.generation import Generation
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

TRUNK = tuple(range(40, 70))
PROMPTS = [(*TRUNK[: 5 + 7 * i % 23], *range(i, 2 * i + 1)) for i in range(9)]
LIMITS = [9, 3, 20, 1, 14, 4, 30, 2, 11]
BUDGET = 110
"""Positions for two or three of the texts at once."""


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Few columns at a time, and what was done to make room."""
    monkeypatch.setattr(decoding, "BLOCK", 8)
    done: list[str] = []
    for name in ("_move", "_grown", "put"):
        inner = getattr(decoding.Decode, name)

        def noted(self: Any, *args: Any, name: str = name, inner: Any = inner, **kw: Any) -> Any:
            done.append(name)
            return inner(self, *args, **kw)

        monkeypatch.setattr(decoding.Decode, name, noted)
    return done


def small(model: Model, monkeypatch: pytest.MonkeyPatch, budget: int = BUDGET) -> Model:
    monkeypatch.setattr(model, "token_budget", budget)
    return model


def edited() -> list[tuple[Edit, ...]]:
    cut = Knockout(queries=(12, None), keys=(2, 9), heads=(0, 2))
    steer = Steer("residual", 1, torch.randn(64, generator=torch.Generator().manual_seed(1)), 3.0)
    return [(), (cut,), (steer,), (), (cut, steer), (), (steer,), (), (cut,)]


@pytest.mark.in_time(4)
def test_each_text_is_what_it_is_alone(tree_model: Model, monkeypatch, blocks: list[str]):
    model = small(tree_model, monkeypatch)
    free = frozenset[int]()
    for text, prompt, limit in zip(
        model.generate(PROMPTS, LIMITS, end_ids=free), PROMPTS, LIMITS, strict=True
    ):
        assert text.ids == written_alone(model, prompt, (), limit)
        assert len(text.gaps) == len(text.ids)
    assert blocks.count("put") >= 3


@pytest.mark.in_time(1)
@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
@pytest.mark.parametrize("device", ["cpu", "emulated:0"])
def test_under_edits_and_on_a_device(family: str, device: str, monkeypatch):
    if device != "cpu":
        emulated_devices.require()
    hf = random_weights(family).to(torch.device(device))
    model = wrap(hf, byte_tokenizer(), name=family, verify_model=False)
    monkeypatch.setattr(decoding.Shared, "serves", lambda *_: False)
    reference, edits = tiny(family), edited()
    small(model, monkeypatch)
    variants: list[dict[str, Any]] = [{}, {"edits": edits}]
    for kwargs in variants:
        of_each = edits if kwargs else [()] * len(PROMPTS)
        texts = model.generate(PROMPTS, LIMITS, end_ids=frozenset(), **kwargs)
        for text, prompt, under, limit in zip(texts, PROMPTS, of_each, LIMITS, strict=True):
            assert text.ids == written_alone(reference, prompt, under, limit)


@pytest.mark.parametrize("settings", [{"temperature": 1.0, "top_p": 0.9}, {}])
def test_draws_and_penalties_are_each_text_s_own(
    settings: dict[str, Any], llama: Model, monkeypatch
):
    settings = settings | {"repetition_penalty": 1.5}
    seeds = list(range(len(PROMPTS)))
    ended: dict[int, Generation] = {}
    whole = llama.generate(PROMPTS, LIMITS, seed=seeds, **settings)
    small(llama, monkeypatch)
    together = llama.generate(
        PROMPTS, LIMITS, seed=seeds, on_done=lambda i, text: ended.update({i: text}), **settings
    )
    assert together == whole == [ended[i] for i in seeds]
    for prompt, limit, seed, text in zip(PROMPTS, LIMITS, seeds, together, strict=True):
        assert llama.generate([prompt], limit, seed=[seed], **settings) == [text]


def test_texts_that_end_early_make_room_for_longer_and_for_more(
    llama: Model, monkeypatch, blocks: list[str]
):
    """The longest ends at once; then come long prompts, and more texts fit than before."""
    prompts = [TRUNK[:3], *(TRUNK[:n] for n in (28, 26, 24, 22, 4, 5, 6, 7))]
    limits = [60, *[12] * 8]
    whole = llama.generate(prompts, limits, end_ids=frozenset())
    ends = frozenset({whole[0].ids[1]})
    alone = [llama.generate([p], n, end_ids=ends)[0] for p, n in zip(prompts, limits, strict=True)]
    small(llama, monkeypatch, 70)
    sizes: list[int] = []
    forward = execute.forward
    monkeypatch.setattr(
        execute, "forward", lambda *args: (sizes.append(len(args[2])), forward(*args))[1]
    )
    assert llama.generate(prompts, limits, end_ids=ends) == alone
    assert sizes[1] == 1 < max(sizes[2:])
    assert "put" in blocks


def test_no_text_waits_for_the_slowest(llama: Model, monkeypatch, blocks: list[str]):
    prompts = [(*TRUNK, i) for i in range(12)]
    limits = [40, *[5] * 11]
    n = [0]
    after = lockstep.Steps.__call__
    monkeypatch.setattr(
        lockstep.Steps,
        "__call__",
        lambda self, *args: (n.__setitem__(0, n[0] + 1), after(self, *args))[1],
    )
    alone = llama.generate(prompts, limits, end_ids=frozenset())
    assert n.pop() == 39
    n.append(0)
    small(llama, monkeypatch, 2 * (31 + 40))
    assert llama.generate(prompts, limits, end_ids=frozenset()) == alone
    # in groups it takes 39 steps for the first two, and four more for every two or three others
    assert n[0] <= 44


def test_columns_of_past_texts_are_taken_again(llama: Model, monkeypatch, blocks: list[str]):
    prompts, limits = [(*TRUNK, i) for i in range(12)], [10, 7, 9] * 4
    alone = llama.generate(prompts, limits, end_ids=frozenset())
    small(llama, monkeypatch, 2 * (31 + 10))
    columns: list[int] = []
    attend = decoding.Decode.attend

    def noted(self: decoding.Decode, *args: Any, **kwargs: Any) -> torch.Tensor:
        columns.append(self.layers[0][0].shape[2])
        return attend(self, *args, **kwargs)

    monkeypatch.setattr(decoding.Decode, "attend", noted)
    assert llama.generate(prompts, limits, end_ids=frozenset()) == alone
    assert "_move" in blocks
    assert max(columns) <= 31 + 10 + 8 + 8
