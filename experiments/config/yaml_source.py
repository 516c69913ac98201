"""A config file and its `--set` overrides as one tree that knows where each value came from."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from faithscope.interp.documents import yaml_of
from faithscope.interp.errors import UserError, did_you_mean

Key = tuple[str | int, ...]
"""Path of a value in a config: mapping keys and list indices."""


@dataclass(frozen=True)
class Tree:
    """The values of a config, before they are checked."""

    path: Path
    values: dict[str, Any]
    overridden: dict[Key, str]
    """Key path -> text of the `--set` option that set it."""

    def source_of(self, key: Key) -> str:
        """Source of the value of `key`: a `--set` option, or the file."""
        for n in range(len(key), 0, -1):
            if option := self.overridden.get(tuple(map(str, key[:n]))):
                return f"--set {option}"
        return str(self.path)

    def at(self, key: Key) -> Any:
        """The value at `key`; None if there is none."""
        value: Any = self.values
        for part in key:
            value = value.get(part) if isinstance(value, dict) else None
        return value


MOST_VALUES = 100_000
"""Maximum number of values in a config, counting repeats through aliases."""


def plural_path(key: Key) -> str:
    """A key as text: `("probes", 2)` is `probes[2]`, `("slrc", "edits")` is `slrc.edits`."""
    out = ""
    for part in key:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else str(part)
    return out


def read_tree(
    path: Path, overrides: list[str], needs: str = "a run needs at least name, model and tasks"
) -> Tree:
    """Read a YAML file and apply the overrides.

    Args:
        path: the file.
        overrides: entries `key.sub=value`, with the value in YAML.
        needs: clause for the error about an empty file that says what it needs.

    Raises:
        UserError: the file is missing or not YAML (with line and column), or an override
            cannot be applied; one line per problem.
    """
    values = _read(path, needs)
    overridden: dict[Key, str] = {}
    problems = []
    for option in overrides:
        try:
            key, value = _parse_override(option)
            _put(values, key, value, option)
            overridden[key] = option
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("\n".join(problems))
    return Tree(path, values, overridden)


def _read(path: Path, needs: str) -> dict[str, Any]:
    if path.is_dir():
        raise UserError(f"{path}: is a folder; give a YAML file")
    if not path.is_file():
        beside = sorted(p.name for p in path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
        guess = did_you_mean(path.name, beside)
        hint = guess or (f"; {path.parent} has {', '.join(beside)}" if beside else "")
        raise UserError(f"{path}: no such file{hint}")
    try:
        values = _loaded(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{path}: {at}{_one_line(error)}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if values is None:
        raise UserError(f"{path}: is empty; {needs}")
    if not isinstance(values, dict):
        raise UserError(
            f"{path}: holds a {type(values).__name__}, expected `key: value` lines at the top level"
        )
    return values


class _TooMuch(yaml.YAMLError):
    """YAML that holds more values than a config can."""


def _loaded(text: str) -> Any:
    return copy.deepcopy(_parsed(text))


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """The values of a text, which nothing may change: a run reads its config a dozen times, and
    PyYAML takes up to a tenth of a second for one."""
    value = yaml_of(text, _Loader)
    # a value that an alias repeats counts at every place
    left, n = [value], 0
    while left:
        found = left.pop()
        n += 1
        if n > MOST_VALUES:
            raise _TooMuch(f"it holds more than {MOST_VALUES:,} values; are there aliases in it?")
        if isinstance(found, dict):
            left += found.values()
        elif isinstance(found, list):
            left += found
    return value


def _one_line(error: yaml.MarkedYAMLError) -> str:
    problem = " ".join((error.problem or "not YAML").split())
    if "cannot start any token" in problem and "\\t" in problem:
        return "a tab cannot indent YAML; use spaces"
    return f"{problem} ({error.context})" if error.context else problem


def _parse_override(option: str) -> tuple[tuple[str, ...], Any]:
    name, equals, text = option.partition("=")
    if not equals or not name.strip() or not all(p.strip() for p in name.split(".")):
        raise UserError(f"--set {option}: expected key=value, e.g. --set data.limit=20")
    try:
        value = _loaded(text)
    except yaml.YAMLError as error:
        marked = isinstance(error, yaml.MarkedYAMLError)
        why = _one_line(error) if marked else " ".join(str(error).split())
        raise UserError(f"--set {option}: the value is not YAML: {why}") from error
    return tuple(p.strip() for p in name.split(".")), value


def _put(values: dict[str, Any], key: tuple[str, ...], value: Any, option: str) -> None:
    at = values
    for n, part in enumerate(key[:-1], start=1):
        if at.get(part) is None:
            at[part] = {}
        if not isinstance(at[part], dict):
            whole = ".".join(key[:n])
            raise UserError(
                f"--set {option}: {whole!r} is {at[part]!r}, which has no keys; "
                f"set it whole: --set {whole}=…"
            )
        at = at[part]
    at[key[-1]] = value


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that refuses a repeated key; PyYAML would silently keep the last value."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a word", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key!r} stands twice; keep one", key_node.start_mark
            )
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
