"""Read a config file into the kind of run that it asks for.

A YAML file, with `--set key=value` applied; every problem is reported, one line each: file, key,
value, remedy.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.errors import explain, shown, without_empty_sections
from faithscope.experiments.config.yaml_source import Tree, read_tree
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.errors import UserError, did_you_mean

C = TypeVar("C", bound=FolderConfig)

KEY = "benchmark"
"""The key of a config that names a benchmark; a run over traces has none."""
BENCHMARKS = {
    "c2faith": "faithscope.experiments.studies.c2faith.config:C2FaithConfig",
    "rfeval": "faithscope.experiments.studies.rfeval.config:RFEvalConfig",
}
"""Benchmark -> where its config stands; imported only where it is asked for."""


def load_config(
    path: str | Path,
    overrides: list[str] | None = None,
    must_be: type[C] = FolderConfig,
) -> C:
    """Read and check a run config.

    Args:
        path: a YAML file.
        overrides: `key.sub=value` each, the value in YAML.
        must_be: the kind of run that the caller can serve.

    Raises:
        ConfigError: with a line per problem.
    """
    try:
        tree = read_tree(Path(path), overrides or [])
    except UserError as error:
        raise ConfigError(str(error).split("\n")) from error
    kind = config_kind(tree.values, tree)
    if not issubclass(kind, must_be):
        what = f"is of benchmark {tree.values[KEY]!r}" if KEY in tree.values else "has no benchmark"
        raise ConfigError([f"{path}: {what}, and cannot serve here as a {must_be.__name__}"])
    try:
        return kind.model_validate(without_empty_sections(tree.values, kind))
    except ValidationError as error:
        raise ConfigError(explain(tree, error, kind)) from None


def config_kind(values: dict[str, Any], tree: Tree | None = None) -> type[FolderConfig]:
    """The class of a config by its `benchmark` key.

    Raises:
        ConfigError: a benchmark that there is not.
    """
    if KEY not in values:
        return RunConfig
    name = values[KEY]
    if not isinstance(name, str) or name not in BENCHMARKS:
        guess = did_you_mean(str(name), BENCHMARKS) or f"; known: {', '.join(BENCHMARKS)}"
        where = f"{tree.source_of((KEY,))}: " if tree else ""
        raise ConfigError([f"{where}{KEY}: unknown benchmark {shown(name)}{guess}"])
    module, _, attribute = BENCHMARKS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
