"""Studies as data: what a study declares, and the choice of a study by a config's `benchmark:` key.

To add a study, write a `Study` object and pass it to `register`. The engine, the command line and
comparisons reach a study only through this object; none of them names one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import broken, extension, extensions, why_broken

if TYPE_CHECKING:
    from faithscope.experiments.config.base import FolderConfig
    from faithscope.experiments.config.yaml_source import Tree

KEY = "benchmark"
"""Name of the config key that selects the study."""

LeavesOut = Callable[
    [Mapping[str, Any], Mapping[str, Any], Callable[[], frozenset[str]]], str | None
]
"""Function from a record, the stored config, and a function that reads the faults of the chain."""


@dataclass(frozen=True)
class Stage:
    """One kind of work on an item: writing its trace, one probe of it, one judge's verdict.

    For each item and model a stage has at most one unit of work, which is stored as a whole.
    """

    name: str
    """Name of the stage, which is the first part of the keys of its units. A stage that exists once
    per judge (`rf_judged.JUDGE`) is declared without the dot and the judge."""
    needs: tuple[str, ...] = ()
    """Names of earlier stages; an item that one of them excluded is left out of this stage, too."""
    measures: bool = True
    """Whether the stage measures something. False for stages that only write or edit text: an item
    with units of such stages alone does not count as measured."""
    makes: str = ""
    """Plural noun for the products that other stages need (`traces`); heads a column of
    `faithscope status` and begins the names of the stage's record files. Empty where no stage needs
    them; the files then have the stage's name."""
    seconds: float = 18.0
    """Guessed seconds per unit, for the progress bar until one unit is measured: of a model of some
    hundred million parameters on two CPU cores."""
    remedies: Callable[[Any, Any, Mapping[str, Any]], Mapping[str, str]] = lambda *run: {}
    """Maps the stored items of a run, its `Index` and its stored config to reason of exclusion, or
    fault of chains -> config setting that would keep such items."""
    keys: tuple[str, ...] = ()
    """Config keys by which users ask for what the stage measures (`probes`); a run that measures
    nothing by a stage that its user asked for ends with exit code 3."""
    faults: Callable[[Mapping[str, Any]], frozenset[str]] | None = None
    """Maps a record that holds a chain to the chain's faults (`tallies.chain_faults`); None for a
    stage whose records hold no chain."""
    leaves_out: LeavesOut = lambda *record: None
    """Why the run's tables leave out a record though it holds a value (too little label mass); None
    if they do not."""


Stages = Mapping[str, Stage]
"""Stages of a study by their names."""


def by_name(*stages: Stage) -> Stages:
    """The given stages as a mapping from their names."""
    return {stage.name: stage for stage in stages}


class Together(Mapping[str, Stage]):
    """Stages of several mappings as one; a mapping that makes its stages when they are asked for is
    asked for no others."""

    def __init__(self, *parts: Stages) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Stage:
        for part in self._parts:
            if name in part:
                return part[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for part in self._parts for name in part))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def declared(stages: Stages, name: str) -> Stage:
    """The declaration of the stage of a unit.

    Args:
        stages: all stages of the study.
        name: the stage in the unit's key, with the judge after a dot where there is one.

    Raises:
        ValueError: the study declares no stage of that name.
    """
    try:
        return stages[name.partition(".")[0]]
    except KeyError:
        known = ", ".join(stages)
        raise ValueError(f"no stage {name!r} is declared; Study.stages has {known}") from None


_PLACES = {
    "config": ("config", "CONFIG"),
    "plan": ("plan", "plan"),
    "stages": ("stages", "STAGES"),
    "report": ("report", "REPORT"),
    "forms": ("prompts", "judge_forms"),
    "papers": ("paper", "PAPERS"),
    "commands": ("commands", "COMMANDS"),
    "derived": ("derived", "DERIVED"),
    "chains": ("derived", "CHAINS"),
}
"""Part of a study -> the module of its package that holds the part, and the name there."""


