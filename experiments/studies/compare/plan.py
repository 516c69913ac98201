"""The runs that a comparison makes itself: their configs, their plans, and their state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.keys import (
    as_overrides,
    by_key,
    has_key,
    keys_of,
    section_at,
)
from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.shipped import config_path
from faithscope.experiments.config.study import study_of
from faithscope.experiments.config.yaml_source import read_tree
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import Shard, is_finished, is_whole
from faithscope.experiments.engine.run import plan as run_plan
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.tallies.tally import Tally, tally_of_run
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.compare.config import (
    FOLDER,
    MADE,
    CompareConfig,
    Source,
)
from faithscope.experiments.studies.compare.reading import readable_labels
from faithscope.experiments.studies.compare.work import STAGE, Made, SourceWork
from faithscope.interp.errors import UserError, did_you_mean


@dataclass(frozen=True)
class ComparePlan(RunPlan[CompareConfig, Made]):
    """The runs that a comparison makes itself, in order; each has a run folder of its own."""

    @property
    def batch_size(self) -> int:
        return 1

    @property
    def configs(self) -> list[FolderConfig]:
        return [item.config for item in self.items]

    def lines(self, index: Index) -> list[str]:
        table: list[tuple[Any, ...]] = [("source", "of", "state")]
        made = {item.item: item for item in self.items}
        for source in self.config.sources:
            if item := made.get(source.title):
                state = "is made" if is_finished(index, item) else "is still to be made"
            else:
                state = "is read"
            table.append((source.title, source.run or source.config, state))
        lines = ["", *columns(table)]
        for item in self.items:
            of_run = self._plans[item.item]
            summary = of_run if isinstance(of_run, str) else of_run.summary()
            lines += ["", f"source {item.item}", *summary.split("\n")]
            lines += [f"note: {note}" for note in item.config.notes]
        return lines

    def forecast(self) -> Tally:
        """Combined forecast of the sources still to be made, and tallies of those already
        finished."""
        parts = {}
        for title, folder in self.config.made_of.items():
            of_run = self._plans.get(title)
            if of_run is None:
                parts[title] = tally_of_run(folder)
            elif not isinstance(of_run, str):
                parts[title] = of_run.forecast()
        return Tally(0, 0, 0, {}, parts=parts, ahead=True)

    @cached_property
    def _plans(self) -> dict[str, RunPlan[Any, Any] | str]:
        """Source name -> the plan of its run, or a sentence saying that it reads a source not made
        yet."""
        return {item.item: _plan_of(item) for item in self.items}

    def work(self, store: Store, shard: Shard) -> SourceWork:
        """Worker that makes the runs still to be made, or its shard of each of them."""
        return SourceWork(self.items, store, shard)


def plan(config: CompareConfig) -> ComparePlan:
    """Plans the runs to make: loads and checks the config of each source that has one.

    Raises:
        ConfigError: one cannot be read, or is of a study that has no scores.
    """
    if config.labels is not None:
        readable_labels(config.labels.path, "labels.path")
    made = []
    to_make = [source for source in config.sources if source.config is not None]
    kinds = [_kind(source) for source in to_make]
    _check_shared(config, kinds)
    configs = [
        _config_of(config, source, kind) for source, kind in zip(to_make, kinds, strict=True)
    ]
    for source, of_run in zip(to_make, configs, strict=True):
        settings = of_run.model_dump(mode="json", exclude=set(of_run.FREE) & {"out", "name"})
        unit = UnitIds(stage=STAGE, name=source.title).of(config=settings)
        made.append(Made(source, of_run, {STAGE: unit}))
    return ComparePlan(config, tuple(made))


class _Kind(NamedTuple):
    """The kind of a source's config."""

    config: type[FolderConfig]
    without: frozenset[str]
    """Sections of models that the source does without (`FolderConfig.OPTIONAL`)."""

    def takes(self, key: str) -> bool:
        """Whether the source takes a key that is said for all sources."""
        parts = key.split(".")
        return has_key(self.config, parts) and parts[0] not in self.without


def _check_shared(config: CompareConfig, kinds: Sequence[_Kind]) -> None:
    """Check that some source has every key that is said for all of them.

    Raises:
        ConfigError: no source has a key; one line per key, with the nearest one.
    """
    problems = []
    for where, said in (("", config.shared), ("--set ", by_key(config.set))):
        for key in said:
            if not any(kind.takes(key) for kind in kinds):
                known = [
                    *type(config).model_fields,
                    *(k for kind in kinds for k in keys_of(kind.config)),
                ]
                first = key.partition(".")[0]
                sections = [name for name in known if "." not in name]
                guess = (
                    did_you_mean(key, known) if first in sections else did_you_mean(first, sections)
                )
                guess = guess or "; take it out, or put it into the set of a source"
                problems.append(f"{where}{key}: no source has this key{guess}")
    if problems:
        raise ConfigError(problems)


def _plan_of(item: Made) -> RunPlan[Any, Any] | str:
    read = getattr(getattr(item.config, "traces", None), "path", None)
    own = item.config.run_dir.parent
    if read and own in Path(read).parents and not (Path(read).is_dir() and is_whole(Path(read))):
        return f"reads {read}, which is made before it"
    with _named(item.source):
        return run_plan(item.config)


def _config_of(config: CompareConfig, source: Source, kind: _Kind) -> FolderConfig:
    shared = config.shared
    values = {key: value for key, value in shared.items() if kind.takes(key)}
    sections = {key.partition(".")[0] for key in values}
    for key, value in source.set.items():
        # A section that a source sets as a whole keeps the keys that are said for all sources.
        own = by_key({key: value}) if key in sections else {key: value}
        values = {k: v for k, v in values.items() if k not in own}
        values |= {name: _folder(config, v) for name, v in own.items()}
    for key, value in config.set.items():
        if not kind.takes(key):
            continue
        section = section_at(kind.config, key.split("."))
        if section is not None and isinstance(value, dict) and value:
            value = {name: v for name, v in value.items() if name in section.model_fields}
            if not value:
                continue
        values = {k: v for k, v in values.items() if k != key} | {key: value}
    values |= {"name": source.title, "out": str(config.run_dir / FOLDER)}
    with _named(source):
        return load_config(source.config or "", as_overrides(values))


def _kind(source: Source) -> _Kind:
    """Config class of the study that a source's config belongs to, and what it does without."""
    with _named(source):
        tree = read_tree(config_path(source.config or ""), [])
        kind = study_of(tree.values, tree).config()
    if issubclass(kind, CompareConfig):
        raise ConfigError([f"source {source.title!r}: {source.config} is itself a comparison"])
    own = by_key(source.set)
    stated = {k: v for k, v in by_key(tree.values).items() if k.partition(".")[0] not in own} | own
    optional = kind.OPTIONAL.items()
    return _Kind(kind, frozenset(s for s, key in optional if not stated.get(f"{s}.{key}")))


@contextmanager
def _named(source: Source) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise ConfigError(
            [f"source {source.title!r}: {line}" for line in str(error).split("\n")]
        ) from error


def _folder(config: CompareConfig, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(MADE):
        return value
    name = value.removeprefix(MADE)
    return str(config.folder_of(next(s for s in config.sources if s.title == name)))
