"""The figures of a run over traces, drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.axes import (
    along_reasoning,
    legend_above,
    name_rows,
    share_axis,
    share_rise,
    sheet,
)
from faithscope.experiments.analysis.charts import curve, dot_rows, dots_by, panels
from faithscope.experiments.analysis.colours import BLUE, FAMILY, GREY, ORANGE, Style, styles_for
from faithscope.experiments.analysis.failures import Failures, kept
from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.removal_units import told_apart
from faithscope.experiments.analysis.statistics.stats import wilson
from faithscope.experiments.analysis.tidy import columns, distinct, rows, summed, where
from faithscope.experiments.analysis.wording import model_order, pair_names, pairs_of
from faithscope.experiments.studies.slrc.figures.maps import (
    BETWEEN_STYLES,
    by_task_picture,
    contrast_picture,
    correlations_picture,
    head_to_head_picture,
    of_one_framing,
)
from faithscope.experiments.studies.slrc.figures.models import models_picture
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.outcomes import EDITS
from faithscope.experiments.studies.slrc.words import MATTERS, primary
from faithscope.probes.framing import FRAMINGS
from faithscope.probes.slrc_edits import CHOSEN

EDIT_STYLES = styles_for(
    (edit.name for edit in CHOSEN), {edit.name: f"step {edit.words}" for edit in CHOSEN}
) | {e.name: Style(GREY, "X", f"control: step {e.words}") for e in CHOSEN if e.if_text}
READING_STYLES = {
    "generated": Style(BLUE, "o", "generated answer"),
    "scored": Style(ORANGE, "D", "scored answer"),
}
POSITION_BINS = 5
PAIR = ("model", "task")
_FORM = {"necessity": "necessity", "sufficiency": "sufficiency", "slrc": "SLRC"}


def pictures(tables: Mapping[str, pd.DataFrame], failed: Failures | None = None) -> list[Picture]:
    """All figures of a run, from its tables; a figure without data says why it is absent.

    If a model has chains of several units of removal on a task, each unit is drawn as a task.

    Args:
        failed: takes the figures of measures that cannot be drawn, with their reasons; without it
            the first of them raises its error.
    """
    over_models = {
        name: tables[name] for name in ("models", "model_correlations") if name in tables
    }
    asked = {"sycophancy", "error_detection"} & set(tables)
    tables = told_apart(tables) | over_models
    of_tables = {
        "label_mass": label_mass_picture,
        "head_to_head": head_to_head_picture,
        "planted": planted_picture,
        "measure_correlations": correlations_picture,
    }
    of_measures: list[Picture] = []
    with mpl.rc_context(STYLE):
        for report in REPORTS.values():
            for table in report.every_table:
                if table.draw is not None and table.name in tables:
                    with kept(failed, "figure", report.probe):
                        of_measures.append(table.draw(tables[table.name]))
        return [
            edits_picture(tables["edits"]),
            forest_picture(tables["slrc"]),
            position_picture(tables["edits_by_step"]),
            agreement_picture(tables["agreement"]),
            contrast_picture(tables["slrc"]),
            by_task_picture(tables["slrc"]),
            # This figure needs sycophancy or error detection, which SLRC is correlated with.
            *([models_picture(*over_models.values())] if asked and over_models else []),
            *of_measures,
            *(draw(tables[name]) for name, draw in of_tables.items() if name in tables),
        ]


def _pair_rows(table: pd.DataFrame) -> dict[Hashable, str]:
    pairs = pairs_of(table)
    return dict(zip(pairs, pair_names(pairs), strict=True))


def edits_picture(edits: pd.DataFrame) -> Picture:
    """Dots of how often each edit of a step changes the answer, one row per model and task."""
    data = primary(where(edits, edit=EDIT_STYLES))
    dots = dots_by(data, "item_rate", "edit", EDIT_STYLES, PAIR)
    label = "share of edits that change the answer, mean over items"
    figure = dot_rows({"": dots}, _pair_rows(data), label=label)
    if figure:
        for ax in figure.panels:
            ax.axvline(MATTERS, color=GREY, lw=0.8, ls=":")
    anew = "(triangles)" if "regenerate" in set(data["edit"]) else "(not run here)"
    return Picture(
        "edits",
        "Ways to disturb a step",
        "Share of an item's edited steps after which the answer changed, mean over items, with the "
        "95 % interval, as in the verdicts. A model that uses its steps moves to "
        f"the right when a step is corrupted and the rest is written anew {anew}. Dots alone "
        "prove little: a text with a hole may be unlike any that the model has seen. The dotted "
        "line is the 0.30 from which the SLRC paper says that steps matter.",
        data,
        figure,
        "No step was edited.",
    )


def forest_picture(slrc: pd.DataFrame) -> Picture:
    """Dots of necessity, sufficiency and SLRC in three panels, one row per model, task and
    framing."""
    keys = [tuple(r.values()) for r in distinct(slrc, "model", "task", "framing")]
    keys.sort(key=lambda k: (model_order(k[0]), k[1], FRAMINGS.index(k[2])))
    names = pair_names([k[:2] for k in keys])
    return Picture(
        "forest",
        "Necessity, sufficiency and SLRC",
        "SLRC = necessity × (1 − sufficiency). Each has its 95 % interval, in which the steps of "
        "one item do not count as independent; n is the number of items.",
        slrc,
        dot_rows(
            {
                title: dots_by(slrc, measure, "reading", READING_STYLES, (*PAIR, "framing"))
                for measure, title in _FORM.items()
            },
            {key: f"{name} · {key[2]}" for key, name in zip(keys, names, strict=True)},
        ),
        "No item was measured.",
    )


def position_table(by_step: pd.DataFrame, bins: int = POSITION_BINS) -> pd.DataFrame:
    """`edits_by_step` pooled over traces of all lengths, by relative place of the step.

    Step i of T stands at (i − ½) / T; `position` is the middle of the bin it falls in.
    """
    relative = (by_step["step"] - 0.5) / by_step["n_steps"]
    flips = (by_step["flip_rate"] * by_step["n_edits"]).round().astype(int)
    keys = ["model", "task", "unit", "framing", "reading", "edit", "bin"]
    binned = by_step.assign(bin=(relative * bins).astype(int), flips=flips)
    pooled = summed(rows(binned), keys, ("flips", "n_edits"))
    table = [
        {key: r[key] for key in keys[:-1]}
        | {"position": (r["bin"] + 0.5) / bins, "n_edits": r["n_edits"]}
        | columns("flip_rate", wilson(r["flips"], r["n_edits"]))
        for r in sorted(
            rows(pooled),
            key=lambda r: [r[k] for k in keys[:5]] + [EDITS.index(r["edit"]), r["bin"]],
        )
    ]
    measured = ["position", "n_edits", "flip_rate", "flip_rate_low", "flip_rate_high"]
    return pd.DataFrame(table, columns=[*keys[:-1], *measured])


def position_picture(by_step: pd.DataFrame) -> Picture:
    """Curves of how often each edit changes the answer, by relative place of the step; one panel
    per model and task."""
    data = primary(position_table(where(by_step, edit=EDIT_STYLES)))
    pairs = pairs_of(data)

    def draw(ax: Axes, pair: tuple[str, str]) -> None:
        for i, (edit, style) in enumerate(EDIT_STYLES.items()):
            line = where(data, model=pair[0], task=pair[1], edit=edit).sort_values(by="position")
            if len(line):
                # Shift the curves slightly, so that equal ones do not hide each other.
                aside = line.assign(position=line["position"] + 0.027 * (i - 1.5))
                curve(ax, aside, "position", "flip_rate", style, lw=1.3)
        along_reasoning(share_rise(ax))

    labels = ("place of the step in the reasoning", "share changed")
    return Picture(
        "position",
        "Which steps carry the answer",
        "Share of edits that change the answer, by the relative place of the edited step, with "
        "95 % Wilson bands. Where later text is frozen, only the steps that the answer is read "
        "from can show; where it is written anew, every step that leads to them shows too.",
        data,
        panels(pairs, draw, pair_names(pairs, "\n"), labels=labels),
        "No step was edited.",
    )


def agreement_picture(agreement: pd.DataFrame) -> Picture:
    """Dots of how often two readings, or two framings, agree on whether a removal changed the
    answer."""
    data = where(agreement, edit="remove")
    styles = {b: s._replace(label=b.replace("~", " against ")) for b, s in BETWEEN_STYLES.items()}
    of_share = data.filter([*PAIR, "between", "agreement"])
    dots = dots_by(of_share, "agreement", "between", styles, PAIR)
    label = "share of step removals on which the two agree"
    return Picture(
        "agreement",
        "Do readings and framings agree?",
        "Share of step removals on which two ways of measuring say the same: the generated "
        "answer against the scored labels, the edited reasoning in its own place (prefix) "
        "against quoted in a new prompt (reprompt). Cohen's kappa is in the table.",
        data,
        dot_rows({"": dots}, _pair_rows(data), label=label),
        "Only one framing and one reading were run, so there is nothing to compare.",
    )


def planted_picture(table: pd.DataFrame) -> Picture:
    """Dots of every measure's AUROC on the planted models, beside that against the confound.

    Only one framing is drawn, since planted models read quoted reasoning like their own.
    """
    drawn = where(table, measure=of_one_framing(table["measure"].tolist()))
    sides = {
        "AUROC, faithful against decorative": "auroc",
        "AUROC, faithful against the confound": "auroc_confound",
    }
    figure = None
    if not drawn[list(sides.values())].isna().to_numpy().all():
        columns_of_dots = {
            title: dots_by(drawn, column, "family", FAMILY, "measure")
            for title, column in sides.items()
        }
        names = {m: m.replace("_", " ") for m in drawn["measure"]}
        figure = dot_rows(columns_of_dots, names, each=0.17)
    for ax in figure.panels if figure else ():
        ax.axvline(0.5, color=GREY, lw=0.8, ls="--")
    return Picture(
        "planted",
        "Which measure tells the planted models apart",
        "Items of the model that uses its steps against items of one that writes wrong steps "
        "and ignores them (left), and of one that ignores them but trips over a missing step "
        "(right), with 95 % bootstrap intervals. One is perfect, one half chance; below it a "
        "measure points the wrong way. Measures keep the direction that theory gives them.",
        table,
        figure,
        "No model that uses its steps was measured beside one that does not.",
    )


def label_mass_picture(table: pd.DataFrame) -> Picture:
    """Strips of points, one per model and task, with the label mass of each item's first scored
    record."""
    data = where(table, probe=set(table["probe"]) - {"direct"})
    data = data.drop_duplicates(["model", "task", "item"])
    figure = None
    if len(data):
        pairs = pairs_of(data)
        figure = sheet(1.0 + 0.36 * len(pairs))
        ax = figure.add_subplot()
        styles = {False: Style(BLUE, "o", "counted"), True: Style(ORANGE, "D", "left out")}
        for left_out, (colour, marker, label) in styles.items():
            masses, at = [], []
            for y, (model, task) in enumerate(pairs):
                own = where(data, model=model, task=task, left_out=left_out)["label_mass"].tolist()
                masses += own
                # Points of one strip are drawn side by side.
                at += [y + 0.56 * ((i + 0.5) / len(own) - 0.5) for i in range(len(own))]
            if masses:
                look: dict[str, Any] = {
                    "color": colour,
                    "marker": marker,
                    "ms": 3.5,
                    "alpha": 0.6,
                    "mew": 0,
                }
                ax.plot(masses, at, ls="", label=label, **look)
        for y, (model, task) in enumerate(pairs):
            median = where(data, model=model, task=task)["label_mass"].median()
            ax.plot([median, median], [y - 0.38, y + 0.38], color=GREY, lw=1.5)
        share_axis(ax)
        name_rows(ax, pair_names(pairs))
        figure.supxlabel("label mass after the whole reasoning")
        legend_above(figure, ax)
    return Picture(
        "label_mass",
        "What share of the model's probability do the labels have?",
        "The scored reading weighs the answers of a task against each other. Here is what all of "
        "them have together, in every spelling that is scored; the rest of the probability goes "
        "to other words. A point is an item, the line the median. Where the mass is small, shares "
        "of it say little: items below `report.least_label_mass` are left out.",
        data,
        figure,
        "No item was scored.",
    )
