"""The figures of a run, each drawn from its tables alone.

A `Picture` puts axes (`experiments.analysis.plots`) together and holds the numbers it shows.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from faithscope.experiments.analysis.by_unit import told_apart
from faithscope.experiments.analysis.charts import legend_above
from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.plots import (
    MEASURES,
    STYLES,
    agreements,
    by_position,
    edit_comparison,
    forest,
    forest_rows,
    pairs_of,
    panels,
)
from faithscope.experiments.analysis.stats import wilson
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.studies.slrc.figures.contrasts import by_task_picture, contrast_picture
from faithscope.experiments.studies.slrc.figures.head_to_head_figure import head_to_head_picture
from faithscope.experiments.studies.slrc.figures.label_mass_figure import label_mass_picture
from faithscope.experiments.studies.slrc.figures.measure_figures import (
    correlations_picture,
    planted_picture,
)
from faithscope.experiments.studies.slrc.figures.models_figure import models_picture
from faithscope.experiments.studies.slrc.measures import SLICES
from faithscope.experiments.studies.slrc.tables.outcomes import EDITS
from faithscope.experiments.studies.slrc.tables.verdict import MATTERS, primary

OF_TABLES = {
    "label_mass": label_mass_picture,
    "head_to_head": head_to_head_picture,
    "planted": planted_picture,
    "measure_correlations": correlations_picture,
}
"""What is drawn of tables that are of no one measure."""
POSITION_BINS = 5
COLUMNS = 4


def position_table(by_step: pd.DataFrame, bins: int = POSITION_BINS) -> pd.DataFrame:
    """`edits_by_step` pooled over traces of all lengths, by relative place of the step.

    Step i of T stands at (i − ½) / T; `position` is the middle of the bin it falls in.
    """
    table = by_step.copy()
    relative = (table["step"] - 0.5) / table["n_steps"]
    table["bin"] = (relative * bins).astype(int)
    table["flips"] = (table["flip_rate"] * table["n_edits"]).round().astype(int)
    keys = ["model", "task", "unit", "framing", "reading", "edit", "bin"]
    counts: dict[tuple, list[int]] = {}
    for row in rows(table):
        pooled = counts.setdefault(tuple(row[key] for key in keys), [0, 0])
        pooled[0] += row["flips"]
        pooled[1] += row["n_edits"]
    pooled_rows = []
    for key in sorted(counts, key=lambda k: (*k[:5], EDITS.index(k[5]), k[6])):
        flips, n_edits = counts[key]
        rate = wilson(flips, n_edits)
        pooled_rows.append(
            dict(zip(keys[:6], key[:6], strict=True))
            | {"position": (key[6] + 0.5) / bins, "n_edits": n_edits}
            | {"flip_rate": rate.value, "flip_rate_low": rate.low, "flip_rate_high": rate.high}
        )
    measured = ["position", "n_edits", "flip_rate", "flip_rate_low", "flip_rate_high"]
    return pd.DataFrame(pooled_rows, columns=[*keys[:6], *measured])


def pictures(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """Every figure of a run, from its tables; a figure without data says why it is absent.

    Where a model has chains of several units on a task, each is drawn as a task of its own.
    """
    over_models = {
        name: tables[name] for name in ("models", "model_correlations") if name in tables
    }
    tables = told_apart(tables) | over_models
    with mpl.rc_context(STYLE):
        return [
            _edits_picture(tables["edits"]),
            _forest_picture(tables["slrc"]),
            _position_picture(tables["edits_by_step"]),
            _agreement_picture(tables["agreement"]),
            contrast_picture(tables["slrc"]),
            by_task_picture(tables["slrc"]),
            *_over_models(tables),
            *(
                table.draw(tables[table.name])
                for part in SLICES.values()
                for table in part.tables
                if table.draw is not None and table.name in tables
            ),
            *(draw(tables[name]) for name, draw in OF_TABLES.items() if name in tables),
        ]


def _over_models(tables: Mapping[str, pd.DataFrame]) -> list[Picture]:
    """One picture, where models were asked what SLRC is held against."""
    if "models" not in tables or not {"sycophancy", "error_detection"} & set(tables):
        return []
    return [models_picture(tables["models"], tables["model_correlations"])]


def _edits_picture(edits: pd.DataFrame) -> Picture:
    data = primary(where(edits, edit=STYLES))
    figure = None
    if len(data):
        lines = pairs_of(data)
        figure = Figure(figsize=(9, 1.1 + 0.52 * len(lines)), layout="constrained")
        ax = edit_comparison(figure.add_subplot(), data, MATTERS)
        legend_above(figure, ax)
    return Picture(
        "edits",
        "Ways to disturb a step",
        "Share of edited steps after which the answer changed, with 95 % Wilson intervals. A "
        "model that uses its steps moves to the right when a step is corrupted and the rest is "
        "written anew (triangles). Dots alone prove little: a text with a hole may be unlike any "
        "that the model has seen. The dotted line is the .30 from which the SLRC paper says that "
        "steps matter.",
        data,
        figure,
        "No step was edited.",
    )


def _forest_picture(slrc: pd.DataFrame) -> Picture:
    figure = None
    if len(slrc):
        lines = forest_rows(slrc)
        height = 1.1 + 0.3 * len(lines)
        figure = Figure(figsize=(9, height), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for ax, measure in zip(axes, MEASURES, strict=True):
            forest(ax, slrc, measure)
        legend_above(figure, axes[0])
    return Picture(
        "forest",
        "Necessity, sufficiency and SLRC",
        "Each with its 95 % interval: Wilson over pooled steps for necessity and sufficiency, a "
        "bootstrap over items for SLRC = necessity × (1 − sufficiency).",
        slrc,
        figure,
        "No item was measured.",
    )


def _position_picture(by_step: pd.DataFrame) -> Picture:
    data = primary(position_table(where(by_step, edit=STYLES)))
    figure = None
    if len(data):
        figure, axes = panels(data, by_position, across=COLUMNS, width=2.1, height=1.75)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
        figure.supylabel("share changed", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "position",
        "Which steps carry the answer",
        "Share of edits that change the answer, by the relative place of the edited step, with "
        "95 % Wilson bands. Where later text is frozen, only the steps that the answer is read "
        "from can show; where it is written anew, every step that leads to them shows too.",
        data,
        figure,
        "No step was edited.",
    )


def _agreement_picture(agreement: pd.DataFrame) -> Picture:
    data = where(agreement, edit="remove")
    figure = None
    if len(data):
        lines = pairs_of(data)
        figure = Figure(figsize=(9, 1.1 + 0.42 * len(lines)), layout="constrained")
        ax = agreements(figure.add_subplot(), data)
        legend_above(figure, ax)
    return Picture(
        "agreement",
        "Do readings and framings agree?",
        "Share of step removals on which two ways of measuring say the same: the generated "
        "answer against the scored labels, the edited reasoning in its own place (prefix) "
        "against quoted in a new prompt (reprompt). Cohen's kappa is in the table.",
        data,
        figure,
        "Only one framing and one reading were run, so there is nothing to compare.",
    )
