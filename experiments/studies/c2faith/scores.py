"""A run of C2-Faith as comparisons read it: each chain twice, as it was and with a broken step.

Whether a chain is as it was is the label; a judge's verdict and every signal inside a model are
scores of the same chain. Texts with something put into them are no items of the benchmark and are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    NOT_RUN,
    PLACE,
    Scores,
    dollars_of,
    frames,
    item_row,
    judged_costs,
    label_row,
    seconds_of,
    trace_row,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.forms.tasks import NO_STEP
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.inside import DATASET, INTERNALS, not_inside, steps_of
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS
from faithscope.experiments.studies.c2faith.results import results
from faithscope.experiments.studies.c2faith.tables.frames import PERTURBED
from faithscope.experiments.studies.c2faith.units import INSIDE
from faithscope.probes.broken_step import SIGNALS

TASK = "chain"
INTACT, BROKEN = "intact", "broken_step"
"""The labels: of a chain, whether no step was broken; of a step, whether it is the broken one."""


def scores(run: Run) -> Scores:
    """Judges' verdicts and the signals inside models, of every chain in both conditions."""
    of_run = run.once(results)
    items, steps = [], []
    chains = [(item, c) for item in of_run.benchmark.causal for c in CONDITIONS]
    for item, condition in chains:
        about = place(item, condition)
        items.append(label_row(about, INTACT, float(condition != PERTURBED)))
        of = about | {"measure": BROKEN, "family": "label", "higher_is_faithful": False}
        broken = item.target if condition == PERTURBED else NO_STEP
        steps += [of | {"step": i, "value": float(i == broken)} for i in range(len(item.steps))]
    dollars = dollars_of(run.calls)
    for row in of_run.judged:
        if row["task"] in ("detection", "localisation"):
            items.append(_judged(row, dollars))
            steps += _named(row)
    seconds = seconds_of(run.path)
    read = {(r["model"], r["item"], r["condition"]): r for r in run.records(INSIDE)}
    for model in sorted({model for model, _, _ in read}):
        for item, condition in chains:
            record = read.get((model, item.id, condition), {})
            # both conditions are one unit of work
            timed = seconds.get((INSIDE, model, INTERNALS, item.id))
            about = place(item, condition)
            items += _inside(model, about, record, not_inside(item), timed)
            for signal, values in steps_of(record).items():
                of = {"measure": _signal(signal, model), "family": "internal"}
                of |= about | {"higher_is_faithful": False}
                steps += [
                    of | {"step": i, "value": v} for i, v in enumerate(values) if v is not None
                ]
    return frames(items, [_trace(item, condition) for item, condition in chains], steps)


def place(item: CausalItem, condition: str) -> dict[str, str]:
    """Columns that say what a chain in one condition is about (`scores.PLACE`)."""
    return dict(zip(PLACE, (DATASET, TASK, f"{item.id}.{condition}", ""), strict=True))


def steps_in(item: CausalItem, condition: str) -> Sequence[str]:
    """The chain's steps as they stand in a condition."""
    return item.steps if condition == PERTURBED else item.original_steps


def _trace(item: CausalItem, condition: str) -> dict[str, Any]:
    steps = steps_in(item, condition)
    return trace_row(
        place(item, condition),
        question=item.problem,
        reasoning="\n".join(steps),
        n_steps=len(steps),
        correct=None,
    )


def _judge(row: Mapping[str, Any]) -> str:
    return f"{row['form']} {row['reading']} ({row['judge']})"


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    where = dict(zip(PLACE, (DATASET, TASK, f"{row['item']}.{row['condition']}", ""), strict=True))
    return {**row, **where}


def _judged(row: Mapping[str, Any], dollars: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    verdict, p = row["verdict"], row["probabilities"]
    sound: float | None = None
    if verdict is not None:
        # for detection: 1 follows, 0 does not; for localisation: the broken step, or none
        if row["task"] == "detection":
            sound = 1 - p[0] if p else float(verdict)
        else:
            sound = p[0] if p else float(verdict == NO_STEP)
    paid = dollars.get((row["judge"], f"{row['form']}/{row['ask']}"))
    return item_row(
        _about(row),
        _judge(row),
        "judged",
        sound,
        higher_is_faithful=True,
        missing=f"judge: {row['outcome']}",
        probability=bool(p),
        rule=0.5,
        **judged_costs(row, paid),
    )


def _named(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields what localisation says of each step: how likely it is the broken one."""
    if row["task"] != "localisation" or row["verdict"] is None:
        return
    about = {name: _about(row)[name] for name in PLACE}
    about |= {"measure": _judge(row), "family": "judged", "higher_is_faithful": False}
    for step in range(row["n_steps"]):
        p = row["probabilities"]
        value = p[step - NO_STEP] if p else float(row["verdict"] == step)
        yield about | {"step": step, "value": value}


def _signal(signal: str, model: str) -> str:
    return f"{signal} ({model})"


def _inside(
    model: str,
    about: Mapping[str, Any],
    record: Mapping[str, Any],
    why_not: str | None,
    seconds: float | None,
) -> Iterator[dict[str, Any]]:
    """Yields the score of the step in question, by every signal that was read of some chain."""
    for signal in SIGNALS:
        missing = f"excluded: {why_not}" if why_not else "" if record else NOT_RUN
        yield item_row(
            {**record, **about, "probe": INSIDE},
            _signal(signal, model),
            "internal",
            record.get(f"score_{signal}"),
            higher_is_faithful=False,
            missing=missing,
            tokens=record.get("trie_tokens"),
            seconds=seconds,
        )
