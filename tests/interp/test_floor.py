"""Repeating what others are compared with in every pack, and the noise floor that follows."""

import random
from itertools import pairwise

import pytest
import torch
from tiny_models import tiny

from faithscope.interp import execute
from faithscope.interp.answer import Request, ask_all
from faithscope.interp.errors import UserError
from faithscope.interp.floor import floor
from faithscope.interp.forest import Forest, split_by_budget
from faithscope.interp.leads import Lead, gaps
from faithscope.interp.model import Model

LABELS = [[1, 2], [1, 3, 4], [9]]
BUDGET = 150


def arms(n: int = 9, length: int = 60) -> list[tuple[int, ...]]:
    """A text, and the same with another token in the middle and all later ones left."""
    draw = random.Random(0)
    text = draw.choices(range(5, 250), k=length)
    edited = [[*text[: 6 * i], 251 + i % 3, *text[6 * i + 1 :]] for i in range(1, n)]
    return [tuple(text), *map(tuple, edited)]


@pytest.fixture
def small() -> Model:
    """In bfloat16, with room for a text and one edit of it or two."""
    model = tiny("llama", torch.bfloat16)
    model.token_budget = BUDGET
    return model


def test_every_pack_has_what_is_repeated_and_stays_within_the_budget():
    texts = arms()
    groups = split_by_budget(texts, BUDGET, repeat=[0])
    assert len(groups) > 2
    assert all(group.count(0) == 1 for group in groups)
    assert sorted(i for group in groups for i in group if i) == list(range(1, len(texts)))
    for group in groups:
        assert len(Forest.of([texts[i] for i in group])) <= BUDGET
    # none could take the next one's first arm, too: the count of shared nodes is not a guess
    for group, after in pairwise(groups):
        together = [texts[i] for i in (*group, after[1])]
        assert len(Forest.of(together)) > BUDGET
    assert split_by_budget(texts[:1], BUDGET, repeat=[0]) == [[0]]


def test_answers_say_their_pack_and_the_reference_is_answered_in_each(small: Model):
    texts = arms()
    answers = small.ask(texts, [LABELS] * len(texts), 6, repeat=[0])
    packs = {a.pack for a in answers}
    assert packs == set(range(len(split_by_budget(texts, BUDGET, None, [LABELS] * 9, [0]))))
    assert len(packs) > 2
    assert [r.pack for r in answers[0].repeats] == sorted(packs)
    assert all(a.repeats == () and a.alone is None for a in answers[1:])
    # Of one pack are what was run together: its arms alone give its numbers again, bit by bit.
    for pack in packs:
        here = [i for i, a in enumerate(answers) if a.pack == pack and i]
        again = small.ask([texts[i] for i in (0, *here)], [LABELS] * (1 + len(here)), 6, repeat=[0])
        assert again[0].log_probs == answers[0].repeats[pack].log_probs
        assert [a.log_probs for a in again[1:]] == [answers[i].log_probs for i in here]


def test_the_floor_is_rounding_in_float32_and_far_more_in_bfloat16(small: Model):
    texts = arms()
    exact = tiny("llama")
    exact.token_budget = BUDGET
    fine, coarse = (
        floor(m.ask(texts, [LABELS] * len(texts), 6, repeat=[0])[0]) for m in (exact, small)
    )
    assert fine.packs == coarse.packs > 2
    assert 0 < fine.lead < 1e-3
    assert coarse.lead > 30 * fine.lead
    assert not fine.decision_moved


@pytest.mark.parametrize("execution", ["packed", "dense", "loop"])
def test_one_pack_is_held_against_the_text_by_itself(execution):
    model, texts = tiny("llama", torch.bfloat16), arms()
    answers = model.ask(texts, [LABELS] * len(texts), 6, repeat=[0], execution=execution)
    assert {a.pack for a in answers} == {0}
    assert floor(answers[0]).packs == 1
    assert floor(answers[0]).lead > 0
    alone = answers[0].alone
    assert alone is not None
    assert alone.generated is None
    assert len(alone.written) == len(answers[0].written) == 6
    assert len(alone.leads) == len(texts[0])


def test_a_model_that_only_the_loop_serves_has_a_floor(loop_model: Model):
    answers = loop_model.ask(arms(3), [LABELS] * 3, repeat=[0])
    assert floor(answers[0]).lead < 1e-2
    assert floor(answers[0]).log_prob is not None


