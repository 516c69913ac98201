"""One trace in the terminal: steps marked by necessity, and what each branch answered."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from faithscope.experiments.analysis.item_view import narrowed, print_blocks, print_item
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.folder import existing_run
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.studies.slrc.tables.results import item_records
from faithscope.experiments.studies.slrc.traceview import LEGEND, trace_block
from faithscope.interp.errors import UserError

VARIATION = "≠ another answer than unedited   (0.00) total variation of the answer labels"


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
    places = [key[1:] for key in index if key[0] == "trace" and index.is_whole(key)]
    if not places:
        raise UserError("the run holds no traces yet; start it again with `faithscope run`")
    places.sort(key=lambda place: (model_order(place[0]), *place[1:]))
    wanted = {"model": model, "task": task, "item": item}
    by = [
        (what, name, lambda p, i=i: p[i : i + 1]) for i, (what, name) in enumerate(wanted.items())
    ]
    for place in narrowed(places, by, "traces"):
        print_item(console, trace_block(item_records(index, place)))
    print_blocks(console, [LEGEND, VARIATION])
