"""Theorem 1 of the SLRC paper (§3.3) by simulation, through the tables that a run writes.

Readers whose causal structure is planted: the answer is the sum of the values of the steps
that are active, so the mean absolute causal effect of a step is known, for the population and
for every draw from it.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from probe_records import table_of
from sample_records import Sample, slrc_record

from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tidy import rows

STEPS = 5
ACTIVE = 0.35


def value_of(step: str) -> int:
    return int(step.rpartition(" ")[2])


def reader_sample(number: int, values: Sequence[int], holes_confuse: bool = False) -> Sample:
    """An item whose answer is the sum of its steps' values; one value per step."""
    steps = tuple(f"Line {i} of the account adds {v}" for i, v in enumerate(values))

    def read(seen: Sequence[str]) -> str:
        if holes_confuse and len(seen) == len(steps) - 1:
            return "lost"
        return str(sum(map(value_of, seen)))

    return Sample(
        model="reader",
        dataset="account",
        item=f"account-{number:05}",
        question="What does the account come to?",
        steps=steps,
        read=read,
        rewrite=lambda at, changed: [*steps[:at], changed, *steps[at + 1 :]],
        corrupted=(None,) * len(steps),
        labels=("0", "1"),
        gold=str(sum(values)),
    )


def measured(samples: Sequence[Sample]) -> dict:
    records = [slrc_record(s, "prefix", "generated") for s in samples]
    return rows(table_of("slrc", records, 20))[0]


def independent(n: int, seed: int) -> list[Sample]:
    """Every step is active with probability `ACTIVE`, by itself."""
    rng = random.Random(seed)
    values = [[rng.randint(1, 9) * (rng.random() < ACTIVE) for _ in range(STEPS)] for _ in range(n)]
    return [reader_sample(i, v) for i, v in enumerate(values)]


def test_empirical_necessity_is_the_mean_absolute_causal_effect():
    samples = independent(50, seed=1)
    effects = [value_of(step) != 0 for s in samples for step in s.steps]
    assert measured(samples)["necessity"] == pytest.approx(sum(effects) / len(effects), abs=1e-12)


@pytest.mark.slow
def test_the_error_falls_as_the_items_grow():
    errors = []
    for n in (10, 100, 1000):
        draws = [measured(independent(n, seed))["necessity"] for seed in range(8)]
        errors.append(sum((d - ACTIVE) ** 2 for d in draws) / len(draws))
    expected = [ACTIVE * (1 - ACTIVE) / (STEPS * n) for n in (10, 100, 1000)]
    # A mean of 8 squared errors over its expectation is chi-square(8) / 8: within [.1, 3.3].
    for error, variance in zip(errors, expected, strict=True):
        assert 0.1 < error / variance < 3.3
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.slow
def test_the_interval_covers_the_truth_as_often_as_it_says():
    kept = [measured(independent(40, seed)) for seed in range(200)]
    covered = sum(r["necessity_low"] <= ACTIVE <= r["necessity_high"] for r in kept)
    # 95 % of 200, give or take three standard deviations
    assert 181 <= covered <= 199


@pytest.mark.slow
def test_steps_that_go_together_need_the_interval_over_items():
    """All steps of an item active, or none: the interval of the pooled share counts items."""
    pooled = by_item = 0
    for seed in range(150):
        rng = random.Random(seed)
        samples = [
            reader_sample(i, [i + 1] * STEPS if rng.random() < ACTIVE else [0] * STEPS)
            for i in range(40)
        ]
        row = measured(samples)
        pooled += row["necessity_low"] <= ACTIVE <= row["necessity_high"]
        cautious = stats.wilson_of_items(row["necessity"], row["n"])
        by_item += cautious.low <= ACTIVE <= cautious.high
    assert by_item >= 0.90 * 150
    assert pooled >= 0.90 * 150


def test_slrc_bounds_the_share_of_active_steps_from_below():
    for seed in range(20):
        samples = independent(30, seed)
        row = measured(samples)
        active = sum(value_of(step) != 0 for s in samples for step in s.steps) / (30 * STEPS)
        assert row["slrc"] <= row["necessity"] <= active + 1e-12


def test_redundant_routes_hide_from_removal():
    """The redundancy bound: with k routes to the answer, necessity is at most 1 / k."""
    for routes in (1, 2, 5):
        sample = reader_sample(0, [1] * routes + [0] * (STEPS - routes))
        found = replace(sample, read=lambda seen: "yes" if any(map(value_of, seen)) else "no")
        necessity = measured([found])["necessity"]
        assert necessity == (1 / STEPS if routes == 1 else 0)
        assert necessity <= 1 / routes


def test_without_the_second_assumption_the_estimate_is_biased():
    """A reader that is lost where a step is missing: necessity 1, causal effect .35."""
    samples = [
        reader_sample(i, [value_of(step) for step in s.steps], holes_confuse=True)
        for i, s in enumerate(independent(40, seed=3))
    ]
    assert measured(samples)["necessity"] == 1
