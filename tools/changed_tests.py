"""Runs the tests that a change can touch: `make test-changed`.

    python tools/changed_tests.py main -m "not slow"      # the rest goes to pytest
    python tools/changed_tests.py main --list             # which, without running them

Changed is what `git diff` names since the branch left that commit, and files that Git does not know
yet. A test can be touched if its file reaches a changed one:

- by imports, those inside functions and those of helpers and of used fixtures among them;
- by a name: studies, probes and shipped configs are found in registries that import all of them, so
  a test reaches those whose names it or its configs write, and all if it reads a whole registry;
- for files other than Python, by the file's name, or by the modules in its folder.

A change of `pyproject.toml` or `constraints.txt` touches every test. Before a change lands, `make
test` runs all the same: what a test reaches by other ways, this does not see.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import yaml
from imports import PACKAGE, ROOT, file_of, names, tree_of

ROOMS = ("interp", "interventions", "probes", "experiments")
TESTS = ROOT / "tests"
SIDES = ("tests", "benchmarks", "tools", "notebooks")
"""Folders whose files may import each other by their bare names."""
ALL = {"pyproject.toml", "constraints.txt"}
STUDIES = ROOT / "experiments/studies"
UNNAMED = STUDIES / "slrc/__init__.py"
"""The study of configs without the key `benchmark:`."""
RUNS = {ROOT / "experiments" / name for name in ("engine/run.py", "cli/run.py", "analysis/run.py")}
REGISTRY = STUDIES / "__init__.py"
WHOLE = {"PROBES": "probes", "REPORTS": "probes", "STUDIES": "studies", "TASKS": "tasks"}
"""Registry, as tests import it -> what all of it is."""


@cache
def python_files() -> tuple[Path, ...]:
    return tuple(p for folder in (*ROOMS, *SIDES) for p in sorted((ROOT / folder).rglob("*.py")))


@cache
def _bare() -> dict[str, list[Path]]:
    """Module of tests, tools or benchmarks -> its files."""
    found: dict[str, list[Path]] = {}
    for path in python_files():
        if path.relative_to(ROOT).parts[0] in SIDES:
            found.setdefault(path.stem, []).append(path)
    return found


@cache
def _homes() -> dict[str, Path]:
    """Name of `faithscope` itself -> the file it comes from."""
    found = {name: file_of(name) for _, name in names(ROOT / PACKAGE / "__init__.py")}
    return {name.rpartition(".")[2]: file for name, file in found.items() if file is not None}


@cache
def _named() -> dict[str, set[Path]]:
    """Name of a study or a probe -> its files."""
    found: dict[str, set[Path]] = {}
    for path in STUDIES.glob("*/__init__.py"):
        found.setdefault(path.parent.name, set()).add(path)
    for path in (*(ROOT / "probes").glob("*.py"), *STUDIES.glob("*/measures/*.py")):
        if path.stem != "__init__":
            found.setdefault(path.stem, set()).add(path)
    return found


@cache
def _configs() -> dict[str, Path]:
    """Name of a shipped config -> its file."""
    paths = (ROOT / "configs").rglob("*.yaml")
    return {p.relative_to(ROOT / "configs").with_suffix("").as_posix(): p for p in paths}


def _whole(registry: str) -> Iterator[Path]:
    if registry == "studies":
        yield from STUDIES.glob("*/__init__.py")
    if registry == "tasks":
        yield from (ROOT / "experiments/data/tasks").glob("*.py")
    if registry in {"studies", "probes"}:
        yield from (ROOT / "probes").glob("*.py")
        yield from STUDIES.glob("*/measures/*.py")


WORD = re.compile(r"\w+")
COMMANDS = {"run", "init", "build", "submit", "reproduce"}
"""Commands that take the name of a config."""


@cache
def _strings(path: Path) -> frozenset[str]:
    """The strings of a Python file without its docstrings; scalars and keys of a YAML file."""
    if path.suffix == ".yaml":
        tokens = yaml.scan(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
        return frozenset(t.value for t in tokens if isinstance(t, yaml.ScalarToken))
    if path.suffix != ".py":
        return frozenset({path.read_text("utf-8", errors="replace")})
    nodes = list(ast.walk(tree_of(path)))
    alone = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    constants = (n for n in nodes if isinstance(n, ast.Constant) and id(n) not in alone)
    return frozenset(n.value for n in constants if isinstance(n.value, str))


@cache
def words(path: Path) -> frozenset[str]:
    return frozenset(word for string in _strings(path) for word in WORD.findall(string))


@cache
def _configs_named(path: Path) -> frozenset[Path]:
    """Shipped configs that a test names; beside a command if it is also another thing's name."""
    found = {n for n in _strings(path) if n in _configs() and n not in _named() and n != "planted"}
    found |= {n.removesuffix(".yaml") for n in _strings(path) if n.endswith(".yaml")}
    for node in ast.walk(tree_of(path)):
        parts = getattr(node, "elts", None) or getattr(node, "args", None)
        if isinstance(parts, list):
            given = {p.value for p in parts if isinstance(p, ast.Constant)}
            found |= given if given & COMMANDS else set()
    return frozenset(_configs()[name] for name in found if name in _configs())


