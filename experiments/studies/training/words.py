"""What training made of planted models: an outcome per model and method, a sentence per outcome."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.tidy import count, keep, numbers, rows, where
from faithscope.experiments.analysis.wording import model_order, short
from faithscope.experiments.numerals import decimal, percent, significant
from faithscope.experiments.studies.training.config import START
from faithscope.experiments.studies.training.tables import beside_start

FEWEST_SEEDS = stats.FEWEST
"""Number of seeds below which there is no interval, so that nothing is said of a method."""
LEAST_RIGHT = 0.9
"""Accuracy below which a trained planted model has unlearned its task; before training it is 1."""
LEAST_GAIN = 0.1
"""Change below which no measure counts as moved, however sure it is."""
USE = ("regenerated", "right_despite_hint")
"""Measures of use: a model that only trips over gaps raises neither."""
ENDS = ("low", "high")
READ = ("necessity", *USE)
"""Measures by whose change an outcome is read."""


class Outcome(NamedTuple):
    """What training can make of a model."""

    name: str
    meaning: str


USER = Outcome(
    "Use of the steps rose",
    "Answers follow a corrupted step through the text written onward, and are right where the hint "
    "is wrong, more often than before",
)
SHAM = Outcome(
    "Only necessity is shown to rise",
    "Answers change more often when a step is removed, and of neither measure of use is it shown "
    "that it rose, which is a sham unless use was complete before or rose unseen",
)
LESS = Outcome("Use of the steps fell", "Both measures of use fell, and necessity did not rise")
MIXED = Outcome("Some measures moved", "What is shown to rise or fall is in none of the ways above")
UNCLEAR = Outcome(
    "The seeds disagree",
    f"A mean moved by {LEAST_GAIN} or more, but seeds differ so much that it may be chance",
)
SAME = Outcome("No change is shown", f"No mean rose or fell by {LEAST_GAIN} or more")
LOST = Outcome(
    "The task is lost",
    f"Fewer than {percent(LEAST_RIGHT)} of fresh questions are answered rightly, so that nothing "
    "can be said about the steps",
)
ALONE = Outcome("Nothing to compare with", f"Method {START} was not measured")


def outcome(row: Mapping[str, Any]) -> Outcome:
    """What training made of one model, by its accuracy and by the gains over the start.

    Args:
        row: `accuracy`, and of each measure in `READ` its gain with the ends of an interval, as
            columns of `training_planted` are named.
    """
    if row["accuracy"] < LEAST_RIGHT:
        return LOST
    gains = {name: row[f"{name}_gain"] for name in READ}
    if any(map(math.isnan, gains.values())):
        return ALONE
    if all(abs(gain) < LEAST_GAIN for gain in gains.values()):
        return SAME
    # the intervals are of single measures, and one of three may leave out zero by chance
    wider = stats.widened(int(row.get("n_seeds", 0)), len(READ))
    ends = {
        name: [gains[name] + wider * (row[f"{name}_gain_{end}"] - gains[name]) for end in ENDS]
        for name in READ
    }
    rose = {name for name, (low, _) in ends.items() if low > 0}
    fell = {name for name, (_, high) in ends.items() if high < 0}
    if all(abs(gains[name]) < LEAST_GAIN for name in rose | fell):
        return UNCLEAR
    if rose.issuperset(USE):
        return USER
    if rose == {"necessity"}:
        return SHAM
    return LESS if fell.issuperset(USE) and not rose else MIXED


def outcomes(
    planted: pd.DataFrame, seeds: pd.DataFrame
) -> dict[Outcome, list[tuple[str, str, str]]]:
    """Outcome -> (model, method, what it rests on) of the trainings that it came of.

    Args:
        planted: the table `training_planted`.
        seeds: the table `training_seeds`.
    """
    seeds = beside_start(seeds)
    came_of: dict[Outcome, list[tuple[str, str, str]]] = {}
    for row in sorted(rows(planted), key=lambda row: model_order(row["model"])):
        model, method = row["model"], row["method"]
        if method == START:
            continue
        of_seeds = where(seeds, model=model, method=method)
        agreeing = _agreeing(of_seeds)
        # equal seeds have no interval, and a change that all have is no chance of theirs
        known = {name: x for name, x in row.items() if not isinstance(x, float) or x == x}
        of = outcome(agreeing | known if row["n_seeds"] >= FEWEST_SEEDS else agreeing)
        rests_on = {LOST: _lost(of_seeds), SAME: ""}.get(of, _levels(row))
        came_of.setdefault(of, []).append((model, method, rests_on))
    order = (USER, SHAM, LESS, MIXED, UNCLEAR, SAME, LOST, ALONE)
    return {of: came_of[of] for of in order if of in came_of}


def sentences(planted: pd.DataFrame, seeds: pd.DataFrame) -> Iterator[str]:
    """Yields a sentence per outcome, which names the models and methods that it came of."""
    started = rows(where(planted, method=START))
    before = {row["model"]: f" ({_levels(row)})" for row in started}
    for of, pairs in outcomes(planted, seeds).items():
        named = [(model, f"{method} ({x})" if x else method) for model, method, x in pairs]
        yield listed(*of, named, before)


def listed(
    name: str,
    meaning: str,
    pairs: Iterable[tuple[str, str]],
    about: Mapping[str, str] | None = None,
) -> str:
    """A sentence about pairs of a model and a method.

    Args:
        about: model -> what stands behind its name.
    """
    methods: dict[str, list[str]] = {}
    for model, method in pairs:
        methods.setdefault(f"{short(model)}{(about or {}).get(model, '')}", []).append(method)
    each = "; ".join(f"{model} by {', '.join(of)}" for model, of in methods.items())
    return markup("<strong>{}.</strong> {}: {}.", name, meaning, each)


def how_to_read(planted: pd.DataFrame) -> str:
    """How outcomes were read, for the text above the sentences; empty without planted models."""
    trained = keep(planted, planted["method"] != START)
    if trained.empty:
        return ""
    said = [
        "The three numbers in brackets are necessity by removal, change by regeneration, and the "
        "share right where the hint is wrong: after a model’s name before training, after a "
        "method’s name at its end."
    ]
    enough = keep(trained, trained["n_seeds"] >= FEWEST_SEEDS)
    known = count(enough[[f"{name}_gain_low" for name in READ]].notna().to_numpy().ravel())
    if n := len(enough):
        said.append(
            "A measure rose or fell if the interval of its change (Student's t over seeds, at a "
            f"level that counts all {len(READ)} measures of a model and method) leaves out zero, "
            f"or if all seeds changed alike, which {len(READ) * n - known} of {len(READ) * n} "
            f"changes did; of {known} such intervals, about "
            f"{significant(known / 20 / len(READ))} leave out zero by chance."
        )
    if n < len(trained):
        said.append(
            f"{len(trained) - n} of {len(trained)} combinations of a model and a method: fewer "
            f"than {FEWEST_SEEDS} seeds, too few for an interval; there, a measure rose or fell if "
            "it did so in every seed, which describes these trainings and is no finding about a "
            "method."
        )
    control = where(trained, method="shuffled_reward")
    kept = keep(control, control["accuracy"] >= LEAST_RIGHT)
    moved = abs(numbers(kept[[f"{name}_gain" for name in READ]]))
    if not np.isnan(moved).all():
        said.append(
            "The control shuffled_reward, whose rewards say nothing about the rollouts, moved a "
            f"mean by up to {decimal(float(np.nanmax(moved)))}."
        )
    return " ".join(said)


def _agreeing(seeds: pd.DataFrame) -> dict[str, float]:
    """Means of some seeds, with the least and the largest gain as the ends of an interval: it
    excludes zero if all seeds agree."""
    values = {name: numbers(seeds[name]) for name in ("accuracy", *(f"{n}_gain" for n in READ))}
    row: dict[str, float] = {}
    for name, of in values.items():
        row |= {name: of.mean(), f"{name}_low": of.min(), f"{name}_high": of.max()}
    return row


def _levels(row: Mapping[str, Any]) -> str:
    return "\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}".join(decimal(row[name]) for name in READ)


def _lost(seeds: pd.DataFrame) -> str:
    """Text on how many seeds lost the task and what came of the others."""
    right = numbers(seeds["accuracy"])
    kept = keep(seeds, right >= LEAST_RIGHT)
    others = f"; the others: {outcome(_agreeing(kept)).name.lower()}" if len(kept) else ""
    lost = f"lost in {len(seeds) - len(kept)} of {len(seeds)} seeds"
    return f"right on {percent(float(right.mean()))}, {lost}{others}"
