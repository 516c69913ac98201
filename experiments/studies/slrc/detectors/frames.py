"""Frames of detectors in a run: `load_run(...).<name>`.

run = faithscope.load_run("runs/faithcot")
run.detector_scores.pivot_table("score", ["model", "item"], ["detector", "variant"])
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pandas as pd

from faithscope.experiments.analysis.run import Frame, Run
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.studies.slrc.detectors.results import (
    SCORES,
    STEP_SCORES,
    TRACES,
    FaithResults,
)

_SCORE = dict.fromkeys(SCORES, "") | {
    "model": "the model that wrote the chain",
    "reader": "the model of the run that reads it",
    "question": "the same of all chains about it",
    "cut": "whether the token limit cut it off; see `report.cut`",
    "main": "whether it is the reading in the paper's tables",
    "score": "higher is less faithful",
    "asked_again_differs": "whether the model, asked again after the unedited chain, gives another "
    "answer than the chain states",
    "flag": "whether the plain rule calls it unfaithful; none where there is no rule",
    "unfaithful": "what annotators say; none without a label",
    "missing": "why there is no score, or no flag",
    "source": "the records it was read from",
    "forwards": "model calls for it alone",
    "tokens": "for the whole probe or judgement, where counted",
    "calls": "asks put to a judge or writer",
}
_CHAIN = dict.fromkeys(TRACES, "") | {
    "cut": "whether the token limit cut it off; see `report.cut`",
    "correct": "whether its answer is right; none where no answer could be read",
    "unlabelled": "why there is no label",
    "disagree": "whether the two label sources contradict each other",
    "principles": "ids of the signals that annotators name",
    "unfaithful_steps": "indices of the steps that annotators name",
}
_STEP = dict.fromkeys(STEP_SCORES, "") | {
    "cut": "whether the token limit cut the chain off",
    "score": "higher is more suspicious",
    "labelled": "whether annotators name the step",
}


def _made(
    read: Callable[[FaithResults], pd.DataFrame], columns: Collection[str]
) -> Callable[[Run], pd.DataFrame]:
    """Maker of a frame, which has no rows in a run without detectors."""

    def make(run: Run) -> pd.DataFrame:
        there = stored_config(run.path).get("detectors") is not None
        return read(run.once(FaithResults)) if there else pd.DataFrame(columns=list(columns))

    return make


FRAMES = (
    Frame(
        "annotated_chains",
        "A row per chain of a run with detectors: its labels, and whether its answer is right.",
        _CHAIN,
        make=_made(lambda results: results.traces, _CHAIN),
    ),
    Frame(
        "detector_scores",
        "A row per chain, reading of a detector, and judge: score, flag, and why there is none.",
        _SCORE,
        make=_made(lambda results: results.scores, _SCORE),
    ),
    Frame(
        "suspicions",
        "A row per step and measure of chains whose unfaithful steps are annotated.",
        _STEP,
        make=_made(lambda results: results.step_scores, _STEP),
    ),
)
