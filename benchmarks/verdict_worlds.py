"""Worlds with a known truth for the intervals and verdicts that tables, `reproduce` and pages give.

A world draws one sample and has a number, an interval and what is said of them made by the
functions that the product uses. `benchmarks/conclusions.py` plays them and writes their counts
into `docs/conclusions.md`; the tests play a few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from faithscope.experiments.analysis.cells import Boot, Groups, Share, ShareOfItems, StudentMean
from faithscope.experiments.analysis.published.cells import Cell
from faithscope.experiments.analysis.published.comparison import OUTSIDE, WITHIN, verdict
from faithscope.experiments.analysis.statistics.against_label import against_label
from faithscope.experiments.analysis.statistics.areas import area, p_as_good
from faithscope.experiments.analysis.statistics.resampling import Bootstrap, ratios, spearman
from faithscope.experiments.analysis.statistics.stats import (
    Estimate,
    difference,
    mean_of_items,
    wilson,
)
from faithscope.experiments.analysis.wording import VerdictWord
from faithscope.experiments.studies.c2faith import words as c2_words
from faithscope.experiments.studies.rfeval import words as rfeval_words
from faithscope.experiments.studies.slrc import words as slrc_words
from faithscope.experiments.studies.training import words as training_words

HOW = Bootstrap(0, 400)
SIZES, SHARES = (2, 4, 10, 20, 50), (0.02, 0.2, 0.5, 0.947)
LENGTHS = (0.0, 0.5, 1.0, 1.5)
"""Standard deviations of the logarithm of an item's number of steps."""
BOUND = 0.05
"""Distance in AUROC up to which a measure is called as good."""


@dataclass(frozen=True)
class Played:
    """One world: what is said of it, and whether that is false or misses the truth."""

    kind: str
    world: str
    false: bool
    missed: bool | None
    """None where there is nothing to miss."""


def _sample(
    rng: np.random.Generator, quantity: str, n: int, p: float
) -> tuple[float, float, float, float]:
    """Number, ends of its interval, and truth of a quantity of n cases with probability p."""
    hits, chains = rng.random(n) < p, np.arange(n)
    if quantity == "mean of yes and no":
        return *_of(mean_of_items(hits.tolist(), resamples=HOW.resamples)), p
    if quantity in ("detection", "net"):
        other, both = rng.random(n) < p / 2, np.ones(2 * n, dtype=bool)
        perturbed = np.arange(2 * n) < n
        flagged = np.concatenate([hits, other])
        found = ratios(
            np.tile(chains, 2),
            {
                "detection": (flagged & perturbed, perturbed),
                "fpr": (flagged & ~perturbed, ~perturbed & both),
            },
            minus={"net": ("detection", "fpr")},
            how=HOW,
        )
        return *_of(found[quantity]), p if quantity == "detection" else p / 2
    if quantity == "share of rows in clusters":
        # four rows of each of n clusters, which mostly agree
        rate = np.repeat(rng.beta(2 * p, 2 * (1 - p), n), 4)
        rows = pd.DataFrame({"x": rng.random(4 * n) < rate, "item": np.repeat(chains, 4)})
        return *_cell(Share("x", "x", cluster="item"), rows), p
    if quantity == "mean of fractions":
        frame = pd.DataFrame({"x": rng.beta(2 * p, 2 * (1 - p), n)})
        return *_cell(Boot("x", "x"), frame), p
    if quantity == "mean score of 0 to 4":
        frame = pd.DataFrame({"x": rng.binomial(4, p, n).astype(float)})
        return *_cell(Boot("x", "x"), frame), 4 * p
    if quantity in ("accuracy", "kappa"):
        label = rng.random(n) < 0.5
        flag = np.where(hits, label, ~label)
        found = against_label((quantity,), label, chains, HOW, flag=flag.astype(float))[quantity]
        return *_of(found), p if quantity == "accuracy" else 2 * p - 1
    if quantity == "AUROC":
        kind = np.arange(n) < n // 2
        score = rng.normal(size=n) + math.sqrt(2) * norm.ppf(max(p, 1 - p)) * kind
        found = against_label(("auroc",), kind, chains, HOW, score=score)["auroc"]
        return *_of(found), max(p, 1 - p)
    assert quantity == "Spearman"
    r = 2 * math.sin(math.pi / 6 * p)  # of normal values with a rank correlation of p
    x, noise = rng.normal(size=(2, n))
    found, _ = spearman(chains, x, r * x + math.sqrt(1 - r * r) * noise, HOW)
    return *_of(found), p


