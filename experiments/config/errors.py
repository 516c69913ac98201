"""Translates pydantic's validation errors of a config into lines that a person can act on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from faithscope.experiments.config.keys import section_at, section_of
from faithscope.experiments.config.meant import meant, option
from faithscope.experiments.config.yaml_source import Key, Tree, plural_path
from faithscope.interp.errors import did_you_mean

_GUESS = re.compile(r"; did you mean '([^']*)'\?")


def shown(value: Any) -> str:
    """A value as it would be written in a config."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)


def without_empty_sections(values: dict[str, Any], section: type[BaseModel]) -> dict[str, Any]:
    """The values of a config without empty sections: `slrc:` with nothing under it means its
    defaults."""
    out = {}
    for key, value in values.items():
        inner = section_of(section, key)
        if inner is not None and value is None and key != "model":
            continue
        if inner is not None and isinstance(value, dict):
            value = without_empty_sections(value, inner)
        out[key] = value
    return out


def explain(tree: Tree, error: ValidationError, root: type[BaseModel]) -> list[str]:
    """One line per problem: source of the value (file or `--set`), key, what is wrong, remedy."""
    # a default computed from a field that has an error itself is not a problem of its own
    own = [e for e in error.errors() if e["type"] != "default_factory_not_called"]
    kinds: dict[tuple[str | int, ...], list[str]] = {}
    for e in own:
        # pydantic reports each type of a union as a further part of the location; it is cut off
        section, value = e["loc"][:-1], e["input"]
        if e["type"] != "missing" and section and value is tree.at(section) is not None:
            e["loc"] = section
        kinds.setdefault(tuple(e["loc"]), []).append(_wanted(e["type"]))
    lines = [(e, line) for e in own for line in _lines(tree, e, root, kinds[tuple(e["loc"])])]
    said = _known_once(list(dict.fromkeys(line for _, line in lines)))
    return [*said, *_corrected(tree, lines)]


def _known_once(lines: list[str]) -> list[str]:
    """The lines with a list of known names that several end in at the last of them alone."""
    tails = [line.partition("; known: ")[2] for line in lines]
    return [
        line.removesuffix(f"; known: {tail}") if tail and tail in tails[i + 1 :] else line
        for i, (line, tail) in enumerate(zip(lines, tails, strict=True))
    ]


def _corrected(tree: Tree, lines: list[tuple[Any, str]]) -> Iterator[str]:
    """For each list of which several entries are wrong and have a guess, the list with all
    guesses in place, as it can be pasted."""
    guesses: dict[tuple[str | int, ...], dict[int, str]] = {}
    for error, line in lines:
        loc, guess = tuple(error["loc"]), _GUESS.search(line)
        if guess and loc and isinstance(loc[-1], int):
            guesses.setdefault(loc[:-1], {})[loc[-1]] = guess[1]
    for loc, of_list in guesses.items():
        entries = tree.at(loc)
        if len(of_list) > 1 and isinstance(entries, list) and all(map(_is_word, entries)):
            better = list(dict.fromkeys(of_list.get(i, str(x)) for i, x in enumerate(entries)))
            asked = tree.source_of(loc).startswith("--set ")
            key, comma = plural_path(loc), "," if asked else ", "
            whole = f"[{comma.join(better)}]"
            yield f"all at once: {f'--set {key}={whole}' if asked else f'{key}: {whole}'}"


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value.strip(" []{},#") == value


def _lines(tree: Tree, error: Any, root: type[BaseModel], kinds: list[str]) -> list[str]:
    loc = tuple(error["loc"])
    source = tree.source_of(loc)
    if loc and isinstance(loc[-1], int) and not isinstance(tree.at(loc[:-1]), list):
        loc = loc[:-1]
    key, value, kind = plural_path(loc), shown(error["input"]), error["type"]
    context = error.get("ctx", {})
    if kind == "value_error":
        lines = str(context["error"]).split("\n")
        joint = "" if lines[0].startswith(".") or not key else ": "
        return [f"{source}: {key}{joint}{line}" for line in lines]
    if kind == "extra_forbidden":
        section = section_at(root, loc[:-1])
        known = list(section.model_fields) if section else []
        near = did_you_mean(str(loc[-1]), known)
        if whole := _asked(tree, loc):
            source, near = f"--set {tree.overridden[whole]}", ""
        guess = near or _meant(tree, loc, root) or f"; known here: {', '.join(known)}"
        return [f"{source}: {key}: unknown key {str(loc[-1])!r}{guess}"]
    if kind == "missing":
        return [f"{source}: {key}: missing; add {_example(loc)}"]
    if kind == "literal_error":
        options = _literals(context["expected"])
        guess = did_you_mean(str(error["input"]), options)
        message = f"must be one of {', '.join(options)}, got {value}{guess}"
    elif kind in ("greater_than_equal", "greater_than", "less_than_equal", "less_than"):
        word = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
        (which, bound), *_ = context.items()
        message = f"must be {word[which]} {_plain(bound)}, got {value}"
    elif kind == "too_short":
        message = "is an empty list; give at least one entry"
    else:
        message = f"must be {' or '.join(dict.fromkeys(kinds))}, got {value}"
        if kind == "model_type":
            message += _meant(tree, loc, root)
    return [f"{source}: {key}: {message}"]


def _meant(tree: Tree, loc: tuple[str | int, ...], root: type[BaseModel]) -> str:
    """`; did you mean data.limit?` for the key that somebody meant, as the option to paste where it
    was given as one; empty if no key is close."""
    whole = _asked(tree, loc)
    asked = ".".join(map(str, whole or loc))
    key = meant(root, asked, tree.values)
    if key is None or key == asked:
        return ""
    if not whole:
        return f"; did you mean {key}?"
    value = tree.overridden[whole].partition("=")[2].strip()
    return f"; did you mean {option(root, key, value)}?"


def _asked(tree: Tree, loc: tuple[str | int, ...]) -> Key:
    """The key of the last `--set` that is `loc` or below it; empty if there is none."""
    parts = tuple(map(str, loc))
    return next((k for k in reversed(tree.overridden) if k[: len(parts)] == parts), ())


def _example(loc: tuple[str | int, ...]) -> str:
    examples = {
        ("name",): "`name: my-run`",
        ("tasks",): "`tasks: [single_cue]`",
        ("model",): "`model: {name: bundled:smollm2-135m}`",
        ("model", "name"): "`name: bundled:smollm2-135m` under `model:`",
    }
    return examples.get(tuple(map(str, loc)), "it")


def _literals(expected: str) -> list[str]:
    return re.findall(r"'([^']*)'", expected)


def _plain(bound: float) -> str:
    return str(int(bound)) if math.isfinite(bound) and bound == int(bound) else str(bound)


def _wanted(kind: str) -> str:
    return {
        "int_type": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "string_type": "a text (quote it if YAML reads it as something else)",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping",
        "model_type": "a mapping (key: value)",
    }.get(kind, kind.replace("_", " "))