@dataclass(frozen=True)
class Study:
    """Everything that the engine, the command line and comparisons know of a study.

    A study is a package on the floor plan of `CONTRIBUTING.md`: its parts stand in modules of fixed
    names under fixed names. All studies are registered whenever a command starts, so a part is
    imported (pydantic, torch, pandas) only when it is asked for.
    """

    name: str
    """Value of `benchmark:` in the configs of this study."""
    at: str
    """Import path of the study's package, or of a single module that holds all parts."""
    unit: str = "items"
    """What the items of its runs are, in the plural, where counts name them."""
    unnamed: bool = False
    """Whether a config without the key `benchmark:` belongs to this study; true of one study."""
    reads_runs: bool = False
    """Whether runs of this study measure nothing and only read runs of other studies
    (`FolderConfig.made_of`)."""

    def config(self) -> type[FolderConfig]:
        """The class of the study's configs: `config.CONFIG`."""
        return self._part("config")

    def plan(self, config: Any) -> Any:
        """The plan of the run that a config asks for, an `engine.plan.RunPlan`: the items, the
        lines of a dry run, and the worker that does the items. It is made by `plan.plan`."""
        return self._part("plan")(config)

    def stages(self) -> Stages:
        """Every stage that units of the study's runs can have: `stages.STAGES`, and those that
        installed packages add."""
        added = (
            stage for addition in additions_to(self.name).values() for stage in addition.stages
        )
        return Together(self._part("stages"), by_name(*added))

    def derived(self, run_dir: Path, stored: Mapping[str, Any]) -> Sequence[Any]:
        """`tallies.tally.StageTally`s of the measures of a run that no stage makes, since they
        follow from the records of others: what `derived.DERIVED` returns, or none."""
        return self._part("derived", lambda *run: ())(run_dir, stored)

    def chains(self, run_dir: Path) -> Mapping[tuple[str, str, str], frozenset[str]]:
        """(model, task, item) -> faults of the chain, for chains of a run that no stage stores,
        since they were given and no model reads them: what `derived.CHAINS` returns, or none."""
        return self._part("chains", lambda run_dir: {})(run_dir)

    def report(self) -> Any:
        """The study's `analysis.run.Report`, frames, tables, figures and page of a run:
        `report.REPORT`, with what installed packages add."""
        report = self._part("report")
        for addition in additions_to(self.name).values():
            report = addition.report(report)
        return report

    def forms(self) -> Mapping[str, Any]:
        """Judge forms that only this study has, by name (`faithscope list prompts`): what
        `prompts.judge_forms()` returns, or none."""
        return self._part("forms", dict)()

    def papers(self) -> Sequence[Any]:
        """Every `analysis.published.Paper` of the study, whose printed tables stand beside runs of
        this study or, where a table's config is of another one, of that: `paper.PAPERS`, or
        none."""
        return self._part("papers", ())

    def commands(self) -> Mapping[str, Any]:
        """The commands that the study adds to `faithscope`: `commands.COMMANDS`, a mapping from the
        name of a group in `cli.GROUPS` to a Typer whose commands are listed after that group, or
        none."""
        return self._part("commands", {})

    def _part(self, part: str, *default: Any) -> Any:
        module, name = _PLACES[part]
        package = import_module(self.at)
        if hasattr(package, "__path__"):
            if find_spec(f"{self.at}.{module}") is None and default:
                return default[0]
            package = import_module(f"{self.at}.{module}")
        return getattr(package, name, *default)


@dataclass(frozen=True)
class Addition:
    """Work that an installed package adds to a study: an entry `STUDY.NAME` of the group
    `faithscope.additions`."""

    stages: tuple[Stage, ...]
    """Stages that its units have beside those of the study; none where it has no units."""
    load: Callable[[], Any]
    """Returns what the study does in its runs, of the class that the module `additions` of the
    study declares; imports it only then."""
    report: Callable[[Any], Any] = lambda report: report
    """Maps the study's `analysis.run.Report` to one that also tells of this (`analysis.added`)."""


@cache
def additions_to(study: str) -> Mapping[str, Addition]:
    """Name -> what installed packages add to a study.

    Raises:
        UserError: an entry cannot be loaded.
    """
    added = extensions("additions", Addition, begins=f"{study}.")
    # all runs of the study have the stages of all its additions
    if problems := broken("additions", begins=f"{study}."):
        raise UserError("; ".join(problems.values()))
    return {name.removeprefix(f"{study}."): addition for name, addition in added.items()}


def addition_to(study: str, name: str, asked_by: str) -> Addition:
    """An addition that a config asks for.

    Args:
        asked_by: the config key that asks for it.

    Raises:
        UserError: no installed package adds it, or it cannot be loaded.
    """
    return extension("additions", f"{study}.{name}", asked_by)


STUDIES: dict[str, Study] = {}
"""All registered studies by name, in the order of registration."""


def register(study: Study) -> None:
    """Make a study available to configs."""
    STUDIES[study.name] = study


@cache
def register_installed() -> None:
    """Register the studies that installed packages add (`faithscope new study NAME`)."""
    for study in extensions("studies", Study, taken=frozenset(STUDIES)).values():
        register(study)


def study_of(values: Mapping[str, Any], tree: Tree | None = None) -> Study:
    """The study that a config selects by its `benchmark` key.

    Args:
        values: the config as read from YAML.
        tree: the same config with the source of each value, to name the source in an error.

    Raises:
        ConfigError: `benchmark` names no registered study.
        UserError: the study of an installed package cannot be loaded.
    """
    register_installed()
    if KEY not in values:
        return next(study for study in STUDIES.values() if study.unnamed)
    # Imported here because both import pydantic, which `faithscope --help` need not wait for.
    from faithscope.experiments.config.base import ConfigError
    from faithscope.experiments.config.errors import shown

    name = values[KEY]
    named = [study.name for study in STUDIES.values() if not study.unnamed]
    if problem := why_broken(str(name), "studies"):
        raise UserError(problem)
    if not isinstance(name, str) or name not in named:
        guess = did_you_mean(str(name), named) or f"; known: {', '.join(named)}"
        where = f"{tree.source_of((KEY,))}: " if tree else ""
        raise ConfigError([f"{where}{KEY}: unknown benchmark {shown(name)}{guess}"])
    return STUDIES[name]
