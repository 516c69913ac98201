"""Scores of judges on given chains, for comparisons: verdicts on each chain and on each step.

The chains' file does not name their task; a comparison takes it from the other runs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    PLACE,
    Scores,
    dollars_of,
    frames,
    item_row,
    judged_costs,
    trace_row,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.traces.scores import label_rows, step_label_rows
from faithscope.experiments.engine.forms.tasks import TASKS
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.results import results
from faithscope.probes.record import Record

Key = tuple[str, str, str, str]
"""Keys of a judgement: reading, judge, form, chain."""


def scores(run: Run) -> Scores:
    """Every verdict on every chain as a score, and the labels of the chains."""
    read = run.once(results)
    about: dict[Key, list[Record]] = defaultdict(list)
    for r in run.records(*READINGS):
        about[READINGS[r["probe"]], r["judge"], r["variant"], r["item"]].append(r)
    dollars = dollars_of(run.calls)
    chains = [_as_trace(chain) for chain in read.chains.values()]
    items: list[dict[str, Any]] = []
    for row in read.verdicts:
        chain = read.chains[row["item"]]
        records = about[row["reading"], row["judge"], row["form"], row["item"]]
        scored = row["reading"] == "scored"
        rule = TASKS[row["task"]].rule
        items.append(
            item_row(
                {**(records[0] if records else row), **place(chain)},
                _name(row),
                "judged",
                row["score"],
                higher_is_faithful=False,
                missing=f"judge: {row['outcome']}",
                probability=scored and rule is not None,
                rule=0.5 if scored and rule is not None else rule,
                **_costs(records, dollars),
            )
        )
    items += [row for chain in chains for row in label_rows(chain)]
    steps = [
        {**place(read.chains[row["item"]]), "measure": _name(row), "family": "judged"}
        | {"step": row["step"], "value": row["score"], "higher_is_faithful": False}
        for row in read.steps
        if row["score"] is not None
    ]
    steps += [row for chain in chains for row in step_label_rows(chain)]
    return frames(items, [_trace(chain) for chain in read.chains.values()], steps)


def place(chain: JudgedChain) -> dict[str, Any]:
    """Identity of a chain in a comparison (`scores.PLACE`): data set, no task, item and model."""
    return dict(zip(PLACE, (chain.dataset, "", chain.id, chain.model), strict=True))


def _as_trace(chain: JudgedChain) -> Record:
    """The chain as a minimal trace record, with the fields that labels are read from."""
    given = {"model": chain.model, "labels": chain.labels, "step_labels": chain.step_labels}
    steps = [{"counted": counted} for counted in chain.counted]
    return {**place(chain), "origin": {"given": given}, "steps": steps}


def _trace(chain: JudgedChain) -> dict[str, Any]:
    reasoning = "".join(chain.steps)
    return trace_row(
        place(chain),
        question=chain.question,
        reasoning=reasoning,
        n_steps=len(chain.places),
        cut=chain.cut or None,
    )


def _name(row: Record) -> str:
    return f"{row['form']} {row['reading']} ({row['judge']})"


def _costs(records: list[Record], dollars: dict[tuple[str, str], float]) -> dict[str, float | None]:
    """Summed costs of all asks about one chain; None for a cost that some ask does not record."""
    paid = [
        dollars.get((r["judge"], f"{r['variant']}/{r['item']}"))
        if r["step"] is None
        else dollars.get((r["judge"], f"{r['variant']}/{r['item']} {r['step']}"))
        for r in records
    ]
    of = [judged_costs(r, d) for r, d in zip(records, paid, strict=True)]
    names = of[0] if of else ()
    return {
        name: None if any(c[name] is None for c in of) else float(sum(c[name] for c in of))
        for name in names
    }
