"""Directions of another run, read on the states of this one; nothing is fitted.

A direction gives every chain a score, the product with its state at the direction's place and layer
plus the intercept, and every step one where the states of steps are stored. Of each label the
direction that was best in cross-validation, by the run that fitted it, is a score that comparisons
read: it was chosen without these chains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.cells import INCLUDED
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.comparison.scores import says_faithful
from faithscope.experiments.analysis.statistics.label_probes import MEANS, read_given
from faithscope.experiments.analysis.statistics.stats import NOTHING
from faithscope.experiments.analysis.tables import Table, computed_table
from faithscope.experiments.analysis.tidy import columns, keep
from faithscope.experiments.studies.slrc.label_probes.states import (
    STEP,
    Spot,
    States,
    label_values,
    settings_of,
    stored_states,
)
from faithscope.experiments.studies.slrc.label_probes.values import (
    ANOTHER_MODEL,
    ANOTHER_WIDTH,
    NO_LAYER,
    NO_PLACE,
    NO_SITE,
    AppliedScore,
)
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis

if TYPE_CHECKING:
    from faithscope.interp.directions import Direction


class _Applied(NamedTuple):
    """A direction at one place of this run."""

    direction: Direction
    spot: Spot | None
    scores: Float[np.ndarray, " rows"]
    """Of chains; or of steps, for a direction that was fitted to steps."""
    chosen: bool
    """Whether it is the one of its label that comparisons read."""
    reason: str = ""

    @property
    def of_steps(self) -> bool:
        return self.spot is not None and self.spot.place == STEP


def directions_of(path: str) -> Sequence[Direction]:
    # not at the top: it imports torch, which reports of most runs do without
    from faithscope.interp.directions import load_directions

    return load_directions(path)


def chosen_of(directions: Sequence[Direction]) -> set[str]:
    """Names of the directions that are scores: of each label and class, the regression of the best
    score in cross-validation, the first of equals."""
    best: dict[tuple[Any, ...], tuple[float, str]] = {}
    for d in directions:
        score = d.about.get("auroc", d.about.get("spearman"))
        if score is not None and d.about.get("kind") != MEANS:
            key = tuple(d.about.get(k) for k in ("label", "level", "class"))
            if key not in best or score > best[key][0]:
                best[key] = score, d.name
    return {name for _, name in best.values()}


def _applied(
    states: States, directions: Sequence[Direction], any_model: bool
) -> Iterator[_Applied]:
    chosen = chosen_of(directions)
    for d in directions:
        is_chosen = d.name in chosen
        if reason := misfit(states, d, any_model):
            yield _Applied(d, None, np.empty(0), is_chosen, reason)
            continue
        for spot in _spots(states, d):
            yield _Applied(d, spot, _score(states, d, spot), is_chosen)


def _spots(states: States, d: Direction) -> list[Spot]:
    """Where a direction is read: at its own place, or at all places of chains if it names none."""
    place = d.about.get("place")
    there = [*states.spots, *([] if place is None else states.step_spots)]
    return [
        spot
        for spot in there
        if spot.site == d.site and d.layer in spot.layers and place in (None, spot.place)
    ]


def _score(states: States, d: Direction, spot: Spot) -> Float[np.ndarray, " rows"]:
    assert d.layer is not None
    at = states.read(spot, spot.layers.index(d.layer))
    return at @ d.vector.double().numpy() + float(d.about.get("intercept") or 0.0)


def misfit(states: States, d: Direction, any_model: bool) -> str:
    """Why a direction cannot be read on these states; empty if it can."""
    place, model = d.about.get("place"), d.about.get("model")
    there = [*states.spots, *states.step_spots]
    if model not in (None, states.model) and not any_model:
        return ANOTHER_MODEL
    if states.arrays and len(d.vector) != states.width:
        return ANOTHER_WIDTH
    if d.site not in {spot.site for spot in there}:
        return NO_SITE
    if place is not None and place not in {spot.place for spot in there}:
        return NO_PLACE
    return "" if _spots(states, d) else NO_LAYER


def _rows(
    states: States, directions: Sequence[Direction], analysis: SlrcAnalysis, any_model: bool
) -> Iterator[dict[str, Any]]:
    labels = analysis.labels()
    for one in _applied(states, directions, any_model):
        about, n = one.direction.about, len(one.scores)
        label, of_class = str(about.get("label") or ""), str(about.get("class") or "")
        is_class = about.get("kind") != "ridge"
        own = math.nan if (x := about.get("auroc", about.get("spearman"))) is None else float(x)
        found, known = NOTHING, 0
        values = label_values(label, "step" if one.of_steps else "chain", states, labels)
        if not isinstance(values, str) and n:
            kind = "logistic" if is_class else "ridge"
            found = read_given(one.scores, *values, kind, analysis, of_class)
            known = found.n
        yield {
            "model": states.model,
            "task": states.task,
            "direction": one.direction.name,
            "label": label,
            "kind": str(about.get("kind") or "given"),
            "position": str(about.get("place") or "") if one.spot is None else one.spot.name,
            "layer": one.direction.layer,
            "n": n,
            "n_labelled": known,
            **columns("auroc", found if is_class else NOTHING),
            **columns("spearman", NOTHING if is_class else found),
            "own_score": own,
            "chosen": one.chosen,
            "reason": one.reason,
        }


def _scores(probe: str, frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[AppliedScore]:
    """Scores of chains, and of steps where their states are stored, by the chosen directions."""
    settings = settings_of(probe, analysis)
    assert settings.apply is not None
    directions = directions_of(settings.apply)
    for states in stored_states(probe, frame, analysis):
        for one in _applied(states, directions, settings.apply_to_any_model):
            if not one.chosen or one.reason:
                continue
            about = one.direction.about
            of_class = f" = {about['class']}" if len(about.get("classes") or ()) > 2 else ""
            name = f"{probe}: direction of {about['label']}{of_class}"
            # high scores stand for the class 1, or the last of two
            up = says_faithful(str(about["label"]))
            if not one.of_steps:
                for place, score in zip(states.places, one.scores, strict=True):
                    yield AppliedScore(place, name, float(score), up)
            for spot in states.step_spots:
                if spot.site == one.direction.site and one.direction.layer in spot.layers:
                    by_step = _score(states, one.direction, spot)
                    for (k, step), score in zip(states.steps, by_step, strict=True):
                        yield AppliedScore(states.places[k], name, float(score), up, step)


def item_scores(probe: str) -> Any:
    """The `MeasureReport.item_scores` of a probe that reads labels."""

    def scores(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[AppliedScore]:
        if settings_of(probe, analysis).apply is not None:
            yield from _scores(probe, keep(frame, INCLUDED(frame)), analysis)

    return scores


def applied_tables(probe: str, name: str) -> tuple[Table, ...]:
    """The tables of directions of another run: how well each tells the labels of this one, and the
    scores of chains and steps by the chosen ones."""

    def told(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[Mapping[str, Any]]:
        settings = settings_of(probe, analysis)
        assert settings.apply is not None
        directions = directions_of(settings.apply)
        for states in stored_states(probe, frame, analysis):
            yield from _rows(states, directions, analysis, settings.apply_to_any_model)

    def scored(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[Mapping[str, Any]]:
        for score in _scores(probe, frame, analysis):
            model, task, item = score.place
            step = math.nan if score.step is None else score.step
            about = {"model": model, "task": task, "item": item}
            yield about | {"measure": score.measure, "step": step, "score": score.value}

    more: dict[str, Any] = {"among": INCLUDED}
    return (
        computed_table(
            f"{name}_applied",
            (
                SHARED["model"],
                SHARED["task"],
                Column("direction", meaning="Name of the direction in its file."),
                Column("label", meaning="The label that it was fitted to."),
                Column("kind", meaning="How it was fitted."),
                Column("position", "place", "Place at which it is read."),
                SHARED["layer"],
                Column("n", "chains or steps", "Chains or steps that have a score."),
                Column("n_labelled", "labelled", "Those of them whose label this run knows."),
                Column(
                    "auroc",
                    "AUROC",
                    "How well the score tells the class, on chains or steps of this run.",
                    interval=True,
                ),
                Column(
                    "spearman",
                    "Spearman",
                    "Rank correlation of the score with a label that is a number.",
                    interval=True,
                ),
                Column(
                    "own_score",
                    "score where fitted",
                    "AUROC, or Spearman’s correlation, in cross-validation by the run that fitted "
                    "it.",
                ),
                Column(
                    "chosen",
                    meaning="Whether it has the best score where fitted of all regressions of its "
                    "label; comparisons read these.",
                ),
                SHARED["reason"],
            ),
            probe,
            told,
            caption="Directions of another run on these chains",
            folded="Direction by direction",
            **more,
        ),
        computed_table(
            f"{name}_scores",
            (
                SHARED["model"],
                SHARED["task"],
                SHARED["item"],
                SHARED["measure"],
                Column("step", meaning="Index of the step, from 0; none for the chain."),
                Column("score", meaning="The logit of the class, or the number, by the direction."),
            ),
            probe,
            scored,
            **more,
        ),
    )
