"""The frames and tables of a run of C2-Faith: `load_run(...).<name>`.

For example, how often each judge is right, when it gives a verdict:

    run = faithscope.load_run("runs/c2faith")
    said = run.judgements.dropna(subset=["verdict", "right"])
    (said["verdict"] == said["right"]).groupby([said["judge"], said["form"]]).mean()
"""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.run import Frame, Run
from faithscope.experiments.analysis.verdicts import JUDGEMENT
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.studies.c2faith.inside import step_rows
from faithscope.experiments.studies.c2faith.judgements import COLUMNS, judgements
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.tables.frames import SHAPES
from faithscope.experiments.studies.c2faith.units import INSIDE

OF_JUDGEMENT = dict.fromkeys(COLUMNS, "") | {n: JUDGEMENT[n] for n in COLUMNS if n in JUDGEMENT}
OF_JUDGEMENT |= {
    "item": "the item's id in the benchmark",
    "ask": "the item's id as asked",
    "condition": "perturbed | control; empty for coverage",
    "target": "the step that is broken, from 0",
    "level": "the share of middle steps that was asked to be left out",
    "right": "the right verdict; empty for coverage",
    "expected": "mean verdict under the probabilities",
}
_ITEM = {
    **dict.fromkeys(("item", "chain", "problem"), ""),
    "steps": "as judges see them: with the broken step, or without those left out",
    "target": "the step that is broken, from 0",
    "original": "that step as it was",
    "replacement": "what stands in its place",
    "method": "rule:… or llm",
    "author": "the model that wrote it",
    "level": "the share of middle steps that was asked to be left out",
    "removed": "the steps left out, from 0",
    "n_middle": "",
}
_SIGNAL = {
    "chain": "",
    "condition": "perturbed | control",
    "target": "the step that is broken, from 0",
    "step": "the step, from 0",
    "signal": "",
    "value": "NaN where a step has none (`probes.broken_step`)",
}


def _judgements(run: Run) -> pd.DataFrame:
    return judgements(run.records(*READINGS), run.once(results).forms)


def _items(run: Run) -> pd.DataFrame:
    benchmark = run.once(results).benchmark
    items = (*benchmark.causal, *benchmark.coverage)
    return pd.DataFrame([vars(i) | {"item": i.id} for i in items], columns=list(_ITEM))


def _of_tables(name: str) -> Frame:
    """Frame of one part of the tables, without texts."""
    meaning = f"A row per judgement or item, as the tables of {name} count it; no texts."
    columns = SHAPES[name].columns
    return Frame(name, meaning, columns, make=lambda run: getattr(run.once(results).frames, name))


FRAMES = (
    Frame("items", "A row per item of the benchmark, with its texts.", _ITEM, make=_items),
    Frame(
        "judgements",
        "A row per judgement, with the texts; those without a verdict, too.",
        OF_JUDGEMENT,
        make=_judgements,
    ),
    Frame(
        "signals",
        "A row per model, item, condition, step and signal: what it shows inside at that step.",
        _SIGNAL,
        step_rows,
        (INSIDE,),
    ),
    *map(_of_tables, SHAPES),
)
