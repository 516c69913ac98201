"""Reads a YAML config, with `--set key=value` applied, into the config class of its study.

All problems of a config are reported together, one line each: file, key, value, remedy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from faithscope.experiments.config.base import AT_HAND, ConfigError, FolderConfig
from faithscope.experiments.config.errors import explain, without_empty_sections
from faithscope.experiments.config.keys import by_key
from faithscope.experiments.config.shipped import config_path, is_shipped
from faithscope.experiments.config.study import KEY, study_of
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.interp.errors import UserError

C = TypeVar("C", bound=FolderConfig)


def load_config(
    path: str | Path,
    overrides: list[str] | None = None,
    must_be: type[C] = FolderConfig,
    at_hand: bool = True,
) -> C:
    """Read and check a run config.

    Args:
        path: a YAML file, or the name of a shipped config (`config.shipped`).
        overrides: entries `key.sub=value`, with the value in YAML.
        must_be: the config class that the caller can handle.
        at_hand: whether the models that the config names must exist on this machine; false to read
            a finished run.

    Raises:
        ConfigError: the config cannot be used; one line per problem.
    """
    try:
        tree = read_tree(config_path(path), overrides or [])
    except UserError as error:
        raise ConfigError(str(error).split("\n")) from error
    kind = study_of(tree.values, tree).config()
    if not issubclass(kind, must_be):
        what = f"is of benchmark {tree.values[KEY]!r}" if KEY in tree.values else "has no benchmark"
        raise ConfigError([f"{path}: {what}, and cannot serve here as a {must_be.__name__}"])
    try:
        values = without_empty_sections(tree.values, kind)
        values = kind.as_asked(values, tree.overridden, is_shipped(tree.path))
        return kind.model_validate(values, context={AT_HAND: at_hand})
    except ValidationError as error:
        raise ConfigError(explain(tree, error, kind)) from None


def asked_of(
    path: str | Path, overrides: Sequence[str], presets: Collection[str] = ()
) -> frozenset[str]:
    """Dotted keys of a config that the user set: those of `--set`, and of a file that is not
    shipped with faithscope.

    Args:
        presets: entries of `overrides` that are not the user's, such as those of a printed table.
    """
    tree = read_tree(config_path(path), list(overrides))
    options = {".".join(map(str, key)): option for key, option in tree.overridden.items()}
    preset = {key for key, option in options.items() if option in presets}
    own = options if is_shipped(tree.path) else options | by_key(tree.values)
    return frozenset(own.keys() - preset)
