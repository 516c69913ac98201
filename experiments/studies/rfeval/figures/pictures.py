"""All figures of an RFEval run, each drawn from the tables alone (the paper's Figures 3 to 6 and 9
to 12, its appendix tables as pictures, and ours)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import matplotlib as mpl
import pandas as pd

from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.figures import (
    failures,
    faithfulness,
    inside,
    readers,
    relations,
    texts,
)
from faithscope.experiments.studies.rfeval.tables.faithfulness import comparable
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL, lead_reader
from faithscope.experiments.studies.rfeval.tables.steps import SCORED

BY_STEP = ("rf_per_step", "rf_per_step_ranks")


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure of a run, from its tables by name.

    A figure that shows one reader of stances shows `lead_reader`'s, and its caption says so; the
    tables have all readers.
    """
    reader = lead_reader(tables["rfeval"])
    quoted = framing_sentence(tables["rfeval"])
    tables = {**tables, **{name: comparable(tables[name]) for name in ("rfeval", "rf_waterfall")}}
    # the steps of the leading reader may have been read by its log-probs alone
    by_step = {reader, f"{reader}{SCORED}"} & set(tables["rf_per_step"]["reader"])
    of = {
        name: where(table, reader=min(by_step, default=reader) if name in BY_STEP else reader)
        for name, table in tables.items()
        if "reader" in table and name.startswith("rf")
    }
    of = {name: table.reset_index(drop=True) for name, table in of.items()}
    several = len(set(tables["rfeval"]["reader"])) > 1
    read = f" Stances as {visible(reader)} read them." if several else ""
    rf, quartiles = of["rfeval"], of["rf_coverage_quartiles"]
    with mpl.rc_context(STYLE):
        of_one = [
            faithfulness.cells_picture(rf),
            faithfulness.components_picture(rf),
            faithfulness.regimes_picture(of["rf_regimes"]),
            failures.behaviours_picture(rf, of["rf_behaviours"]),
            failures.failures_picture(rf, of["rf_failure_shares"], of["rf_failure_locations"]),
            failures.causality_picture(rf, of["rf_causality"]),
            relations.quartiles_picture(quartiles, "model"),
            relations.quartiles_picture(quartiles, "task"),
            relations.accuracy_picture(of["rf_accuracy"], of["rf_accuracy_association"]),
            faithfulness.per_step_picture(*(of[name] for name in BY_STEP)),
            faithfulness.against_picture(of["rf_judge_against_log_probs"]),
            inside.traces_picture(of["rf_inside_traces"]),
            faithfulness.waterfall_picture(of["rf_waterfall"], rf),
        ]
        return [
            _also(faithfulness.rf_picture(tables["rfeval"]), quoted),
            *(_also(picture, f"{read}{quoted}") for picture in of_one),
            texts.externality_picture(tables["rf_externality"]),
            texts.lengths_picture(tables["rf_lengths"]),
            readers.readers_picture(tables["rf_readers"]),
            readers.evaluator_picture(tables["rf_evaluator"]),
        ]


def framing_sentence(rf: pd.DataFrame) -> str:
    """Caption text on models to which r′ was only quoted; "" without such a model."""
    quoted = where(rf.loc[rf["model"] != OVERALL], framing=MULTI_TURN)
    if quoted.empty:
        return ""
    names = ", ".join(visible(name) for name in dict.fromkeys(quoted["model"]))
    apart = " What pools models is of the others." if PREFIX in set(rf["framing"]) else ""
    return f" To {names} r′ was only quoted (multi-turn), an approximation.{apart}"


def _also(picture: Picture, words: str) -> Picture:
    return replace(picture, caption=f"{picture.caption.rstrip()}{words}")
