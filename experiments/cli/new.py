"""Command `faithscope new`: a probe, a task and other things of your own, as a package."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from faithscope.experiments.console import DONE, say, to_output
from faithscope.interp.errors import UserError, did_you_mean

TEMPLATES = Path(__file__).parent / "templates"
ENTRIES = {
    "probe": {"probes": "", "reports": "_report:REPORT"},
    "task": {"tasks": ":TASK"},
    "study": {"studies": ":STUDY"},
    "reader": {"readers": ":READER"},
    "form": {"judged_tasks": ":TASK", "judge_forms": ":FORM"},
}
"""Kind -> group of entry points -> what its entry names, after the name of the package."""
KINDS = tuple(ENTRIES)
_FIRST_RUN = {
    "probe": "faithscope run quickstart --set probes=[{name}] --set name={name}",
    "task": "faithscope run quickstart --set tasks=[{name}] --set name={name}"
    " --set model.name=bundled:smollm2-135m",
    "study": "faithscope run {folder}/{name}.yaml",
    "reader": "faithscope run mechanistic --set traces.path=FILE --dry-run",
    "form": "faithscope run judge --set traces.path=FILE --set judges.forms=[{name}]",
}

commands = typer.Typer(rich_markup_mode=None)


@commands.command()
def new(
    kind: Annotated[str, typer.Argument(metavar="|".join(KINDS))],
    name: Annotated[str, typer.Argument(help="Its name in configs, e.g. my_probe.")],
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of its files; by default NAME.")
    ] = None,
) -> int:
    """Write a probe, task, study, reader or form of your own.

    The files are a small Python package that runs, with a test. Once it is installed (pip install
    -e DIR), every command knows the name. The files are printed.
    """
    if kind not in KINDS:
        known = did_you_mean(kind, KINDS) or f"; known: {', '.join(KINDS)}"
        raise UserError(f"faithscope new: no template {kind!r}{known}")
    _check(kind, name)
    folder = (to or Path(name)).expanduser()
    for path in write(kind, name, folder):
        to_output(path)
    say(f"install it:  pip install -e {folder}")
    say(f"run it:      {_FIRST_RUN[kind].format(name=name, folder=folder)}")
    say(f"test it:     pytest {folder}")
    return DONE


def write(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the files of a template into a folder; returns their paths.

    Raises:
        UserError: a file is already there.
    """
    from jinja2 import Environment, StrictUndefined

    from faithscope.experiments.files import make_folder, write_atomically

    class_name = "".join(word.capitalize() for word in name.split("_"))
    entries = {group: f"{name}{after}" for group, after in ENTRIES[kind].items()}
    words = {
        "kind": kind,
        "name": name,
        "class_name": class_name,
        "title": name.replace("_", " "),
        "entries": entries,
        "modules": sorted({entry.partition(":")[0] for entry in entries.values()}),
    }
    templates = [TEMPLATES / "pyproject.toml.jinja", *sorted((TEMPLATES / kind).glob("*.jinja"))]
    files = {folder / path.stem.replace("NAME", name): path for path in templates}
    for path in files:
        if path.exists():
            raise UserError(f"{path}: is already there; move it, or give another folder (--to DIR)")
    make_folder(folder)
    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    for path, template in files.items():
        text = jinja.from_string(template.read_text(encoding="utf-8")).render(words)
        write_atomically(path, text)
    return list(files)


def _check(kind: str, name: str) -> None:
    """
    Raises:
        UserError: the name cannot be that of a module, or it is taken.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UserError(
            f"faithscope new: {name!r} cannot name a Python module; use lower-case letters, digits "
            "and '_', e.g. my_probe"
        )
    if name in _taken(kind):
        raise UserError(f"faithscope new: there is already a {kind} {name!r}; take another name")
    if find_spec(name) is not None:
        raise UserError(
            f"faithscope new: a Python module {name!r} is already installed; take another name"
        )


def _taken(kind: str) -> Any:
    if kind == "task":
        from faithscope.experiments.data.tasks import TASKS

        return TASKS
    if kind == "reader":
        from faithscope.experiments.engine.traces.given import ALL

        return {reader.name for reader in ALL}
    if kind == "form":
        from faithscope.experiments.engine.forms import trace_forms
        from faithscope.experiments.engine.forms.tasks import TASKS

        return {*trace_forms(), *TASKS}
    from faithscope.experiments.config.study import STUDIES

    if kind == "study":
        return STUDIES
    # a probe's name is a section of configs, too
    return {key for study in STUDIES.values() for key in study.config().model_fields}
