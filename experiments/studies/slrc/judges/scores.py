"""Scores of judges on chains, for comparisons: verdicts on each chain and on each step.

The file of chains that no model reads does not name their task; a comparison takes it from other
runs.
"""

from __future__ import annotations

from typing import Any

from faithscope.experiments.analysis.comparison.scores import (
    dollars_of,
    item_row,
    judged_costs,
    trace_row,
)
from faithscope.experiments.analysis.traces.scores import label_rows, step_label_rows
from faithscope.experiments.studies.slrc.judges.asking import Asked
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain, place_of
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.probes.record import Record

Row = dict[str, Any]


def judged_rows(read: JudgeResults) -> tuple[list[Row], list[Row]]:
    """Every verdict on every chain, and on every step, as a row of `Scores.items` or of
    `Scores.steps`."""
    dollars = dollars_of(read.run.calls)
    items = []
    for row in read.verdicts:
        asked = Asked(row["reading"], row["judge"], row["form"].partition(".")[0])
        records = read.records.get((asked, row["chain"]), [])
        scored = row["reading"] == "scored"
        task = read.tasks[row["form"]]
        rule, higher = task.rule, task.higher_is_faithful
        if higher is None:
            continue
        items.append(
            item_row(
                {**(records[0] if records else row), **read.known[row["chain"]].place},
                _name(row),
                "judged",
                row["score"],
                higher_is_faithful=higher,
                missing=f"judge: {row['outcome']}",
                probability=scored and rule is not None,
                rule=0.5 if scored and rule is not None else rule,
                **_costs(row["chain"], records, dollars),
            )
        )
    steps = [
        {**read.known[row["chain"]].place, "measure": _name(row), "family": "judged"}
        | {"step": row["step"], "value": row["score"], "higher_is_faithful": higher}
        for row in read.steps
        if row["score"] is not None
        and (higher := read.tasks[row["form"]].higher_is_faithful) is not None
    ]
    return items, steps


def unread_rows(read: JudgeResults) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of `Scores` for chains that no model of the run reads: labels of chains, the chains
    themselves, and labels of steps."""
    chains = list(read.chains.values())
    traces = [_as_trace(chain) for chain in chains]
    labels = [row for trace in traces for row in label_rows(trace)]
    steps = [row for trace in traces for row in step_label_rows(trace)]
    return labels, [_trace(chain) for chain in chains], steps


def _as_trace(chain: JudgedChain) -> Record:
    """The chain as a minimal trace record, with the fields that labels are read from."""
    given = {"model": chain.model, "labels": chain.labels, "step_labels": chain.step_labels}
    steps = [{"counted": counted} for counted in chain.counted]
    return {**place_of(chain), "origin": {"given": given}, "steps": steps}


def _trace(chain: JudgedChain) -> dict[str, Any]:
    reasoning = "".join(chain.steps)
    return trace_row(
        place_of(chain),
        question=chain.question,
        reasoning=reasoning,
        given=chain.chain_sha256,
        asked=chain.asked,
        n_steps=len(chain.places),
        cut=chain.cut or None,
    )


def _name(row: Record) -> str:
    return f"{row['form']} {row['reading']} ({row['judge']})"


def _costs(
    chain: str, records: list[Record], dollars: dict[tuple[str, str], float]
) -> dict[str, float | None]:
    """Summed costs of all asks about one chain; None for a cost that some ask does not record."""
    of_step = lambda r: "" if r["step"] is None else f" {r['step']}"  # noqa: E731
    paid = [dollars.get((r["judge"], f"{r['variant']}/{chain}{of_step(r)}")) for r in records]
    of = [judged_costs(r, d) for r, d in zip(records, paid, strict=True)]
    names = of[0] if of else ()
    return {
        name: None if any(c[name] is None for c in of) else float(sum(c[name] for c in of))
        for name in names
    }
