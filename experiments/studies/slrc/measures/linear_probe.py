"""Report of linear probes: positions and layers at which the answer can be decoded.

Classifiers are fitted on the arrays that the probe stored; its records hold classes, not features.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import SMALL, sheet
from faithscope.experiments.analysis.cells import INCLUDED
from faithscope.experiments.analysis.colours import AMOUNT, colour_map, ink_on
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, DEPTH
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.classifiers import (
    Classifying,
    Split,
    classified_right,
    split,
)
from faithscope.experiments.analysis.statistics.stats import NOTHING
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import columns, distinct, rows, where
from faithscope.experiments.analysis.wording import pair_names, pairs_of
from faithscope.experiments.numerals import hundredths, percent
from faithscope.experiments.studies.slrc.figures.per_pair import picture
from faithscope.experiments.studies.slrc.label_probes.applied import item_scores
from faithscope.experiments.studies.slrc.label_probes.states import (
    States,
    classifying,
    settings_of,
    stored_states,
)
from faithscope.experiments.studies.slrc.label_probes.tables import label_topics
from faithscope.experiments.studies.slrc.label_probes.values import REASONS
from faithscope.experiments.studies.slrc.measure_report import (
    Frame,
    MeasureReport,
    Monitor,
    SlrcAnalysis,
)

TARGETS = ("answer", "gold")
"""Targets of the classifiers: the model's own final answer, and the right answer."""


def _classified(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    """Accuracy per position and layer; NaN with a reason where no classifier can be fitted.

    Raises:
        ValueError: records and arrays do not belong together.
    """
    how = classifying(settings_of("linear_probe", analysis), analysis.seed)
    for states in stored_states("linear_probe", frame, analysis):
        yield from _of_pair(states, how, analysis.resamples)


def _of_pair(states: States, how: Classifying, resamples: int) -> list[dict[str, Any]]:
    classes = {
        target: [None if pd.isna(r[target]) else r[target] for r in states.records]
        for target in TARGETS
    }
    folds = {target: split(of, states.groups, how) for target, of in classes.items()}
    table_rows = []
    for spot in states.spots:
        for j, layer in enumerate(spot.layers):
            is_fitted = not all(of.reason for of in folds.values())
            features = states.read(spot, j) if is_fitted else np.empty(0)
            # For a model that is always right, the classifiers of the two targets are identical.
            fitted: dict[tuple[Any, ...], dict[str, Any]] = {}
            for target, of in folds.items():
                row = {"model": states.model, "task": states.task, "target": target}
                row |= {"position": spot.place, "layer": layer, "depth": layer / states.n_layers}
                row |= {"n": len(of.rows), "n_left_out": len(states.records) - len(of.rows)}
                row |= {"n_classes": of.n_classes, "reason": of.reason}
                key = tuple(classes[target])
                if key not in fitted:
                    fitted[key] = _measured(features, of, how, resamples)
                table_rows.append(row | fitted[key])
    return sorted(table_rows, key=lambda row: TARGETS.index(row["target"]))


def _measured(
    features: np.ndarray, folds: Split, how: Classifying, resamples: int
) -> dict[str, Any]:
    if folds.reason:
        none = columns("accuracy", NOTHING) | columns("selectivity", NOTHING)
        return none | {"control": math.nan, "majority": math.nan, "decodable": False}
    right, control = classified_right(features[folds.rows], folds, how)
    accuracy = stats.share(right.tolist(), folds.groups)
    more = {"units": folds.groups, "seed": how.seed, "resamples": resamples}
    selectivity = stats.mean_of_items((right - control.mean(0)).tolist(), **more)
    return {
        **columns("accuracy", accuracy),
        "control": float(control.mean()),
        **columns("selectivity", selectivity),
        "majority": folds.majority,
        "decodable": accuracy.low > folds.majority and selectivity.low > 0,
    }


_TARGETS = {"answer": "its own answer", "gold": "the right answer"}


def readable_from(ax: Axes, table: pd.DataFrame) -> Axes:
    """Accuracy by position and layer for one model, task and target; decodable cells are framed."""
    positions = [d["position"] for d in distinct(table, "position")]
    layers = [d["layer"] for d in distinct(table, "layer")]
    grid, map_of = np.full((len(layers), len(positions)), math.nan), colour_map(AMOUNT)
    for row in rows(table):
        y, x = layers.index(row["layer"]), positions.index(row["position"])
        grid[y, x] = row["accuracy"]
        if math.isnan(row["accuracy"]):
            continue
        ink = ink_on(map_of(row["accuracy"]))
        weight = "bold" if row["decodable"] else "normal"
        text = hundredths(row["accuracy"]) + ("*" if row["decodable"] else "")
        ax.text(x, y, text, ha="center", va="center", fontsize=SMALL, color=ink, weight=weight)
    ax.imshow(grid, cmap=map_of, vmin=0, vmax=1, aspect="auto", origin="lower")
    ax.set_xticks(range(len(positions)), [p.removeprefix("during ") for p in positions])
    ax.set_yticks(range(len(layers)), [str(x) for x in layers])
    first = rows(table)[0]
    if first["reason"]:
        reason = first["reason"].replace("_", " ")
        ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, fontsize=SMALL)
    return ax


