"""Helpers for reports of measures: rows and columns per step, tables, scores, and figures with a
panel per model and task or a curve per model and task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from faithscope.experiments.analysis import aggregates
from faithscope.experiments.analysis.aggregates import Cell, Number, Numbers
from faithscope.experiments.analysis.axes import (
    GREY,
    LINES,
    Style,
    along_reasoning,
    share_rise,
    share_ticks,
)
from faithscope.experiments.analysis.by_unit import told_apart
from faithscope.experiments.analysis.charts import curve, panels
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import (
    Family,
    Measure,
    OfItem,
    OfSteps,
    inclusion_of,
    listed_over_variants,
    mean_of,
    mean_over_variants,
)
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.tables import Groups, Table
from faithscope.experiments.analysis.tidy import distinct, where
from faithscope.experiments.analysis.wording import pair_names, pairs_of
from faithscope.experiments.studies.slrc.tables.outcomes import share_within_floor
from faithscope.probes.record import mean_of_steps
from faithscope.probes.reference_answer import FORCED


def per_step(*names: str, **more: str) -> Callable[[Record], Iterator]:
    """Makes a function that yields frame rows, one per counted step of a record that is not
    excluded.

    Args:
        names: lists of the record with a value per step.
        more: column -> list with a value per step, for columns named otherwise than their list.
    """
    lists = {name: name for name in names} | more

    def rows(record: Record) -> Iterator[dict[str, Any]]:
        if record.get("excluded"):
            return
        for i, step in enumerate(record["steps"]):
            row = {"position": i + 1, "step": step, "answer": record.get("answer")}
            row["inclusion"] = inclusion[i] if (inclusion := inclusion_of(record)) else None
            yield row | {n: of[i] if (of := record[field]) else None for n, field in lists.items()}

    return rows


def step_frame(name: str, meaning: str, *lists: str, **keys: str) -> Frame:
    """A frame with one row per item and step, from lists with one value per step; records without
    the fields in `keys` have no row.

    Args:
        keys: column -> record field, for columns that come before the others.
    """
    of_steps = per_step(*lists)

    def rows(record: Record) -> Iterator[dict[str, Any]]:
        if all(field in record for field in keys.values()):
            for row in of_steps(record):
                yield {key: record[field] for key, field in keys.items()} | row

    return Frame(name, meaning, (*keys, "position", "step", "answer", "inclusion", *lists), rows)


def effects_of(edit: str, where: str, words: str = "") -> dict[Column, str]:
    """Columns for an edit's effect on the answer -> record fields: rate of change, total variation,
    and log-odds drop.

    Args:
        edit: prefix of the columns' and fields' names.
        where: clause on the edit that follows "where" in the columns' meanings.
        words: the edit in headings; "" for the edit that the measure is named for.
    """
    moved = f"How far the distribution over the answers moves where {where}, mean over items."
    changed = f"How often the likeliest answer is another where {where}, mean over items."
    lost = f"What the answer loses where {where}, mean over items."
    of = f", {words}" if words else ""
    return {
        Column(f"{edit}flip_rate", f"answer changed{of}", changed): f"{edit}flips",
        Column(f"{edit}tv", f"total variation{of}", moved): f"{edit}tv",
        Column(f"{edit}log_odds", f"log-odds drop{of}", lost, "nats"): f"{edit}log_odds",
    }


REMOVED = effects_of("removed_", "a step is removed", "removed")
"""Columns for the effect of removing a step, the baseline for other edits of the step."""


def of_forced_choice(column: Column, label: str = "") -> Column:
    """A copy of a column for the forced choice (the likeliest answer) instead of the stated answer.

    Args:
        label: heading to use instead of the column's own, where that one names the stated answer.
    """
    label = label or column.label or column.name.replace("_", " ")
    meaning = f"{column.meaning} The answer is here the likeliest after the whole reasoning."
    return Column(f"{FORCED}{column.name}", f"{label}, forced choice", meaning, column.unit)


def forced_averages(fields: Mapping[Column, str]) -> Numbers:
    """Means over items of a measure taken on the forced choice, without intervals; NaN for records
    of earlier versions, which lack it.

    Args:
        fields: column -> record field with a number, or with a list of one number per step.
    """

    def score(record: Record, field: str) -> float | None:
        value = record.get(field)
        if value is None or isinstance(value, int | float):
            return value
        return mean_of_steps(value, inclusion_of(record))

    return aggregates.averages(
        {column: partial(score, field=field) for column, field in fields.items()}
    )


def forced_log_odds(effects: Iterable[Column]) -> Numbers:
    """`forced_averages` of the log-odds that each edit costs the forced choice.

    Args:
        effects: columns as from `effects_of`; all but those of log-odds are ignored.
    """
    columns = {}
    for column in effects:
        edit, is_log_odds, _ = column.name.partition("log_odds")
        if is_log_odds:
            name = f"{edit}{FORCED}log_odds"
            columns[replace(of_forced_choice(column), name=name)] = name
    return forced_averages(columns)


def flips_within_floor(*edits: str) -> tuple[Number, ...]:
    """Share of the flips by each edit with a margin within the noise floor.

    Args:
        edits: prefixes of the columns' and fields' names, such as "removed_".
    """
    return tuple(
        Number(
            f"{edit}flips_within_floor",
            lambda same, edit=edit: share_within_floor(same, edit),
            f"within the floor, {edit[:-1]}" if edit else "",
            f"Share of the flips{f' where a step is {edit[:-1]}' if edit else ''} that are decided "
            "by no more than the noise floor.",
        )
        for edit in edits
    )


def mean_steps(fields: Mapping[Column, str] | Sequence[Column]) -> dict[Column, aggregates.Score]:
    """Column -> mean over an item's steps of a list with one value per step."""
    of = fields if isinstance(fields, Mapping) else {column: column.name for column in fields}
    return {
        column: lambda r, field=field: mean_of_steps(r[field], inclusion_of(r))
        for column, field in of.items()
    }