def test_what_is_measured_once_more_is_the_same_text(llama: Model):
    texts = arms(3)
    for execution in ("packed", "loop"):
        (first, *_) = llama.ask(texts, [LABELS] * 3, 6, repeat=[0], execution=execution)
        assert first.alone is not None
        assert first.alone.log_probs == pytest.approx(first.log_probs, abs=1e-3)
        for a, b in zip(first.written, first.alone.written, strict=True):
            assert a.candidate == b.candidate
            assert a.gap == pytest.approx(b.gap, abs=1e-3)
        for a, b in zip(first.leads, first.alone.leads, strict=True):
            assert a.gap == pytest.approx(b.gap, abs=1e-3)


def test_several_are_repeated_with_edits_of_their_own(small: Model):
    from faithscope.interp.edits import Knockout

    texts = [arms()[0]] * 4
    cuts = [(), *((Knockout((20, None), (5 * i, 5 * i + 5)),) for i in range(1, 4))]
    answers = small.ask(texts, [LABELS] * 4, edits=cuts, repeat=[0, 1])
    n = max(a.pack for a in answers) + 1
    assert n > 1
    assert [len(a.repeats) for a in answers] == [n, n, 0, 0]
    assert answers[0].log_probs != answers[1].log_probs
    noise = floor(answers[1])
    # which of the two moves is up to the processor's sums
    assert max(noise.lead, noise.log_prob or 0.0) > 0


def test_margins_are_the_gaps_of_the_tokens_written(llama: Model):
    (packed,), (loop,) = (
        llama.ask([arms()[0]], None, 6, execution=execution) for execution in ("packed", "loop")
    )
    assert packed.generated is not None
    assert loop.generated is not None
    assert packed.generated.gaps == pytest.approx(loop.generated.gaps, abs=1e-3)
    assert min(packed.generated.gaps) > 0
    assert len(packed.generated.gaps) == 6
    end = packed.generated.ids[2]
    stopped = tiny("llama")
    stopped.end_ids = frozenset({end})
    (short,) = stopped.ask([arms()[0]], None, 6)
    # The end token is a decision as every other.
    assert [x.candidate for x in short.written] == [*packed.generated.ids[:2], end]
    assert short.written == packed.written[:3]
    sampled = llama.generate([arms()[0]], 6, temperature=1.0)
    assert sampled[0].gaps == ()


def test_a_lead_that_changes_hands_moved_by_both_gaps():
    assert Lead.of([0.5, 2.0, 1.5]) == (1, 0.5)
    assert Lead(1, 0.5).moved(Lead(1, 0.25)) == 0.25
    assert Lead(1, 0.5).moved(Lead(2, 0.25)) == 0.75
    assert gaps(torch.tensor([[3.0, 1.0, 2.5], [1.0, 1.0, 0.0]])) == [0.5, 0.0]


def test_baselines_of_several_calls_are_run_once_more_together(monkeypatch):
    packs: list[int] = []
    prefill = execute.prefill
    monkeypatch.setattr(
        execute, "prefill", lambda m, f, *a, **k: packs.append(len(f)) or prefill(m, f, *a, **k)
    )
    texts = [[tuple(x + i for x in text) for text in arms(5)] for i in range(3)]
    calls = [Request(of, [LABELS] * len(of), 6, repeat=[0]) for of in texts]
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny("llama", dtype)
        packs.clear()
        together = [of_call[0] for of_call in ask_all(model, calls)]
        assert len(packs) == 2
        assert packs[1] < packs[0]
        by_itself = [ask_all(model, [call])[0][0] for call in calls]
        for one, other in zip(together, by_itself, strict=True):
            assert floor(one).lead > 0
            assert one.alone is not None
            assert other.alone is not None
            assert len(one.alone.written) == len(one.written) == 6
            close = 1e-4 if dtype == torch.float32 else 0.1
            assert one.alone.log_probs == pytest.approx(other.alone.log_probs, abs=close)
            if dtype == torch.float32:
                assert [x.candidate for x in one.alone.leads] == [
                    x.candidate for x in other.alone.leads
                ]
    # without arms a call has no other shape but that of its text alone
    packs.clear()
    ask_all(model, [Request(of[:1], [LABELS], repeat=[0]) for of in texts])
    assert len(packs) == 1 + len(texts)


def test_a_floor_needs_repeats(llama: Model):
    (answered,) = llama.ask([arms()[0]], [LABELS])
    with pytest.raises(ValueError, match="asked with `repeat`"):
        floor(answered)


def test_a_repeated_prefix_too_long_for_the_model_is_refused(llama: Model):
    with pytest.raises(UserError, match="does not fit its 512 positions"):
        llama.ask([[1] * 600], [LABELS], repeat=[0])
