"""Run folders: finding them, and reading and checking their config and environment."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.experiments.files import StoreError, write_atomically
from faithscope.interp.documents import json_of

C = TypeVar("C", bound=FolderConfig)

SCHEMA = 3
"""Version of the meaning of records, which is part of every unit id."""


def existing_run(run_dir: str | Path) -> Path:
    """The path of a run folder that this version of faithscope can read.

    Raises:
        StoreError: there is no such run folder (names a similar one), or its records have another
            schema.
    """
    path = run_folder(run_dir)
    _check_schema(path)
    return path


def run_folder(run_dir: str | Path) -> Path:
    """The path of a run folder, whether or not its content is damaged.

    Raises:
        StoreError: there is no such run folder; names a similar one.
    """
    path = Path(run_dir).expanduser()
    if (path / "config.yaml").is_file():
        return path
    if path.is_dir():
        inside = sorted(p.parent.name for p in path.glob("*/config.yaml"))
        hint = f"; it holds the runs {', '.join(inside)}" if inside else ""
        raise StoreError(f"{path}: is not a run folder (no config.yaml){hint}")
    if path.is_file():
        inside = (path.parent / "config.yaml").is_file()
        hint = (
            f"; did you mean {str(path.parent)!r}?"
            if inside
            else ", such as `faithscope run` makes"
        )
        raise StoreError(f"{path}: is a file, and no run folder{hint}")
    beside = sorted(p.parent for p in path.parent.glob("*/config.yaml"))
    beside = beside or sorted(p.parent for p in Path("runs").glob("*/config.yaml"))
    close = difflib.get_close_matches(path.name, [p.name for p in beside], n=1)
    where = {p.name: p for p in beside}
    hint = f"; did you mean {str(where[close[0]])!r}?" if close else ""
    if not close:
        there = f"there are {', '.join(map(str, beside))}"
        hint = (
            f"; {there if beside else 'faithscope list runs --out FOLDER lists those of a folder'}"
        )
    raise StoreError(f"{path}: no such run folder{hint}")


def read_config(run_dir: str | Path, must_be: type[C] = FolderConfig) -> C:
    """The resolved config of a run; its models need not be on this machine.

    Raises:
        StoreError: the file was changed after the records were made.
    """
    folder = existing_run(run_dir)
    config = load_config(folder / "config.yaml", must_be=must_be, at_hand=False)
    _check_unchanged(folder, config)
    return config


def read_environment(run_dir: Path) -> dict[str, Any]:
    """The content of environment.json: `schema` of the records, `sessions` (one per start of the
    run), `models` (what each turned out to be), `config` (with which the records were begun) and
    `chosen` (`FolderConfig.chosen`); empty where there is no such file."""
    path = run_dir / "environment.json"
    if not path.is_file():
        return {"schema": SCHEMA, "sessions": [], "models": {}}
    try:
        environment = json_of(path.read_text("utf-8"))
        whole = isinstance(environment["schema"], int) and isinstance(environment["models"], dict)
        if not whole or not all(isinstance(s, dict) for s in environment["sessions"]):
            raise TypeError("holds other things than were written")
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{path}: is damaged ({error}); faithscope repair puts it aside"
        ) from error
    return environment


def write_environment(run_dir: Path, environment: dict[str, Any]) -> None:
    """Write environment.json of a run folder."""
    write_atomically(run_dir / "environment.json", json.dumps(environment, indent=2) + "\n")


def to_yaml(config: FolderConfig) -> str:
    """A config as YAML, with every key."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def has_records(run_dir: Path) -> bool:
    """Whether a run folder holds any stored unit."""
    return any(p.stat().st_size for p in (run_dir / "records").glob("*.jsonl"))


def check_config(config: FolderConfig, in_use: bool = False) -> None:
    """Refuse a run folder that was made with another config.

    A folder without records is accepted, unless it is in use. Keys in `FolderConfig.FREE` may
    differ; `out` and `name` are among them, since a run folder may be moved and renamed. A key that
    the stored config lacks, since an earlier version had none of that name, counts as its default.

    Args:
        config: the config of the run to start.
        in_use: whether other workers are at work in the folder.

    Raises:
        StoreError: the stored config differs (names every differing key), is missing, or belongs to
            records of another schema.
    """
    run_dir = config.run_dir
    path = run_dir / "config.yaml"
    if not in_use and not has_records(run_dir):
        return
    if not path.is_file():
        raise StoreError(f"{run_dir}: has records but no config.yaml; move it away")
    _check_schema(run_dir)
    _check_unchanged(run_dir, config)
    differing = differences(
        _with_defaults(run_dir, type(config)), config.model_dump(mode="json"), config.FREE
    )
    # what the config leaves open is taken from the folder
    differing = [d for d in differing if d[0] not in config.OPEN or d[2] != config.OPEN[d[0]]]
    if differing:
        raise StoreError(
            f"{run_dir}: was made with another config ({_listed(differing)}); "
            "use another name (--set name=…), or delete the folder"
        )


