"""Texts written under edits in lockstep, against a loop that runs every sequence anew alone."""

from __future__ import annotations

from typing import Any

import emulated_devices
import pytest
import torch
from edited_alone import written_alone
from families import bushy
from tiny_configs import byte_tokenizer
from tiny_models import WINDOWED, random_weights, tiny

from faithscope.interp import decoding
from faithscope.interp.edits import Edit, Knockout, Patch, Steer
from faithscope.interp.errors import UserError
from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interp.side_by_side import side_by_side

TEXT = bushy(6, n=3, length=30)[0]
N = len(TEXT)
STEPS = 9


def direction(seed: int = 0) -> torch.Tensor:
    return torch.randn(64, generator=torch.Generator().manual_seed(seed))


def cases() -> list[tuple[tuple[int, ...], tuple[Edit, ...]]]:
    """Prompts of several lengths, each under edits: none, of every kind, and several."""
    cut = Knockout((N - 3, None), (2, 9))
    ends = Knockout((N - 3, N + 4), (4, N - 2), heads=(0, 2))
    steer = Steer("residual", 1, direction(1), 3.0, (N - 5, None))
    ablated = Steer("mlp", 0, direction(2), ablate=True)
    later = Steer("residual", 0, direction(3), 4.0, (N + 3, None))
    window = Steer("attention", 2, direction(4), 6.0, (N + 1, N + 5))
    patch = Patch("residual", 1, (3, 7), torch.stack([direction(5), direction(6)]) * 2)
    short = TEXT[: N - 6]
    return [
        (TEXT, ()),
        (TEXT, (cut,)),
        (TEXT, (ends,)),
        (TEXT, (steer,)),
        (TEXT, (ablated,)),
        (TEXT, (later,)),
        (TEXT, (patch,)),
        (TEXT, (window, cut, patch, steer, ablated, later)),
        (short, (Steer("residual", 2, direction(7), 5.0, (len(short) + 3, None)),)),
        (short, ()),
        (TEXT[:4], (Knockout((3, None), (0, 2)), Steer("mlp", 1, direction(8), 3.0))),
    ]


@pytest.mark.in_time(4)
def test_a_mixed_batch_is_what_each_writes_alone(tree_model: Model):
    prompts, edits = zip(*cases(), strict=True)
    free = frozenset[int]()
    together = tree_model.generate(prompts, STEPS, edits=edits, end_ids=free)
    for prompt, under, text in zip(prompts, edits, together, strict=True):
        assert text.ids == written_alone(tree_model, prompt, under, STEPS)
    assert len({t.ids for t in together}) > len(together) / 2


@pytest.mark.in_time(2)
@pytest.mark.parametrize("family", [f for f in WINDOWED if f != "llama4_chunks"])
def test_windows_are_kept_under_edits(family: str):
    model = tiny(family)
    prompts, edits = zip(*cases(), strict=True)
    for prompt, under, text in zip(
        prompts, edits, model.generate(prompts, STEPS, edits=edits), strict=True
    ):
        assert text.ids == written_alone(model, prompt, under, STEPS)


def test_sequences_that_end_leave_the_others_as_they_are(llama: Model):
    prompts, edits = zip(*cases(), strict=True)
    whole = llama.generate(prompts, 14, edits=edits, end_ids=frozenset())
    limits = [14 - i for i in range(len(prompts))]
    ends = frozenset({whole[1].ids[2], whole[7].ids[5]})
    for text, limit, all_of_it in zip(
        llama.generate(prompts, limits, edits=edits, end_ids=ends), limits, whole, strict=True
    ):
        until = next((i for i, t in enumerate(all_of_it.ids) if t in ends), limit)
        assert text.ids == all_of_it.ids[: min(until, limit)]
    alike = [TEXT] * 3, [(), edits[3], edits[3]]
    assert [t.ids for t in llama.generate(alike[0], 14, edits=alike[1])] == [
        whole[0].ids,
        whole[3].ids,
        whole[3].ids,
    ]


