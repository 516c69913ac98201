"""Pages of the Python interface in `docs/api`, made from signatures and docstrings.

`docs/conf.py` writes them before a build. They hold every public name (`__all__`) of the packages
that a notebook imports, and the public fields, properties and methods of its classes.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from docstrings import markdown

PACKAGES = {
    "faithscope": "what a notebook needs first",
    "faithscope.interp": "one open model: load it, run it, read it, write to it",
    "faithscope.interventions": "one reasoning trace: what may be done to it, token-exactly",
    "faithscope.probes": "one measure per file: a trace and a model in, records out",
    "faithscope.plot": "figures of one trace, for a notebook",
}
"""Package -> what it is for."""


def write(folder: Path) -> None:
    """Write a page for every package into `folder`."""
    folder.mkdir(exist_ok=True)
    for name, summary in PACKAGES.items():
        text = "\n".join(_page(import_module(name), summary))
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def _page(package: ModuleType, summary: str) -> Iterator[str]:
    yield f"# `{package.__name__}`: {summary}\n"
    yield f"{markdown(package.__doc__)}\n"
    described = [n for n in package.__all__ if not isinstance(getattr(package, n), ModuleType)]
    names = sorted(described, key=lambda name: (name[0].isupper(), name.lower()))
    for name in names:
        yield from _entry(package, name)


def _entry(package: ModuleType, name: str) -> Iterator[str]:
    value = getattr(package, name)
    home, node = _definition(package, name)
    if isinstance(node, ast.ClassDef):
        yield from _class(name, node)
    elif isinstance(node, ast.FunctionDef):
        yield f"## `{name}`\n\n```python\n{_signature(node)}\n```\n"
        yield f"{markdown(ast.get_docstring(node))}\n"
    else:
        assigned = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        shown = ast.unparse(assigned) if assigned else repr(value)
        text = shown if len(shown) < 400 else f"{shown[:400]} …"
        yield f"## `{name}`\n\n```python\n{name} = {text}\n```\n"
        yield f"{markdown(_text_below(home, node))}\n"


def _class(name: str, node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(map(ast.unparse, node.bases))
    yield f"## `{name}`\n\n```python\nclass {name}{f'({bases})' if bases else ''}\n```\n"
    yield f"{markdown(ast.get_docstring(node))}\n"
    fields = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            default = f" = {ast.unparse(part.value)}" if part.value else ""
            kind = f"{part.target.id}: {ast.unparse(part.annotation)}{default}"
            if not part.target.id.startswith("_"):
                fields.append((kind, markdown(_text_below(node, part))))
    for kind, text in fields:
        yield f"- `{' '.join(kind.split())}`" + (f"\n\n  {_indented(text)}" if text else "")
    yield ""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
            decorators = {ast.unparse(d) for d in part.decorator_list}
            is_property = bool(decorators & {"property", "cached_property"})
            shown = f"{part.name}: {_result(part)}" if is_property else _signature(part)
            yield f"### `{name}.{part.name}`\n\n```python\n{shown}\n```\n"
            yield f"{markdown(ast.get_docstring(part))}\n"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _result(node: ast.FunctionDef) -> str:
    return ast.unparse(node.returns) if node.returns else "Any"


def _signature(node: ast.FunctionDef) -> str:
    """The signature of a function, on several lines where one would be long."""
    arguments = _arguments(node.args)
    whole = f"{node.name}({', '.join(arguments)}) -> {_result(node)}"
    if len(whole) <= 88:
        return whole
    listed = ",\n    ".join(arguments)
    return f"{node.name}(\n    {listed},\n) -> {_result(node)}"


def _arguments(arguments: ast.arguments) -> list[str]:
    """Arguments as they are written in a signature, without `self` and `cls`."""
    parts, depth, current = [], 0, ""
    for sign in f"{ast.unparse(arguments)},":
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            spaced = re.sub(r"(?<=[^\s(\[,])=(?=\S)", " = ", current.strip(), count=1)
            parts.append(spaced if ":" in current else current.strip())
            current = ""
        else:
            current += sign
    return [part for part in parts if part and part not in ("self", "cls")]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules.get(module) or import_module(module)))


def _definition(package: ModuleType, name: str) -> tuple[ast.Module, ast.stmt]:
    """The syntax tree of the module that defines a public name, and its definition there.

    Raises:
        LookupError: no module says where the name is defined.
    """
    module = getattr(getattr(package, name), "__module__", "")
    tried = [package.__name__, *([module] if str(module).startswith("faithscope.") else [])]
    homes = getattr(package, "_HOMES", None) or getattr(package, "_MODULES", {})
    if name in homes:
        root = "faithscope" if package.__name__ == "faithscope" else package.__name__
        tried.append(f"{root}.{homes[name]}")
    while tried:
        tree = _tree(home := tried.pop())
        for node in tree.body:
            if getattr(node, "name", None) == name or name in map(ast.unparse, _targets(node)):
                return tree, node
            for source in _imported(node, name, home):
                tried.append(source)
    raise LookupError(f"{package.__name__}.{name}: no definition found")


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) and node.value else []


def _imported(node: ast.stmt, name: str, home: str) -> Iterator[str]:
    """Modules from which a statement imports `name`; those in `if TYPE_CHECKING` count."""
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and part.module not in (None, home):
            names = {alias.asname or alias.name for alias in part.names}
            yield from [str(part.module)] if name in names else []


def _text_below(tree: ast.Module | ast.ClassDef, node: ast.stmt) -> str:
    """The string that stands below a definition and describes it."""
    match tree.body[tree.body.index(node) + 1 :]:
        case [ast.Expr(value=ast.Constant(value=text)), *_]:
            return str(text)
    return ""
