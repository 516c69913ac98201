"""Every table of every study: made of nothing, where tables have their columns without a row, and
of a small comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd
from synthetic_comparison import joined_of

from faithscope.experiments.analysis.comparison.against import against_tables, targets
from faithscope.experiments.analysis.comparison.agreement import (
    step_agreement_table,
    step_hits_table,
)
from faithscope.experiments.analysis.comparison.combining import ablation_table
from faithscope.experiments.analysis.comparison.step_labels import step_against_table
from faithscope.experiments.analysis.comparison.trust import front_table
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics.resampling import Drawing
from faithscope.experiments.analysis.traces.exclusions import exclusions_table
from faithscope.experiments.studies import c2faith, compare, faithcot, judge, rfeval  # noqa: F401
from faithscope.experiments.studies.c2faith.tables import OF_RUN, Frames
from faithscope.experiments.studies.c2faith.tables import tables as c2_tables
from faithscope.experiments.studies.compare.config import CompareReport
from faithscope.experiments.studies.compare.results import MEASURES, sentence_tables
from faithscope.experiments.studies.faithcot import tables as of_faithcot
from faithscope.experiments.studies.faithcot.paper import paper_data
from faithscope.experiments.studies.faithcot.results import SCORES, STEP_SCORES, TRACES
from faithscope.experiments.studies.judge import tables as of_judges
from faithscope.experiments.studies.rfeval.tables import frames_of
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
    detectors = of_faithcot.detectors_table(scores, 2, HOW, False)
    return {
        "detectors": detectors,
        **paper_data(detectors),
        "faithcot_quadrants": of_faithcot.quadrants_table(traces, traces),
        "faithcot_rates": of_faithcot.rates_table(traces, HOW),
        "faithcot_principles": of_faithcot.principles_table(traces),
        "faithcot_steps": of_faithcot.steps_table(steps, HOW),
        "exclusions": exclusions_table([]),
    }


def _judge() -> dict[str, pd.DataFrame]:
    made = {
        "judge_forms": of_judges.forms_table([], HOW),
        "judge_agreement": of_judges.agreement_table([], [], {}, [], HOW),
        "judge_localisation": of_judges.localisation_table([], {}, []),
        "judge_steps": of_judges.steps_table([]),
    }
    counted = {name: of_judges.with_cut(table, []) for name, table in made.items()}
    return counted | {"exclusions": of_judges.exclusions_table([], False)}


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
        "joins": joined.joins,
        "missing": joined.missing,
        "measures": pd.DataFrame(columns=MEASURES),
        "step_agreement": step_agreement_table(joined, HOW),
        "step_hits": step_hits_table(joined, HOW),
        "step_against": step_against_table(joined, HOW, 2),
        **told,
        **held,
        "front": front_table(told["trust"]),
        "ablation": ablation_table(labels, HOW),
    }


def every_table() -> dict[str, dict[str, pd.DataFrame]]:
    """By study and name."""
    c2 = c2_tables(Frames(), resamples=10)
    c2 |= {table.name: pd.DataFrame(columns=table.header) for table in OF_RUN}
    made = {
        "slrc": _slrc(),
        "c2faith": c2,
        "rfeval": rf_tables(frames_of({}), HOW),
        "faithcot": _faithcot(),
        "judge": _judge(),
        "compare": _compare(),
    }
    return {study: of | {"spend": spend_table([])} for study, of in made.items()}
