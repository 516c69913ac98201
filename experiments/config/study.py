"""The studies that a config can ask for; each is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import did_you_mean

if TYPE_CHECKING:
    from types import ModuleType

    from faithscope.experiments.config.base import FolderConfig
    from faithscope.experiments.config.yaml_source import Tree

KEY = "benchmark"
"""The key of a config that names its study."""


@dataclass(frozen=True)
class Study:
    """A folder of `studies`, whose parts have names that are the same for all: `plan.plan(config)`,
    `outputs.write_all(run_dir)`, `show.show_item(run_dir, item, …)`, `frames.FRAMES` and
    `frames.tables(run)` of opened runs, `columns.COLUMNS` and `columns.OF_TABLES` of its tables,
    and the class below; and `columns.REASONS`, in words, where it leaves items out for reasons of
    its own.
    """

    name: str
    """The value of `benchmark:` in its configs."""
    package: str
    config: str
    """The class of its configs, in `config`."""
    unnamed: bool = False
    """Whether configs without `benchmark:` are its."""
    reads_runs: bool = False
    """Whether its runs only read those of other studies (`FolderConfig.made_of`)."""
    texts: tuple[str, ...] = ("trace",)
    """Stages in which text is only written or edited: an item of which nothing else is stored is
    not measured."""

    def part(self, module: str) -> ModuleType:
        """One of its modules, imported now."""
        return import_module(f"{self.package}.{module}")

    @property
    def kind(self) -> type[FolderConfig]:
        return getattr(self.part("config"), self.config)


STUDIES: dict[str, Study] = {}


def register(study: Study) -> None:
    """Let configs ask for a study."""
    STUDIES[study.name] = study


def study_of(values: Mapping[str, Any], tree: Tree | None = None) -> Study:
    """The study of a config, by its `benchmark` key.

    Raises:
        ConfigError: a study that there is not.
    """
    if KEY not in values:
        return next(study for study in STUDIES.values() if study.unnamed)
    # Not at the top: pydantic comes with them, and listing commands need not wait for it.
    from faithscope.experiments.config.base import ConfigError
    from faithscope.experiments.config.errors import shown

    name = values[KEY]
    named = [study.name for study in STUDIES.values() if not study.unnamed]
    if not isinstance(name, str) or name not in named:
        guess = did_you_mean(str(name), named) or f"; known: {', '.join(named)}"
        where = f"{tree.source_of((KEY,))}: " if tree else ""
        raise ConfigError([f"{where}{KEY}: unknown benchmark {shown(name)}{guess}"])
    return STUDIES[name]