def _drawn(table: pd.DataFrame) -> Figure | None:
    """A row of panels per model and task, with one panel per target; None if no classifier could
    be tested."""
    tested = table.dropna(subset=["accuracy"])
    pairs = pairs_of(tested)
    if not pairs:
        return None
    figure = sheet(0.9 + 1.8 * len(pairs))
    axes = figure.subplots(len(pairs), len(_TARGETS), squeeze=False)
    for line, (model, task), name in zip(axes, pairs, pair_names(pairs), strict=True):
        for ax, (target, words) in zip(line, _TARGETS.items(), strict=True):
            of_target = where(table, model=model, task=task, target=target)
            chance = rows(of_target)[0]["majority"]
            largest = "" if math.isnan(chance) else f", largest class {percent(chance)}"
            readable_from(ax, of_target).set_title(f"{name}\n{words}{largest}")
        line[0].set_ylabel("layer")
    figure.supxlabel("place: before, along and after the reasoning")
    return figure


linear_probe_picture = picture(
    "linear_probe",
    "Where the answer can be read",
    "Accuracy in percent of a linear classifier on the hidden states at each place and layer, "
    "tested on items it was not fitted on. A star: decodable, that is above the largest class "
    "and above the same classifier on shuffled answers, each with its 95 % interval.",
    _drawn,
    "No classifier could be tested: the column “reason” of the table says why.",
)


def _state(record: Record, arrays: Mapping[str, Any]) -> Sequence[float]:
    """The state after the reasoning, at the layer nearest to half the depth."""
    depth = [abs(layer / record["n_layers"] - 0.5) for layer in record["layers"]]
    return arrays["states"][-1, int(np.argmin(depth))]


def _answer_line(table: pd.DataFrame) -> Iterator[Mapping[str, Any]]:
    """Accuracy of the classifier of the model's own answer along the reasoning, at the layer
    nearest to half the depth."""
    own = where(table, target="answer")
    for pair in distinct(own, "model", "task"):
        lines = rows(where(own, **pair))
        nearest = min(abs(row["depth"] - 0.5) for row in lines)
        for row in lines:
            place = row["position"].removeprefix("during ")
            known = not math.isnan(row["accuracy"]) and place != "after"
            if known and abs(row["depth"] - 0.5) == nearest:
                k, _, n = place.partition("/")
                at = {"line": "linear probe", "position": int(k) / int(n) if n else 0.0}
                ends = ("", "_low", "_high")
                values = {f"answer_there{end}": row[f"accuracy{end}"] for end in ends}
                yield pair | at | {"n": row["n"]} | values


LINEAR_PROBE = computed_table(
    "linear_probe",
    (
        SHARED["model"],
        SHARED["task"],
        Column("target", meaning="What is to be read: the model's own answer, or the right one."),
        Column("position", meaning="Place before, along and after the reasoning."),
        SHARED["layer"],
        DEPTH,
        *COUNTED.columns,
        Column("n_left_out", "items left out", "Their class is unknown or too rare."),
        Column("n_classes", "classes", "Different answers among the items that are not left out."),
        Column(
            "accuracy", meaning="Items whose class a classifier of other items told.", interval=True
        ),
        Column(
            "control",
            "accuracy, classes shuffled",
            "Accuracy of the same classifier fitted to and tested on shuffled classes, "
            "mean over shuffles.",
        ),
        Column("selectivity", meaning="Accuracy minus the control.", interval=True),
        Column("majority", "largest class", "What always naming the commonest answer gets right."),
        Column("decodable", meaning="Accuracy above the largest class, selectivity above 0."),
        SHARED["reason"],
    ),
    "linear_probe",
    _classified,
    among=INCLUDED,
    caption="Accuracy of a linear classifier of the answer",
    folded="Place by place, layer by layer",
    draw=linear_probe_picture,
)

REPORT = MeasureReport(
    "linear_probe",
    Section(
        "decodable",
        "Where the answer can be read",
        "A linear classifier of the answer on the hidden states at one place and layer, tested on "
        "items it was not fitted on. It is set against the same classifier on shuffled answers "
        "(control; the difference is its selectivity) and against always naming the commonest "
        "answer. Read as decodable: accuracy above the commonest answer and selectivity above "
        "zero, both with their whole 95 % interval. Of many places and layers some will be so by "
        "chance; and what can be read need not be used.",
        "Where it can be read",
    ),
    (LINEAR_PROBE,),
    (
        Frame(
            "linear_probe",
            'A row per item: what classifiers are fitted for; `arrays("linear_probe")` on what.',
            ("answer", "gold", "group", "n_steps", "positions", "steps", "layers", "n_layers"),
        ),
    ),
    over_steps=False,
    further=label_topics("linear_probe"),
    item_scores=item_scores("linear_probe"),
    reasons={
        "no_residual_stream": "model structure not recognised",
        **REASONS,
    },
    monitor=Monitor("hidden_state", _state, of_arrays=True),
    answer_line_of=_answer_line,
)
