"""Frames of judges in a run: `load_run(...).<name>`.

How often each judge says what the labels say, of chains that people labelled:

    said = faithscope.load_run("runs/judge").verdicts.dropna(subset=["flag", "label_correct"])
    (said["flag"] != said["label_correct"]).groupby([said["judge"], said["form"]]).mean()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.run import LABEL, Frame, Run
from faithscope.experiments.analysis.verdicts import JUDGEMENT, judgements
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.experiments.studies.slrc.judges.verdicts import STEP, VERDICT, labels_of
from faithscope.probes.record import KEYS

_CHAIN = {
    "item": "id of the question, or of a chain from a file",
    "chain": "name of the chain, unique in the run",
    "dataset": "",
    "model": "the model that wrote the chain",
    "question": "question as judges read it",
    "reasoning": "whole text of the reasoning",
    "n_steps": "number of judged steps",
    "given": "whether the steps came with the file",
}


def _chains(run: Run) -> pd.DataFrame:
    rows = [
        {
            "item": c.id,
            "chain": name,
            "dataset": c.dataset,
            "model": c.model,
            "question": c.question,
            "reasoning": "".join(c.steps),
            "n_steps": len(c.places),
            "given": c.given,
            **_named(c.labels),
        }
        for name, c in run.once(JudgeResults).chains.items()
    ]
    return _table(rows, list(_CHAIN))


def _verdicts(run: Run) -> pd.DataFrame:
    read = run.once(JudgeResults)
    rows = [row | _named(read.chains[row["chain"]].labels) for row in read.verdicts]
    return _table(rows, list(VERDICT))


def _steps(run: Run) -> pd.DataFrame:
    read = run.once(JudgeResults)
    rows = [
        {name: row[name] for name in STEP}
        | _named(labels_of(read.chains[row["chain"]], row["step"]))
        for row in read.steps
    ]
    return _table(rows, list(STEP))


def _named(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{LABEL}{name}": value for name, value in labels.items()}


def _table(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    labels = dict.fromkeys(n for row in rows for n in row if n.startswith(LABEL))
    return pd.DataFrame(rows, columns=[*names, *labels])


FRAMES = (
    Frame("chains", "A row per chain of a run with judges, with its labels.", _CHAIN, make=_chains),
    Frame(
        "verdicts",
        "A row per judge, reading, form and chain: what is said of it, with its labels.",
        VERDICT,
        make=_verdicts,
    ),
    Frame(
        "step_verdicts",
        "A row per judge, reading, form and step: what is said of it, with its labels.",
        STEP,
        make=_steps,
    ),
    Frame(
        "judgements",
        "A row per judgement, with the texts; those without a verdict, too.",
        KEYS | JUDGEMENT,
        make=lambda run: judgements(run.records(*READINGS), run.once(JudgeResults).forms),
    ),
)
