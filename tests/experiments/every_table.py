"""Every table of every study: made of nothing, and of a few items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from c2_frames import made_up as c2_frames
from faithcot_frames import CHAIN, scored, traces
from injected_pairs import frame as injected
from rf_made_up import NAMES as RF_MODELS
from rf_made_up import made_up as rf_frames
from sample_records import sample_run
from synthetic_comparison import joined_of
from synthetic_comparison import scores as made_up_scores

from faithscope.experiments.analysis.comparison.agreement import (
    step_agreement_table,
    step_hits_table,
)
from faithscope.experiments.analysis.comparison.combining import ablation_table
from faithscope.experiments.analysis.comparison.compared import MEASURES, sentence_tables
from faithscope.experiments.analysis.comparison.headline import Primary, headline_table
from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.scores_vs_labels import against_tables, targets
from faithscope.experiments.analysis.comparison.step_labels import step_against_table
from faithscope.experiments.analysis.comparison.trust import FRONT
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.analysis.traces.exclusions import exclusions_table, fates_of
from faithscope.experiments.data.principles import PRINCIPLES
from faithscope.experiments.engine.forms.tasks import TASKS as JUDGED
from faithscope.experiments.extras.injection.pairs import INJECTION
from faithscope.experiments.studies import c2faith, compare, rfeval  # noqa: F401
from faithscope.experiments.studies.c2faith.tables.every_table import OF_RUN, Frames
from faithscope.experiments.studies.c2faith.tables.every_table import tables as c2_tables
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.reading import SOURCES
from faithscope.experiments.studies.rfeval.tables.every_table import frames_of
from faithscope.experiments.studies.rfeval.tables.every_table import tables as rf_tables
from faithscope.experiments.studies.slrc.detectors import tables as of_faithcot
from faithscope.experiments.studies.slrc.detectors.metrics import by_rule
from faithscope.experiments.studies.slrc.detectors.results import SCORES, STEP_SCORES, TRACES
from faithscope.experiments.studies.slrc.judges import answer_curve
from faithscope.experiments.studies.slrc.judges import tables as of_judges
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain
from faithscope.experiments.studies.slrc.judges.verdicts import STEP, VERDICT
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.outcomes import label_masses
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.experiments.studies.slrc.topics import TOPICS
from faithscope.experiments.studies.training import tables as of_training

HOW = Bootstrap(0, 100)
PRIMARIES = {
    "behaviour": Primary(("behavioural 0",), True),
    "logit": Primary(("logit 3",), True),
    "internal": Primary(("internal 1",), True),
    "judged": Primary(("judged 2",), False),
}
RF_TASKS = ("legal_decision", "table_reasoning")


def _slrc(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    models = sorted({r["model"] for r in records})
    pairs = {"pair": (models[0], models[-1])} if models else {}
    analysis = SlrcAnalysis(resamples=10, groups={"all": models}, pairs=pairs)
    tables = [table for topic in TOPICS for table in topic.tables]
    made = make_tables(tables, Sources(records), analysis)
    others = {"label_mass": label_masses(records), "exclusions": exclusions_table(records)}
    return made | others


def _c2(frames: Frames, injection: pd.DataFrame) -> dict[str, pd.DataFrame]:
    of_run = {table.name: pd.DataFrame(columns=table.header) for table in OF_RUN}
    added = make_tables([INJECTION], {"injection": injection}, HOW)
    return c2_tables(frames, resamples=10) | of_run | added


def _faithcot(
    scores: pd.DataFrame, chains: pd.DataFrame, steps: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    readings = by_rule(scores, 2, False, 0)
    frames = {
        "readings": readings,
        "common_readings": readings,
        "chains": chains.assign(counted=True),
        "suspicions": steps.assign(counted=True),
        "fates": fates_of([]),
    }
    return make_tables(of_faithcot.TABLES, frames, HOW)


def _faithcot_frames(n: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    ids = [principle.id for principle in PRINCIPLES]
    chains: list[dict[str, Any]] = [
        {"unfaithful": i % 3 == 0, "correct": i % 4 > 0, "hardness": "hard" if i % 5 else None}
        | {"principles": (ids[i % len(ids)],)}
        for i in range(n)
    ]
    steps = [
        CHAIN
        | {"item": str(i), "question": str(i // 2), "measure": "m", "judge": ""}
        | {"step": s, "score": float((i + s) % 3), "labelled": (i + s) % 2 == 0}
        for i in range(n)
        for s in range(3)
    ]
    return scored(n, {"perplexity": {0, 1}}), traces(*chains), pd.DataFrame(steps)


def _training(n_seeds: int) -> dict[str, pd.DataFrame]:
    """A method whose steps earn more as they go on, beside the model before training."""
    of_step = [c.name for c in (*of_training.STEP, *of_training.COUNTED, *of_training.BOUND)]
    of_battery = [c.name for c in of_training.MEASURED]
    keys = ["model", "method", "seed"]
    steps = [
        {"model": "m", "method": "cosr", "seed": seed, "step": step}
        | {name: (step + seed) % 4 / 4 for name in of_step}
        | {"reward": step / 20, "changed": step / 20, "accuracy": 1.0, "followed": math.nan}
        for seed in range(n_seeds)
        for step in range(20)
    ]
    battery = [
        {"model": "m", "method": method, "seed": seed}
        | {name: (seed + (method == "cosr")) / 4 for name in of_battery}
        for method in ("start", "cosr")
        for seed in range(n_seeds)
    ]
    of_trace = ["dataset", "task", "item", "measure", "family", "value", "missing", "trained_on"]
    measured = [
        {"model": "m", "method": method, "seed": seed, "dataset": "d", "task": "t", "item": str(i)}
        | {"measure": "necessity", "family": "behaviour", "value": (i + seed) % 3 / 3}
        | {"missing": "", "trained_on": i == 0}
        | {name: (i + seed) % 2 / 2 for name in of_training.BESIDE}
        for method in ("start", "cosr")
        for seed in range(1 if method == "start" else n_seeds)
        for i in range(7)
    ]
    measured = measured if n_seeds else []
    frames = {
        "training": pd.DataFrame(steps, columns=[*keys, "step", *of_step]),
        "battery": pd.DataFrame(battery, columns=[*keys, *of_battery]),
        "measured": pd.DataFrame(measured, columns=[*keys, *of_trace, *of_training.BESIDE]),
    }
    return make_tables(of_training.TABLES, frames, HOW)


def _judge(
    verdicts: Sequence[dict[str, Any]],
    steps: Sequence[dict[str, Any]],
    chains: Mapping[str, JudgedChain],
) -> dict[str, pd.DataFrame]:
    of_chains = pd.DataFrame(verdicts, columns=list(VERDICT))
    of_steps = pd.DataFrame(steps, columns=list(STEP))
    frames = {
        "every_verdict": of_chains,
        "verdicts": of_chains,
        "steps": of_steps,
        "held": of_judges.held_against_labels(of_chains, of_steps, chains, ["correct"], JUDGED),
        "located": of_judges.located(of_chains, chains, ["correct"]),
    }
    along = [{"model": "m", "task": "t", "item": c["item"], "line": "judge"} for c in verdicts]
    curves = [r | {"position": x, "answer_there": x} for r in along for x in (0.0, 1.0)]
    gaps = [r | {"gap": i % 3 / 3} for i, r in enumerate(along)]
    keys = ["model", "task", "item", "line"]
    frames |= {
        "curves": pd.DataFrame(curves, columns=[*keys, "position", "answer_there"]),
        "gaps": pd.DataFrame(gaps, columns=[*keys, "gap"]),
    }
    return make_tables((*of_judges.TABLES, *answer_curve.TABLES), frames, HOW)


def _judged(n: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, JudgedChain]]:
    """A judge that says of every fourth chain nothing, and is mostly right of the others."""
    chains, verdicts, steps = {}, [], []
    for i in range(n):
        sound = (i % 3 > 0, True, i % 5 > 0)
        labels, of_steps = {"correct": all(sound)}, {"correct": sound}
        texts, whole = ("a", "b", "c"), (True,) * 3
        chain = JudgedChain(str(i), "d", "m", "q", texts, whole, True, labels, of_steps, None)
        chains[chain.id] = chain
        way = {"judge": "j", "reading": "generated", "form": "step_judge", "dataset": "d"}
        way |= {"model": "m", "item": chain.id, "chain": chain.id, "cut": i == 1}
        silent, wrong = i % 4 == 0, all(sound) == (i % 7 == 0)
        nothing = dict.fromkeys(("flag", "score", "first"))
        said = {"flag": wrong, "score": float(wrong), "first": 0 if wrong else -1}
        outcome = {"outcome": "refused" if silent else "parsed"}
        about = (
            way
            | outcome
            | {"task": "step_judge", "asks": "error", "n_asks": 3, "n_without_verdict": 0}
        )
        verdicts.append(about | (nothing if silent else said))
        steps += [
            way | outcome | {"step": s} | ({} if silent else {"flag": wrong, "score": float(wrong)})
            for s in range(3)
        ]
    return verdicts, steps, chains


def _compare(joined: Joined) -> dict[str, pd.DataFrame]:
    labels = targets(joined, 2, 0)
    held = against_tables(joined, labels, HOW)
    told = sentence_tables(joined, labels, HOW, CompareReport(), held["against"])
    return {
        "sources": SOURCES.filled([]),
        "joins": joined.joins,
        "missing": joined.missing,
        "measures": MEASURES.filled([]),
        "step_agreement": step_agreement_table(joined, HOW),
        "step_hits": step_hits_table(joined, HOW),
        "step_against": step_against_table(joined, HOW, 2),
        **told,
        **held,
        "front": FRONT.make(told["trust"]),
        "headline": headline_table(joined, PRIMARIES, 0),
        "ablation": ablation_table(labels, HOW),
    }


def _with_spend(
    made: Mapping[str, dict[str, pd.DataFrame]],
) -> dict[str, dict[str, pd.DataFrame]]:
    return {study: of | {"spend": spend_table([])} for study, of in made.items()}


def every_table() -> dict[str, dict[str, pd.DataFrame]]:
    """By study and name, made of nothing, or of a comparison that has little in common."""
    scores, chains, steps = (pd.DataFrame(columns=list(x)) for x in (SCORES, TRACES, STEP_SCORES))
    little = joined_of({"one": ("judged", [0.0, 1.0]), "two": ("internal", [1.0, 1.0])})
    return _with_spend(
        {
            "slrc": _slrc([]) | _judge([], [], {}) | _faithcot(scores, chains, steps),
            "c2faith": _c2(Frames(), injected()),
            "rfeval": rf_tables(frames_of({}), HOW),
            "compare": _compare(little),
            "training": _training(0),
        }
    )


def filled_tables() -> dict[str, dict[str, pd.DataFrame]]:
    """By study and name, made of a few items that have most of what a run may have."""
    few = join({"a": made_up_scores(24, 3, "", 3, 0.1)}, None, "text")
    return _with_spend(
        {
            "slrc": _slrc(sample_run(3)) | _judge(*_judged(24)) | _faithcot(*_faithcot_frames(24)),
            "c2faith": _c2(c2_frames(2, 12, mute=True), injected((1, 0, 1), (1, 0, 0), (1, 1, 1))),
            "rfeval": rf_tables(frames_of(rf_frames(RF_MODELS[:2], RF_TASKS, n=4)), HOW),
            "compare": _compare(few),
            "training": _training(3),
        }
    )
