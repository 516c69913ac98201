"""Benchmark of a comparison's claims: how often its page is wrong about worlds with known truth.

`python benchmarks/conclusions.py` plays 204 simulated worlds (`--worlds` of each of six kinds, in
turn of one model and of three, with 5, 30 and 300 questions) through the tables and sentences of
`faithscope compare`, and writes `benchmarks/results/conclusions_<machine>.csv`: a row per kind of
claim, kind of world and number of questions, with the number of worlds in which the claim was made,
in which it was false, and in which it was right among those where it could be. At most one world of
twenty may have a false claim of a kind. No model is run.

`--verdicts ROUNDS` plays instead the worlds of `verdict_worlds.py`, of intervals and verdicts that
follow from them, and writes their table into `docs/conclusions.md`.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import verdict_worlds

from faithscope.experiments.analysis.comparison.compared import sentence_tables
from faithscope.experiments.analysis.comparison.conclusions import Sentence, answers
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
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.textual import to_markdown
from faithscope.experiments.studies.compare.config import CompareReport

CLAIMS = ("best", "as_good", "wrong_way", "gain", "agreement", "reversed", "disagreements")
QUESTIONS, MODELS = (5, 30, 300), (1, 3)
LABEL = "faithful"
DOCS = Path(__file__).parents[1] / "docs/conclusions.md"
MARKS = "<!-- worlds -->", "<!-- end of worlds -->"


@dataclass
class World:
    """Scores of (models, questions) traces, and the true claims about them."""

    label: np.ndarray
    """(models, questions) 1 for a faithful trace, 0 for others."""
    measures: dict[str, np.ndarray]
    true: dict[str, set[str]] = field(default_factory=dict)
    """Claim -> the measures of which it may be made; pairs stand in either order."""
    says: dict[str, set[str]] = field(default_factory=dict)
    """Claim -> the measures of which it should be made."""


def noise(rng: np.random.Generator, shape: tuple[int, int], n: int) -> dict[str, np.ndarray]:
    """Measures independent of the label and of each other: some with many values and some with few,
    some that depend on the question, all different between models."""
    models, questions = shape
    values = rng.normal(size=(n, models, questions)) + 2 * rng.normal(size=(n, models, 1))
    values[::4] += rng.normal(size=(len(values[::4]), 1, questions))
    values[1::4] = values[1::4] > values[1::4].mean(axis=(1, 2), keepdims=True)
    values[2::4] *= rng.random(values[2::4].shape) < 0.3
    return {f"noise {i}": of for i, of in enumerate(values)}


def labels(rng: np.random.Generator, shape: tuple[int, int], *rates: float) -> np.ndarray:
    rate = np.resize(rates, shape[0])[:, None]
    # half of what makes a trace faithful depends on its question
    own, of_question = rng.random(shape), rng.random((1, shape[1]))
    return np.where(rng.random(shape) < 0.5, own, of_question) < rate


def pure_noise(n: int) -> Callable[[np.random.Generator, tuple[int, int]], World]:
    def world(rng: np.random.Generator, shape: tuple[int, int]) -> World:
        return World(labels(rng, shape, 0.5, 0.6, 0.4), noise(rng, shape, n))

    return world


def one_true(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """One of twelve measures tells the traces of a model apart (AUROC .80), and no other."""
    label = labels(rng, shape, 0.5, 0.6, 0.4)
    true = 1.19 * label + rng.normal(size=shape)
    named = {"best": {"true"}}
    return World(label, noise(rng, shape, 11) | {"true": true}, named, named)


def three_true(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """A measure (AUROC .80), its cheaper near copy, and a worse one (AUROC .70) with independent
    noise; one more points the wrong way (.30)."""
    label = labels(rng, shape, 0.5, 0.6, 0.4)
    true = 1.19 * label + rng.normal(size=shape)
    of = {"copy": true + 0.15 * rng.normal(size=shape), "true": true}
    of |= {"worse": 0.742 * label + rng.normal(size=shape)}
    of |= {"wrong": -0.742 * label + rng.normal(size=shape)}
    pairs = {f"{a}|{b}" for a in of for b in of}
    may = {"best": {"true", "copy", "worse"}, "as_good": {"true", "copy"}, "wrong_way": {"wrong"}}
    # measures of one label are correlated, and complement each other
    may |= {"agreement": pairs, "reversed": pairs, "gain": {"logistic regression"}}
    may["gain"] |= {"gradient-boosted trees"}
    says = {"best": {"true"}, "as_good": {"copy", "true"}, "wrong_way": {"wrong"}}
    return World(label, of | noise(rng, shape, 8), may, says)


def simpson(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """Models (of one model, its tasks) are faithful in .9, .5 and .1 of their traces, and half the
    measures know which model it is, and nothing more."""
    shape = (max(2, shape[0]), shape[1])
    label = labels(rng, shape, 0.9, 0.1, 0.5)
    known = np.resize([2.0, -2.0, 0.0], shape[0])[:, None]
    of = noise(rng, shape, 12)
    of |= {f"model {i}": known + rng.normal(size=shape) for i in range(6)}
    return World(label, of)


def exclusions(rng: np.random.Generator, shape: tuple[int, int]) -> World:
    """Noise whose missing values depend on the outcome: every second measure lacks a third of the
    unfaithful traces, and half of these measures lack just those that speak against them."""
    world = pure_noise(24)(rng, shape)
    for i, of in enumerate(world.measures.values()):
        if i % 2:
            against = of > np.median(of) if i % 4 == 1 else np.ones(shape, dtype=bool)
            share = 0.6 if i % 4 == 1 else 0.33
            of[~world.label & against & (rng.random(shape) < share)] = np.nan
    return world


WORLDS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], World]] = {
    "noise, 12 measures": pure_noise(12),
    "noise, 60 measures": pure_noise(60),
    "one true measure": one_true,
    "three true measures": three_true,
    "Simpson": simpson,
    "exclusions": exclusions,
}


def scores_of(world: World, one_model: bool) -> Scores:
    """The world as scores of a run; with one model, its rows are tasks."""
    places = [
        {"dataset": "world", "task": f"t{m}" if one_model else "t"}
        | {"item": f"i{q}", "model": "m" if one_model else f"m{m}"}
        for m in range(len(world.label))
        for q in range(world.label.shape[1])
    ]
    items = [
        item_row(
            place | {"probe": name},
            name,
            FAMILIES[i % 4],
            float(value),
            higher_is_faithful=True,
            forwards=float(i + 1),
        )
        for i, (name, of) in enumerate(world.measures.items())
        for place, value in zip(places, of.ravel(), strict=True)
    ]
    items += [
        label_row(place, LABEL, float(value))
        for place, value in zip(places, world.label.ravel(), strict=True)
    ]
    traces = [
        trace_row(place, question=place["item"], reasoning=f"{i}", n_steps=3, n_tokens=10 + i % 7)
        for i, place in enumerate(places)
    ]
    return frames(items, traces)


def sentences(world: World, one_model: bool, seed: int, bootstrap: int) -> list[Sentence]:
    """The first sentences of this world's page, by the functions that write the page."""
    joined = join({"world": scores_of(world, one_model)}, None, "text")
    report, how = CompareReport(bootstrap=bootstrap), Bootstrap(seed, bootstrap)
    of_labels = targets(joined, report.folds, seed)
    against = against_tables(joined, of_labels, how, parts=False)["against"]
    tables = sentence_tables(joined, of_labels, how, report, against)
    return answers(tables, joined, report.as_good)


