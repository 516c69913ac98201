"""The hidden states of one model's chains on one task, read a place and a layer at a time.

A run of a large model stores gigabytes of states: they stay in their files, and of them only what a
classifier is fitted to, (items, D) numbers, is in memory at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from faithscope.experiments.analysis.statistics.classifiers import Classifying
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import groups, keep, with_columns
from faithscope.experiments.studies.slrc.label_probes.values import (
    NO_SINGLE_STATE,
    NO_STEP_STATES,
    UNKNOWN,
    Level,
    RunLabels,
)
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.interp.hook_names import SITES, Site
from faithscope.probes.label_settings import ReadsLabels

STATES, STEP_STATES = "states", "step_states"
STEP = "step"
"""Name of the place of a step's own state."""
RESIDUAL: Site = "residual"


class Spot(NamedTuple):
    """A place of which every chain, or every step, has one state in each of some layers."""

    place: str
    """Name of the place: `before`, `during 1/4`, a span; `STEP` for a step's own."""
    site: Site
    layers: tuple[int, ...]
    array: str
    """Name of the array that holds the states, (rows, layers, D)."""
    row: int = 0
    """The row that is a chain's state; all rows are states of steps in spots of steps."""

    @property
    def name(self) -> str:
        return self.place if self.site == RESIDUAL else f"{self.place} {self.site}"


@dataclass(frozen=True)
class States:
    """Stored states of the chains of one model and task."""

    model: str
    task: str
    records: Sequence[Record]
    """A record of each chain."""
    groups: Sequence[str]
    """Per record, the group that stands on one side of every split: a question, or a prompt that
    several items share."""
    spots: tuple[Spot, ...]
    """Places of chains, in the order of the text."""
    step_spots: tuple[Spot, ...]
    """Places of steps; none where the states of steps are not stored."""
    arrays: Sequence[Mapping[str, np.ndarray]] = ()
    """Arrays of each record."""

    @property
    def n_layers(self) -> int:
        return self.records[0]["n_layers"]

    @property
    def width(self) -> int:
        first = (self.spots or self.step_spots)[0]
        return int(self.arrays[0][first.array].shape[-1])

    @property
    def places(self) -> list[Place]:
        return [place_of(r) for r in self.records]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """(number of the record, index of the step) of every step with states."""
        return [(k, step) for k, r in enumerate(self.records) for step in r["all_steps"]]

    def of(self, level: Level) -> tuple[Spot, ...]:
        return self.spots if level == "chain" else self.step_spots

    def read(self, spot: Spot, layer: int) -> Float[np.ndarray, "rows D"]:
        """The states of all chains at a spot and one of its layers, by number; or of all steps, in
        the order of `steps`."""
        if spot in self.step_spots:
            own = np.concatenate([a[spot.array][:, layer] for a in self.arrays])
        else:
            own = np.stack([a[spot.array][spot.row, layer] for a in self.arrays])
        return own.astype(float)


def states_of(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[States]:
    """Yields the states of every model and task in a frame of records, without arrays."""
    for pair, of_pair in groups(frame, ("model", "task")):
        of_spans = "span" in of_pair
        chains = _with_every_span(of_pair) if of_spans else of_pair
        records = chains.to_dict("records")
        # an item that is its own unit may share its prompt with another
        units = zip(records, map(str, analysis.units(chains)), strict=True)
        own = [r["group"] if unit == str(r["item"]) else unit for r, unit in units]
        spots, steps = _spots_of_spans(of_pair) if of_spans else _spots_of_places(records)
        if spots or steps:
            yield States(pair["model"], pair["task"], records, own, spots, steps)


def _spots_of_places(records: Sequence[Record]) -> tuple[tuple[Spot, ...], tuple[Spot, ...]]:
    first = records[0]
    layers, steps = tuple(first["layers"]), all(_is_list(r.get("all_steps")) for r in records)
    return (
        tuple(Spot(n, RESIDUAL, layers, STATES, i) for i, n in enumerate(first["positions"])),
        (Spot(STEP, RESIDUAL, layers, STEP_STATES),) if steps else (),
    )


def _with_every_span(frame: pd.DataFrame) -> pd.DataFrame:
    """A record of each chain that has every span which some chain has: of its steps, if there is
    one."""
    most = frame.groupby("item")["span"].nunique().max()
    whole = frame.groupby("item")["span"].transform("nunique") == most
    of_steps = with_columns(frame, "all_steps")["all_steps"].map(_is_list)
    ordered = keep(frame.assign(later=~of_steps), whole).sort_values("later", kind="stable")
    return ordered.drop_duplicates("item").sort_values("item", kind="stable").drop(columns="later")


def _spots_of_spans(frame: pd.DataFrame) -> tuple[tuple[Spot, ...], tuple[Spot, ...]]:
    """Spots of spans that are one state, and of spans that are all counted steps."""
    spots: list[Spot] = []
    steps: list[Spot] = []
    for span, of_span in groups(frame, ("span",)):
        records, name = of_span.to_dict("records"), span["span"]
        at = [place.split() for place in records[0]["sites"]]
        by_site: dict[Site, tuple[int, ...]] = {
            site: tuple(int(x) for of, x in at if of == site) for site in SITES
        }
        pooled = all(r["pool"] != "none" for r in records)
        alone = all(r["n_rows"] == 1 for r in records)
        each = pooled and all(_is_list(r.get("all_steps")) for r in records)
        into, place = (steps, STEP) if each else (spots, name)
        if each or alone:
            into += [Spot(place, s, x, f"{name}/{s}") for s, x in by_site.items() if x]
    return tuple(spots), tuple(steps)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


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
    for spot in (*of.spots, *of.step_spots):
        found = [own.get(spot.array) for own in arrays]
        # the number of steps may differ
        begin = spot in of.step_spots
        shapes = [None if x is None else x.shape[begin:] for x in found]
        for r, shape in zip(of.records, shapes, strict=True):
            alike = ("positions", "layers", "sites")
            same = all(_listed(r.get(k)) == _listed(first.get(k)) for k in alike)
            if not same or shape is None or shape != shapes[0]:
                raise ValueError(
                    f"{probe} of {of.model} on {of.task}: item {r['item']!r} has arrays of shape "
                    f"{shape}, layers {list(r.get('layers') or spot.layers)}, unlike item "
                    f"{first['item']!r}; the records of two models are mixed: run again under "
                    "another name"
                )


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if _is_list(value) else ()


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
    if level == "chain" and not states.spots:
        return NO_SINGLE_STATE
    values = known()
    if level == "chain":
        return [values.get(place) for place in states.places], [*states.groups]
    if not states.step_spots:
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
