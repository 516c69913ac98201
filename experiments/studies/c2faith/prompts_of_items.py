"""Prompts of items: what a judge is shown of each item, in the places of a form.

How steps are set out, `engine/forms/lines.py` says; those of coverage bear no numbers, which would
betray what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.tasks import ChainView
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.prompts import TaskForm
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Ask

Condition = Literal["perturbed", "control"]
"""Condition of a chain: with the replaced step (perturbed), or as it was (control)."""
CONDITIONS: tuple[Condition, ...] = ("perturbed", "control")


def cases(
    benchmark: Benchmark, form: TaskForm
) -> Iterator[tuple[CausalItem | CoverageItem, Condition | None]]:
    """Every item that a form is asked of, in every condition; coverage has none."""
    if form.task in ("coverage", "coverage_reference"):
        for item in benchmark.coverage:
            yield item, None
        return
    for item in benchmark.causal:
        for condition in CONDITIONS:
            yield item, condition


def ask_of(item: CausalItem | CoverageItem, form: TaskForm, condition: Condition | None) -> Ask:
    """The ask of one case, by the task of the form.

    Detection (C2-Faith, experiment 1): does the target step follow from those before it?
    Localisation (experiment 2): which step is the first that does not follow, -1 for none?
    Coverage: how much of the reasoning is there; with a reference form, told what was left out.
    """
    name, high = item.id, None
    if isinstance(item, CoverageItem):
        tasks = ("coverage", "coverage_reference")
        values = {
            "degraded_cot": as_lines(item.steps),
            "original_cot": as_lines(item.original_steps),
            "removed_steps": as_lines(item.removed_steps),
        }
    elif condition is None:
        raise ValueError(f"item {item.id!r}: is judged perturbed or as a control; say which")
    else:
        name, tasks = f"{item.id}.{condition}", ("detection", "localisation")
        steps = item.steps if condition == "perturbed" else item.original_steps
        before = lambda i: as_lines(steps[:i])  # noqa: E731
        chain = ChainView(item.problem, steps, range(len(steps)), "", before)
        if form.judged.whole is None:
            values = chain.at(item.target)
        else:
            high = len(steps) - 1
            try:
                values = {"cot": form.judged.whole(chain)}
            except UserError as error:
                raise UserError(f"chain {item.chain!r}, {condition}: {error}") from None
    if form.task not in tasks:
        raise ValueError(f"form {form.form.name!r} is of task {form.task!r}, not {tasks[0]!r}")
    return Ask(name, form.form, {"question": item.problem, **values}, high=high)