QUANTITIES = {
    "mean of yes and no": "%",
    "detection": "%",
    "net": "pp",
    "share of rows in clusters": "%",
    "mean of fractions": "%",
    "mean score of 0 to 4": "",
    "accuracy": "%",
    "kappa": "",
    "AUROC": "",
    "Spearman": "",
}
"""Quantity -> the unit in which a paper prints it."""


def _of(found: Estimate) -> tuple[float, float, float]:
    return found.value, found.low, found.high


def _cell(cell: Share | Boot, rows: pd.DataFrame) -> tuple[float, float, float]:
    made = cell.over(Groups(rows, np.zeros(len(rows), dtype=int), 1, HOW))
    value, low, high = (float(x[0]) for x in made.values())
    return value, low, high


def reproduced(
    rng: np.random.Generator, quantity: str, n: int, p: float, off: float = 0.0
) -> Played:
    """What `reproduce` says of a number whose printed value is true, or is off by so much."""
    value, low, high, truth = _sample(rng, quantity, n, p)
    unit = QUANTITIES[quantity]
    cell = Cell("t", {}, "x", 0.0, unit, 1 if unit else 3, None, "", "")
    printed = round((truth + off) * cell.scale, cell.decimals)
    cell = Cell("t", {}, "x", printed, unit, cell.decimals, None, "", "")
    value, low, high = (x * cell.scale for x in (value, low, high))
    said = "" if math.isnan(value) else verdict(cell, value, low, high, n).verdict
    kind = f"reproduce: {'outside' if not off else 'within'}"
    false = said == (OUTSIDE if not off else WITHIN)
    # with the printed value true there is nothing to find outside, and the other way round
    missed = None if not off else said != OUTSIDE
    return Played(kind, f"{quantity}, n = {n}", false, missed)


def _words(
    study: str, world: str, said: str, words: Mapping[str, VerdictWord], true: Mapping[str, bool]
) -> Iterator[Played]:
    """What a study's verdict says and misses, for each word that claims something."""
    for key, is_true in true.items():
        missed = said != key if is_true else None
        yield Played(f"{study}: {words[key].text}", world, said == key and not is_true, missed)


def judge_of_steps(
    rng: np.random.Generator, n: int, flagged: float, alarms: float
) -> Iterator[Played]:
    """The verdict on a judge that flags such shares of n broken and n sound steps."""
    hits, false = (wilson(int((rng.random(n) < p).sum()), n) for p in (flagged, alarms))
    said, tells = c2_words._word(difference(hits, false)), flagged - alarms >= c2_words.TELLS - 1e-9
    true = {"tells": tells, "little": not tells, "blind": not tells}
    yield from _words("c2faith", f"n = {n}", said, c2_words.WORDS, true)


