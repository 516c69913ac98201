"""The house rules that DESIGN states and imports can break."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT = {
    "interventions": {"interventions"},
    "interp": {"interp"},
    "probes": {"probes", "interp", "interventions"},
    "experiments": {"experiments", "probes", "interp", "interventions"},
}
"""Imports point one way only: nothing imports experiments, and the two at the bottom know
nothing of each other."""

WITHOUT_CIRCLES = ("interp", "interventions", "probes")

HEAVY = {"torch", "transformers"}


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file, wherever in it that stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # "." is the file's own folder, ".." the one above, as a path and as a module
            above = path.parents[node.level - 1].relative_to(ROOT).parts if node.level else ()
            yield node.lineno, ".".join((*above, *filter(None, [node.module])))


def names(path: Path) -> Iterator[str]:
    """Every module that a file may import, and every name of one: `a.b` of `from a import b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def file_of(name: str) -> Path | None:
    """The file of a module of ours, or of the module that holds a name; None for others'."""
    parts = name.split(".")
    for n in (len(parts), len(parts) - 1):
        path = ROOT.joinpath(*parts[:n])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if n and file.is_file():
                return file
    return None


def breaches(package: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, module in imported(path)
        if module.partition(".")[0] in forbidden
    ]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_one_way(package: str) -> None:
    assert (ROOT / package / "__init__.py").is_file()
    assert not breaches(package, set(MAY_IMPORT) - MAY_IMPORT[package])


def test_no_file_needs_itself_by_way_of_others() -> None:
    # lazily, or for types alone, counts too: a circle can be understood only as a whole
    arrows = {
        path: {
            target
            for name in names(path)
            if (target := file_of(name)) is not None and target != path
        }
        for package in WITHOUT_CIRCLES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    try:
        list(graphlib.TopologicalSorter(arrows).static_order())
    except graphlib.CycleError as circle:
        pytest.fail(" -> ".join(str(p.relative_to(ROOT)) for p in circle.args[1]))


def test_interventions_work_on_token_ids_alone() -> None:
    assert not breaches("interventions", HEAVY)


def test_the_rule_sees_imports_inside_functions(tmp_path: Path) -> None:
    source = "def f():\n    from experiments import run\n    import probes.slrc as p\n"
    (tmp_path / "a.py").write_text(source)
    assert list(imported(tmp_path / "a.py")) == [(2, "experiments"), (3, "probes.slrc")]


def test_test_files_have_names_of_their_own() -> None:
    # without packages among the tests, pytest imports two files of one name as the same module
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert len(names) == len(set(names))
