"""Every table of every study: made of nothing, where tables have their columns without a row, and
of a small comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd
from synthetic_comparison import joined_of

from faithscope.experiments.analysis.comparison.agreement import (
    step_agreement_table,
    step_hits_table,
)
from faithscope.experiments.analysis.comparison.combining import ablation_table
from faithscope.experiments.analysis.comparison.scores_vs_labels import against_tables, targets
from faithscope.experiments.analysis.comparison.step_labels import step_against_table
from faithscope.experiments.analysis.comparison.trust import FRONT
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.analysis.traces.exclusions import exclusions_table, fates_of
from faithscope.experiments.studies import c2faith, compare, faithcot, judge, rfeval  # noqa: F401
from faithscope.experiments.studies.c2faith.metrics.calibration import MASS
from faithscope.experiments.studies.c2faith.metrics.words import words_table
from faithscope.experiments.studies.c2faith.tables import Frames
from faithscope.experiments.studies.c2faith.tables import tables as c2_tables
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.reading import SOURCES
from faithscope.experiments.studies.compare.results import MEASURES, sentence_tables
from faithscope.experiments.studies.faithcot import tables as of_faithcot
from faithscope.experiments.studies.faithcot.metrics import by_rule
from faithscope.experiments.studies.faithcot.results import SCORES, STEP_SCORES, TRACES
from faithscope.experiments.studies.judge import tables as of_judges
from faithscope.experiments.studies.judge.verdicts import STEP, VERDICT
from faithscope.experiments.studies.rfeval.tables import RfFrames
from faithscope.experiments.studies.rfeval.tables import tables as rf_tables
from faithscope.experiments.studies.slrc.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.outcomes import label_mass_table
from faithscope.experiments.studies.slrc.topics import TOPICS

HOW = Drawing(0, 10)


def _slrc() -> dict[str, pd.DataFrame]:
    made: dict[str, pd.DataFrame] = {}
    for topic in TOPICS:
        for table in topic.tables:
            made[table.name] = table.make(made[table.of] if table.of else [], SlrcAnalysis())
    return made | {"label_mass": label_mass_table([]), "exclusions": exclusions_table([])}


def _faithcot() -> dict[str, pd.DataFrame]:
    scores, traces, steps = (pd.DataFrame(columns=list(x)) for x in (SCORES, TRACES, STEP_SCORES))
    readings = by_rule(scores, 2, False, 0)
    frames = {
        "readings": readings,
        "common_detectors": of_faithcot.DETECTED.make(readings),
        "chains": traces.assign(counted=True),
        "suspicions": steps.assign(counted=True),
        "fates": fates_of([]),
    }
    return make_tables(of_faithcot.TABLES, frames, HOW)


def _judge() -> dict[str, pd.DataFrame]:
    verdicts, steps = (pd.DataFrame(columns=list(names)) for names in (VERDICT, STEP))
    frames = {
        "every_verdict": verdicts,
        "verdicts": verdicts,
        "steps": steps,
        "held": of_judges.held_against_labels(verdicts, steps, {}, []),
        "located": of_judges.located(verdicts, {}, []),
        "fates": of_judges.with_fates(verdicts, False),
    }
    return make_tables(of_judges.TABLES, frames, HOW)


def _compare() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    values = {
        f"{family} {i}": (family, rng.random(24).tolist())
        for i in range(2)
        for family in ("behavioural", "internal", "judged")
    }
    joined = joined_of(values, label=[float(i % 2) for i in range(24)])
    labels = targets(joined, 2, 0)
    held = against_tables(joined, labels, HOW)
    told = sentence_tables(joined, labels, HOW, CompareReport(), held["against"])
    return {
        "sources": SOURCES.table([]),
        "joins": joined.joins,
        "missing": joined.missing,
        "measures": MEASURES.table([]),
        "step_agreement": step_agreement_table(joined, HOW),
        "step_hits": step_hits_table(joined, HOW),
        "step_against": step_against_table(joined, HOW, 2),
        **told,
        **held,
        "front": FRONT.make(told["trust"]),
        "ablation": ablation_table(labels, HOW),
    }


def every_table() -> dict[str, dict[str, pd.DataFrame]]:
    """By study and name."""
    c2 = c2_tables(Frames(), resamples=10)
    c2 |= {"c2_mass": pd.DataFrame(columns=MASS), "c2_words": words_table([])}
    made = {
        "slrc": _slrc(),
        "c2faith": c2,
        "rfeval": rf_tables(RfFrames(), resamples=10),
        "faithcot": _faithcot(),
        "judge": _judge(),
        "compare": _compare(),
    }
    return {study: of | {"spend": spend_table([])} for study, of in made.items()}
