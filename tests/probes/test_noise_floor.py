"""What a pack does to its numbers is no effect: baselines of their own, and the noise floor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from sample_trace import FAST, asking, written
from tiny_models import tiny

from faithscope.interp import execute
from faithscope.interp.answered import Answered
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model
from faithscope.probes.causal_effects import CausalEffectsSettings, causal_effects
from faithscope.probes.error_detection import ErrorDetectionSettings, error_detection
from faithscope.probes.floor import answer_margin, noise
from faithscope.probes.knockout import KnockoutSettings, knockout
from faithscope.probes.patching import PatchingSettings, patching
from faithscope.probes.slrc import SlrcSettings, slrc
from faithscope.probes.sycophancy import SycophancySettings, sycophancy

BUDGET = 300
"""A trace with its cue is about 110 tokens of the tiny models: two or three arms a pack."""
FLIPS = {"removed": "necessary", "shuffled": "reordered", "corrupted": "corrupt_flips"}


def test_a_written_answer_is_decided_by_the_tokens_that_change_it():
    def parse(ids: Sequence[int]) -> str | None:
        return "".join(str(i) for i in ids if i < 10) or None

    def margin(ids: tuple[int, ...], *gaps: float, number: bool = True) -> float | None:
        return answer_margin(Generation(ids, "length", gaps=gaps), parse, number=number)

    # how an answer is put, and what comes after its end, is no part of it
    assert margin((50, 9, 51, 52), 0.1, 3.0, 1.0, 0.2, number=False) == 3.0
    assert margin((50, 9, 4, 51, 52), 0.1, 3.0, 2.0, 1.0, 0.2) == 1.0
    assert margin((50, 9, 4, 51, 52), 0.1, 3.0, 0.5, 1.0, 0.2) == 0.5
    assert margin((9,), 3.0, 0.4) == 0.4
    assert margin((9,), 3.0) == 3.0
    assert margin((50, 51), 0.1, 0.3) == 0.1
    assert margin(()) is None


@contextmanager
def disturbed(model: Model, by: float) -> Iterator[list[int]]:
    """In every second pack, all tokens of " no" are `by` likelier than the model has them.

    Yields:
        The packs so far, a 1 for each that was disturbed.
    """
    packs: list[int] = []
    raised = model.encode(" no")

    def hook(_module, _args, _kwargs, out):
        if packs[-1]:
            out.logits[..., raised] += by
        return out

    prefill = execute.prefill

    def counted(*args, **kwargs):
        packs.append(len(packs) % 2)
        return prefill(*args, **kwargs)

    handle = model.hf.register_forward_hook(hook, with_kwargs=True)
    execute.prefill = counted
    try:
        yield packs
    finally:
        handle.remove()
        execute.prefill = prefill


def small(dtype: torch.dtype = torch.bfloat16) -> Model:
    model = tiny("llama", dtype)
    model.token_budget = BUDGET
    return model


def test_what_a_pack_is_disturbed_by_becomes_no_flip():
    """By 60 nats every arm of a second pack answers "no", its baseline too."""
    model = small()
    settings = SlrcSettings(framings=("prefix",), readings=("scored",), edits=("remove", "corrupt"))
    with disturbed(model, 60.0) as packs:
        (r,) = slrc(model, written(model), asking(), settings)
    assert r["n_packs"] > 3
    assert len(packs) == r["n_packs"] + 1  # the last is the baseline by itself
    answers = {kind: r[kind] for kind in FLIPS}
    assert {a for of_kind in answers.values() for a in of_kind} > {"no"}
    for kind, flips in FLIPS.items():
        for answer, flip in zip(r[kind], r[flips], strict=True):
            if answer == "no":
                assert flip in (False, None)
    # and that the baseline did not stay where it was is told
    assert r["baseline_redecided"] or r["noise_floor"] > 30
    assert r["baseline_moved"] > 10


@pytest.mark.parametrize("by", [0.0, 60.0])
def test_graded_effects_of_a_disturbed_pack(by: float):
    model = small(torch.float32)
    with disturbed(model, by):
        (effects,) = causal_effects(model, written(model), asking(), CausalEffectsSettings())
        cut, *_ = knockout(model, written(model), asking(), KnockoutSettings(windows=0))
    (plain,) = causal_effects(
        tiny("llama"), written(model), asking(), CausalEffectsSettings(execution="loop")
    )
    for r in (effects, cut):
        assert r["n_packs"] > 1
        if not by:
            assert r["noise_floor"] < 1e-3
            assert not r["baseline_redecided"]
            continue
        assert r["noise_floor"] > 30
        assert not any(r["removed_flips"][i] for i, p in enumerate(r["removed_margin"]) if p > 30)
    if not by:
        assert effects["removed_tv"] == pytest.approx(plain["removed_tv"], abs=1e-4)
    # what is disturbed as its baseline is moved by nothing beyond what its text does
    assert effects["removed_tv"] == pytest.approx(
        [
            t if m < 30 else 0
            for t, m in zip(plain["removed_tv"], effects["removed_margin"], strict=True)
        ],
        abs=1e-4,
    )


def test_patching_repeats_both_of_its_runs():
    model = small(torch.float32)
    settings = PatchingSettings(places=("step",), sites=("residual",), least=1e-4)
    whole = patching(tiny("llama"), written(model), asking(), settings)
    split = patching(model, written(model), asking(), settings)
    for one, other in zip(whole, split, strict=True):
        assert other["n_packs"] > one["n_packs"]
        assert other["moved"] == pytest.approx(one["moved"], abs=1e-3)
        assert other["noise_floor"] < 1e-3


def test_the_floor_is_of_the_dtype():
    floors = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny("llama", dtype)
        generated, scored = slrc(
            model,
            written(model),
            asking(),
            SlrcSettings(framings=("prefix",), edits=("remove",), answer_tokens=4),
        )
        assert generated["dtype"] == str(dtype).removeprefix("torch.")
        assert generated["n_packs"] == 1
        assert generated["noise_floor"] == scored["noise_floor"]
        assert all(m >= 0 for m in generated["removed_margin"] + scored["removed_margin"])
        floors[dtype] = scored["noise_floor"], scored["baseline_moved_tv"]
    assert floors[torch.float32][0] < 1e-3
    assert floors[torch.bfloat16][0] > 30 * floors[torch.float32][0]
    assert floors[torch.float32][1] < 1e-4


def test_calls_of_one_record_are_added_and_the_noisiest_counts(llama: Model):
    records = slrc(llama, written(llama), asking(), FAST)
    for r in records:
        # regenerated arms are asked in a second pack
        assert r["n_packs"] == (2 if r["framing"] == "prefix" else 1)
        assert 0 < r["noise_floor"] < 1e-3


@pytest.mark.parametrize(
    ("probe", "settings", "messages"),
    [
        (sycophancy, SycophancySettings, ("wrong", "own")),
        (error_detection, ErrorDetectionSettings, ("error", "unmodified")),
    ],
)
def test_questions_about_the_chain_say_how_narrowly_they_were_answered(
    llama: Model, probe, settings, messages
):
    trace = replace(written(llama), answer="yes")
    for r in probe(llama, trace, asking(asked="Well?"), settings(answer_tokens=4)):
        assert r["n_packs"] == 1
        assert r["noise_floor"] < 1e-3
        for message in messages:
            assert r[f"margin_{message}"] >= 0


def test_a_message_and_its_control_are_of_one_pack(llama: Model):
    """Though both exceed the budget: what the control is asked for is the other's pack."""
    model = small(torch.float32)
    model.token_budget = 60
    trace = replace(written(model), answer="yes")
    settings = SycophancySettings(answer_tokens=2)
    for one, other in zip(
        sycophancy(model, trace, asking(asked="Well?"), settings),
        sycophancy(llama, trace, asking(asked="Well?"), settings),
        strict=True,
    ):
        assert one["n_packs"] == 1
        assert one["trie_tokens"] > model.token_budget
        for name in ("margin_wrong", "margin_own"):
            assert one[name] == pytest.approx(other[name], abs=1e-3)


@pytest.mark.parametrize(
    ("alone", "redecided", "moved"),
    [
        # the other spelling of the same answer is ahead now
        ((0.25, 0.3, 0.2), False, 0.0),
        # "no" is ahead of both spellings of "yes" together
        ((0.25, 0.1, 0.45), True, math.log(0.55 / 0.2) + math.log(0.45 / 0.35)),
    ],
)
def test_the_baseline_is_redecided_where_another_answer_leads_not_another_spelling(
    alone, redecided, moved
):
    first, other = (
        Answered(tuple(map(math.log, p)), (1, 1, 1), None) for p in ((0.3, 0.25, 0.2), alone)
    )
    told = noise(replace(first, repeats=(first,), alone=other), ["yes", "yes", "no"])
    assert told["baseline_redecided"] == redecided
    assert told["noise_floor"] == pytest.approx(moved, abs=1e-5)
