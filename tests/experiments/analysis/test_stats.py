"""Held to the paper's own numbers, and to other ways of computing the same."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from probe_records import slrc_outcome
from scipy.stats import binom, norm, t

from faithscope.experiments.analysis import tidy
from faithscope.experiments.analysis.cells import one_row
from faithscope.experiments.analysis.statistics import resampling, stats
from faithscope.experiments.analysis.statistics.areas import area, behind, p_as_good
from faithscope.experiments.studies.slrc.tables import branch_frame, outcomes


@pytest.mark.parametrize(
    ("necessity", "routes"), [(0.001, 1000), (0.37, 2.7), (0.91, 1.1)], ids=["GPT", "MiniMax", "R1"]
)
def test_redundancy_bound_of_section_3_3(necessity, routes):
    assert outcomes.redundancy(necessity) == pytest.approx(routes, rel=0.01)


def test_redundancy_without_necessity_is_infinite():
    assert outcomes.redundancy(0.0) == math.inf
    assert math.isnan(outcomes.redundancy(math.nan))


def test_wilson_near_zero_is_the_papers_interval():
    """Section 4.9 gives [0 %, 0.7 %]; for 0 of 500 the bound is 0.76 %."""
    none = stats.wilson(0, 500)
    assert (none.value, none.low) == (0.0, 0.0)
    assert 0.007 <= none.high < 0.008


def test_wilson_against_the_closed_form():
    z = 1.959963984540054
    for successes, n in [(0, 7), (7, 7), (3, 11), (250, 1000)]:
        p = successes / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        found = stats.wilson(successes, n)
        assert found.value == p
        assert found.low == pytest.approx(max(0.0, centre - half), abs=1e-12)
        assert found.high == pytest.approx(min(1.0, centre + half), abs=1e-12)


def test_counting_every_item_once_is_wilson_where_the_share_is_of_items():
    for successes, n in [(0, 9), (9, 9), (4, 10)]:
        one, other = stats.wilson(successes, n), stats.wilson_of_items(successes / n, n)
        assert (one.value, one.n) == (other.value, other.n)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-9)
    few = stats.wilson_of_items(0.0, 2)
    assert few.high > 0.6
    assert math.isnan(stats.wilson_of_items(math.nan, 3).low)


def test_wilson_covers_about_as_often_as_it_says():
    n, p = 60, 0.3
    bounds = [stats.wilson(k, n) for k in range(n + 1)]
    covered = sum(binom.pmf(k, n, p) for k, b in enumerate(bounds) if b.low <= p <= b.high)
    assert 0.93 < covered < 0.97


def test_wilson_of_nothing_and_of_nonsense():
    nothing = stats.wilson(0, 0)
    assert nothing.n == 0
    assert math.isnan(nothing.value)
    with pytest.raises(ValueError, match="3 successes of 2 trials"):
        stats.wilson(3, 2)


def test_share_counts():
    assert stats.share([True, False, True, True]).value == 0.75


def items(necessary: np.ndarray, removals: int, sufficient: np.ndarray, alone: int) -> list[dict]:
    """SLRC records of items that all have so many steps removed, and kept alone."""
    return [
        slrc_outcome(
            *("m", "t", str(i)),
            [step < n for step in range(removals)],
            [step < back for step in range(alone)],
            True,
        )
        for i, (n, back) in enumerate(zip(necessary, sufficient, strict=True))
    ]


def interval(records: list[dict], seed: int = 0) -> tuple[float, float, float]:
    branches = branch_frame.branch_frame(records)
    return tuple(one_row((branch_frame.CAPACITY,), branches, resampling.Bootstrap(seed)).values())


def test_the_interval_of_slrc_is_seeded_and_holds_the_estimate():
    rng = np.random.default_rng(3)
    necessary, sufficient = rng.binomial(5, 0.4, size=40), rng.binomial(5, 0.3, size=40)
    records = items(necessary, 5, sufficient, 5)
    value, low, high = interval(records, 1)
    assert value == pytest.approx(outcomes.slrc_of(necessary.mean() / 5, sufficient.mean() / 5))
    assert low < value < high
    assert interval(records, 1) == (value, low, high) != interval(records, 2)


def test_the_interval_of_slrc_draws_whole_items():
    """Ten items whose steps all agree are as uncertain as ten coin throws, not as a thousand."""
    halves = np.where(np.arange(10) % 2 == 0, 100, 0)
    _, low, high = interval(items(halves, 100, np.zeros(10), 100))
    assert high - low > 0.5
    # where all items agree, the ends are those of necessity and sufficiency
    least = stats.wilson(5, 5).low
    assert interval(items(np.full(5, 4), 4, np.zeros(5), 4)) == pytest.approx((1, least**2, 1))


@pytest.mark.parametrize("steps", [(0, 2), (2, 0)])
def test_there_is_no_slrc_without_one_of_the_measures(steps):
    removals, alone = steps
    assert np.isnan(interval(items(np.zeros(2), removals, np.zeros(2), alone))).all()


def test_kappa_of_a_worked_example():
    """45 yes/yes, 15 yes/no, 25 no/yes, 15 no/no: agreement .60, kappa .13."""
    left = [True] * 60 + [False] * 40
    right = [True] * 45 + [False] * 15 + [True] * 25 + [False] * 15
    assert stats.agreement(left, right) == pytest.approx(0.60)
    assert stats.kappa(left, right) == pytest.approx((0.60 - 0.54) / 0.46)


def test_kappa_against_the_confusion_matrix():
    rng = random.Random(0)
    left = [rng.choice("abc") for _ in range(300)]
    right = [x if rng.random() < 0.6 else rng.choice("abc") for x in left]
    table = np.zeros((3, 3))
    for a, b in zip(left, right, strict=True):
        table["abc".index(a), "abc".index(b)] += 1 / 300
    chance = table.sum(0) @ table.sum(1)
    expected = (np.trace(table) - chance) / (1 - chance)
    assert stats.kappa(left, right) == pytest.approx(expected)


def test_kappa_at_its_ends():
    assert stats.kappa([1, 0, 1, 0], [1, 0, 1, 0]) == 1
    assert stats.kappa([1, 0, 1, 0], [0, 1, 0, 1]) == -1
    assert math.isnan(stats.kappa([1, 1], [1, 1]))
    assert math.isnan(stats.kappa([], []))


def test_one_item_has_no_interval() -> None:
    """A bootstrap of one item, or one chain, would be a point: a certainty out of nothing."""
    one = stats.mean_of_items([0.5], resamples=50)
    assert (one.value, one.n) == (0.5, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    chains, truth = np.array(["a", "a"]), np.array([True, False])
    ranked = area(chains, truth, np.array([0.9, 0.1])).estimate()
    assert ranked.value == 1.0
    assert math.isnan(ranked.low)
    five = area(
        np.repeat(list("abcde"), 2),
        np.array([True, False] * 5),
        np.array([0.9, 0.1, 0.2, 0.8, 0.7, 0.3, 0.6, 0.5, 0.4, 0.45]),
    ).estimate()
    assert five.low < five.value < five.high


@pytest.mark.parametrize("n", range(1, 8))
def test_shares_always_have_an_interval_and_draws_of_fewer_than_five_items_none(n: int) -> None:
    outcomes = [i % 2 == 0 for i in range(n)]
    values = np.array(outcomes, dtype=float)
    how = resampling.Bootstrap(0, 50)
    items = [str(i) for i in range(n)]
    shares = {
        "wilson": stats.share(outcomes),
        "newcombe": stats.paired_difference(outcomes, outcomes[::-1]),
        "difference": stats.difference(stats.share(outcomes), stats.share(outcomes)),
        "mean": stats.mean_of_items(outcomes),
        "drawn": resampling.means(items, {"x": np.array(outcomes)}, how=how)["x"],
        # many rows of few clusters tell no more than these
        "clusters": resampling.means(items * 9, {"x": np.tile(outcomes, 9)}, how=how)["x"],
    }
    drawn = {
        "bootstrap": stats.mean_of_items(values / 3, resamples=50),
        "ranks": resampling.means(items, {"x": values / 3}, how=how)["x"],
    }
    for of, none in ((shares, False), (drawn, n < 5)):
        for name, estimate in of.items():
            row = tidy.columns(name, estimate)
            assert not math.isnan(row[name])
            ends = [math.isnan(row[f"{name}_{end}"]) for end in ("low", "high")]
            assert ends == [none] * 2, name
    one, many = shares["wilson"], shares["clusters"]
    assert many.high - many.low >= one.high - one.low - 1e-9


def test_draws_that_do_not_vary_give_no_interval() -> None:
    """That all items agree makes no certainty: a share keeps a width, all else has no interval."""
    how = resampling.Bootstrap(0, 50)
    alike = resampling.means(range(9), {"x": np.full(9, 2.5)}, how=how)["x"]
    assert (alike.value, math.isnan(alike.low), math.isnan(alike.high)) == (2.5, True, True)
    every = resampling.means(range(9), {"x": np.full(9, True)}, how=how)["x"]
    assert (every.value, every.low) == pytest.approx((1, stats.wilson(9, 9).low))


def test_a_weighted_share_counts_by_weight_and_knows_its_effective_size() -> None:
    outcomes, alone = np.array([1.0, 1.0, 0.0, 0.0]), np.arange(4)
    alike = stats.clustered_share(outcomes, alone, np.full(4, 2.5))
    assert alike == stats.share([True, True, False, False])
    unlike = stats.clustered_share(outcomes, alone, np.array([1.0, 1.0, 1.0, 5.0]))
    assert (unlike.value, unlike.n) == (0.25, 4)
    assert unlike.high - unlike.low > alike.high - alike.low
    none = stats.clustered_share(outcomes[:0], alone[:0])
    assert math.isnan(none.value)


def test_the_variance_of_a_clustered_share_is_that_of_a_ratio_of_sums() -> None:
    """Forty clusters of one to eight outcomes: the effective number, by Cochran's formula."""
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    ones = (rng.random(len(clusters)) < rng.random(40)[clusters]).astype(float)
    found = stats.clustered_share(ones, clusters)
    hits, sizes = (np.bincount(clusters, x) for x in (ones, np.ones(len(ones))))
    p = hits.sum() / sizes.sum()
    variance = 40 / 39 * ((hits - p * sizes) ** 2).sum() / sizes.sum() ** 2
    fewer = (norm.ppf(0.975) / t.ppf(0.975, 39)) ** 2
    wide = stats.wilson_of_items(p, p * (1 - p) / variance * fewer)  # pyright: ignore
    assert (found.value, found.low, found.high) == pytest.approx((p, wide.low, wide.high))


