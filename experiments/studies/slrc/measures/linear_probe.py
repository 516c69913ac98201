"""Report of linear probes: positions and layers at which the answer can be decoded.

Classifiers are fitted on the arrays that the probe stored; its records hold classes, not features.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import INK_ON_DARK, INK_ON_PALE
from faithscope.experiments.analysis.cells import INCLUDED
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
from faithscope.experiments.analysis.tidy import columns, distinct, groups, rows, where
from faithscope.experiments.analysis.wording import pair_names, pairs_of
from faithscope.experiments.studies.slrc.figures.per_pair import picture
from faithscope.experiments.studies.slrc.measure_report import (
    Frame,
    MeasureReport,
    Monitor,
    SlrcAnalysis,
)
from faithscope.probes.linear_probe import LinearProbeSettings

TARGETS = ("answer", "gold")
"""Targets of the classifiers: the model's own final answer, and the right answer."""


def _classified(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    """Accuracy per position and layer; NaN with a reason where no classifier can be fitted.

    Raises:
        ValueError: records and arrays do not belong together.
    """
    settings = analysis.settings("linear_probe")
    assert isinstance(settings, LinearProbeSettings)
    shared = {field.name for field in fields(Classifying)} & {*LinearProbeSettings.model_fields}
    how = Classifying(**settings.model_dump(include=shared - {"seed"}), seed=analysis.seed)
    of_pair = {tuple(key.values()): of for key, of in groups(frame, ("model", "task"))}
    met = set()
    for pair, stored in itertools.groupby(analysis.arrays("linear_probe"), key=lambda s: s[0][:2]):
        arrays = {place[2]: of_item["states"] for place, of_item in stored}
        if pair in of_pair:
            records, units = of_pair[pair].to_dict("records"), analysis.units(of_pair[pair])
            of_items = dict(zip((str(r["item"]) for r in records), map(str, units), strict=True))
            yield from _of_pair(pair, records, arrays, of_items, how, analysis.resamples)
            met.add(pair)
    if lost := set(of_pair) - met:
        raise ValueError(f"linear_probe: no arrays of {min(lost)}; run it again")


def _of_pair(
    pair: tuple[str, str],
    records: Sequence[Record],
    arrays: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    how: Classifying,
    resamples: int,
) -> list[dict[str, Any]]:
    first = records[0]
    for r in records:
        shape = getattr(arrays.get(str(r["item"])), "shape", None)
        same = all(tuple(r[k]) == tuple(first[k]) for k in ("positions", "layers"))
        if not same or shape != arrays[str(first["item"])].shape:
            raise ValueError(
                f"linear_probe of {pair[0]} on {pair[1]}: item {r['item']!r} has arrays of shape "
                f"{shape}, layers {list(r['layers'])}, unlike item {first['item']!r}; the records "
                "of two models are mixed: run again under another name"
            )
    # The shape is (items, positions, layers, width).
    features = np.stack([arrays[str(r["item"])] for r in records])
    # an item that is its own unit may share its prompt with another
    named = [(str(r["item"]), r["group"]) for r in records]
    of_group = [group if units[item] == item else units[item] for item, group in named]
    table_rows = []
    fitted: dict[tuple[Any, ...], dict[str, Any]] = {}
    for target in TARGETS:
        classes = [None if pd.isna(r[target]) else r[target] for r in records]
        folds = split(classes, of_group, how)
        counts = {"n": len(folds.rows), "n_left_out": len(records) - len(folds.rows)}
        for i, position in enumerate(first["positions"]):
            for j, layer in enumerate(first["layers"]):
                row = {"model": pair[0], "task": pair[1], "target": target, "position": position}
                row |= {"layer": layer, "depth": layer / first["n_layers"], **counts}
                row |= {"n_classes": folds.n_classes, "reason": folds.reason}
                # For a model that is always right, the classifiers of the two targets are
                # identical.
                key = (tuple(classes), i, j)
                if key not in fitted:
                    fitted[key] = _measured(features[:, i, j], folds, how, resamples)
                table_rows.append(row | fitted[key])
    return table_rows


def _measured(
    features: np.ndarray, folds: Split, how: Classifying, resamples: int
) -> dict[str, Any]:
    if folds.reason:
        none = columns("accuracy", NOTHING) | columns("selectivity", NOTHING)
        return none | {"control": math.nan, "majority": math.nan, "decodable": False}
    right, control = classified_right(features[folds.rows].astype(float), folds, how)
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
_LIGHT = 0.55
"""Accuracy above which a cell is dark, and its text is white."""


def readable_from(ax: Axes, table: pd.DataFrame) -> Axes:
    """Accuracy by position and layer for one model, task and target; decodable cells are framed."""
    positions = [d["position"] for d in distinct(table, "position")]
    layers = [d["layer"] for d in distinct(table, "layer")]
    grid = np.full((len(layers), len(positions)), math.nan)
    for row in rows(table):
        y, x = layers.index(row["layer"]), positions.index(row["position"])
        grid[y, x] = row["accuracy"]
        if math.isnan(row["accuracy"]):
            continue
        ink = INK_ON_DARK if row["accuracy"] > _LIGHT else INK_ON_PALE
        weight = "bold" if row["decodable"] else "normal"
        text = f"{100 * row['accuracy']:.0f}" + ("*" if row["decodable"] else "")
        ax.text(x, y, text, ha="center", va="center", fontsize=7, color=ink, weight=weight)
    ax.imshow(grid, cmap="Blues", vmin=0, vmax=1, aspect="auto", origin="lower")
    ax.set_xticks(range(len(positions)), [p.removeprefix("during ") for p in positions])
    ax.set_yticks(range(len(layers)), [str(x) for x in layers])
    first = rows(table)[0]
    if first["reason"]:
        reason = first["reason"].replace("_", " ")
        ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, fontsize=8)
    return ax


def _drawn(table: pd.DataFrame) -> Figure:
    """A row of panels per model and task, with one panel per target."""
    pairs = pairs_of(table)
    figure = Figure(figsize=(9, 0.9 + 2.0 * len(pairs)), layout="constrained")
    axes = figure.subplots(len(pairs), len(_TARGETS), squeeze=False)
    for line, (model, task), name in zip(axes, pairs, pair_names(pairs), strict=True):
        for ax, (target, words) in zip(line, _TARGETS.items(), strict=True):
            of_target = where(table, model=model, task=task, target=target)
            chance = rows(of_target)[0]["majority"]
            largest = "" if math.isnan(chance) else f", largest class {100 * chance:.0f}"
            readable_from(ax, of_target).set_title(f"{name}\n{words}{largest}", fontsize=8.5)
        line[0].set_ylabel("layer")
    figure.supxlabel("place: before, along and after the reasoning", fontsize=9)
    return figure


linear_probe_picture = picture(
    "linear_probe",
    "Where the answer can be read",
    "Accuracy in percent of a linear classifier on the hidden states at each place and layer, "
    "tested on items it was not fitted on. A star: decodable, that is above the largest class "
    "and above the same classifier on shuffled answers, each with its 95 % interval.",
    _drawn,
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
    reasons={
        "no_residual_stream": "model structure not recognised",
        "too_few_items": "too few items of classes that recur",
        "fewer_than_2_classes": "fewer than 2 classes that recur",
    },
    monitor=Monitor("hidden_state", _state, of_arrays=True),
    answer_line_of=_answer_line,
)
