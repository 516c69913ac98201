"""Probes, tasks, studies and the other things of `Kind` that installed packages add.

A package adds one by an entry point of the group `faithscope.KIND` that has the name of the thing.
Entry points stand in the metadata of what is installed. Every process therefore finds the same
ones without being told: a worker, a job of a cluster, a report made later, a notebook.
"""

from __future__ import annotations

from collections.abc import Container
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from faithscope.interp.errors import UserError

Kind = Literal["probes", "reports", "tasks", "studies", "readers", "judged_tasks", "judge_forms"]


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
        package = entry.dist.name if entry.dist else entry.module
        what = f"package {package}: its entry {entry.name!r} of faithscope.{kind}"
        remedy = f"or remove it (pip uninstall {package})"
        if entry.name in taken or entry.name in loaded:
            raise UserError(f"{what} has a name that is taken; give it another one, {remedy}")
        try:
            loaded[entry.name] = entry.load()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise UserError(f"{what} cannot be loaded ({problem}); mend it, {remedy}") from error
    return loaded
