"""ProcessBench (Zheng et al., 2024, arXiv 2412.06559): solutions with their first wrong step.

Its labels are about *correctness*: a wrong step may be faithful, a right one made up.
"""

from __future__ import annotations

from faithscope.experiments.data.given.cells import parsed, text
from faithscope.experiments.data.given.chain import GivenChain, Reader, joined
from faithscope.experiments.data.tasks.sources.rows import SourceRow, each, flag, text_of, usable
from faithscope.interp.errors import UserError

BETWEEN = "\n\n"
"""Separator at which solutions were cut into steps (section 3.2)."""


def chain(row: SourceRow) -> GivenChain:
    """The chain of one row: `label` is the index of the first wrong step from 0, or -1 if none is.

    Steps before the first wrong one are correct; steps after it have no label.

    Raises:
        UserError: a field is missing or of the wrong kind, or the label is no step.
    """
    texts = [usable(step, f"steps[{i}]", row) for i, step in enumerate(parsed(row, "steps", list))]
    label = _label(row, len(texts))
    reasoning, spans = joined(texts, BETWEEN)
    name = text(row, "id") or row.id
    of_steps = tuple(
        True if label < 0 or i < label else False if i == label else None for i in range(len(texts))
    )
    return GivenChain(
        id=name,
        dataset=name.rpartition("-")[0] or "processbench",
        question=text_of(row, ("problem",)),
        reasoning=reasoning,
        steps=spans,
        model=text(row, "generator") or "",
        labels={
            "correct": label < 0,
            "final_answer_correct": flag(row, "final_answer_correct"),
        },
        step_labels={"correct": of_steps},
        where=row.where,
    )


def _label(row: SourceRow, n: int) -> int:
    value = row.values.get("label")
    try:
        label = None if isinstance(value, bool | float) else int(str(value))
    except ValueError:
        label = None
    if label is None or not -1 <= label < n:
        raise UserError(
            f"{row.where}: 'label' is {value!r}, there are {n} steps; give the index of the first "
            "wrong one from 0, or -1"
        )
    return label


PROCESSBENCH = Reader(
    "processbench",
    "ProcessBench: problem, steps, label = first wrong step or -1 (labels of correctness)",
    lambda row: {"problem", "steps", "label", "final_answer_correct"} <= set(row),
    lambda rows: iter(each(rows, chain)),
)
