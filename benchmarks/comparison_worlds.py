"""Worlds with a known truth for the sentences of comparisons, and the sentences of their pages.

A world has the scores of some measures of (models, questions) traces, their labels, and the claims
that are true of them. `said` gives the sentences that `faithscope compare` and `compare_model`
would print of them, whatever their kind. `quick` makes the tests of the product cheaper: fewer
exchanges, and only trees for all measures together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

import numpy as np

from faithscope.experiments.analysis.comparison import combining
from faithscope.experiments.analysis.comparison.compared import sentence_tables
from faithscope.experiments.analysis.comparison.conclusions import (
    Claim,
    Sentence,
    answers,
    together,
)
from faithscope.experiments.analysis.comparison.headline import KINDS, Primary, headline_table
from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.comparison.scores import (
    FAMILIES,
    Scores,
    frames,
    item_row,
    label_row,
    trace_row,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import against_tables, targets
from faithscope.experiments.analysis.statistics import agreement, exchanging
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.words import agreement_sentences

CLAIMS = tuple(claim for claim in get_args(Claim) if claim)
EXCHANGES, BOOTSTRAP = 1_000, 50
LABEL, TRUE = "faithful", "true"
Rng = np.random.Generator
Shape = tuple[int, int]


@dataclass
class World:
    """Scores of (models, questions) traces, and the true claims about them."""

    label: np.ndarray
    """(models, questions) 1 for a faithful trace, 0 for others."""
    measures: dict[str, np.ndarray]
    """Measure -> (models, questions) scores, in turn of each family, judges fourth."""
    true: dict[str, set[str]] = field(default_factory=dict)
    """Claim -> the measures of which it may be made; pairs stand in either order."""
    says: dict[str, set[str]] = field(default_factory=dict)
    """Claim -> the measures of which it should be made."""
    question: np.ndarray | None = None
    """(questions,) number of the question that each is a copy of; all differ if not given."""

    @property
    def primaries(self) -> dict[str, str]:
        """Kind of evidence -> the measure that stands for it: the first of its family."""
        return dict(zip(KINDS, self.measures, strict=False))


def labels(rng: Rng, shape: Shape, *rates: float) -> np.ndarray:
    rate = np.resize(rates, shape[0])[:, None]
    # half of what makes a trace faithful depends on its question
    own, of_question = rng.random(shape), rng.random((1, shape[1]))
    return np.where(rng.random(shape) < 0.5, own, of_question) < rate


def noise(rng: Rng, shape: Shape, n: int) -> dict[str, np.ndarray]:
    """Measures independent of the label and of each other: some with many values and some with few,
    some that depend on the question, all different between models."""
    models, questions = shape
    values = rng.normal(size=(n, models, questions)) + 2 * rng.normal(size=(n, models, 1))
    values[::4] += rng.normal(size=(len(values[::4]), 1, questions))
    values[1::4] = values[1::4] > values[1::4].mean(axis=(1, 2), keepdims=True)
    values[2::4] *= rng.random(values[2::4].shape) < 0.3
    return {f"noise {i}": of for i, of in enumerate(values)}


def pairs_of(*names: str) -> set[str]:
    return {f"{a}|{b}" for a in names for b in names}


def pure_noise(n: int) -> Callable[[Rng, Shape], World]:
    def world(rng: Rng, shape: Shape) -> World:
        return World(labels(rng, shape, 0.5, 0.6, 0.4), noise(rng, shape, n))

    return world


def one_true(rng: Rng, shape: Shape, noisy: float = 0.0) -> World:
    """One of nine measures tells the traces of a model apart (AUROC .86), and no other. A share of
    the labels may be wrong."""
    label = labels(rng, shape, 0.5, 0.6, 0.4)
    measures = {TRUE: 1.53 * label + rng.normal(size=shape)} | noise(rng, shape, 8)
    label = np.where(rng.random(shape) < noisy, ~label, label)
    return World(label, measures, {"best": {TRUE}}, {"best": {TRUE}})


def three_true(rng: Rng, shape: Shape) -> World:
    """A measure (AUROC .86), its cheaper near copy, and a worse one (AUROC .70) with independent
    noise; one more points the wrong way (.14)."""
    label = labels(rng, shape, 0.5, 0.6, 0.4)
    true = 1.53 * label + rng.normal(size=shape)
    of = {"copy": true + 0.15 * rng.normal(size=shape), TRUE: true}
    of |= {"worse": 0.742 * label + rng.normal(size=shape)}
    of |= {"wrong": -1.53 * label + rng.normal(size=shape)}
    may = {"best": {TRUE, "copy", "worse"}, "as_good": {TRUE, "copy"}, "wrong_way": {"wrong"}}
    # measures of one label are correlated, and complement each other
    may |= {
        "agreement": pairs_of(*of),
        "reversed": pairs_of(*of),
        "gain": set(CLASSIFIERS),
    }
    alike, wrong = pairs_of("copy", TRUE, "worse"), {f"{name}|wrong" for name in of}
    may |= {"pair_alike": alike, "pair_opposite": wrong}
    # judges that point the wrong way call unfaithful what behaviour and internals do not
    may |= {"disagreements": {"judged_faithful_unused_inside"}}
    may["disagreements"] |= {"judged_unfaithful_used_inside"}
    says = {"best": {TRUE}, "as_good": {"copy", TRUE}, "wrong_way": {"wrong"}}
    says |= {"pair_alike": {f"copy|{TRUE}"}, "agreement": {f"copy|{TRUE}"}}
    says |= {"pair_opposite": {"copy|wrong"}}
    return World(label, of | noise(rng, shape, 4), may, says)


def one_truth(rng: Rng, shape: Shape) -> World:
    """All kinds of evidence measure one thing, each with noise, and the label says nothing of
    it."""
    truth = rng.normal(size=shape)
    of = {name: truth + 0.6 * rng.normal(size=shape) for name in "abcd"}
    may = {c: pairs_of(*of) for c in ("agreement", "pair_alike", "reversed")}
    says = {claim: pairs for claim, pairs in may.items() if claim != "reversed"}
    return World(labels(rng, shape, 0.5), of | noise(rng, shape, 4), may, says)


def complementary(rng: Rng, shape: Shape) -> World:
    """Three measures see a part of what makes a trace faithful each, and two are a gain over
    one."""
    parts = rng.normal(size=(3, *shape))
    of = {f"part {i}": part for i, part in enumerate(parts)} | noise(rng, shape, 3)
    gain = set(CLASSIFIERS)
    may: dict[str, set[str]] = {"best": {"part 0", "part 1", "part 2"}, "gain": gain}
    return World(parts.sum(axis=0) > 0, of, may, {"gain": gain})


def simpson(rng: Rng, shape: Shape) -> World:
    """Models (of one model, its tasks) are faithful in .9, .5 and .1 of their traces, and half the
    measures know which model it is, and nothing more."""
    shape = (max(2, shape[0]), shape[1])
    label = labels(rng, shape, 0.9, 0.1, 0.5)
    known = np.resize([2.0, -2.0, 0.0], shape[0])[:, None]
    of = noise(rng, shape, 4) | {f"model {i}": known + rng.normal(size=shape) for i in range(4)}
    return World(label, of)


def turned_between(rng: Rng, shape: Shape) -> World:
    """Two measures rank the traces of each of three models alike, and the models the other way
    round."""
    shape = (3, shape[1])
    truth, level = rng.normal(size=shape), np.array([-6.0, 0, 6])[:, None]
    of = {"a": truth + level, "b": truth + 0.4 * rng.normal(size=shape) - level}
    pairs = pairs_of(*of)
    may = {c: pairs for c in ("agreement", "reversed", "pair_alike")}
    says = {claim: {"a|b"} for claim in ("reversed", "agreement")}
    return World(labels(rng, shape, 0.5), of | noise(rng, shape, 4), may, says)


def kinds_apart(rng: Rng, shape: Shape) -> World:
    """Judges call faithful what the model's internals hardly use, and the other way round."""
    truth = rng.normal(size=shape)
    of = noise(rng, shape, 8)
    of |= {name: truth + 0.4 * rng.normal(size=shape) for name in ("noise 2", "noise 6")}
    of |= {name: -truth + 0.4 * rng.normal(size=shape) for name in ("noise 3", "noise 7")}
    pairs = pairs_of(*(f"noise {i}" for i in (2, 3, 6, 7)))
    both = {"judged_faithful_unused_inside", "judged_unfaithful_used_inside"}
    may = {"agreement": pairs, "reversed": pairs, "disagreements": both}
    may |= {"pair_opposite": {"noise 2|noise 3"}}
    says = {claim: of for claim, of in may.items() if claim != "reversed"}
    return World(labels(rng, shape, 0.5), of, may, says)