class Held(NamedTuple):
    """One claim of one world's page."""

    said: bool
    false: bool
    right: bool
    """Whether every right claim of this kind was made."""


def held(world: World, said: list[Sentence], claim: str) -> Held:
    of = [sentence.of for sentence in said if sentence.claim == claim]
    named = {name for names in of for name in names}
    may = world.true.get(claim, set())
    right = bool(named & world.says.get(claim, set()))
    return Held(bool(of), bool(named - may), right)


def played(kind: str, i: int, bootstrap: int) -> list[dict[str, object]]:
    """Rows, one per claim, of the i-th world of a kind."""
    questions, models = QUESTIONS[i % 3], MODELS[i // 3 % 2]
    world = WORLDS[kind](np.random.default_rng([i, *kind.encode()]), (models, questions))
    said = sentences(world, models == 1, i, bootstrap)
    about = {"world": kind, "questions": questions, "models": models}
    return [
        about
        | {"claim": claim, "can_be_right": bool(world.says.get(claim))}
        | held(world, said, claim)._asdict()
        for claim in CLAIMS
    ]


def counted(rows: list[dict[str, object]]) -> pd.DataFrame:
    """Counts per kind of claim, kind of world and number of questions; `all` is the total."""
    frame = pd.DataFrame(rows)
    every = [frame.assign(world="all", questions="all"), frame.assign(questions="all"), frame]
    table = (
        pd.concat(every)
        .groupby(["claim", "world", "questions"], sort=False)
        .agg(
            worlds=("said", "size"),
            said=("said", "sum"),
            false=("false", "sum"),
            can_be_right=("can_be_right", "sum"),
            right=("right", "sum"),
        )
    )
    return table.assign(share_false=(table["false"] / table["worlds"]).round(3)).reset_index()


def write_into(path: Path, table: str) -> None:
    """Replaces the table between the two marks of a page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    path.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, default=34, help="of each of the six kinds")
    parser.add_argument("--first", type=int, default=0, help="number of the first world of a kind")
    parser.add_argument("--bootstrap", type=int, default=200)
    parser.add_argument("--verdicts", type=int, default=0, help="rounds of about four worlds a row")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    if args.verdicts:
        write_into(DOCS, to_markdown(verdict_worlds.counted(args.verdicts).astype(str)))
        return
    path = Path(__file__).parent / "results" / f"conclusions_{args.machine}.csv"
    rows, began = [], time.monotonic()
    for i in range(args.first, args.first + args.worlds):
        for kind in WORLDS:
            rows += (of_world := played(kind, i, args.bootstrap))
            false = [row["claim"] for row in of_world if row["false"]]
            about = f"{kind}, {of_world[0]['questions']} questions, {of_world[0]['models']} models"
            seconds = time.monotonic() - began
            print(
                f"{seconds:6.0f} s  {i + 1 - args.first}/{args.worlds} {about}: {false}", flush=True
            )
        # stopped early, the file holds the complete rounds
        table = counted(rows)
        table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        table.to_csv(path, index=False)
    print(counted(rows).to_string(index=False))


if __name__ == "__main__":
    main()