def n_reasons(reasons: Mapping[str, tuple[str, str]]) -> tuple[Number, ...]:
    """Number of steps without a value, one column per reason.

    Args:
        reasons: reason for a missing value -> label and meaning of its column.
    """
    return tuple(
        Number(
            f"n_{reason}",
            lambda same, reason=reason: sum(r["reasons"].count(reason) for r in same),
            *words,
        )
        for reason, words in reasons.items()
    )


def step_tables(
    name: str,
    groups: Groups,
    of_items: Sequence[Cell],
    of_places: aggregates.Fields,
    captions: tuple[str, str],
    draw: Callable[[pd.DataFrame], Picture],
) -> tuple[Table, Table]:
    """A table over items, and a table by place of the step with its figure.

    Args:
        of_places: column -> values per step, for the table by place.
    """
    look = {"caption": captions[1], "folded": "By place of the step", "draw": draw}
    return (
        aggregates.item_table(name, groups, *of_items, caption=captions[0]),
        aggregates.by_place(f"{name}_by_step", groups, of_places, **look),
    )


def step_measures(
    probe: str,
    family: Family,
    names: Mapping[str, str],
    forwards: Callable[[OfItem], int | None],
    *,
    prefix: str = "",
    fields: Mapping[str, OfSteps] | None = None,
    shares: Collection[str] = (),
    **more: Any,
) -> tuple[Measure, ...]:
    """Measures whose score is a mean over an item's steps (and variants), and which credit each
    step.

    Args:
        names: name of a record list with a value per step -> the measure's `in_short`.
        prefix: prefix of the measures' names; by default the probe's name.
        fields: name -> function that computes the values per step, for names that are no lists.
        shares: names of measures whose values are shares of the answer.
    """
    measures = []
    for name, words in names.items():
        of = (fields or {}).get(name, name)
        measures.append(
            Measure(
                f"{prefix or probe}_{name}",
                probe,
                family,
                mean_over_variants(lambda r, of=of: mean_of(of)([r])),
                forwards,
                share=name in shares,
                steps=listed_over_variants(of),
                in_short=words,
                **more,
            )
        )
    return tuple(measures)