def mean_of(values: np.ndarray, clusters: np.ndarray | None = None) -> np.ndarray:
    """Value and ends of `clustered_means` of one group."""
    clusters = np.arange(len(values)) if clusters is None else clusters
    return np.ravel(stats.clustered_means(values, clusters, np.zeros(len(values), dtype=int), 1))


@pytest.mark.parametrize(("ones", "n"), [(0, 5), (3, 10), (7, 30), (10, 10), (1, 1), (1, 2)])
def test_the_interval_of_a_mean_of_yes_and_no_is_wilsons(ones: int, n: int) -> None:
    wilson = stats.wilson(ones, n)
    found = mean_of((np.arange(n) < ones).astype(float))
    assert found == pytest.approx([wilson.value, wilson.low, wilson.high])


def test_a_mean_of_shares_that_are_all_alike_has_the_interval_of_what_was_not_seen() -> None:
    """Forty items of one third: what was not drawn, z² / (n + z²) of all, may lie at 0 or 1."""
    unseen = (z := norm.ppf(0.975)) ** 2 / (40 + z**2)
    assert mean_of(np.full(40, 1 / 3)) == pytest.approx(
        [1 / 3, (1 - unseen) / 3, (1 - unseen) / 3 + unseen]
    )


def test_the_interval_of_a_mean_of_shares_is_within_wilsons_and_turns_with_the_shares() -> None:
    rng = np.random.default_rng(3)
    for n in (2, 5, 12, 40):
        values = rng.binomial(4, rng.random(n)) / 4
        value, low, high = mean_of(values)
        wilson = stats.wilson_of_items(value, n)
        assert wilson.low - 1e-12 <= low <= value <= high <= wilson.high + 1e-12
        assert mean_of(1 - values) == pytest.approx([1 - value, 1 - high, 1 - low])
        twice = mean_of(np.repeat(values, 2), np.repeat(np.arange(n), 2))
        assert twice == pytest.approx([value, low, high])
    assert np.isnan(mean_of(np.array([]), np.array([], dtype=int))).all()
    # half of the rows in one cluster tell less than rows that are spread evenly
    values = rng.binomial(4, 0.5, 40) / 4
    evenly, unevenly = np.repeat(np.arange(20), 2), np.maximum(np.arange(40) - 20, 0)
    one, other = mean_of(values, evenly), mean_of(values, unevenly)
    assert other[2] - other[1] > 1.3 * (one[2] - one[1])


