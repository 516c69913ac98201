"""Jobs side by side give each job the answers that it gets alone, in fewer packs."""

from __future__ import annotations

import random

import pytest
import torch
from tiny_models import tiny

from faithscope.interp import answer, execute
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model
from faithscope.interp.side_by_side import _ALL, side_by_side

draw = random.Random(3)
TRUNKS = [draw.choices(range(1, 250), k=40) for _ in range(4)]


def arms(trunk: list[int]) -> list[list[int]]:
    return [trunk[:cut] + trunk[-6:] for cut in range(4, 36, 5)]


def asks(trunk: list[int]):
    """A job that asks, goes on from what was written, and asks again."""

    def job(model: Model):
        labels = [model.encode(" 7"), model.encode(" 75"), model.encode(" no")]
        first = model.ask(
            arms(trunk),
            [labels] * len(arms(trunk)),
            trunk[0] % 5 + 3,
            stop=lambda text: len(text) > trunk[1] % 7 + 2,
            boundary="number",
            repeat=[0],
        )
        longest = max((a.generated.ids for a in first), key=len)
        second = model.ask([[*trunk, *longest]], [labels])
        return [*first, *second]

    return job


def reads(trunk: list[int]):
    def job(model: Model):
        branches = [Branch(tuple(x), (-1, 2)) for x in arms(trunk)]
        (run, cut) = (
            model.run(branches, rows=True, residuals=True),
            model.run([Branch(tuple(trunk), (-1,), (Knockout((9, None), (2, 5)),))]),
        )
        return run, cut

    return job


def writes(trunk: list[int]):
    return lambda model: model.generate(
        [trunk, trunk[:9]], [7, 4], temperature=0.8, seed=[trunk[0], 5]
    )


def assert_alike(a, b):
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_alike(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, abs=1e-4)
    elif hasattr(a, "__dict__"):
        assert_alike([*vars(a).items()], [*vars(b).items()])
    else:
        assert a == b


def without_times(outcome):
    """Texts without how long they took, and answers without their packs."""
    return [(g.ids, g.finish, g.gaps) for g in outcome]


@pytest.fixture(scope="module", params=["llama", "gemma2", "gpt_oss"])
def model(request: pytest.FixtureRequest) -> Model:
    return tiny(request.param)


def test_each_job_gets_the_answers_that_it_gets_alone(model: Model, everything_run):
    jobs = [make(trunk) for trunk in TRUNKS for make in (asks, reads)]
    together, alone = side_by_side(model, jobs), [job(model) for job in jobs]
    assert_alike(together, alone)
    texts = side_by_side(model, [writes(trunk) for trunk in TRUNKS])
    for trunk, text in zip(TRUNKS, texts, strict=True):
        assert_alike(without_times(text), without_times(writes(trunk)(model)))


def test_one_pack_holds_what_is_asked_at_the_same_time(model: Model, monkeypatch):
    packs = []
    prefill = execute.prefill
    monkeypatch.setattr(
        execute, "prefill", lambda m, f, *a, **k: packs.append(len(f)) or prefill(m, f, *a, **k)
    )
    jobs = [asks(trunk) for trunk in TRUNKS]
    together = side_by_side(model, jobs)
    # two rounds, and all baselines once more without their arms
    assert len(packs) == 3
    budget = model.token_budget
    try:
        model.token_budget = max(packs) // 2 + 1
        packs.clear()
        assert_alike(side_by_side(model, jobs), together)
        assert len(packs) > 3
        assert max(packs) <= model.token_budget
        assert all(a.pack == 0 for outcome in together for a in outcome)
    finally:
        model.token_budget = budget


def test_two_groups_take_turns(model: Model, monkeypatch):
    events: list[str] = []
    prefill = execute.prefill
    monkeypatch.setattr(execute, "prefill", lambda *a, **k: events.append("|") or prefill(*a, **k))

    def telling(name: str, job):
        def told(m: Model):
            events.append(name)
            first = job(m)
            events.append(name)
            return first, job(m)

        return told

    def once(trunk: list[int]):
        return lambda m: m.ask(arms(trunk), [[[6], [7, 8]]] * len(arms(trunk)), repeat=[0])

    jobs = [telling(name, once(trunk)) for name, trunk in zip("aabb", TRUNKS, strict=True)]
    taking_turns = side_by_side(model, jobs, 2)
    # each group is planned after the other's pack is started; baselines follow once more
    assert "".join(events) == "aa|bb||aa||bb|||"
    events.clear()
    apart = side_by_side(model, jobs[:2]) + side_by_side(model, jobs[2:])
    assert "".join(events) == "aa||aa||bb||bb||"
    assert taking_turns == apart
    # a group may end before the other, or be empty
    uneven = [jobs[0], once(TRUNKS[1]), once(TRUNKS[2])]
    for second in (0, 1, 2, 3):
        assert_alike(side_by_side(model, uneven, second), [job(model) for job in uneven])


def test_what_one_job_raises_is_its_own(model: Model):
    def bad(m: Model):
        m.ask([[3, 4, 5]], [[[6]]])
        return m.ask([[1] * 5], [[[2]], [[3]]])

    def broken(m: Model):
        raise KeyError("mine")

    good, wrong, own = side_by_side(model, [asks(TRUNKS[0]), bad, broken])
    assert_alike(good, asks(TRUNKS[0])(model))
    assert isinstance(wrong, ValueError)
    assert "1 prefixes but labels for 2" in str(wrong)
    assert isinstance(own, KeyError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, torch.OutOfMemoryError])
def test_jobs_end_where_the_pack_fails(model: Model, monkeypatch, error):
    ended = []

    def job(m: Model):
        try:
            return asks(TRUNKS[0])(m)
        finally:
            ended.append(True)

    def fail(*_):
        raise error("no more")

    monkeypatch.setitem(_ALL, answer.Request, fail)
    with pytest.raises(error):
        side_by_side(model, [job, job, job])
    assert len(ended) == 3
