"""How many chains and steps of a run have labels that can be read, and why others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from faithscope.experiments.analysis.cells import INCLUDED
from faithscope.experiments.analysis.record_frames import record_frame
from faithscope.experiments.analysis.statistics.label_probes import labelled
from faithscope.experiments.analysis.tidy import keep
from faithscope.experiments.engine.tallies.tally import StageTally
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.label_probes.applied import directions_of, misfit
from faithscope.experiments.studies.slrc.label_probes.states import (
    asked_labels,
    classifying,
    label_values,
    states_of,
)
from faithscope.experiments.studies.slrc.label_probes.values import NO_FILE, NO_LABEL
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.interp.errors import UserError
from faithscope.probes import PROBES
from faithscope.probes.label_settings import ReadsLabels


def label_tallies(results: Results) -> list[StageTally]:
    """A tally for every label, and for directions of another run, that the config names."""
    found = []
    for probe in PROBES:
        settings = results.analysis.settings(probe)
        if probe in results.probes and isinstance(settings, ReadsLabels):
            frame = record_frame(r for r in results.records if r["probe"] == probe)
            frame = keep(frame, INCLUDED(frame))
            found += _of_labels(probe, settings, frame, results.analysis)
            if settings.apply is not None:
                found.append(_of_directions(probe, settings, frame, results.analysis))
    return found


def _of_labels(
    probe: str, settings: ReadsLabels, frame: pd.DataFrame, analysis: SlrcAnalysis
) -> Iterator[StageTally]:
    how = classifying(settings, analysis.seed)
    for key, level, names in asked_labels(settings):
        for name in names:
            items, lost = 0, Counter[str]()
            for states in states_of(frame, analysis):
                values = label_values(name, level, states, analysis.labels())
                if isinstance(values, str):
                    items += len(states.records)
                    lost[values] += len(states.records)
                    continue
                of, n = labelled(*values, how, settings.fit), len(values[0])
                items += n
                lost[of.reason or NO_LABEL] += n if of.reason else n - len(of.split.rows)
            lost = {reason: n for reason, n in lost.items() if n}
            title = f"label {name}" + (" of steps" if level == "step" else "")
            measured = items - sum(lost.values())
            yield StageTally((title,), items, measured, lost, (f"{probe}.{key}",))


def _of_directions(
    probe: str, settings: ReadsLabels, frame: pd.DataFrame, analysis: SlrcAnalysis
) -> StageTally:
    assert settings.apply is not None
    stages, n = (f"directions of {settings.apply}",), len(frame)
    keys = (f"{probe}.apply",)
    try:
        directions = directions_of(settings.apply)
    except UserError:
        return StageTally(stages, n, 0, {NO_FILE: n}, keys)
    lost = Counter[str]()
    for states in states_of(frame, analysis):
        why = [misfit(states, d, settings.apply_to_any_model) for d in directions]
        if all(why):
            lost[Counter(why).most_common(1)[0][0]] += len(states.records)
    return StageTally(stages, n, n - lost.total(), dict(lost), keys)