def test_percentiles_are_expanded_as_hesterberg_says() -> None:
    """The tails of ten items are by Student's t with 9 degrees of freedom; of many, .025."""
    assert stats.tail(10) == pytest.approx(0.00855, abs=1e-4)
    assert stats.tail(100_000) == pytest.approx(0.025, abs=1e-4)
    assert math.isnan(stats.tail(4))


def covered(theta: float, m: int, n: int, rng: np.random.Generator, runs: int) -> float:
    """How often the interval of an AUROC holds its true value, of normal scores."""
    positive = np.arange(m + n) < m
    inside = 0
    for _ in range(runs):
        score = rng.normal(size=m + n) + math.sqrt(2) * norm.ppf(theta) * positive
        found = area(np.arange(m + n), positive, score).estimate()
        inside += found.low <= theta <= found.high
    return inside / runs


@pytest.mark.parametrize("theta", [0.5, 0.8, 0.95, 0.98])
def test_the_interval_of_an_auroc_covers_near_its_ceiling_too(theta: float) -> None:
    assert covered(theta, 10, 10, np.random.default_rng(5), 200) >= 0.92


def test_an_auroc_of_many_rows_has_the_interval_of_delong() -> None:
    rng = np.random.default_rng(6)
    positive = np.arange(600) < 300
    score = rng.normal(size=600) * np.where(positive, 2, 1) + positive
    found = area(np.arange(600), positive, score)
    a, b = score[positive], score[~positive]
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    by_side = [wins.mean(axis=axis).var(ddof=1) / 300 for axis in (0, 1)]
    assert (found.influence**2).sum() == pytest.approx(sum(by_side))
    assert found.value == pytest.approx(wins.mean())
    half = 1.96 * math.sqrt(sum(by_side))
    assert found.bounds(1.96) == pytest.approx((found.value - half, found.value + half), abs=0.005)


@pytest.mark.parametrize("inverted", [0.0, 0.05, 0.1])
def test_a_copy_is_as_good_only_if_it_is(inverted: float) -> None:
    """A near copy that turns a share of the positive rows round; the bound is .05."""
    rng, positive = np.random.default_rng(7), np.arange(200) < 100
    said = []
    for _ in range(100):
        first = rng.normal(size=200) + 2 * positive
        second = first + 0.3 * rng.normal(size=200)
        second[positive & (rng.random(200) < inverted)] -= 20
        both = [area(np.arange(200), positive, of) for of in (first, second)]
        said.append(p_as_good(*both, 0.05) <= 0.05)
    assert np.mean(said) <= 0.05 if inverted else np.mean(said) >= 0.3
    # where both rank alike, nothing is shown
    same = area(np.arange(200), positive, np.exp(first))
    assert math.isnan(p_as_good(both[0], same, 0.05))
    assert math.isnan(behind(both[0], same).low)
