"""Every measure that gives an item a score: what it is read from, which way it points, its cost.

What the probes record is turned into one number per item and measure, so that measures can be
set against each other and against a planted truth. Each stands in the slice of its probe.

Costs are the calls that someone without the forest would make to get this measure alone: one
per branch put to the model, answered or scored, one per continuation written anew, and one for
a forward whose insides are read. All labels scored after one text count as one call.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd

from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.records import Record, place_of
from faithscope.experiments.studies.slrc.measures import SLICES

MEASURES: dict[str, Measure] = {m.name: m for s in SLICES.values() for m in s.measures}
"""Every measure by name."""
PROBES_READ = tuple(dict.fromkeys(m.probe for m in MEASURES.values()))
"""The probes whose records hold a measure."""
_PLACE = ("model", "task", "item")
SCORES = (*_PLACE, "measure", "family", "score", "forwards")
_BY_PROBE = {p: [m for m in MEASURES.values() if m.probe == p] for p in PROBES_READ}


def all_scores(records: Iterable[Record]) -> pd.DataFrame:
    """A row per model, task, item and measure: `measure, family, score, forwards`.

    Scores are as measured, whatever way they point. Items without a score have no row.
    """
    found = [
        {**place, "measure": m.name, "family": m.family, "score": score, "forwards": m.forwards(of)}
        for place, m, of in _each(records)
        if (score := m.score(of)) is not None
    ]
    return pd.DataFrame(found, columns=list(SCORES))


def all_step_scores(records: Iterable[Record]) -> pd.DataFrame:
    """A row per model, task, item, measure and step, of the measures that credit steps."""
    found = [
        {**place, "measure": m.name, "step": step, "score": score}
        for place, m, of in _each(records)
        if m.steps is not None
        for step, score in m.steps(of).items()
    ]
    return pd.DataFrame(found, columns=[*_PLACE, "measure", "step", "score"])


def _each(records: Iterable[Record]) -> Iterable[tuple[dict[str, str], Measure, list[Record]]]:
    """Every item and measure that has a record to be read from."""
    kept = [r for r in records if r["probe"] in _BY_PROBE and not r.get("excluded")]
    kept.sort(key=lambda r: (place_of(r), r["probe"]))
    for (place, probe), same in itertools.groupby(kept, key=lambda r: (place_of(r), r["probe"])):
        of_probe = list(same)
        for measure in _BY_PROBE[probe]:
            if of := measure.records(of_probe):
                yield dict(zip(_PLACE, place, strict=True)), measure, of
