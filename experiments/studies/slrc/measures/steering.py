"""Report of steering: what each dose of a direction does to answers, and what it does to the
text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import handle, legend_above, share_rise, sheet
from faithscope.experiments.analysis.cells import Boot, Distinct, Mean, rows_known
from faithscope.experiments.analysis.charts import curve
from faithscope.experiments.analysis.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, Style
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import item_table
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tidy import distinct, numbers, where, with_columns
from faithscope.experiments.analysis.wording import pair_names, pairs_of
from faithscope.experiments.studies.slrc.figures.per_pair import picture
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

RANDOM = "random"
_PLACE = ("direction", "positions", "site", "layer")
_OF_DOSE = ("kind", "control", *_PLACE, "edit", "coefficient")
_FIELDS = (
    *("kind", "control", "direction", "site", "layer", "n_layers", "edit", "coefficient"),
    *("length", "stream_length", "positions", "own", "gold", "samples", "answers", "stated"),
    *("kept", "right", "changed", "target", "followed", "mentioned", "n_tokens", "cut", "nll"),
    *("text", "excluded"),
)


def _prepared(frame: pd.DataFrame) -> pd.DataFrame:
    frame = with_columns(frame, *_FIELDS)
    return frame.assign(
        direction=frame["direction"].fillna(RANDOM),
        dose=numbers(frame["coefficient"])
        * numbers(frame["length"])
        / numbers(frame["stream_length"]),
    )


def _rate(name: str, label: str, meaning: str) -> Boot:
    return Boot(name, label=label, meaning=meaning, among=rows_known(name))


_RATES = {
    "followed": Style(BLUE, "o", "the cue's answer"),
    "changed": Style(ORANGE, "s", "answer changed"),
    "stated": Style(GREEN, "^", "states an answer"),
}
_DAMAGE = {"perplexity": Style(PURPLE, "D", "perplexity of the chain's own text")}
_LOG_FROM = 10
"""Perplexity from which its axis is logarithmic."""
_CONTROL = "random directions of the same length"


def _curves(ax: Axes, rows: pd.DataFrame, styles: dict[str, Style]) -> None:
    for kind in ("control", "direction"):
        of_kind = where(rows, kind=kind, edit="added").sort_values("coefficient")
        for name, (colour, marker, label) in styles.items():
            known = of_kind.dropna(subset=[name])
            style = Style(GREY if kind == "control" else colour, marker, label)
            dashes = ":" if kind == "control" else "-"
            curve(ax, known, "coefficient", name, style, interval="band", ms=3, lw=1.2, ls=dashes)


def _drawn(table: pd.DataFrame) -> Figure | None:
    """A row of two panels for each model, task and place: rates, and perplexity."""
    pairs = pairs_of(table)
    names = dict(zip(pairs, pair_names(pairs), strict=True))
    keys = distinct(table, "model", "task", *_PLACE)
    figure = sheet(0.8 + 1.8 * len(keys))
    axes = figure.subplots(len(keys), 2, squeeze=False)
    for (rates, damage), key in zip(axes, keys, strict=True):
        rows = where(table, **key)
        _curves(rates, rows, _RATES)
        _curves(damage, rows, _DAMAGE)
        share_rise(rates)
        if np.nanmax(numbers(rows["perplexity"]), initial=0) > _LOG_FROM:
            damage.set_yscale("log")
            damage.yaxis.set_major_formatter("{x:g}")
        place = f"{key['direction']}, {key['site']} {key['layer']}"
        rates.set_title(f"{names[key['model'], key['task']]}\n{place}")
        damage.set_title("damage")
        rates.set_ylabel("share of samples")
        damage.set_ylabel("perplexity")
    figure.supxlabel("coefficient of the direction")
    known = {n: s for n, s in (_RATES | _DAMAGE).items() if bool(table[n].notna().any())}
    legend_above(figure, [*map(handle, known.values()), handle(Style(GREY, "o", _CONTROL))])
    return figure


steering_picture = picture(
    "steering",
    "What a dose does, and what it breaks",
    "Left: shares of the texts that the model writes while a direction is added, by its "
    "coefficient; right: perplexity of the chain's own text under the same dose. Grey: random "
    "directions of the same length, which show what a push of that size does by itself. Means over "
    "items with 95 % intervals.",
    _drawn,
)

TABLE = item_table(
    "steering",
    (
        Distinct("n", "item", label="items", meaning="Items that the row is of."),
        Mean(
            "dose",
            label="dose over stream",
            meaning="Length of what is added over the mean length of the activations that it is "
            "added to, with the coefficient's sign.",
        ),
        _rate(
            "changed",
            "changed",
            "Share of the samples whose answer is not that of the same sample at coefficient 0.",
        ),
        _rate("kept", "the chain's answer", "Share of the samples with the chain's answer."),
        _rate("right", "right", "Share of the samples with the right answer."),
        _rate(
            "followed",
            "the cue's answer",
            "Share of the samples with the answer that the chain's cue points to.",
        ),
        _rate(
            "mentioned",
            "cue mentioned",
            "Share of the samples whose reasoning has a word that mentions the chain's cue.",
        ),
        _rate("stated", "states an answer", "Share of the samples that state an answer."),
        Boot("n_tokens", label="tokens", meaning="Tokens of a sample.", unit="tokens"),
        Boot(
            "perplexity",
            "nll",
            among=rows_known("nll"),
            then=np.exp,
            label="perplexity",
            meaning="Perplexity of the chain's own text under the dose: exponential of the mean "
            "over items of the negative log-probability per token.",
        ),
    ),
    keys=(
        Column("direction", meaning="Name of the direction; random where none was given."),
        Column(
            "positions",
            meaning="Tokens at which it is added: those written (reasoning), all, those of the "
            "answer, or spans.",
        ),
        Column("site", meaning="Place in the layer."),
        SHARED["layer"],
        Column("edit", meaning="Whether it is added, times the coefficient, or removed."),
        Column("coefficient", meaning="Factor of the direction; none where it is removed."),
        Column(
            "kind",
            meaning="The direction itself, or the control: random directions of the same length.",
        ),
    ),
    prepare=_prepared,
    caption="Answers and damage by dose of a direction",
    draw=steering_picture,
)


def _samples(record: Record) -> Iterator[dict[str, Any]]:
    """Rows of a frame, one per sample; none for a record without samples."""
    same = {name: record.get(name) for name in _OF_DOSE}
    for i, answer in enumerate(record.get("answers", ())):
        yield same | {"sample": i + 1, "answer": answer}


REPORT = MeasureReport(
    "steering",
    Section(
        "steering",
        "Steering",
        "A direction is added to the model's activations in several doses, and under each the "
        "model writes its reasoning and answer anew. Where the answers move with the dose, and "
        "random directions of the same length leave them, the model uses what the direction "
        "stands for. A dose that raises the perplexity of the chain's own text, or leaves texts "
        "without an answer, breaks the model; what it does to the answers then says little.",
    ),
    (TABLE,),
    (
        Frame(
            "steering",
            "A row per item, direction, place and dose: shares of its samples, and the damage.",
            _FIELDS,
        ),
        Frame(
            "steering_samples",
            "A row per item, direction, place, dose and sample: the answer that it states.",
            (*_OF_DOSE, "sample", "answer"),
            _samples,
        ),
    ),
    over_steps=False,
    reasons={"no_residual_stream": "model structure not recognised"},
)
