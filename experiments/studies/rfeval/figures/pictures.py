"""The figures of RFEval, each drawn from the tables alone (the paper's Figures 3 to 6 and 9 to 12,
its appendix tables as pictures, and ours)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import matplotlib as mpl
import pandas as pd

from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.rfeval.figures.accuracy import accuracy_picture
from faithscope.experiments.studies.rfeval.figures.against import against_picture
from faithscope.experiments.studies.rfeval.figures.behaviours import behaviours_picture
from faithscope.experiments.studies.rfeval.figures.coverage import quartiles_picture
from faithscope.experiments.studies.rfeval.figures.externality import externality_picture
from faithscope.experiments.studies.rfeval.figures.failures import (
    causality_picture,
    failures_picture,
)
from faithscope.experiments.studies.rfeval.figures.faithfulness import (
    cells_picture,
    components_picture,
    regimes_picture,
    rf_picture,
)
from faithscope.experiments.studies.rfeval.figures.inside import signs_picture, traces_picture
from faithscope.experiments.studies.rfeval.figures.lengths import lengths_picture
from faithscope.experiments.studies.rfeval.figures.plots import lead_reader
from faithscope.experiments.studies.rfeval.figures.readers import evaluator_picture, readers_picture
from faithscope.experiments.studies.rfeval.figures.steps import per_step_picture
from faithscope.experiments.studies.rfeval.figures.waterfall import waterfall_picture
from faithscope.experiments.studies.rfeval.metrics.frames import OVERALL
from faithscope.experiments.studies.rfeval.metrics.framings import comparable
from faithscope.experiments.studies.rfeval.metrics.steps import SCORED
from faithscope.experiments.studies.rfeval.subjects.injection import MULTI_TURN, PREFIX


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure, from the tables of `experiments.studies.rfeval.tables.tables`.

    Where a figure is of one reader of stances it is `plots.lead_reader`'s, and its caption says
    so; the tables have all.
    """
    reader = lead_reader(tables["rfeval"])
    told = framing_told(tables["rfeval"])
    tables = {**tables, **{name: comparable(tables[name]) for name in ("rfeval", "rf_waterfall")}}
    mine = {
        name: where(table, reader=reader).reset_index(drop=True)
        for name, table in tables.items()
        if "reader" in table and name.startswith("rf")
    }
    # its steps may have been read by its log-probs alone
    by_step = {reader, f"{reader}{SCORED}"} & set(tables["rf_per_step"]["reader"])
    of_steps = min(by_step, default=reader)
    steps = {
        name: where(tables[name], reader=of_steps).reset_index(drop=True)
        for name in ("rf_per_step", "rf_per_step_ranks")
    }
    several = len(set(tables["rfeval"]["reader"])) > 1
    read = f" Stances as {visible(reader)} read them." if several else ""
    with mpl.rc_context(STYLE):
        of_one = [
            cells_picture(mine["rfeval"]),
            components_picture(mine["rfeval"]),
            regimes_picture(mine["rf_regimes"]),
            behaviours_picture(mine["rfeval"], mine["rf_behaviours"]),
            failures_picture(
                mine["rfeval"], mine["rf_failure_shares"], mine["rf_failure_locations"]
            ),
            causality_picture(mine["rfeval"], mine["rf_causality"]),
            quartiles_picture(mine["rf_coverage_quartiles"], "model"),
            quartiles_picture(mine["rf_coverage_quartiles"], "task"),
            accuracy_picture(mine["rf_accuracy"], mine["rf_accuracy_association"]),
            per_step_picture(steps["rf_per_step"], steps["rf_per_step_ranks"]),
            against_picture(mine["rf_judge_against_log_probs"]),
            traces_picture(mine["rf_inside_traces"], mine["rf_inside_turns"]),
            signs_picture(mine["rf_inside_signs"]),
            waterfall_picture(mine["rf_waterfall"], mine["rfeval"]),
        ]
        return [
            _also(rf_picture(tables["rfeval"]), told),
            *(_also(p, f"{read}{told}") for p in of_one),
            externality_picture(tables["rf_externality"]),
            lengths_picture(tables["rf_lengths"]),
            readers_picture(tables["rf_readers"]),
            evaluator_picture(tables["rf_evaluator"]),
        ]


def framing_told(rf: pd.DataFrame) -> str:
    """What a caption says of models to which r′ was only quoted; empty without any."""
    quoted = where(rf.loc[rf["model"] != OVERALL], framing=MULTI_TURN)
    if quoted.empty:
        return ""
    names = ", ".join(visible(name) for name in dict.fromkeys(quoted["model"]))
    apart = " What pools models is of the others." if PREFIX in set(rf["framing"]) else ""
    return f" To {names} r′ was only quoted (multi-turn), an approximation.{apart}"


def _also(picture: Picture, told: str) -> Picture:
    return replace(picture, caption=f"{picture.caption.rstrip()}{told}")