def test_draws_under_edits_do_not_depend_on_the_batch(llama: Model):
    prompts, edits = zip(*cases(), strict=True)
    seeds = list(range(len(prompts)))
    drawn: dict[str, Any] = {"temperature": 1.0, "top_p": 0.9}
    together = llama.generate(prompts, STEPS, edits=edits, seed=seeds, **drawn)
    assert together == llama.generate(prompts, STEPS, edits=edits, seed=seeds, **drawn)
    for prompt, under, seed, text in zip(prompts, edits, seeds, together, strict=True):
        (alone,) = llama.generate([prompt], STEPS, edits=[under], seed=[seed], **drawn)
        assert text == alone
    greedy = llama.generate(prompts, STEPS, edits=edits, repetition_penalty=1.5)
    assert [t.ids for t in greedy] != [t.ids for t in llama.generate(prompts, STEPS, edits=edits)]


def test_prompts_without_edits_are_written_as_in_a_plain_call(llama: Model):
    plain = llama.generate([TEXT, TEXT[:9]], STEPS)
    steer = Steer("residual", 1, direction(), 3.0)
    assert llama.generate([TEXT, TEXT[:9]], STEPS, edits=[None, ()]) == plain
    mixed = llama.generate([TEXT, TEXT, TEXT[:9]], STEPS, edits=[None, [steer], None])
    assert [mixed[0], mixed[2]] == plain
    nothing = Steer("residual", 1, direction(), 0.0)
    assert llama.generate([TEXT, TEXT[:9]], STEPS, edits=[[nothing]] * 2) == plain


def test_jobs_side_by_side_write_under_their_own_edits(llama: Model):
    (cut,), (steer,) = cases()[1][1], cases()[3][1]
    jobs = [
        lambda m, e=e: m.generate([TEXT, TEXT[:20]], STEPS, edits=[e, None])
        for e in ((), (cut,), (steer,))
    ]
    assert side_by_side(llama, jobs) == [job(llama) for job in jobs]


@pytest.mark.in_time(1)
@pytest.mark.parametrize("family", ["llama", "mistral", "gpt2"])
def test_an_accelerator_writes_what_a_cpu_writes(family: str, monkeypatch: pytest.MonkeyPatch):
    emulated_devices.require()
    monkeypatch.setattr(decoding, "BLOCK", 4)
    edits = [under for prompt, under in cases() if len(prompt) == N]
    limits = [*range(3, 3 + len(edits))]
    here, there = (
        wrap(
            random_weights(family).to(torch.device(device)),
            byte_tokenizer(),
            name=family,
            verify_model=False,
        )
        for device in ("cpu", "emulated:0")
    )
    written = here.generate([TEXT] * len(edits), limits, edits=edits)
    for shared in (True, False):
        monkeypatch.setattr(decoding.Shared, "serves", lambda *_, shared=shared: shared)
        assert there.generate([TEXT] * len(edits), limits, edits=edits) == written


def test_what_cannot_be_written_under_edits_is_refused(llama: Model, loop_model: Model):
    steer, patch = Steer("mlp", 0, direction(), 1.0), Patch("residual", 0, (0,), direction()[None])
    with pytest.raises(UserError, match="cannot be steered"):
        loop_model.generate([TEXT], 4, edits=[[steer]])
    with pytest.raises(
        UserError, match=f"{loop_model.name}.*under edits one by one.*another model"
    ):
        loop_model.generate([TEXT], 4, edits=[[patch]])
    with pytest.raises(ValueError, match="2 prompts but edits for 1 of them"):
        llama.generate([TEXT, TEXT], 4, edits=[[steer]])
    with pytest.raises(ValueError, match=f"position {N} lies outside a branch of {N}"):
        llama.generate([TEXT], 4, edits=[[Patch("residual", 0, (N,), direction()[None])]])
    with pytest.raises(UserError, match="does not fit its 512 positions"):
        llama.generate([TEXT], 600, edits=[[steer]])