def pairs_that_count(rng: np.random.Generator, n: int, rf: float) -> Iterator[Played]:
    """The verdict on a model of n pairs, two of each problem, of which such a share is faithful."""
    rate = np.repeat(rng.beta(2 * rf, 2 * (1 - rf), n // 2), 2)
    rows = pd.DataFrame({"x": rng.random(len(rate)) < rate, "item": np.arange(len(rate)) // 2})
    _, low, high = _cell(Share("x", "x", cluster="item"), rows)
    said = rfeval_words._word({"rf_low": low, "rf_high": high, "n_included": n})
    true = {"faithful": rf > 0.5, "unfaithful": rf < 0.5}
    yield from _words("rfeval", f"RF {rf:g}", said, rfeval_words.WORDS, true)


def trained(rng: np.random.Generator, gains: tuple[float, float, float]) -> Iterator[Played]:
    """The outcome of a training with such gains of the three measures, of five seeds with a
    standard deviation of .15."""
    row: dict[str, float] = {"accuracy": 1.0, "n_seeds": 5}
    for name, gain in zip(training_words.READ, gains, strict=True):
        frame = pd.DataFrame({"gain": gain + 0.15 * rng.normal(size=5), "seed": np.arange(5)})
        ends = _cell(StudentMean("gain", "gain", "seed"), frame)
        row |= dict(zip((f"{name}_gain{end}" for end in ("", "_low", "_high")), ends, strict=True))
    said, rises = training_words.outcome(row), tuple(gain > 0 for gain in gains)
    falls = tuple(gain < 0 for gain in gains)
    true = {
        training_words.USER: all(rises[1:]),
        training_words.SHAM: rises[0],
        training_words.LESS: all(falls[1:]) and not any(rises),
        training_words.MIXED: any(rises) or any(falls),
    }
    for of, is_true in true.items():
        # what moved is missed where nothing, or too little, is said of it
        quiet = (training_words.SAME, training_words.UNCLEAR)
        missed = said in quiet if is_true else None
        yield Played(f"training: {of.name}", f"gains {gains}", said is of and not is_true, missed)


def one_long_chain(rng: np.random.Generator) -> Iterator[Played]:
    """29 chains of three steps that nothing changes, and one of 120 that any step changes."""
    item = np.repeat(np.arange(30), [3] * 29 + [120])
    rows = pd.DataFrame({"x": (item == 29) & (rng.random(len(item)) < 0.99), "item": item})
    value, low, high = _cell(ShareOfItems("x", "x", cluster="item"), rows)
    said = slrc_words._word(Estimate(value, low, high, 30))
    true = {"uses": False, "little": True, "ignores": True}
    yield from _words("chains", "one dominating item", said, slrc_words.WORDS, true)


def steps_of_items(
    rng: np.random.Generator, sd: float, mean: float, n: int = 30
) -> Iterator[Played]:
    """The verdict on steps of items of unequal lengths, whose rate of changed answers goes with
    their length; the truth is the mean over items."""
    size = np.maximum(2, np.round(np.exp(rng.normal(1.6, sd, n)))).astype(int)
    # whether an item's steps matter goes with its length, in a way that leaves the mean
    rank = norm.cdf((np.log(size) - 1.6) / max(sd, 0.1)) if sd else rng.random(n)
    rate = np.clip(
        mean + (1 if mean < 0.5 else -1) * 0.5 * min(mean, 1 - mean) * (2 * rank - 1), 0, 1
    )
    own = rng.beta(np.maximum(2 * rate, 1e-3), np.maximum(2 * (1 - rate), 1e-3))
    item = np.repeat(np.arange(n), size)
    rows = pd.DataFrame({"x": rng.random(len(item)) < own[item], "item": item})
    value, low, high = _cell(ShareOfItems("x", "x", cluster="item"), rows)
    said = slrc_words._word(Estimate(value, low, high, n))
    # without any reasoning the answer changes rarely, or mostly
    without = rng.choice([0.03, 0.5])
    if said == "ignores":
        all_gone = wilson(int((rng.random(n) < without).sum()), n)
        said = "ignores" if slrc_words._changes_nothing(all_gone) else "single"
    true = {"uses": mean >= 0.3, "little": mean < 0.3, "single": mean < 0.3}
    true |= {"ignores": mean < 0.3 and without < 0.3}
    yield Played("chains: coverage", f"sd of log length {sd:g}", not low <= mean <= high, None)
    yield from _words("chains", f"rate {mean:g}", said, slrc_words.WORDS, true)


def alike_items(
    rng: np.random.Generator, k: int, usual: int, eps: float, n: int
) -> Iterator[Played]:
    """The verdict on items of k steps, of which `usual` change the answer in most items, and in
    others, drawn with probability `eps`, every step (or, where none does usually, one)."""
    changed = np.where(rng.random(n) < eps, k if usual else 1, usual)
    rows = pd.DataFrame(
        {"x": (np.arange(k) < changed[:, None]).ravel(), "item": np.repeat(np.arange(n), k)}
    )
    mean = ((1 - eps) * usual + eps * (k if usual else 1)) / k
    value, low, high = _cell(ShareOfItems("x", "x", cluster="item"), rows)
    said = slrc_words._word(Estimate(value, low, high, n))
    true = {"uses": mean >= 0.3, "little": mean < 0.3, "ignores": mean < 0.3}
    world = f"{usual} of {k} steps, others in {eps:.0%}"
    yield Played("chains: coverage", world, not low <= mean <= high, None)
    yield from _words("chains", world, said, slrc_words.WORDS, true)


def auroc_covered(rng: np.random.Generator, theta: float, n: int) -> Played:
    """Whether the interval of an AUROC of n + n traces leaves out its true value."""
    kind = np.arange(2 * n) < n
    score = rng.normal(size=2 * n) + math.sqrt(2) * norm.ppf(theta) * kind
    found = area(np.arange(2 * n), kind, score).estimate()
    return Played(
        "AUROC: coverage", f"true AUROC {theta:g}", not found.low <= theta <= found.high, None
    )


def pair(rng: np.random.Generator, world: str, gap: float, n: int) -> Played:
    """Whether the second of two measures of n + n traces is called as good as the first, which it
    is a gap in AUROC behind."""
    kind, noise = np.arange(2 * n) < n, rng.normal(size=(3, 2 * n))
    if world == "a copy that turns some round":
        first = noise[0] + 9 * kind
        second = first + 0.1 * noise[1]
        second[kind & (rng.random(2 * n) < gap)] -= 30
    elif world == "at the ceiling":
        first = noise[0] + 30 * kind
        second = noise[1] + (30 if not gap else math.sqrt(2) * norm.ppf(1 - gap)) * kind
    else:
        first, second = (math.sqrt(2) * norm.ppf(0.85 - g) * kind for g in (0, gap))
        first += math.sqrt(0.7) * noise[2] + math.sqrt(0.3) * noise[0]
        second += math.sqrt(0.7) * noise[2] + math.sqrt(0.3) * noise[1]
    one, other = (area(np.arange(2 * n), kind, of) for of in (first, second))
    said = p_as_good(one, other, BOUND) <= 0.05
    missed = None if gap >= BOUND else not said
    return Played("compare: as_good", f"{world}, gap {gap:g}", said and gap >= BOUND, missed)


def worlds(rng: np.random.Generator) -> Iterator[Played]:
    """One world of every kind, size and truth."""
    for quantity in QUANTITIES:
        for n in SIZES:
            for p in SHARES:
                yield reproduced(rng, quantity, n, p)
    for p in 2 * SHARES[1:3]:
        yield reproduced(rng, "detection", 50, p, 0.4)
    for sd in LENGTHS:
        for mean in (0.05, 0.2, 0.3, 0.5):
            yield from steps_of_items(rng, sd, mean)
    for theta in (0.5, 0.8, 0.95, 0.98):
        for n in (5, 10, 20, 30):
            yield auroc_covered(rng, theta, n)
    for world in ("correlated", "at the ceiling", "a copy that turns some round"):
        for gap in (0.0, 0.05, 0.1):
            for n in (5, 10, 30, 100):
                yield pair(rng, world, gap, n)
    for p in SHARES:
        for n in SIZES[2:]:
            for flagged in (0.05, 0.29, 0.4):
                yield from judge_of_steps(rng, 2 * n, min(1.0, p + flagged), p)
            yield from pairs_that_count(rng, n, 0.5)
            yield from pairs_that_count(rng, n, p)
        yield from one_long_chain(rng)
        for gains in ((0, 0, 0), (0.4, 0, 0), (0.3, 0.3, 0.3), (0, -0.4, -0.4), (0, 0.4, 0)):
            yield from trained(rng, gains)
    for k, usual in ((2, 0), (3, 0), (3, 1), (4, 1), (4, 2)):
        for eps in (0.02, 0.05, 0.2):
            for n in (10, 30, 100):
                yield from alike_items(rng, k, usual, eps, n)


def counted(played: Iterable[Played], by: Sequence[str] = ("kind", "world")) -> pd.DataFrame:
    """A row per kind and world: number of worlds, in how many of them what is said was false, the
    upper end of Wilson's interval of that rate, and in how many of those where something true could
    be said it was not."""
    frame = pd.DataFrame(map(vars, played)).astype({"missed": float})
    table = (
        frame.groupby([*by], sort=False)
        .agg(worlds=("false", "size"), false=("false", "sum"), missed=("missed", "mean"))
        .reset_index()
    )
    ends = [wilson(int(k), int(n)) for k, n in zip(table["false"], table["worlds"], strict=True)]
    rates = {"false": [of.value for of in ends], "false, at most": [of.high for of in ends]}
    return table.assign(**rates).round(3)
