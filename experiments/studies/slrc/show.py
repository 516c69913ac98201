"""One trace in the terminal: steps marked by necessity, and what each branch answered.

Colour only repeats what a mark already says, and nothing a model wrote reaches the terminal
as anything but text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from faithscope.experiments.analysis.narrowing import Narrowing, narrowed
from faithscope.experiments.analysis.records import Place
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import existing_run
from faithscope.experiments.studies.slrc.tables.results import item_records
from faithscope.experiments.studies.slrc.traceview import (
    EDIT_WORDS,
    MARKS,
    MEANINGS,
    STEP_EDITS,
    Branch,
    StepView,
    TraceView,
    trace_view,
)
from faithscope.interp.errors import UserError

# Blue and orange stay apart for colour-blind readers, on dark grounds and on light ones.
COLOURS = {"all": "bold dark_orange3", "some": "dark_orange3", "none": "blue", "unknown": "dim"}


def show_item(
    run_dir: str | Path,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
) -> None:
    """Print every trace of an item that a run holds; `model` and `task` narrow it down.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant.
    """
    console = console or Console()
    index = counted(existing_run(run_dir))
    traced = [key[1:] for key in index if key[0] == "trace" and index.is_whole(key)]
    for place in find(traced, item, model, task):
        _print(console, trace_view(item_records(index, place)))


def find(
    places: Sequence[Place], item: str, model: str | None = None, task: str | None = None
) -> list[Place]:
    """The traces of an item, planted models first.

    Raises:
        UserError: none is left; names the first of model, task and item that fits nothing.
    """
    if not places:
        raise UserError("the run holds no traces yet; start it again with `faithscope run`")
    ordered = sorted(places, key=lambda place: (model_order(place[0]), *place[1:]))
    by: list[Narrowing[Place]] = [
        ("model", model, lambda place: place[:1]),
        ("task", task, lambda place: place[1:2]),
        ("item", item, lambda place: place[2:]),
    ]
    return narrowed(ordered, by, "traces")


def _print(console: Console, view: TraceView) -> None:
    console.rule(Text(f"{view.model} · {view.task} · {view.item}", style="bold"), align="left")
    console.print(Text(view.question))
    if view.options:
        console.print(Text(f"Answers: {', '.join(view.options)}", style="dim"))
    console.print()
    for step in view.steps:
        _print_step(console, step)
    if view.tail.strip():
        console.print(Text(view.tail.strip(), style="dim"))
    console.print()
    console.print(Text(_outcome(view)))
    if view.excluded:
        console.print(Text(f"Not measured: {view.excluded.replace('_', ' ')}.", style="bold"))
    elif not view.baselines:
        console.print(Text("Not measured yet.", style="bold"))
    else:
        _print_branches(console, view)
        legend = "   ".join(f"{MARKS[level]} {MEANINGS[level]}" for level in MARKS)
        legend += "\n≠ another answer than unedited   (0.00) total variation of the answer labels"
        console.print(Text(legend, style="dim"))
    console.print()


def _print_step(console: Console, step: StepView) -> None:
    if step.number is None:
        console.print(Padding(Text(step.text.strip(), style="dim"), (0, 0, 0, 6)))
        return
    line = Table.grid(padding=(0, 1))
    line.add_column(width=1)
    line.add_column(width=3, justify="right")
    line.add_column(ratio=1)
    style = COLOURS[step.level]
    line.add_row(
        Text(step.mark, style=style), Text(f"{step.number}."), Text(step.text.strip(), style=style)
    )
    if step.corrupted_text:
        line.add_row("", "", Text(f"corrupted to: {step.corrupted_text.strip()}", style="dim"))
    console.print(line)


def _outcome(view: TraceView) -> str:
    answered = "nothing that parses" if view.answer is None else view.answer
    gold = "" if view.gold is None else f"; the right answer is {view.gold}"
    return f"Answered {answered}{gold}."


def _print_branches(console: Console, view: TraceView) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step")
    table.add_column("edit", no_wrap=True)
    for base in view.baselines:
        table.add_column(f"{base.framing}\n{base.reading}")
    table.add_row("", "unedited", *(_answer(base) for base in view.baselines))
    for step in view.steps:
        for edit in STEP_EDITS:
            row = [_at(step.branches, edit, base) for base in view.baselines]
            if any(row):
                first = f"{step.mark} {step.number}" if edit == STEP_EDITS[0] else ""
                table.add_row(first, EDIT_WORDS[edit], *(_answer(branch) for branch in row))
    for shuffles in zip(*_by_variant(view), strict=False):
        table.add_row("", EDIT_WORDS["shuffle"], *(_answer(branch) for branch in shuffles))
    console.print(table)


def _by_variant(view: TraceView) -> list[list[Branch]]:
    return [
        [b for b in view.shuffles if (b.framing, b.reading) == (base.framing, base.reading)]
        for base in view.baselines
    ]


def _at(branches: Sequence[Branch], edit: str, base: Branch) -> Branch | None:
    for branch in branches:
        if (branch.edit, branch.framing, branch.reading) == (edit, base.framing, base.reading):
            return branch
    return None


def _answer(branch: Branch | None) -> Text:
    if branch is None:
        return Text("–", style="dim")
    said = "no answer" if branch.answer is None else visible(branch.answer)
    moved = "" if branch.total_variation is None else f" ({branch.total_variation:.2f})"
    return Text(
        f"{'≠ ' if branch.flipped else ''}{said}{moved}",
        style="bold dark_orange3" if branch.flipped else "",
    )
