"""Which file of the repository imports which: for the house rules, and for `make test-changed`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "faithscope"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def names(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, imported name) of all imports of a file, `a.b` for `from a import b`."""
    return tuple(_names(path))


def _names(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # "." is the file's own folder, ".." the one above, as a path and as a module
            above = path.parents[node.level - 1].relative_to(ROOT).parts if node.level else ()
            start = (*((PACKAGE, *above) if node.level else ()), *filter(None, [node.module]))
            yield from ((node.lineno, ".".join((*start, alias.name))) for alias in node.names)


def file_of(name: str) -> Path | None:
    """The file of a module of this package, or of the module that holds a name; None for others."""
    parts = name.split(".")
    if parts.pop(0) != PACKAGE:
        return None
    for n in (len(parts), len(parts) - 1):
        path = ROOT.joinpath(*parts[:n])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if n and file.is_file():
                return file
    return None
