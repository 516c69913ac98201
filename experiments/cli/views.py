"""Commands `faithscope list` and `show`, which show things and measure nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import RunFolder, in_columns, say, to_output, wrapped
from faithscope.interp.errors import UserError, did_you_mean

LISTED = {
    "configs": "shipped configs: studies, and tables of papers",
    "models": "names that model.name and judge.model take",
    "tasks": "names that tasks takes",
    "probes": "names that probes takes: the measures",
    "prompts": "forms that a judge can be asked",
    "runs": "your runs, and how far they are",
}
"""What can be listed, and what it is."""
commands = typer.Typer(rich_markup_mode=None)


@commands.command("list")
def list_(
    what: Annotated[str | None, typer.Argument(metavar="|".join(LISTED))] = None,
    folder: Annotated[
        str, typer.Option("--out", metavar="DIR", help="With runs: the folder that holds them.")
    ] = "runs",
) -> int:
    """List what a config can name, shipped configs, or runs."""
    if what is None:
        for name, note in LISTED.items():
            if name != "runs":
                names = "  ".join(first for first, _ in _rows(name, folder))
                to_output(f"{name}: {note}")
                to_output(wrapped(names, indent="  ") + "\n")
        say("faithscope list probes says what each probe is, and so on; list runs lists your runs")
        return 0
    if what not in LISTED:
        known = did_you_mean(what, LISTED) or f"; known: {', '.join(LISTED)}"
        raise UserError(f"cannot list {what!r}{known}")
    rows = _rows(what, folder)
    to_output(in_columns(rows))
    return 0


def _rows(what: str, folder: str) -> list[tuple[str, str]]:
    """What a list has, with what it says of each."""
    # each list imports only what it needs, since some libraries take long to import
    if what == "models":
        from faithscope.experiments.config.model import model_rows

        return model_rows()
    if what == "tasks":
        from faithscope.experiments.data.tasks import task_rows

        return task_rows()
    if what == "probes":
        from faithscope.probes import PROBES

        return [(name, probe.summary) for name, probe in PROBES.items()]
    if what == "prompts":
        from faithscope.experiments.config.study import STUDIES
        from faithscope.experiments.engine.forms import form_rows, trace_forms

        forms = trace_forms()
        for study in STUDIES.values():
            forms |= study.forms()
        return form_rows(forms)
    if what == "configs":
        from faithscope.experiments.config import shipped

        return shipped.rows()
    from faithscope.experiments.engine.status import run_rows

    return run_rows(Path(folder).expanduser())


@commands.command()
def show(
    run: RunFolder,
    item: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The item's id; of a comparison, leave it out to see the finding."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model, if several did the item.")] = None,
    task: Annotated[str | None, typer.Option(help="The task, if several have the item.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="EDIT",
            help="Mark steps of a trace by what the answer does when they are removed, corrupted "
            "or rewritten (remove, corrupt, regenerate).",
        ),
    ] = None,
) -> int:
    """Show an item of a run, or what a comparison found."""
    from rich.console import Console

    from faithscope.experiments.cli.terminal import show_item, show_overview

    if item is None:
        show_overview(Console(), run)
        return 0
    show_item(Console(), run, item, model=model, task=task, by=by)
    return 0
