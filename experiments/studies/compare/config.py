"""The config of a comparison: which runs it reads or makes, and how their traces are joined."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from faithscope.experiments.analysis.comparison.trust import AS_GOOD
from faithscope.experiments.config.base import FolderConfig, Section
from faithscope.experiments.config.yaml_source import Key

FOLDER = "sources"
"""Of the run folder: where the runs lie that the comparison makes itself."""
SHARED = ("traces", "model", "judge")
"""Sections that a comparison gives to every source that has them."""
MADE = "source:"
"""How a value begins that stands for the folder of an earlier source, by its name."""


class Source(Section):
    """One run that is read: a folder that is there, or a config that is run first."""

    run: StrictStr | None = None
    """A run folder."""
    config: StrictStr | None = None
    """A YAML file, or the name of a shipped config, that is run into a folder of the comparison."""
    name: StrictStr = ""
    """What tables call the source; by default the folder's or the config's name."""
    set: dict[str, Any] = Field(default={})
    """Keys of that config with other values, dotted as after `--set`; `source:NAME` stands for the
    folder of an earlier source."""
    digest: StrictStr = ""
    """Of the run's config when it was compared; empty in a config that a person writes."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Source:
        if (self.run is None) == (self.config is None):
            raise ValueError("give either run (a run folder) or config (a config to run)")
        if self.run is not None and self.set:
            raise ValueError("set: changes a config before it is run; this source is a run folder")
        return self

    @property
    def title(self) -> str:
        """Its name, or the one that follows from what it is of."""
        return self.name or re.sub(r"[^\w.-]", "_", Path(self.run or self.config or "").stem)


def _without(source: Any, shared: Collection[tuple[str, ...]]) -> Any:
    """A source whose `set` leaves some keys to the comparison."""
    if not isinstance(source, dict) or not isinstance(source.get("set"), dict):
        return source
    own = {tuple(str(key).split(".")): value for key, value in source["set"].items()}
    left = {key: _pruned(value, key, shared) for key, value in own.items()}
    kept = {key: value for key, value in left.items() if not _is_below(key, shared)}
    return source | {"set": {".".join(key): value for key, value in kept.items()}}


def _pruned(value: Any, key: tuple[str, ...], shared: Collection[tuple[str, ...]]) -> Any:
    """A value of a `set` without what lies below it of some keys."""
    if not isinstance(value, dict):
        return value
    inside = {(*key, str(name)): (name, inner) for name, inner in value.items()}
    return {
        name: _pruned(inner, at, shared)
        for at, (name, inner) in inside.items()
        if not _is_below(at, shared)
    }


def _is_below(key: tuple[str, ...], shared: Collection[tuple[str, ...]]) -> bool:
    return any(key[: len(of)] == of for of in shared)


class LabelFile(Section):
    """Labels of traces that no run holds."""

    path: StrictStr
    """A CSV or JSONL file with the columns item, and where they tell items apart dataset, task and
    model; every other column is a label: 1 or 0 (true or false), empty where there is none."""


class CompareReport(Section):
    """How the comparison is computed and shown."""

    bootstrap: StrictInt = Field(default=500, ge=10, le=10_000)
    """Draws of questions for every interval."""
    folds: StrictInt = Field(default=5, ge=2, le=20)
    """Parts that questions are divided into for thresholds, calibration and classifiers."""
    false_discovery: StrictFloat = Field(default=0.05, gt=0, lt=1)
    """Rate of false discoveries that is kept by Benjamini and Hochberg's procedure."""
    as_good: StrictFloat = Field(default=AS_GOOD, gt=0, lt=0.5)
    """AUROC by which a measure may be behind the best and still be called as good: a bound that is
    to be chosen before any data are seen."""
    listed: StrictInt = Field(default=20, ge=1, le=500)
    """Items listed of each kind of disagreement."""


class CompareConfig(FolderConfig):
    """The settings of a comparison."""

    SHOWN: ClassVar[tuple[str, ...]] = ("report", "labels", "same", "common")
    FREE: ClassVar[tuple[str, ...]] = (
        *(*FolderConfig.FREE, "report.", "labels.", "labels", "same", "common"),
    )

    benchmark: StrictStr
    """`compare`."""
    sources: list[Source] = Field(min_length=1)
    """The runs, in order: of each `run`, a run folder, or `config`, a config that is run first with
    the keys in `set` changed; and `name`, what tables call it."""
    traces: dict[str, Any] = Field(default={})
    """Keys of the section `traces` of every source that has it: chains that all of them read. In a
    file a source's own `set` goes before; what `--set` gives goes before both."""
    model: dict[str, Any] = Field(default={})
    """Likewise of the section `model`."""
    judge: dict[str, Any] = Field(default={})
    """Likewise of the section `judge`."""
    same: Literal["ids", "text", "question"] = "text"
    """What has to be the same of two traces of one item for their scores to stand in one row."""
    common: StrictBool = False
    """Leave out the traces that not every source has, so that all measures are held against the
    same ones; judges are not asked about those of which that is known before."""
    labels: LabelFile | None = None
    """`path`: a CSV or JSONL file of labels that no run holds (docs/compare.md)."""
    report: CompareReport = CompareReport()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """What the user set of a shared section goes before the sources' own `set`."""
        shared = [tuple(map(str, key)) for key in asked if key[0] in SHARED]
        sources = values.get("sources")
        if not shared or not isinstance(sources, list):
            return values
        return values | {"sources": [_without(source, shared) for source in sources]}

    @field_validator("sources")
    @classmethod
    def _names_of_their_own(cls, sources: list[Source]) -> list[Source]:
        names = [source.title for source in sources]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two sources are called {twice[0]!r}; give one another name")
        runs = [Path(source.run).expanduser().resolve() for source in sources if source.run]
        if again := next((run for run in runs if runs.count(run) > 1), None):
            raise ValueError(f"two sources are the run {str(again)!r}; take one of them out")
        if wrong := [n for n in names if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", n)]:
            raise ValueError(
                f"{wrong[0]!r} cannot name a source; use letters, digits, '.', '_', '-'"
            )
        return sources

    @model_validator(mode="after")
    def _earlier_sources(self) -> CompareConfig:
        earlier: set[str] = set()
        for source in self.sources:
            for key, value in source.set.items():
                if isinstance(value, str) and value.startswith(MADE):
                    name = value.removeprefix(MADE)
                    if name not in earlier:
                        raise ValueError(f"sources: {key}: no source before it is called {name!r}")
            earlier.add(source.title)
        return self

    @property
    def made_of(self) -> Mapping[str, Path]:
        return {source.title: self.folder_of(source) for source in self.sources}

    def folder_of(self, source: Source) -> Path:
        """Where a source's run lies, or will lie."""
        if source.run is not None:
            return Path(source.run).expanduser()
        return self.run_dir / FOLDER / source.title
