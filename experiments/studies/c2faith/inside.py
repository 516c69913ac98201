"""Internals of a model while it reads a broken chain: items in, rows for the tables out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from faithscope.experiments.data.given.prm800k import ANSWER
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.config import InternalsConfig
from faithscope.probes.broken_chain import BrokenChain, NotMeasurable, not_measurable

if TYPE_CHECKING:
    from faithscope.interp.model import Model
    from faithscope.probes.record import Record


DATASET, INTERNALS = "c2faith", "c2_internals"
"""Data set and task in the records and units of models' internals."""


def broken_chain(item: CausalItem) -> BrokenChain:
    """The item's chain, the step that was put in its place, and the answer that its last step
    states."""
    return BrokenChain(
        item=item.id,
        chain=item.chain,
        dataset=DATASET,
        task=INTERNALS,
        prompt=item.problem,
        steps=item.original_steps,
        target=item.target,
        replacement=item.replacement,
        answer=stated_answer(item.steps[-1]),
    )


def not_inside(item: CausalItem) -> NotMeasurable | None:
    """Why an item is judged but not read inside a model; None if it is read."""
    return not_measurable(len(item.steps), item.target)


def stated_answer(step: str) -> str | None:
    """The text under the last "# Answer" of a step; None if there is none."""
    _, mark, after = step.rpartition(ANSWER)
    return after.strip() or None if mark else None


def look_inside(model: Model, item: CausalItem, c: InternalsConfig) -> list[Record]:
    """Two records, of the broken chain and of the chain as it was (`probes.broken_step`)."""
    from faithscope.probes.broken_step import BrokenStepSettings, broken_step

    settings = BrokenStepSettings(
        signals=tuple(c.signals), answer_cue=c.answer_cue, layer=c.layer, thinking=c.thinking
    )
    return broken_step(model, broken_chain(item), settings)


def inside_rows(
    records: Iterable[dict[str, Any]], region: Callable[[int], range]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows per item, condition and signal: one with the score of the target, one with the step
    named.

    Args:
        region: chain length -> the steps among which targets were drawn.
    """
    from faithscope.probes.broken_step import rows

    rows_of_signals = [row for record in records for row in rows(record)]
    scores = ("model", "signal", "item", "chain", "condition", "score")
    places = ("model", "signal", "item", "chain", "condition", "target", "predicted", "n_steps")
    return (
        [{name: row[name] for name in scores} for row in rows_of_signals],
        [
            {name: row[name] for name in places}
            | {
                "n_candidates": len(row["candidates"]),
                "n_middle": len(set(row["candidates"]) & set(region(row["n_steps"]))),
            }
            for row in rows_of_signals
        ],
    )


def steps_of(record: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Signal -> a number per step, of one record of `probes.broken_step`."""
    start = "steps_"
    return {k.removeprefix(start): v for k, v in record.items() if k.startswith(start)}


def step_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per signal and step of one record."""
    about = {n: record[n] for n in ("model", "item", "chain", "condition", "target")}
    return [
        about | {"step": i, "signal": signal, "value": value}
        for signal, values in steps_of(record).items()
        for i, value in enumerate(values)
    ]
