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
"""Folder, below the comparison's run folder, of the runs that the comparison makes itself."""
SHARED = ("traces", "model", "judge")
"""Config sections whose keys a comparison passes on to every source that has the section."""
MADE = "source:"
"""Prefix of a config value that is replaced by the folder of the earlier source named after it."""


class Source(Section):
    """One run to compare: an existing run folder, or a config that is run first."""

    run: StrictStr | None = None
    """Path of an existing run folder."""
    config: StrictStr | None = None
    """A YAML file, or the name of a shipped config, that is run into a folder of the comparison."""
    name: StrictStr = ""
    """Name of the source in tables; by default the folder's or the config's name."""
    set: dict[str, Any] = Field(default={})
    """Keys to change in the source's config, dotted as after `--set`; `source:NAME` stands for the
    folder of an earlier source."""
    digest: StrictStr = ""
    """Digest of the run's config when it was compared; empty in a config that a person writes."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Source:
        if (self.run is None) == (self.config is None):
            raise ValueError("give either run (a run folder) or config (a config to run)")
        if self.run is not None and self.set:
            raise ValueError("set: changes a config before it is run; this source is a run folder")
        return self

    @property
    def title(self) -> str:
        """Name of the source: the one that is set, else the stem of its run folder or config."""
        return self.name or re.sub(r"[^\w.-]", "_", Path(self.run or self.config or "").stem)


def _without(source: Any, shared: Collection[tuple[str, ...]]) -> Any:
    """A source without those keys of its `set` that the comparison sets for all sources."""
    if not isinstance(source, dict) or not isinstance(source.get("set"), dict):
        return source
    own = {tuple(str(key).split(".")): value for key, value in source["set"].items()}
    left = {key: _pruned(value, key, shared) for key, value in own.items()}
    kept = {key: value for key, value in left.items() if not _is_below(key, shared)}
    return source | {"set": {".".join(key): value for key, value in kept.items()}}


def _pruned(value: Any, key: tuple[str, ...], shared: Collection[tuple[str, ...]]) -> Any:
    """A value of a source's `set`, without the nested keys that the comparison sets for all
    sources."""
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
    """A file of trace labels that no run holds."""

    path: StrictStr
    """Path of a CSV or JSONL file with a column item, and dataset, task and model where these are
    needed to tell items apart; every other column is a label: 1 or 0 (true or false), empty for no
    label."""


class CompareReport(Section):
    """Statistical settings of a comparison, and how much its page lists."""

    bootstrap: StrictInt = Field(default=500, ge=10, le=10_000)
    """Number of bootstrap resamples of questions for every interval."""
    folds: StrictInt = Field(default=5, ge=2, le=20)
    """Number of folds that questions are divided into for thresholds, calibration and
    classifiers."""
    false_discovery: StrictFloat = Field(default=0.05, gt=0, lt=1)
    """False discovery rate that Benjamini and Hochberg's procedure controls."""
    as_good: StrictFloat = Field(default=AS_GOOD, gt=0, lt=0.5)
    """Largest deficit in AUROC at which a measure is still called as good as the best one; choose
    it before any data are seen."""
    listed: StrictInt = Field(default=20, ge=1, le=500)
    """Number of items listed for each kind of disagreement."""


class CompareConfig(FolderConfig):
    """The settings of a comparison."""

    SHOWN: ClassVar[tuple[str, ...]] = ("report", "labels", "same", "common")
    FREE: ClassVar[tuple[str, ...]] = (
        *(*FolderConfig.FREE, "report.", "labels.", "labels", "same", "common"),
    )

    benchmark: StrictStr
    """Name of the study: `compare`."""
    sources: list[Source] = Field(min_length=1)
    """The sources to compare, in order. Each has `run`, a run folder, or `config`, a config that is
    run first with the keys in `set` changed; and `name`, its name in tables."""
    traces: dict[str, Any] = Field(default={})
    """Keys of the section `traces`, for every source that has this section, so that all sources
    read the same chains. In a config file a source's own `set` takes precedence; a key given by
    `--set` takes precedence over both."""
    model: dict[str, Any] = Field(default={})
    """Keys of the section `model`, for every source that has this section; precedence as for
    `traces`."""
    judge: dict[str, Any] = Field(default={})
    """Keys of the section `judge`, for every source that has this section; precedence as for
    `traces`."""
    same: Literal["ids", "text", "question"] = "text"
    """What two traces of one item must have in common for their scores to be joined in one row."""
    common: StrictBool = False
    """Leave out the traces that some source lacks, so that all measures are compared on the same
    traces; judges are not asked about traces that are known beforehand to be left out."""
    labels: LabelFile | None = None
    """`path`: a CSV or JSONL file of labels that no run holds (docs/compare.md)."""
    report: CompareReport = CompareReport()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Lets keys of shared sections that the user set explicitly override the sources' own
        `set`."""
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
        """Run folder of a source, whether or not the run exists yet."""
        if source.run is not None:
            return Path(source.run).expanduser()
        return self.run_dir / FOLDER / source.title