@cache
def reached(path: Path) -> frozenset[Path]:
    """Files that a file reaches in one step."""
    found: set[Path] = set()
    is_side = path.relative_to(ROOT).parts[0] in SIDES
    if path.suffix == ".py" and path != REGISTRY:
        found |= _imported(path)
    if path.name == "__init__.py" and path.parent.parent == STUDIES:
        found |= set(path.parent.glob("*.py"))  # its parts are found by their names
    if is_side:
        found |= {c for c in _conftests(path) if _fixtures(c) & _identifiers(path)}
        found |= _configs_named(path)
    if (
        is_side
        or path.suffix == ".yaml"
        or (path.parent in STUDIES.glob("*") and path.name == "config.py")
    ):
        found |= {p for name in words(path) & _named().keys() for p in _named()[name]}
    return frozenset(found - {path})


def _imported(path: Path) -> set[Path]:
    found: set[Path] = set()
    is_side = path.relative_to(ROOT).parts[0] in SIDES
    for _, name in names(path):
        first, _, rest = name.partition(".")
        if first == PACKAGE:
            found |= {file for file in [file_of(name) or _homes().get(rest)] if file}
            if is_side and (last := name.rpartition(".")[2]) in WHOLE:
                found |= set(_whole(WHOLE[last]))
        elif is_side:
            found |= set(_bare().get(first, ()))
    if is_side:  # `import faithscope`, then `faithscope.compare(…)`
        attributes = (n for n in ast.walk(tree_of(path)) if isinstance(n, ast.Attribute))
        of_package = {n.attr for n in attributes if ast.unparse(n.value) == PACKAGE}
        found |= {file for name, file in _homes().items() if name in of_package}
    return found


def _conftests(path: Path) -> Iterator[Path]:
    """The files `conftest.py` whose fixtures a file below `tests/` may use."""
    for folder in path.parents:
        if (file := folder / "conftest.py").is_file() and file != path:
            yield file
        if folder in (TESTS, ROOT):
            return


@cache
def _fixtures(conftest: Path) -> frozenset[str]:
    functions = (n for n in tree_of(conftest).body if isinstance(n, ast.FunctionDef))
    return frozenset(
        f.name for f in functions if any("fixture" in ast.unparse(d) for d in f.decorator_list)
    )


@cache
def _identifiers(path: Path) -> frozenset[str]:
    """Names of arguments and words of strings: what a test can ask for a fixture by."""
    return words(path) | {n.arg for n in ast.walk(tree_of(path)) if isinstance(n, ast.arg)}


@cache
def all_reached(path: Path) -> frozenset[Path]:
    """Files that a file reaches in any number of steps, itself among them."""
    found, new = {path}, [path]
    while new:
        more = reached(new.pop()) - found
        found |= more
        new += more
        if not new and found & RUNS and not any(STUDIES in p.parents for p in found - {REGISTRY}):
            new.append(UNNAMED)
            found.add(UNNAMED)
    return frozenset(found)


def _stands_for(changed: Path) -> set[Path]:
    """The files that a changed file is, or is read by."""
    if changed.suffix == ".py" or changed in _configs().values():
        return {changed}
    if changed.relative_to(ROOT).parts[0] in ROOMS:
        folder = next(f for f in changed.parents if any(f.glob("*.py")))
        return set(folder.glob("*.py"))
    sides = [p for p in python_files() if p.relative_to(ROOT).parts[0] in SIDES]
    # docs and notebooks are read by tests of the whole folder
    whole = {changed.relative_to(ROOT).parts[0]} & {"docs", "notebooks"}
    named = {p for p in sides if any(changed.name in string for string in _strings(p))}
    return named | {p for p in sides if whole & words(p)}


def touched(changed: Iterable[str]) -> list[Path]:
    """The test files that changed files can touch, by their paths below the repository's root."""
    every = sorted(TESTS.rglob("test_*.py"))
    if ALL & set(changed):
        return every
    sources = {p for name in changed for p in _stands_for(ROOT / name)}
    shared = tuple(p.parent for p in sources if p.name == "conftest.py")
    return [
        test
        for test in every
        if all_reached(test) & sources or any(folder in test.parents for folder in shared)
    ]


def changed_since(base: str) -> list[str]:
    """Paths that changed since the work left a commit, those not committed yet among them."""

    def git(*arguments: str) -> list[str]:
        command = ["git", *arguments, "-z"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: {done.stderr.strip()}")
        return [name for name in done.stdout.split("\0") if name]

    return [
        *git("diff", "--name-only", "--merge-base", base),
        *git("ls-files", "--others", "--exclude-standard"),
    ]


def main(base: str, *options: str) -> int:
    changed = changed_since(base)
    tests = [str(path.relative_to(ROOT)) for path in touched(changed)]
    every = len(list(TESTS.rglob("test_*.py")))
    told = f"{len(changed)} changed files can touch {len(tests)} of {every} test files"
    print(told, file=sys.stderr, flush=True)
    if options == ("--list",):
        print(*tests, sep="\n")
        return 0
    if not tests:
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
