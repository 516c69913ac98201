"""YAML and JSON that users give: read unless they are nested without bound.

PyYAML's fast loader ends the process at some 100,000 brackets within each other, and its slow one,
like Python's JSON, raises an error that is not about the text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

MAX_DEPTH = 100
"""Deepest nesting of lists and objects: no data set nests so deep, and deeper values cannot be
stored."""
MOST_REPEATED = 100_000
"""Most values of a YAML text with aliases, beside one for each of its characters."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEPS = {
    yaml.SequenceStartEvent: 1,
    yaml.MappingStartEvent: 1,
    yaml.SequenceEndEvent: -1,
    yaml.MappingEndEvent: -1,
}


class TooDeep(yaml.YAMLError, ValueError):
    """Lists and objects of a text are nested deeper than can be read, or repeated too often."""


_DEEP = f"lists or objects are nested more than {MAX_DEPTH} deep; flatten them"


def yaml_of(text: str, loader: Any = yaml.SafeLoader) -> Any:
    """The value that `text` is YAML of.

    Args:
        loader: a safe loader of PyYAML's.

    Raises:
        TooDeep: it is nested more than `MAX_DEPTH` deep, or its aliases multiply it.
        yaml.YAMLError: it is no YAML.
    """
    depth, repeats = 0, False
    try:
        # the parser needs no stack, and tells the depth before the loader follows it
        for event in yaml.parse(text, _LOADER):
            depth += _STEPS.get(event.__class__, 0)
            repeats = repeats or isinstance(event, yaml.AliasEvent)
            if depth > MAX_DEPTH:
                raise TooDeep(f"line {event.start_mark.line + 1}: {_DEEP}")
    except TooDeep:
        raise
    except yaml.YAMLError:
        pass  # the loader raises its own, which names the place in its words
    try:
        value = yaml.load(text, Loader=loader)
    except RecursionError:
        raise TooDeep(_DEEP) from None
    if repeats:
        _check_repeats(value, MOST_REPEATED + len(text))
    return value


def _check_repeats(value: Any, most: int) -> None:
    left, n = [value], 0
    while left:
        found = left.pop()
        n += 1
        if n > most:
            raise TooDeep(f"its aliases make more than {most:,} values; write them out")
        if isinstance(found, Mapping):
            left += found.values()
        elif isinstance(found, list):
            left += found


def json_of(text: str | bytes, **how: Any) -> Any:
    """The value that `text` is JSON of; `how` are options of `json.loads`.

    Raises:
        TooDeep: it is nested too deep to be read.
        ValueError: it is no JSON.
    """
    try:
        return json.loads(text, **how)
    except RecursionError:
        raise TooDeep(_DEEP) from None
