"""Packs of one call: the next one takes over what it shares with the one before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import emulated_devices
import pytest
import torch
from families import bushy
from tiny_configs import byte_tokenizer
from tiny_models import WINDOWED, random_weights, tiny

from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.keyvalues import KeyValues, Spilled
from faithscope.interp.leads import WATCHED
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

LABELS = [[1, 2], [1, 3, 4], [9]]


@contextmanager
def counted(model: Model) -> Iterator[list[int]]:
    """Tokens of every forward that the model runs inside."""
    tokens: list[int] = []

    def count(_: object, args: tuple, kwargs: dict) -> None:
        tokens.append((kwargs["input_ids"] if "input_ids" in kwargs else args[0]).numel())

    hook = model.hf.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield tokens
    finally:
        hook.remove()


def removals(length: int, every: int) -> list[tuple[int, ...]]:
    """A text, and the same without each of its stretches of `every` tokens."""
    text = tuple(random.Random(1).choices(range(5, 250), k=length))
    return [text, *(text[:i] + text[i + every :] for i in range(10, length - 10, every))]


def check_small_packs(model: Model) -> None:
    """Packs of one or two sequences answer as each sequence does by itself."""
    model.token_budget, model.chunk = 150, 32
    texts = removals(120, 20)
    cut = Knockout((60, None), (5, 40))
    edits = [(), *[()] * (len(texts) - 2), (cut,)]
    with counted(model) as run:
        packed = model.ask(texts, [LABELS] * len(texts), repeat=[0], edits=edits)
    assert max(a.pack for a in packed) > 2
    naive = [model.ask([t], [LABELS], edits=[e])[0] for t, e in zip(texts, edits, strict=True)]
    for a, b in zip(packed, naive, strict=True):
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-3)
    tails = [(*t, *label[:-1]) for t in texts for label in LABELS]
    once = len(Forest.of(tails, [e for e in edits for _ in LABELS]))
    # the repeated text's last tokens in every pack, the text alone, and tokens by which texts part
    again = (packed[0].repeats[-1].pack + 2) * (WATCHED + 4) + len(texts[0])
    assert sum(run) <= once + again
    read = model.run([Branch(t, edits=e) for t, e in zip(texts, edits, strict=True)])
    assert read.trie_tokens == len(Forest.of(texts, edits)) < read.naive_tokens
    for branch, text, own in zip(read.branches, texts, edits, strict=True):
        alone = model.run([Branch(text, edits=own)]).branches[0]
        assert torch.allclose(branch.logits, alone.logits, atol=1e-4)


@pytest.mark.in_time(2)
def test_small_packs_answer_as_sequences_alone(tree_model: Model):
    check_small_packs(tiny(tree_model.name.removeprefix("tiny:")))


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", WINDOWED)
def test_windows_and_chunks_reach_into_what_is_taken_over(family: str):
    check_small_packs(tiny(family))


def test_written_answers_do_not_depend_on_the_packs(llama: Model):
    texts = removals(120, 20)
    whole = llama.ask(texts, [LABELS] * len(texts), 8)
    small = tiny("llama")
    small.token_budget = 150
    for a, b in zip(whole, small.ask(texts, [LABELS] * len(texts), 8, repeat=[0]), strict=True):
        assert a.generated == b.generated


@pytest.mark.in_time(1)
@pytest.mark.parametrize("length", [500, 1000, 2000])
def test_sharing_never_runs_more_than_the_plain_loop(length: int):
    model = tiny("llama", max_position_embeddings=2048)
    model.token_budget = 1000
    texts = removals(length, length // 12)
    with counted(model) as run:
        model.ask(texts, [LABELS] * len(texts), repeat=[0])
    # the repeated text is run once more alone, by the loop as well
    assert sum(run) <= sum(map(len, texts)) + length + WATCHED
    assert sum(run) < 0.75 * sum(map(len, texts))


def test_likelihoods_begin_where_the_pack_before_left_off():
    texts, model = removals(200, 20), tiny("llama")
    starts = [190 if len(t) > 190 else 170 for t in texts]
    whole = model.likelihood(texts, starts)
    model.token_budget = 220
    split = model.likelihood(texts, starts)
    assert split.trie_tokens == whole.trie_tokens
    for a, b in zip(whole.sequences, split.sequences, strict=True):
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-4)


@pytest.mark.slow
def test_a_trunk_over_the_budget_lies_in_the_cpus_memory(monkeypatch):
    emulated_devices.require()
    spilled: list[KeyValues] = []
    init = Spilled.__init__
    monkeypatch.setattr(
        Spilled, "__init__", lambda self, *args: (spilled.append(self), init(self, *args))[1]
    )
    texts = removals(120, 20)

    def on(device: str) -> Model:
        hf = random_weights("mistral").to(torch.device(device))
        model = wrap(hf, byte_tokenizer(), name="mistral", verify_model=False)
        model.token_budget, model.chunk = 130, 32
        return model

    options = {"max_new_tokens": 6, "repeat": [0]}
    on_device = on("emulated:0").ask(texts, [LABELS] * len(texts), **options)
    assert spilled
    on_cpu = on("cpu").ask(texts, [LABELS] * len(texts), **options)
    for a, b in zip(on_device, on_cpu, strict=True):
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-3)
        assert a.generated is not None
        assert b.generated is not None
        assert a.generated.ids == b.generated.ids


def test_a_pack_runs_again_what_it_reads():
    """A node that two packs read is run by both: its logits are not kept."""
    model = tiny("llama")
    model.token_budget = 60
    branches = [Branch(s, ask=(10, -1)) for s in bushy(3, n=6) if len(s) > 20]
    whole = tiny("llama").run(branches)
    split = model.run(branches)
    assert split.trie_tokens >= whole.trie_tokens
    for a, b in zip(whole.branches, split.branches, strict=True):
        assert torch.allclose(a.logits, b.logits, atol=1e-4)
