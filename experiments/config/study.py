"""Studies as data: what each declares of itself, and which one a config asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import did_you_mean

if TYPE_CHECKING:
    from faithscope.experiments.config.base import FolderConfig
    from faithscope.experiments.config.yaml_source import Tree

KEY = "benchmark"
"""The key of a config that names its study."""


@dataclass(frozen=True)
class Stage:
    """One kind of work on an item, of which each item has at most one unit for each model."""

    name: str
    """As in the keys of units; of a stage that every judge has for itself (`rf_judged.JUDGE`), what
    stands before the dot."""
    needs: tuple[str, ...] = ()
    """Stages whose exclusion of an item leaves the item out of this stage, too."""
    measures: bool = True
    """False where text is only written or edited: an item of which nothing else is stored is not
    measured."""
    makes: str = ""
    """What it makes, in the plural, where other stages need it: a column of `faithscope status`."""
    remedies: Callable[[Any, Any, Mapping[str, Any]], Mapping[str, str]] = lambda *run: {}
    """From the stored items of a run, its `Index` and its stored config to a setting for each
    reason of exclusion that the setting would change."""


Stages = Mapping[str, Stage]
"""By name."""


def by_name(*stages: Stage) -> Stages:
    """Stages by their names."""
    return {stage.name: stage for stage in stages}


def declared(stages: Stages, name: str) -> Stage:
    """The declaration of a stage, by the name that units have.

    Raises:
        ValueError: its study declares none of that name.
    """
    try:
        return stages[name.partition(".")[0]]
    except KeyError:
        known = ", ".join(stages)
        raise ValueError(f"no stage {name!r} is declared; Study.stages has {known}") from None


@dataclass(frozen=True)
class Study:
    """A study, as the engine, the command line and comparisons know it.

    It is made whenever a command starts, so what takes long to import stands behind functions.
    """

    name: str
    """The value of `benchmark:` in its configs."""
    config: Callable[[], type[FolderConfig]]
    """Gives the class of its configs."""
    plan: Callable[[Any], Any]
    """From a config to the plan of its run, an `engine.plan.RunPlan`: its items, what is said of
    them before anyone is asked, and who does the work."""
    stages: Callable[[], Stages]
    """Gives every stage that a unit of its runs may be of."""
    report: Callable[[], Any]
    """Gives what a reader gets of its runs, an `analysis.run.Report`."""
    unnamed: bool = False
    """Whether configs without `benchmark:` are its."""
    reads_runs: bool = False
    """Whether its runs only read those of other studies (`FolderConfig.made_of`)."""
    forms: Callable[[], Mapping[str, Any]] = dict
    """Gives judge forms that only this study has, by name (`faithscope list prompts`)."""
    commands: Callable[[], Mapping[str, Any]] = dict
    """Gives commands that it adds to `faithscope`, a Typer for each group of `cli.GROUPS` that they
    are listed after."""


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
