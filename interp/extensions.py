"""What installed packages add: probes, tasks, studies, and the other things of `Kind`.

A package adds one by an entry point of the group `faithscope.KIND` that has the name of the thing.
Entry points stand in the metadata of what is installed. Every process therefore finds the same
ones without being told: a worker, a job of a cluster, a report made later, a notebook.
faithscope's own package adds what few users need in the same way (`experiments/extras`).
"""

from __future__ import annotations

import dis
from collections.abc import Container
from functools import cache
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


@cache
def entries(kind: Kind) -> list[EntryPoint]:
    """The entry points that packages had for a kind of thing when this process first asked."""
    return sorted(entry_points(group=f"faithscope.{kind}"), key=lambda entry: entry.name)


_BROKEN: dict[tuple[Kind, str], str] = {}
"""Kind and name of each entry that was found unusable -> why, with the package and the remedy."""


def extensions(
    kind: Kind, a: Any = None, taken: Container[str] = (), begins: str = ""
) -> dict[str, Any]:
    """Name -> what installed packages add of a kind.

    An entry that cannot be used is left out, so that it stops nothing but what asks for it
    (`broken`).

    Args:
        a: the class of what is added; None takes anything.
        taken: names that an extension cannot have.
        begins: with what the names begin.
    """
    loaded: dict[str, Any] = {}
    for entry in (e for e in entries(kind) if e.name.startswith(begins)):
        try:
            if entry.name in taken or entry.name in loaded:
                raise _unusable(kind, entry, "has a name that is taken", "give it another one")
            loaded[entry.name] = _loaded(kind, entry, a)
        except UserError as error:
            _BROKEN[kind, entry.name] = str(error)
    return loaded


def broken(kind: Kind, begins: str = "") -> dict[str, str]:
    """Name -> why an entry cannot be used, of those that were looked at.

    Args:
        begins: with what the names begin.
    """
    return {
        name: why for (of, name), why in _BROKEN.items() if of == kind and name.startswith(begins)
    }


def why_broken(name: str, *kinds: Kind) -> str | None:
    """Why what installed packages add under a name cannot be used; None if nothing is known
    against it."""
    return next((_BROKEN[kind, name] for kind in kinds if (kind, name) in _BROKEN), None)


def note_broken(kind: Kind, name: str, error: UserError) -> None:
    """Note that what was loaded for a name turned out to be unusable."""
    (entry,) = [entry for entry in entries(kind) if entry.name == name][:1]
    _BROKEN[kind, name] = str(_unusable(kind, entry, f"cannot be used ({error})", "mend it"))


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


def _loaded(kind: Kind, entry: EntryPoint, a: Any = None) -> Any:
    try:
        added = entry.load()
    # a test module that skips itself, or a script that exits, raises no Exception
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not _is_raised_by_a_statement(error):
            raise
        problem = f"{type(error).__name__}: {error}".partition("\n")[0]
        why = f"cannot be loaded ({problem})"
        raise _unusable(kind, entry, why, "mend it") from error
    if a is not None and not isinstance(added, a):
        why = f"is a {type(added).__name__}, and no {a.__name__}"
        raise _unusable(kind, entry, why, "mend it")
    return added


def _is_raised_by_a_statement(error: BaseException) -> bool:
    """Whether a statement `raise` raised an error; Ctrl-C breaks into any other instruction."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def _unusable(kind: Kind, entry: EntryPoint, why: str, remedy: str) -> UserError:
    package = entry.dist.name if entry.dist else entry.module
    return UserError(
        f"package {package}: its entry {entry.name!r} of faithscope.{kind} {why}; {remedy}, "
        f"or remove it (pip uninstall {package})"
    )
