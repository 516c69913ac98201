"""Reports of measures over steps: columns, tables, frames and scores that several of them share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Cell,
    Count,
    Mean,
    Number,
    Total,
    Values,
    boots,
    means,
    rows_known,
)
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
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.record_frames import (
    ITEMS_AND_STEPS,
    POSITION,
    Lists,
    Prepare,
    item_table,
    over_lists,
    per_part,
    step_mean,
)
from faithscope.experiments.analysis.run import Frame
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import keep, with_columns
from faithscope.experiments.studies.slrc.tables.outcomes import share_within_floor
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
    changed = f"How often the likeliest answer changes where {where}, mean over items."
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


def forced_means(columns: Mapping[Column, str] | Iterable[Column]) -> tuple[Mean, ...]:
    """Means over items, without intervals, of fields with a number per record, or with a list of
    one number per step.

    Args:
        columns: column -> field; without fields, those of the columns' names.
    """
    of = columns if isinstance(columns, Mapping) else {column: column.name for column in columns}
    return means({column: _number_or_step_mean(field) for column, field in of.items()})


def _number_or_step_mean(field: str) -> Callable[[pd.DataFrame], Any]:
    def values(frame: pd.DataFrame) -> Any:
        is_list = any(hasattr(x, "__len__") for x in frame[field])
        return step_mean(field)(frame) if is_list else frame[field]

    return values


def forced_log_odds(effects: Iterable[Column]) -> tuple[Mean, ...]:
    """`forced_means` of the log-odds that each edit costs the forced choice.

    Args:
        effects: columns as from `effects_of`; all but those of log-odds are ignored.
    """
    columns = []
    for column in effects:
        edit, is_log_odds, _ = column.name.partition("log_odds")
        if is_log_odds:
            columns.append(replace(of_forced_choice(column), name=f"{edit}{FORCED}log_odds"))
    return forced_means(columns)


def flips_within_floor(*edits: str) -> tuple[Number, ...]:
    """Share of the flips by each edit with a margin within the noise floor.

    Args:
        edits: prefixes of the columns' and fields' names, such as "removed_".
    """
    return tuple(
        Number(
            f"{edit}flips_within_floor",
            lambda rows, edit=edit: share_within_floor(rows, edit),
            f"within the floor, {edit[:-1]}" if edit else "",
            f"Share of the flips{f' where a step is {edit[:-1]}' if edit else ''} that are decided "
            "by no more than the noise floor.",
        )
        for edit in edits
    )


def step_means(fields: Mapping[Column, str] | Sequence[Column]) -> dict[Column, Values]:
    """Column -> mean over an item's steps of a list with one value per step, for `cells.boots`."""
    of = fields if isinstance(fields, Mapping) else {column: column.name for column in fields}
    return {column: step_mean(field) for column, field in of.items()}


def n_reasons(reasons: Mapping[str, tuple[str, str]]) -> tuple[Total, ...]:
    """Number of steps without a value, one column per reason.

    Args:
        reasons: reason for a missing value -> label and meaning of its column.
    """
    return tuple(
        Total(
            f"n_{reason}",
            lambda rows, reason=reason: [list(of).count(reason) for of in rows["reasons"]],
            label=label,
            meaning=meaning,
        )
        for reason, (label, meaning) in reasons.items()
    )


def by_part(
    name: str,
    probe: str,
    keys: Sequence[str | Column],
    fields: Mapping[Column, Lists] | Sequence[Column],
    *,
    before: Prepare = lambda frame: frame,
    **look: Any,
) -> Table:
    """A table with one row per model, task, `keys` and fifth of the reasoning (`per_part`).

    An item counts once per fifth, with the mean over its steps there; `n` counts the items and
    `n_steps` their steps.

    Args:
        fields: columns with their lists, which have one value per step.
        before: prepares the records' frame.
        look: further fields of `Table`.
    """
    of = fields if isinstance(fields, Mapping) else {column: column.name for column in fields}
    also = [x if isinstance(x, str) else x.name for x in keys]
    lists = per_part(
        [*also, *look.get("alike", ())], **{column.name: field for column, field in of.items()}
    )
    return Table(
        name,
        probe,
        ("model", "task", *keys),
        (*ITEMS_AND_STEPS, *boots(tuple(of))),
        along=(POSITION,),
        prepare=lambda frame: lists(before(frame)),
        **look,
    )


def span_table(
    name: str, probe: str, keys: Mapping[Column, str], columns: Mapping[Column, str], caption: str
) -> Table:
    """A table of means over items by declared span, of a probe whose records hold flat lists over
    these if there are any; a run without declared spans does not have it.

    Args:
        keys: key column -> list with its values.
        columns: column -> list with its values, None where an item has not the span.
    """
    first, *_ = (column.name for column in columns)

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        own = with_columns(frame, *keys.values(), *columns.values())
        own = keep(own, own[[*keys.values()]].notna().all(axis=1))
        lists = {column.name: field for column, field in columns.items()}
        return over_lists(
            [key.name for key in keys],
            lambda of: [
                list(zip(*row, strict=True)) for row in of[[*keys.values()]].itertuples(index=False)
            ],
            **lists,
        )(own)

    cells = (
        Count("n", rows_known(first), "items", "Items that have the span."),
        Count(
            "n_missing",
            lambda rows: rows[first].isna().to_numpy(),
            "items without it",
            "Items that have not the span, or have it after all that could look at it.",
        ),
        *boots(tuple(columns)),
    )
    return item_table(
        name,
        cells,
        tuple(keys),
        probe,
        prepare=prepare,
        caption=caption,
        folded="By declared span",
        rare=True,
    )


def step_tables(
    probe: str,
    keys: Sequence[str | Column],
    of_items: Sequence[Cell],
    of_parts: Mapping[Column, Lists] | Sequence[Column],
    captions: tuple[str, str],
    draw: Callable[[pd.DataFrame], Picture],
    *,
    before: Prepare = lambda frame: frame,
    **more: Any,
) -> tuple[Table, Table]:
    """A table over items of a probe, and a table by place of the step with its figure.

    Args:
        keys: key columns after model and task.
        of_parts: column -> values per step, for the table by place.
        before: prepares the records' frame of both tables.
        more: further fields of both tables.
    """
    look = {"caption": captions[1], "folded": "By place of the step", "draw": draw}
    return (
        Table(
            probe,
            probe,
            ("model", "task", *keys),
            of_items,
            prepare=before,
            among=INCLUDED,
            caption=captions[0],
            **more,
        ),
        by_part(f"{probe}_by_step", probe, keys, of_parts, before=before, **look, **more),
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
