"""The stages of a run of this study: traces, probes, judges, and what detectors ask besides."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from faithscope.experiments.config.study import Stage, Stages, Together, by_name
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.tallies.chain_faults import (
    CUT,
)
from faithscope.experiments.engine.tallies.reasons import CHAIN_CUT, LOW_MASS
from faithscope.experiments.engine.traces.stages import OF_TRACE, TRACE, OfProbes, of_probe
from faithscope.probes import Probe
from faithscope.probes.label_settings import ReadsLabels

SHUFFLED, WRITTEN, EDITED = "option_shuffling", "written_edits", "edited_answers"
"""Stages of detectors: the question asked again with shuffled options, edits that a judge writes,
and the subject's answers to them."""
PROGRAM, MENDED = "program", "mended_program"
"""Stages of readers of chains in words: the program that a reader writes, and once more if the
reply is not of the form."""
JUDGED_CHAINS = "benchmark/chains.jsonl"
"""Path, below the run folder, of the chains that no model of the run reads, as they were
judged, one JSON object per line."""
LEAST_LABEL_MASS = 0.1
"""Default of `report.least_label_mass`."""
KEPT = "kept"
"""Value of `report.cut` by which chains that were cut count for judges and detectors."""
Values = Mapping[str, Any]


def room_to_reply(*run: object) -> Mapping[str, str]:
    """Setting that would keep replies which the token limit of judges cut off."""
    return {"truncated": "judges.max_tokens=N, a larger one"}


def room_to_read(*run: object) -> Mapping[str, str]:
    """Settings that would keep chains which the rule of a probe cannot read as programs, or whose
    program the token limit cut off."""
    # Not at the top: it brings what probes need, which the status of a run does without.
    from faithscope.probes.program_reader import BY_READERS
    from faithscope.probes.program_reader import CUT as CUT_OFF

    named = "programs.model=NAME, a model that reads chains in words"
    return dict.fromkeys(BY_READERS, named) | {CUT_OFF: "programs.max_tokens=N, a larger one"}


def low_mass(record: Values, stored: Values, faults: object = None) -> str | None:
    """`LOW_MASS` for a record whose labels have less of the model's probability than
    `report.least_label_mass`: nearly all of it is on tokens that are no label."""
    least = (stored.get("report") or {}).get("least_label_mass", LEAST_LABEL_MASS)
    mass = record.get("label_mass")
    return LOW_MASS if mass is not None and mass < least else None


def cut_chain(record: Values, stored: Values, faults: Callable[[], frozenset[str]]) -> str | None:
    """`CHAIN_CUT` for a judgement of a chain that was cut, unless `report.cut` keeps these."""
    kept = (stored.get("report") or {}).get("cut") == KEPT
    return None if kept or CUT not in faults() else CHAIN_CUT


def _of_probe(probe: Probe) -> Stage:
    stage = of_probe(probe)
    if probe.reads_labels:
        stage = replace(stage, leaves_out=low_mass)
    if probe.reads_programs:
        stage = replace(stage, remedies=room_to_read)
    if issubclass(probe.settings, ReadsLabels):
        # keys by which users ask for label probes, which are counted on their own (`derived`)
        asked = (f"{probe.name}.{key}" for key in ("labels", "step_labels", "apply"))
        stage = replace(stage, keys=(*stage.keys, *asked))
    return stage


_OTHERS = by_name(
    # The question is asked again whether or not the trace is usable. The detectors' key is
    # at a stage that measures nothing, since they are counted on their own (`derived`).
    Stage(SHUFFLED),
    Stage(WRITTEN, (TRACE,), measures=False, keys=("detectors",)),
    Stage(EDITED, (TRACE,)),
    *(Stage(name, (TRACE,), measures=False) for name in (PROGRAM, MENDED)),
    *(
        Stage(
            name,
            (TRACE,),
            remedies=room_to_reply,
            keys=("judges.model", "judges.forms"),
            leaves_out=cut_chain,
        )
        for name in READINGS
    ),
)
STAGES: Stages = Together(OF_TRACE, OfProbes(_of_probe), _OTHERS)
"""Stages by name; those of judges have the judge and the form behind a dot each."""
