"""The frames and tables of a run of FaithCoT-Bench: `load_run(...).<name>`.

run = faithscope.load_run("runs/faithcot")
run.detector_scores.pivot_table("score", ["model", "item"], ["detector", "variant"])
"""

from __future__ import annotations

from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.traces.frames import TRACE_FRAMES
from faithscope.experiments.analysis.verdicts import JUDGEMENT, judgements
from faithscope.experiments.engine.forms import trace_forms
from faithscope.experiments.studies.faithcot.results import (
    SCORES,
    STEP_SCORES,
    TRACES,
    FaithResults,
)
from faithscope.experiments.studies.faithcot.units import JUDGES
from faithscope.probes.record import KEYS

_SCORE = dict.fromkeys(SCORES, "") | {
    "model": "the model that wrote the chain",
    "reader": "the model of the run that reads it",
    "question": "the same of all chains about it",
    "cut": "whether the token limit cut it off; see `detectors.cut`",
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
    "cut": "whether the token limit cut it off; see `detectors.cut`",
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
FRAMES = (
    *TRACE_FRAMES,
    Frame(
        "judgements",
        "A row per judgement, with the texts; those without a verdict, too.",
        KEYS | JUDGEMENT,
        make=lambda run: judgements(run.records(*JUDGES), trace_forms()),
    ),
    Frame(
        "chains",
        "A row per chain: its labels, and whether its answer is right.",
        _CHAIN,
        make=lambda run: run.once(FaithResults).traces,
    ),
    Frame(
        "detector_scores",
        "A row per chain, reading of a detector, and judge: score, flag, and why there is none.",
        _SCORE,
        make=lambda run: run.once(FaithResults).scores,
    ),
    Frame(
        "suspicions",
        "A row per step and measure of chains whose unfaithful steps are annotated.",
        _STEP,
        make=lambda run: run.once(FaithResults).step_scores,
    ),
)