def gaps_by_outcome(rng: Rng, shape: Shape) -> World:
    """Noise whose missing values depend on the outcome: every second measure lacks a third of the
    unfaithful traces, and half of these measures lack just those that speak against them."""
    world = pure_noise(8)(rng, shape)
    for i, of in enumerate(world.measures.values()):
        if i % 2:
            against = of > np.median(of) if i % 4 == 1 else np.ones(shape, dtype=bool)
            share = 0.6 if i % 4 == 1 else 0.33
            of[~world.label & against & (rng.random(shape) < share)] = np.nan
    return world


def gaps_by_score(rng: Rng, shape: Shape) -> World:
    """Noise, of which every second measure leaves out the third in the middle of its own scores."""
    world = pure_noise(8)(rng, shape)
    for of in list(world.measures.values())[1::2]:
        of[:] = rng.normal(size=shape)
        of[np.abs(of) < 0.43] = np.nan
    return world


def ties(rng: Rng, shape: Shape) -> World:
    """Noise of two and three values, and labels that are mostly 1."""
    values = {f"tied {i}": rng.binomial(1 + i % 2, 0.2 + 0.1 * (i % 4), shape) for i in range(8)}
    return World(labels(rng, shape, 0.8), {name: of.astype(float) for name, of in values.items()})


