"""What installed packages add: probes, tasks, studies, and the other things of `Kind`.

A package adds one by an entry point of the group `faithscope.KIND` that has the name of the thing.
Entry points stand in the metadata of what is installed. Every process therefore finds the same
ones without being told: a worker, a job of a cluster, a report made later, a notebook.
faithscope's own package adds what few users need in the same way (`experiments/extras`).
"""

from __future__ import annotations

from collections.abc import Container
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from faithscope.interp.errors import UserError, did_you_mean

Kind = Literal[
    "probes",
    "reports",
    "tasks",
    "studies",
    "readers",
    "judged_tasks",
    "judge_forms",
    "commands",
    "additions",
    "checkers",
    "prompts",
]


def entries(kind: Kind) -> list[EntryPoint]:
    """The entry points that installed packages have for a kind of thing."""
    return sorted(entry_points(group=f"faithscope.{kind}"), key=lambda entry: entry.name)


def extensions(kind: Kind, taken: Container[str] = ()) -> dict[str, Any]:
    """Name -> what installed packages add of a kind.

    Args:
        taken: names that an extension cannot have.

    Raises:
        UserError: an extension cannot be loaded, or its name is taken; the message names the
            package that adds it.
    """
    loaded: dict[str, Any] = {}
    for entry in entries(kind):
        if entry.name in taken or entry.name in loaded:
            what, remedy = _described(kind, entry)
            raise UserError(f"{what} has a name that is taken; give it another one, {remedy}")
        loaded[entry.name] = _loaded(kind, entry)
    return loaded


def extension(kind: Kind, name: str, asked_by: str) -> Any:
    """What installed packages add of a kind under one name.

    Args:
        asked_by: what asks for it, to name it in the error: a config key with its value, a command.

    Raises:
        UserError: no installed package adds it, or it cannot be loaded.
    """
    known = {entry.name: entry for entry in entries(kind)}
    if name in known:
        return _loaded(kind, known[name])
    remedy = did_you_mean(name, list(known)) or (
        "; install the package that adds it (one of faithscope's own is missing where an older "
        "version was installed: install it again, in a checkout by pip install -e .)"
    )
    raise UserError(f"{asked_by}: no installed package has {name!r} in faithscope.{kind}{remedy}")


def _loaded(kind: Kind, entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        what, remedy = _described(kind, entry)
        problem = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"{what} cannot be loaded ({problem}); mend it, {remedy}") from error


def _described(kind: Kind, entry: EntryPoint) -> tuple[str, str]:
    """Words for an entry and its package, and the remedy that removes it."""
    package = entry.dist.name if entry.dist else entry.module
    what = f"package {package}: its entry {entry.name!r} of faithscope.{kind}"
    return what, f"or remove it (pip uninstall {package})"
