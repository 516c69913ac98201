"""`faithscope show` of a training: its steps, and what was measured after it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.tidy import where
from faithscope.interp.errors import UserError, did_you_mean


def show_item(
    run_dir: Path, item: str, *, model: str | None, task: str | None, console: Console
) -> None:
    """Print the steps of the trainings of one method.

    Args:
        item: a method, or a method and a seed (`cosr-0`).
        model: only of this model.
        task: unused: a training is of all tasks together.

    Raises:
        UserError: the run has no such training.
    """
    run = load_run(run_dir)
    frame = run.training
    names = frame["method"] + "-" + frame["seed"].astype(str)
    of = frame[(frame["method"] == item) | (names == item)]
    if model is not None:
        of = of[of["model"] == model]
    if of.empty:
        known = sorted(set(names))
        guess = did_you_mean(item, known) or f"; it has {', '.join(known)}"
        raise UserError(f"{run_dir}: no training {item!r}{guess}")
    columns = ["model", "method", "seed", "step", "reward", "accuracy", "changed", "value"]
    console.print(of[columns].to_string(index=False), markup=False, highlight=False)
    measured = where(run.battery, method=set(of["method"]))
    if len(measured):
        console.print(measured.to_string(index=False), markup=False, highlight=False)