def _with_defaults(run_dir: Path, kind: type[FolderConfig]) -> dict[str, Any]:
    """The stored config with the defaults of keys that it lacks; as it is where it holds what this
    version does not know."""
    try:
        return load_config(run_dir / "config.yaml", [], kind, at_hand=False).model_dump(mode="json")
    except ConfigError:
        return stored_config(run_dir)


def new_keys(config: FolderConfig) -> dict[str, Any]:
    """Dotted keys that the stored config of the run lacks -> their values, which are defaults."""
    stored, now = _flat(stored_config(config.run_dir)), _flat(config.model_dump(mode="json"))
    sections = {key.rpartition(".")[0] for key in stored}
    return {k: v for k, v in now.items() if k not in stored and k.rpartition(".")[0] in sections}


def _check_unchanged(run_dir: Path, config: FolderConfig) -> None:
    begun = read_environment(run_dir).get("config")
    if not isinstance(begun, dict) or not has_records(run_dir):
        return
    sections = tuple(f"{name}." for name in config.SHOWN)
    ignored = (*config.FREE, *config.SHOWN, *sections)
    if differing := differences(begun, stored_config(run_dir), ignored):
        raise StoreError(
            f"{run_dir / 'config.yaml'}: was changed after its records were made "
            f"({_listed(differing)}); change it back, or run the changed one under another name "
            "(--set name=…)"
        )


def _listed(differing: Iterable[tuple[str, Any, Any]]) -> str:
    return "; ".join(
        f"{key}: {json.dumps(there)} there, {json.dumps(here)} now"
        for key, there, here in differing
    )


def _check_schema(run_dir: Path) -> None:
    if (schema := read_environment(run_dir)["schema"]) != SCHEMA:
        raise StoreError(
            f"{run_dir}: its records have schema {schema}, this version reads and writes {SCHEMA}; "
            "run its config under another name (--set name=…)"
        )


def stored_config(run_dir: Path) -> dict[str, Any]:
    """The config in a run folder as plain values, which are not checked."""
    return read_tree(run_dir / "config.yaml", []).values


def take_report(config: FolderConfig) -> None:
    """Copy the sections and keys of `config` that affect only tables and page into the stored
    config.

    Runs and `faithscope report` write tables and page from the stored config.
    """
    if shown := shown_otherwise(config):
        stored = stored_config(config.run_dir)
        for key, value in shown.items():
            *sections, name = key.split(".")
            into = stored
            for section in sections:
                into = into.setdefault(section, {})
            into[name] = value
        text = yaml.safe_dump(stored, sort_keys=False, allow_unicode=True)
        write_atomically(config.run_dir / "config.yaml", text)


def shown_otherwise(config: FolderConfig) -> dict[str, Any]:
    """Sections and dotted keys of `config` that affect only tables and page (`FolderConfig.SHOWN`)
    and differ from the stored config, with their values in `config`."""
    stored, given = stored_config(config.run_dir), config.model_dump(mode="json")
    keys = ("tracking", *config.SHOWN)
    return {k: now for k in keys if (now := _at(given, k)) != _at(stored, k)}


def _at(values: Any, key: str) -> Any:
    """The value of a dotted key; None where there is no such key."""
    for name in key.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


def differences(
    one: dict[str, Any], other: dict[str, Any], ignore: tuple[str, ...]
) -> list[tuple[str, Any, Any]]:
    """(dotted key, first value, second value) for every key in which two configs differ.

    Args:
        ignore: keys to leave out; a name with a dot at the end leaves out a whole section.
    """
    a, b = _flat(one), _flat(other)
    sections = tuple(name for name in ignore if name.endswith("."))
    return [
        (k, a.get(k), b.get(k))
        for k in {**a, **b}
        if k not in ignore and not k.startswith(sections) and a.get(k) != b.get(k)
    ]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out