LAYERS = Section(
    "layers",
    "By layer",
    "Inside the model, at the token whose logits give the answer's first token (§2.7). Depth is "
    "the layer over the number of layers; the embeddings are layer 0 and count for neither.",
)
PLACE = "place of the step in the reasoning"
Draw = Callable[[pd.DataFrame], Figure | None]


def picture(
    name: str, title: str, caption: str, draw: Draw, absent: str = "No item was measured."
) -> Callable[[pd.DataFrame], Picture]:
    """Makes a function that draws a figure of a table, or says why there is none. Steps of several
    units are told apart (`by_unit.told_apart`)."""

    def drawn(table: pd.DataFrame) -> Figure | None:
        return draw(told_apart({name: table})[name]) if len(table) else None

    return lambda table: Picture(name, title, caption, table, drawn(table), absent)


def per_pair(
    x: str,
    styles: Mapping[str, Style],
    labels: tuple[str, str],
    finish: Callable[[Axes], object],
    apart: float = 0.0,
    pooled: bool = False,
    by: tuple[str, ...] = (),
) -> Draw:
    """Makes a function that draws a panel per model and task, with one curve per measure and its
    band.

    Args:
        x: column on the x axis.
        styles: column to draw -> style of its curve.
        labels: labels of the x and y axis, drawn once for the figure.
        apart: horizontal distance between curves, so that equal ones do not hide each other.
        pooled: whether to draw the mean of all rows at one place, without a band.
        by: further columns with a panel for each of their values.
    """

    def draw(table: pd.DataFrame) -> Figure | None:
        def panel(ax: Axes, of_pair: pd.DataFrame) -> None:
            for i, (name, style) in enumerate(styles.items()):
                aside = apart * (i - (len(styles) - 1) / 2)
                line = of_pair.dropna(subset=[name]).assign(**{x: lambda t, d=aside: t[x] + d})
                interval = "band" if f"{name}_low" in line else ""
                # Curves without markers are told apart by their dashes.
                dashes = "-" if style.marker else ("-", "--", "-.", ":")[i % 4]
                curve(ax, line, x, name, style, interval=interval, ms=3, lw=1.3, ls=dashes)
            finish(ax)

        if pooled:
            of_places = table.groupby(["model", "task", x], as_index=False, sort=False)
            table = pd.DataFrame(of_places[list(styles)].mean())
        return pair_panels(table, panel, by, height=2.1, labels=labels)

    return draw


def pair_panels(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], object],
    by: tuple[str, ...] = (),
    **look: Any,
) -> Figure | None:
    """A figure with one panel per model and task, drawn from the rows of that pair.

    Args:
        by: further columns with a panel for each of their values.
        look: options of `charts.panels`.
    """
    pairs = pairs_of(table)
    keys = sorted(
        distinct(table, "model", "task", *by), key=lambda k: pairs.index((k["model"], k["task"]))
    )
    names = pair_names([(k["model"], k["task"]) for k in keys], "\n")
    titles = [", ".join((n, *(k[b] for b in by))) for n, k in zip(names, keys, strict=True)]
    return panels(keys, lambda ax, key: draw(ax, where(table, **key)), titles, **look)


def of_pairs(ax: Axes, table: pd.DataFrame, x: str, y: str) -> Axes:
    """One curve per model and task on the same axes, each with its band."""
    pairs = pairs_of(table)
    for i, (pair, name) in enumerate(zip(pairs, pair_names(pairs), strict=True)):
        style = Style(*LINES[i % len(LINES)], name)
        curve(ax, where(table, model=pair[0], task=pair[1]), x, y, style, lw=1)
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def shares_along(ax: Axes) -> Axes:
    """Sets axes to shares from 0 to 1 over the relative place of a step."""
    return along_reasoning(share_rise(ax))


def over_depth(ax: Axes) -> Axes:
    share_ticks(ax.xaxis)
    ax.set(xlim=(0, 1.02), xlabel="depth (layer over layers)")
    return ax