def ceiling(rng: Rng, shape: Shape) -> World:
    """A perfect measure, and a near copy that inverts one in 14 of the unfaithful."""
    label = labels(rng, shape, 0.5)
    true = 9.0 * label + rng.normal(size=shape)
    other = np.where(~label & (rng.random(shape) < 1 / 14), true + 30, true)
    of = {TRUE: true, "inverts": other + 0.1 * rng.normal(size=shape)}
    may = {"best": set(of), "agreement": pairs_of(*of), "reversed": pairs_of(*of)}
    may |= {"pair_alike": pairs_of(*of)}
    return World(label, of | noise(rng, shape, 6), may, {"best": {TRUE}})


def floor(rng: Rng, shape: Shape) -> World:
    """Measures that hardly vary: most of their scores are 0, some of them all."""
    rare = {f"rare {i}": (rng.random(shape) < 0.03 * i).astype(float) for i in range(8)}
    return World(labels(rng, shape, 0.9), rare)


def behind_by(gap: float) -> Callable[[Rng, Shape], World]:
    """A measure of AUROC .90, and a correlated one that is a gap behind."""

    def world(rng: Rng, shape: Shape) -> World:
        shape = (shape[0], 2 * shape[1])
        label, shared, *own = labels(rng, shape, 0.5), *rng.normal(size=(3, *shape))
        # AUROCs of .90 and .90 - gap
        apart = {0.0: 1.812, 0.05: 1.466, 0.1: 1.190}[gap]
        of = {
            name: size * label + math.sqrt(0.95) * shared + math.sqrt(0.05) * noise_
            for name, size, noise_ in zip((TRUE, "other"), (1.812, apart), own, strict=True)
        }
        may = {"best": set(of), "agreement": pairs_of(*of), "reversed": pairs_of(*of)}
        may |= {"pair_alike": pairs_of(*of)}
        may |= {"as_good": set(of)} if not gap else {}
        says = {"best": {TRUE}} | ({"as_good": set(of)} if not gap else {})
        return World(label, of | noise(rng, shape, 4), may, says)

    return world


