"""Whatever a user sets takes effect or is refused: every key of every shipped config."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from faithscope.experiments.config import shipped
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.study import STUDIES, study_of
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.experiments.studies.compare.plan import plan
from faithscope.interp.errors import UserError

Key = tuple[str, ...]
FIXED = {("benchmark",)}
"""Keys whose one legal value is what makes the config of its study."""


def leaves(values: dict[str, Any], key: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*key, str(name)))
        else:
            yield (*key, str(name)), value


def words(kind: type[BaseModel], key: Key) -> list[Any]:
    """The words that a key's type names, in lists of one where it is a list."""
    annotation: Any = kind
    for part in key:
        inner = next((a for a in _kinds(annotation) if _is_section(a)), None)
        if inner is None or part not in inner.model_fields:
            return []
        annotation = inner.model_fields[part].annotation
    found: list[Any] = []
    for of in _kinds(annotation):
        found += get_args(of) if get_origin(of) is Literal else []
        if get_origin(of) in (list, tuple):
            for entry in (x for a in get_args(of) for x in _kinds(a)):
                found += [[w] for w in get_args(entry)] if get_origin(entry) is Literal else []
    return found


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _kinds(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [k for a in get_args(annotation) for k in _kinds(a)]
    metadata = hasattr(annotation, "__metadata__")
    return _kinds(annotation.__origin__) if metadata else [annotation]


def others(kind: type[BaseModel], key: Key, value: Any) -> Iterator[Any]:
    """Values that may be legal in the place of one."""
    yield from words(kind, key)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, value * 2, value / 2, value + 0.125, 256, 1, 0)
    elif isinstance(value, str):
        yield from (f"{value}x", "bundled:smollm2-135m", "planted:hint", "x")
    elif isinstance(value, list):
        yield from (value[:1], value[1:], value[::-1])
    yield from (None, 1, 2, 0.5, 300, "x", "planted:faithful", "org/model", True, ["single_cue"])
    yield from (["generated", "scored"], ["scored"], ["generated"], ["remove", "corrupt"])
    yield from (["prefix", "reprompt"], "gsm8k", "rows", {"path": "labels.csv"})
    yield from (["planted"], ["org/model"], ["slrc"], ["attention"], ["0"], [1], {"x": "y"}, {})
    yield from ([{"model": "org/model", "task": "paper_review", "reason": "why"}], {"a": {"b": 1}})


def at(values: Any, key: Key) -> Any:
    for part in key:
        values = values.get(part) if isinstance(values, dict) else None
    return values


def changed(name: str, kind: type[FolderConfig], key: Key, value: Any) -> bool:
    """Whether some other value is legal and stands in the resolved config.

    Raises:
        AssertionError: one is taken, and the resolved config is as before.
    """
    legal = False
    for other in others(kind, key, value):
        if other == value and type(other) is type(value):
            continue
        try:
            config = load_config(name, [f"{'.'.join(key)}={json.dumps(other)}"], at_hand=False)
        except UserError:
            continue
        legal = True
        resolved = config.model_dump(mode="json")
        # a comparison keeps the keys of its sources that are set apart from those in its file
        if resolved.get("set", {}).get(".".join(key), at(resolved, key)) != value:
            return True
    assert not legal, f"{name}: another {'.'.join(key)} is taken and changes nothing"
    return False


def keys_of(name: str) -> Iterator[tuple[Key, Any]]:
    """The keys that a shipped config writes down; of the first of a study all that there are."""
    tree = read_tree(shipped.config_path(name), [])
    first = next(n for n in shipped.names() if _study(n) == study_of(tree.values).name)
    resolved = load_config(name, at_hand=False).model_dump(mode="json")
    written = {key[:n] for key, _ in leaves(tree.values) for n in range(1, len(key) + 1)}
    for key, value in leaves(resolved):
        # names with a dot in them cannot be said after --set
        sayable = key not in FIXED and not any("." in part for part in key)
        if sayable and (name == first or key in written):
            yield key, value


def _study(name: str) -> str:
    return study_of(read_tree(shipped.config_path(name), []).values).name


@pytest.mark.in_time(6)
@pytest.mark.parametrize("name", shipped.names())
def test_every_key_of_a_shipped_config_takes_effect(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kind = study_of(read_tree(shipped.config_path(name), []).values).config()
    keys = list(keys_of(name))
    moved = [key for key, value in keys if changed(name, kind, key, value)]
    # the others are refused by themselves, as `perturb.acausal: llm` is without a writer
    assert len(moved) >= 0.85 * len(keys)


@pytest.mark.slow
def test_every_key_that_is_said_for_all_sources_reaches_those_that_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reached = 0
    for item in plan(load_config("compare")).items:
        kind, known = type(item.config), item.config.model_dump(mode="json")
        sections = {"traces", "model", "judges", "data", "seed"} & set(known)
        for key, value in leaves({name: known[name] for name in sorted(sections)}):
            reached += any(
                _reaches(item.source.title, key, value, other)
                for other in others(kind, key, value)
                if other != value
            )
    assert reached > 40


def _reaches(title: str, key: Key, before: Any, value: Any) -> bool:
    """Whether a value is legal; then it has to stand in the source's config."""
    try:
        config = load_config("compare", [f"{'.'.join(key)}={json.dumps(value)}"])
        (item,) = (i for i in plan(config).items if i.item == title)
    except UserError:
        return False
    after = at(item.config.model_dump(mode="json"), key)
    assert after != before, f"{key} of source {title} stays {before} under {value!r}"
    return True


def test_every_study_has_a_shipped_config() -> None:
    assert {_study(name) for name in shipped.names()} >= set(STUDIES) - {"toy"}
