"""The hidden states of one model's chains on one task, read a place and a layer at a time.

A run of a large model stores gigabytes of states: they stay in their files, and of them only what a
classifier is fitted to, (items, D) numbers, is in memory at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.statistics.classifiers import Classifying
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import groups
from faithscope.experiments.studies.slrc.label_probes.values import (
    NO_STEP_STATES,
    UNKNOWN,
    Level,
    RunLabels,
)
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.probes.label_settings import ReadsLabels

STATES, STEP_STATES = "states", "step_states"
STEP = "step"
"""Name of the place of a step's own state."""


@dataclass(frozen=True)
class States:
    """Stored states of the chains of one model and task."""

    model: str
    task: str
    records: Sequence[Record]
    groups: Sequence[str]
    """Per record, the group that stands on one side of every split: a question, or a prompt that
    several items share."""
    arrays: Sequence[Mapping[str, np.ndarray]] = ()
    """Arrays of each record."""

    @property
    def positions(self) -> Sequence[str]:
        """Names of the places, in the order of the text."""
        return self.records[0]["positions"]

    @property
    def layers(self) -> Sequence[int]:
        return self.records[0]["layers"]

    @property
    def n_layers(self) -> int:
        return self.records[0]["n_layers"]

    @property
    def width(self) -> int:
        return int(self.arrays[0][STATES].shape[-1])

    @property
    def places(self) -> list[Place]:
        return [place_of(r) for r in self.records]

    @property
    def has_steps(self) -> bool:
        """Whether the states of every step are stored."""
        return all(isinstance(r.get("all_steps"), list | tuple) for r in self.records)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(number of the record, index of the step) of every step with states."""
        return [(k, step) for k, r in enumerate(self.records) for step in r["all_steps"]]

    def at(self, position: int, layer: int) -> Float[np.ndarray, "items D"]:
        """The states of all chains at one place and layer, both by their number."""
        return np.stack([a[STATES][position, layer] for a in self.arrays]).astype(float)

    def of_steps(self, layer: int) -> Float[np.ndarray, "steps D"]:
        """The states of all steps, in the order of `steps`."""
        return np.concatenate([a[STEP_STATES][:, layer] for a in self.arrays]).astype(float)


def states_of(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[States]:
    """Yields the states of every model and task in a frame of records, without arrays."""
    for pair, of_pair in groups(frame, ("model", "task")):
        records = of_pair.to_dict("records")
        # an item that is its own unit may share its prompt with another
        units = zip(records, map(str, analysis.units(of_pair)), strict=True)
        own = [r["group"] if unit == str(r["item"]) else unit for r, unit in units]
        yield States(pair["model"], pair["task"], records, own)


def stored_states(probe: str, frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[States]:
    """Yields the states of every model and task in a frame of a probe's records.

    Raises:
        ValueError: records and arrays do not belong together.
    """
    of_pairs = {(of.model, of.task): of for of in states_of(frame, analysis)}
    met = set()
    for pair, stored in itertools.groupby(analysis.arrays(probe), key=lambda s: s[0][:2]):
        arrays = {place[2]: of_item for place, of_item in stored}
        if (of := of_pairs.get(pair)) is not None:
            own = [arrays.get(str(r["item"]), {}) for r in of.records]
            _check_alike(probe, of, own)
            yield replace(of, arrays=own)
            met.add(pair)
    if lost := set(of_pairs) - met:
        raise ValueError(f"{probe}: no arrays of {min(lost)}; run it again")


def _check_alike(probe: str, of: States, arrays: Sequence[Mapping[str, np.ndarray]]) -> None:
    first = of.records[0]
    shapes = [getattr(own.get(STATES), "shape", None) for own in arrays]
    for r, shape in zip(of.records, shapes, strict=True):
        same = all(tuple(r[k]) == tuple(first[k]) for k in ("positions", "layers"))
        if not same or shape is None or shape != shapes[0]:
            raise ValueError(
                f"{probe} of {of.model} on {of.task}: item {r['item']!r} has arrays of shape "
                f"{shape}, layers {list(r['layers'])}, unlike item {first['item']!r}; the records "
                "of two models are mixed: run again under another name"
            )


def classifying(settings: ReadsLabels, seed: int) -> Classifying:
    """The settings of classifiers among those of a probe."""
    named = {f.name for f in fields(Classifying)} - {"seed"}
    return Classifying(**settings.model_dump(include=named), seed=seed)


def asked_labels(settings: ReadsLabels) -> tuple[tuple[str, Level, tuple[str, ...]], ...]:
    """(setting, level, names of the labels that it names), of chains and of steps."""
    return (
        ("labels", "chain", settings.labels),
        ("step_labels", "step", settings.step_labels),
    )


def label_values(
    name: str, level: Level, states: States, labels: RunLabels
) -> tuple[list[Any], list[str]] | str:
    """A label of all chains, or of all steps with states, and the group of each; or the reason why
    there is none."""
    known = (labels.chains if level == "chain" else labels.steps).get(name)
    if known is None:
        return UNKNOWN
    values = known()
    if level == "chain":
        return [values.get(place) for place in states.places], [*states.groups]
    if not states.has_steps:
        return NO_STEP_STATES
    of_steps = [values.get(place, {}) for place in states.places]
    return [of_steps[k].get(s) for k, s in states.steps], [
        states.groups[k] for k, _ in states.steps
    ]


def settings_of(probe: str, analysis: SlrcAnalysis) -> ReadsLabels:
    """The settings that the run used for a probe that reads labels."""
    settings = analysis.settings(probe)
    assert isinstance(settings, ReadsLabels)
    return settings