def copies(rng: Rng, shape: Shape) -> World:
    """Every question stands in the data four times, with another suffix, and gets nearly the same
    label and scores each time."""
    shape = (shape[0], 4 * math.ceil(shape[1] / 4))
    of = np.arange(shape[1]) // 4
    base = pure_noise(8)(rng, (shape[0], int(of.max()) + 1))
    scores = {
        name: x[:, of] + 0.05 * rng.normal(size=shape) * x.std()
        for name, x in base.measures.items()
    }
    return World(base.label[:, of], scores, question=of)


def dominating(rng: Rng, shape: Shape) -> World:
    """One question has a third of all items, which get nearly the same label and scores."""
    first = np.arange(shape[1]) < shape[1] / 3
    world = pure_noise(8)(rng, shape)
    for x in (world.label, *world.measures.values()):
        x[:, first] = x[:, :1]
    for x in world.measures.values():
        x += 0.05 * rng.normal(size=shape) * x.std()
    world.question = np.where(first, 0, np.arange(shape[1]))
    return world


def drift(rng: Rng, shape: Shape) -> World:
    """Later items are faithful more often, and half the measures rise with the place of an item."""
    place = np.linspace(-1, 1, shape[1])
    of = noise(rng, shape, 4)
    of |= {f"rises {i}": 1.5 * place + rng.normal(size=shape) for i in range(4)}
    return World(rng.random(shape) < 0.5 + 0.4 * place, of)


def judge_of_labels(rng: Rng, shape: Shape) -> World:
    """The labels are verdicts of a judge, whose scores are measured, too."""
    of = noise(rng, shape, 8)
    of["noise 3"] = rng.normal(size=shape)
    return World(of["noise 3"] > 0, of)


def one_question_of_models(rng: Rng, shape: Shape) -> World:
    """Three models answer each question nearly alike: labels and scores hang on the question."""
    base = pure_noise(8)(rng, (1, shape[1]))
    scores = {name: x + 0.1 * rng.normal(size=(3, shape[1])) for name, x in base.measures.items()}
    return World(np.repeat(base.label, 3, axis=0), scores)


def lengths(rng: Rng, shape: Shape) -> World:
    """Scores are means over 2 to 60 steps, so that those of short chains spread more, and longer
    chains are faithful more rarely."""
    n = np.maximum(2, np.round(np.exp(rng.normal(2, 1, shape)))).clip(max=60)
    values = {f"mean {i}": rng.binomial(n.astype(int), 0.3) / n for i in range(8)}
    return World(rng.random(shape) < 0.7 - 0.005 * n, values)


WORLDS: Mapping[str, Callable[[Rng, Shape], World]] = {
    "noise, 8 measures": pure_noise(8),
    "noise, 24 measures": pure_noise(24),
    "one true measure": one_true,
    "label noise": lambda rng, shape: one_true(rng, shape, 0.15),
    "three true measures": three_true,
    "one truth under all kinds": one_truth,
    "parts of the truth": complementary,
    "judges against internals": kinds_apart,
    "models differ, traces do not": simpson,
    "turned round between models": turned_between,
    "gaps that depend on the label": gaps_by_outcome,
    "gaps that depend on the score": gaps_by_score,
    "ties": ties,
    "ceiling": ceiling,
    "floor": floor,
    "gap 0": behind_by(0.0),
    "gap 0.05": behind_by(0.05),
    "gap 0.1": behind_by(0.1),
    "copies of questions, grouped": copies,
    "one dominating question": dominating,
    "drift": drift,
    "a judge made the labels": judge_of_labels,
    "models answer alike": one_question_of_models,
    "unequal lengths": lengths,
}


