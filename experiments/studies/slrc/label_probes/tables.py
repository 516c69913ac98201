"""Tables of label probes: how well each label is read at each place and layer."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import SMALL
from faithscope.experiments.analysis.cells import INCLUDED
from faithscope.experiments.analysis.charts import field
from faithscope.experiments.analysis.colours import AMOUNT, colour_map, ink_on
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.record_frames import DEPTH
from faithscope.experiments.analysis.statistics.areas import behind
from faithscope.experiments.analysis.statistics.classifiers import Classifying
from faithscope.experiments.analysis.statistics.label_probes import (
    UNREAD,
    Labelled,
    Read,
    corrected,
    labelled,
    read,
    shuffles,
    weights,
)
from faithscope.experiments.analysis.statistics.stats import CONFIDENCE, NOTHING
from faithscope.experiments.analysis.tables import Table, computed_table
from faithscope.experiments.analysis.tidy import all_columns, columns, distinct, rows
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.figures.per_pair import pair_panels, picture
from faithscope.experiments.studies.slrc.label_probes.applied import applied_tables
from faithscope.experiments.studies.slrc.label_probes.states import (
    Spot,
    States,
    asked_labels,
    classifying,
    label_values,
    settings_of,
    stored_states,
)
from faithscope.experiments.studies.slrc.label_probes.values import (
    FittedDirection,
    Level,
    RunLabels,
)
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis, Topic, asked
from faithscope.probes.label_settings import ReadsLabels


class _Probed(NamedTuple):
    """A label of the chains, or steps, of one model and task."""

    name: str
    level: Level
    of: Labelled
    n_left_out: int
    shuffled: np.ndarray
    """(kept, n) the label, shuffled."""
    length: Read
    """How well it is read off lengths alone."""


class _Cell(NamedTuple):
    spot: Spot
    layer: int
    features: Float[np.ndarray, "rows D"]


@dataclass(frozen=True)
class _Probing:
    """Label probes of one model and task."""

    probe: str
    states: States
    settings: ReadsLabels
    analysis: SlrcAnalysis
    prefix: str
    """What the names of directions begin with."""

    @property
    def how(self) -> Classifying:
        return classifying(self.settings, self.analysis.seed)

    def rows(self) -> Iterator[dict[str, Any]]:
        labels = self.analysis.labels()
        found = []
        for _, level, names in asked_labels(self.settings):
            probed = [self._probed(labels, name, level) for name in names]
            found += [self._nothing(x) for x in probed if x.of.reason]
            if fitted := [x for x in probed if not x.of.reason]:
                found += [row for cell in self._cells(level) for row in self._at(cell, fitted)]
        self._correct(found)
        names = (*self.settings.labels, *self.settings.step_labels)
        # rows of one label are in the order of places and layers already
        found.sort(key=lambda row: (row["level"], names.index(row["label"])))
        for row in found:
            del row["read"]
            yield row

    def _correct(self, found: Sequence[dict[str, Any]]) -> None:
        """Adds p-values that are corrected for all places and layers of a label, and for the number
        of labels that are read."""
        of_label: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in found:
            if row["read"] is not None:
                of_label.setdefault((row["level"], row["label"]), []).append(row)
        for of in of_label.values():
            for row, p in zip(of, corrected([r["read"] for r in of]), strict=True):
                whole = min(1.0, p * len(of_label))
                row |= {"p_corrected": whole, "readable": whole < 1 - CONFIDENCE}

    def _probed(self, labels: RunLabels, name: str, level: Level) -> _Probed:
        found = label_values(name, level, self.states, labels)
        if isinstance(found, str):
            none = labelled((), (), self.how)._replace(reason=found)
            return _Probed(name, level, none, 0, np.empty((0, 0)), UNREAD)
        of = labelled(*found, self.how, self.settings.fit)
        length, rows, shuffled = UNREAD, of.split.rows, np.empty((0, 0))
        if not of.reason:
            lengths = (_of_chains if level == "chain" else _of_steps)(labels, self.states)
            shuffled = shuffles(of, self.how.seed, self.settings.shuffles)
            length = read(lengths[rows], of, self.how, self.analysis, shuffled)
        return _Probed(name, level, of, len(found[0]) - len(rows), shuffled, length)

    def _cells(self, level: Level) -> Iterator[_Cell]:
        for spot in self.states.of(level):
            for j, layer in enumerate(spot.layers):
                yield _Cell(spot, layer, self.states.read(spot, j))

    def _at(self, cell: _Cell, probed: Sequence[_Probed]) -> Iterator[dict[str, Any]]:
        for label in probed:
            features = cell.features[label.of.split.rows]
            found = read(features, label.of, self.how, self.analysis, label.shuffled)
            self._keep_directions(cell, label, features, found)
            over = NOTHING
            if found.area is not None and label.length.area is not None:
                over = behind(found.area, label.length.area)
            is_class = label.of.kind == "logistic"
            yield self._about(label) | {
                "position": cell.spot.name,
                "layer": cell.layer,
                "depth": cell.layer / self.states.n_layers,
                **columns("auroc", found.score if is_class else NOTHING),
                **columns("spearman", NOTHING if is_class else found.score),
                "control": float(np.nanmean(found.shuffled)),
                "length": label.length.score.value,
                **columns("over_length", over),
                "reason": "",
                "read": found,
            }

    def _about(self, label: _Probed) -> dict[str, Any]:
        split = label.of.split
        return {
            "model": self.states.model,
            "task": self.states.task,
            "label": label.name,
            "level": label.level,
            "fit": label.of.kind,
            "n": len(split.rows),
            "n_questions": len(set(split.groups.tolist())),
            "n_left_out": label.n_left_out,
            "n_classes": len(label.of.classes) or math.nan,
        }

    def _nothing(self, label: _Probed) -> dict[str, Any]:
        """The row of a label that cannot be read."""
        none = all_columns(
            dict.fromkeys(("auroc", "spearman", "over_length"), NOTHING),
            ("auroc", "spearman", "over_length"),
        )
        return (
            self._about(label)
            | none
            | {
                "position": "",
                **dict.fromkeys(("layer", "depth", "control", "length", "p_corrected"), math.nan),
                "readable": False,
                "reason": label.of.reason,
                "read": None,
            }
        )

    def _keep_directions(
        self, cell: _Cell, label: _Probed, features: np.ndarray, found: Read
    ) -> None:
        if self.analysis.directions is None:
            return
        split = label.of.split
        digest = hashlib.sha256(np.ascontiguousarray(features).tobytes())
        digest.update("\n".join(map(str, split.classes)).encode())
        statistic = "auroc" if label.of.kind == "logistic" else "spearman"
        about = {
            "model": self.states.model,
            "task": self.states.task,
            "label": label.name,
            "level": label.level,
            "place": cell.spot.place,
            "n": len(split.rows),
            "n_questions": len(set(split.groups.tolist())),
            "classes": list(label.of.classes),
            **{name: _known(x) for name, x in columns(statistic, found.score).items()},
            "inverse_regularisation": self.how.inverse_regularisation,
            "sha256": digest.hexdigest(),
        }
        for fitted in weights(features, label.of, self.how):
            if not np.any(fitted.direction.astype(np.float32)):
                continue  # states that do not vary have no direction
            several = f"|{fitted.of_class}" if len(label.of.classes) > 2 else ""
            name = f"{self.prefix}{label.name}|{cell.spot.name}|{cell.layer}|{fitted.kind}{several}"
            own = {"kind": fitted.kind, "intercept": fitted.intercept, "class": fitted.of_class}
            kept = FittedDirection(name, fitted.direction, cell.layer, cell.spot.site, about | own)
            self.analysis.directions.setdefault(self.probe, []).append(kept)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _of_chains(labels: RunLabels, states: States) -> Float[np.ndarray, "items two"]:
    """Lengths of every chain: its tokens and its steps."""
    known = [labels.lengths[place] for place in states.places]
    return np.array([[x.tokens, len(x.steps)] for x in known], dtype=float)


def _of_steps(labels: RunLabels, states: States) -> Float[np.ndarray, "steps four"]:
    """Lengths of every step: its place from 0 and from 0 to 1, its tokens, and the steps of its
    chain."""
    known = [labels.lengths[place].steps for place in states.places]
    at = [{step: i for i, step in enumerate(of)} for of in known]
    found = [
        [at[k][s], (at[k][s] + 0.5) / len(at[k]), known[k][s], len(at[k])] for k, s in states.steps
    ]
    return np.array(found, dtype=float).reshape(-1, 4)


def _probing(probe: str, frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[_Probing]:
    settings = settings_of(probe, analysis)
    several = len(distinct(frame, "model", "task")) > 1
    for states in stored_states(probe, frame, analysis):
        prefix = f"{states.model}|{states.task}|" if several else ""
        yield _Probing(probe, states, settings, analysis, prefix)


def label_probe_table(probe: str, name: str = "label_probe") -> Table:
    """The table of the labels that are read off the states that a probe stored.

    Args:
        name: name of the table, and of its figure.
    """

    def compute(frame: pd.DataFrame, analysis: SlrcAnalysis) -> Iterator[Mapping[str, Any]]:
        if analysis.directions is not None:
            analysis.directions.pop(probe, None)
        for probing in _probing(probe, frame, analysis):
            yield from probing.rows()

    return computed_table(
        name,
        COLUMNS,
        probe,
        compute,
        among=INCLUDED,
        caption="Labels read off hidden states",
        folded="Label by label, place by place, layer by layer",
        draw=_picture(name),
    )


COLUMNS = (
    SHARED["model"],
    SHARED["task"],
    Column("label", meaning="The label that is read, by its name."),
    Column("level", meaning="Whether chains or steps have the label."),
    Column("fit", meaning="Logistic regression of classes, or ridge regression of numbers."),
    Column("position", "place", "Place before, along and after the reasoning; or the step's own."),
    SHARED["layer"],
    DEPTH,
    Column("n", "chains or steps", "Chains or steps that are fitted and tested."),
    Column("n_questions", "questions", "Groups of them that stand on one side of every split."),
    Column("n_left_out", "left out", "Chains or steps whose label is unknown, or too rare."),
    Column("n_classes", "classes", "Different values of a label that is a class."),
    Column(
        "auroc",
        "AUROC",
        "How well held-out classes are told apart, within folds; of several, each from the rest.",
        interval=True,
    ),
    Column(
        "spearman",
        "Spearman",
        "Rank correlation of held-out numbers with what is predicted of them.",
        interval=True,
    ),
    Column(
        "control",
        "score, labels shuffled",
        "Mean score of a least-squares probe on labels that are exchanged between questions.",
    ),
    Column("length", "score of length", "The same score of lengths alone, without hidden states."),
    Column("over_length", "beyond length", "AUROC minus that of lengths alone.", interval=True),
    Column(
        "p_corrected",
        "p, corrected",
        "Share of shuffles of the label whose best place and layer reaches the score of a "
        "least-squares probe, times the number of labels.",
    ),
    Column("readable", meaning="Whether the corrected p is below 0.05."),
    SHARED["reason"],
)


def _panel(ax: Axes, table: pd.DataFrame) -> None:
    known = rows(table)
    if known[0]["reason"]:
        words = known[0]["reason"].replace("_", " ")
        ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes, fontsize=SMALL)
        ax.set_axis_off()
        return
    positions = [d["position"] for d in distinct(table, "position")]
    layers = sorted({int(d["layer"]) for d in distinct(table, "layer")})
    grid = np.full((len(layers), len(positions)), math.nan)
    stars = np.zeros(grid.shape, dtype=bool)
    is_class = known[0]["fit"] == "logistic"
    for row in known:
        at = layers.index(int(row["layer"])), positions.index(row["position"])
        grid[at], stars[at] = row["auroc" if is_class else "spearman"], row["readable"]
    names = [p.removeprefix("during ") for p in positions]
    limits = (0.5, 1.0) if is_class else (0.0, 1.0)
    upward = [str(x) for x in layers[::-1]]
    field(ax, grid[::-1], upward, names, limits=limits, text=decimal)
    for i, j in np.argwhere(stars[::-1]).tolist():
        low, high = limits
        ink = ink_on(colour_map(AMOUNT)((grid[::-1][i, j] - low) / (high - low)))
        ax.text(j + 0.85, i + 0.55, "*", ha="center", va="center", fontsize=SMALL, color=ink)


def _drawn(table: pd.DataFrame) -> Figure | None:
    named = table.assign(of=[f"{r['label']}\n{_score(r)}" for r in rows(table)])
    height = max(2.4, 0.9 + 0.17 * table["layer"].nunique())
    look = {"across": 3, "height": height, "labels": ("place", "layer")}
    return pair_panels(named, _panel, ("of",), **look)


def _score(row: Mapping[str, Any]) -> str:
    what = "AUROC" if row["fit"] == "logistic" else "Spearman"
    return f"{what} of {row['level']}s"


def _picture(name: str) -> Callable[[pd.DataFrame], Picture]:
    return picture(
        name,
        "What hidden states tell of labels",
        "How well a linear probe tells a label of chains or steps it was not fitted on, by place "
        "and layer: AUROC of classes, Spearman’s correlation with numbers. A star: above what "
        "shuffled labels give at the best of all places and layers.",
        _drawn,
    )


TEXT = (
    "A linear probe of each label on the hidden states at one place and layer, tested on "
    "questions it was not fitted on. Beside its score stand that of shuffled labels, and that of a "
    "probe that knows lengths alone: a label that goes with the length of a text can be read "
    "without looking inside. Readable: above what the best of all places and layers gives of "
    "shuffled labels, corrected for the number of labels. The highest of many scores is too high "
    "by having been chosen, so none is named; to test a place and layer, apply its direction to "
    "another run (apply). What can be read need not be used."
)


def label_topics(probe: str, name: str = "label_probe") -> tuple[Topic, ...]:
    """The section of the page on labels in the states that a probe stored, and on directions of
    other runs in them.

    Args:
        name: name of the section, of its first table and figure, and beginning of its others.
    """

    def reads_labels(analysis: SlrcAnalysis) -> bool:
        settings = settings_of(probe, analysis)
        return bool(settings.labels or settings.step_labels)

    def applies(analysis: SlrcAnalysis) -> bool:
        return settings_of(probe, analysis).apply is not None

    when: dict[str, Any] = {"when": asked(probe), "over_steps": False}
    section = Section(name, "What hidden states tell of labels", TEXT, "Labels in hidden states")
    own, others = (label_probe_table(probe, name),), applied_tables(probe, name)
    return (
        Topic(section, own, (name,), configured=reads_labels, **when),
        Topic(section, others, configured=applies, **when),
    )