def scores_of(world: World, one_model: bool) -> Scores:
    """The world as scores of a run; with one model, its rows are tasks."""
    models, questions = world.label.shape
    question = np.arange(questions) if world.question is None else world.question
    places = [
        {"dataset": "world", "task": f"t{m}" if one_model else "t"}
        | {"item": f"i{q:03}", "model": "m" if one_model else f"m{m}"}
        for m in range(models)
        for q in range(questions)
    ]
    items = [
        item_row(
            place | {"probe": name},
            *(name, FAMILIES[i % 4], 1 / (1 + math.exp(-value))),
            higher_is_faithful=True,
            probability=True,
            forwards=float(i + 1),
        )
        for i, (name, of) in enumerate(world.measures.items())
        for place, value in zip(places, of.ravel(), strict=True)
    ]
    items += [
        label_row(place, LABEL, float(value))
        for place, value in zip(places, world.label.ravel(), strict=True)
    ]
    asked = np.tile(question, models)
    traces = [
        trace_row(place, question=f"q{q}", reasoning=f"{i}", n_steps=3, n_tokens=10 + i % 7)
        for i, (place, q) in enumerate(zip(places, asked, strict=True))
    ]
    return frames(items, traces)


def quick() -> None:
    """Sets the product's number of exchanges and its classifiers to those of the worlds."""
    agreement.EXCHANGES = exchanging.EXCHANGES = EXCHANGES
    combining.CLASSIFIERS = CLASSIFIERS


def least_squares(
    features: np.ndarray, positive: np.ndarray, clusters: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """A linear classifier that costs next to nothing; gaps are means."""
    centre = np.nan_to_num(np.nanmean(features, axis=0))

    def filled(x: np.ndarray) -> np.ndarray:
        return np.column_stack([np.where(np.isnan(x), centre, x) - centre, np.ones(len(x))])

    weights = np.linalg.lstsq(filled(features), positive.astype(float), rcond=None)[0]
    return lambda x: filled(x) @ weights


CLASSIFIERS = {"least squares": least_squares}


def said(world: World, one_model: bool, seed: int) -> list[Sentence]:
    """The first sentences of this world's pages, by the functions that write the pages, but those
    on all measures together."""
    joined = join({"world": scores_of(world, one_model)}, None, "text")
    report, how = CompareReport(bootstrap=BOOTSTRAP), Bootstrap(seed, BOOTSTRAP)
    of_labels = [replace(of, fold=None) for of in targets(joined, report.folds, seed)]
    against = against_tables(joined, of_labels, how, parts=False)["against"]
    tables = sentence_tables(joined, of_labels, how, report, against)
    primaries = {kind: Primary((name,), True) for kind, name in world.primaries.items()}
    headline = headline_table(joined, primaries, seed)
    return [*answers(tables, joined, report.as_good), *agreement_sentences(headline)]


def said_together(world: World, seed: int) -> list[Sentence]:
    """The sentences on all measures together."""
    joined = join({"world": scores_of(world, True)}, None, "text")
    of_labels = targets(joined, CompareReport().folds, seed)
    table = combining.combined_table(of_labels, Bootstrap(seed, BOOTSTRAP))
    return [*together({"combined": table}, LABEL)]


class Held(NamedTuple):
    """One claim of one world's page."""

    said: bool
    false: bool
    right: bool
    """Whether a right claim of this kind was made."""


def held(world: World, sentences: list[Sentence], claim: str) -> Held:
    """What sentences say of one claim. Kinds of evidence stand for their primary measures."""
    of = [sentence.of for sentence in sentences if sentence.claim == claim]
    names = {name for names in of for name in names}
    if claim.startswith("pair"):
        names = {"|".join(world.primaries[k] for k in name.split("|")) for name in names}
    may, says = (x.get(claim, set()) for x in (world.true, world.says))
    return Held(bool(of), bool(names - may), bool(names & says))
