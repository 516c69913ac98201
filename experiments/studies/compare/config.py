"""The config of a comparison: which runs it reads or makes, and how their traces are joined."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_serializer,
    model_validator,
)

from faithscope.experiments.analysis.comparison.headline import Primary
from faithscope.experiments.config.base import FiguresConfig, FolderConfig, OneOrMany, Section
from faithscope.experiments.config.comparison import ComparisonConfig
from faithscope.experiments.config.keys import by_key
from faithscope.experiments.config.yaml_source import Key
from faithscope.interp.errors import did_you_mean

FOLDER = "sources"
"""Folder, below the comparison's run folder, of the runs that the comparison makes itself."""
MOST_SHOWN = 60
"""Number of characters of a value that notes show."""
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
    def reads(self) -> set[str]:
        """Names of the earlier sources whose run folders this source reads."""
        made = (v for v in self.set.values() if isinstance(v, str) and v.startswith(MADE))
        return {value.removeprefix(MADE) for value in made}

    @property
    def title(self) -> str:
        """Name of the source: the one that is set, else the stem of its run folder or config."""
        return self.name or re.sub(r"[^\w.-]", "_", Path(self.run or self.config or "").stem)


def is_above(key: str, other: str) -> bool:
    """Whether a dotted key is another one, or a section or mapping that holds it."""
    return f"{other}.".startswith(f"{key}.")


def _taken(values: dict[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """Values without the one at `key`, and without what is empty then."""
    first, *rest = key
    inner = values.get(first)
    left = _taken(inner, rest) if rest and isinstance(inner, dict) else {}
    kept = {name: value for name, value in values.items() if name != first}
    return kept | {first: left} if left else kept


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def _value_at(values: Any, key: Sequence[str]) -> Any:
    for part in key:
        values = values.get(part) if isinstance(values, dict) else None
    return values


class LabelFile(Section):
    """A file of trace labels that no run holds."""

    path: StrictStr
    """Path of a CSV or JSONL file with a column item, and dataset, task and model where these are
    needed to tell items apart; every other column is a label: 1 or 0 (true or false), empty for no
    label."""


class PrimaryConfig(Section):
    """The primary measure of one kind of evidence."""

    measure: Annotated[list[StrictStr], *OneOrMany]
    """Name of the measure, without the judge; `{framing}` stands for `prefix` and `reprompt`. Of
    several names the first that the runs have is taken, and another one as its repetition."""
    higher_is: Literal["faithful", "unfaithful"]
    """What more of the measure says. It has to be what the measure declares: directions are fixed
    in the code, and a primary measure of the other direction is not used."""


class HeadlineConfig(Section):
    """The comparison that is fixed before any data are seen; all other measures are exploratory. It
    cannot be changed in a run folder that has records."""

    behaviour: PrimaryConfig
    logit: PrimaryConfig
    internal: PrimaryConfig
    judged: PrimaryConfig


class CompareReport(ComparisonConfig, FiguresConfig):
    """Statistical settings of a comparison, and how much its page lists."""

    bootstrap: StrictInt = Field(default=500, ge=10, le=10_000)
    """Number of bootstrap resamples of questions for every interval."""


class CompareConfig(FolderConfig):
    """The settings of a comparison, and keys of its sources' configs that hold for all of them."""

    model_config = ConfigDict(extra="allow")

    SHOWN: ClassVar[tuple[str, ...]] = ("report", "labels", "same", "common")
    FREE: ClassVar[tuple[str, ...]] = (
        *(*FolderConfig.FREE, "report.", "labels.", "labels", "same", "common"),
    )

    benchmark: StrictStr
    """Name of the study: `compare`."""
    sources: list[Source] = Field(min_length=1)
    """The sources to compare, in order. Each has `run`, a run folder, or `config`, a config that is
    run first with the keys in `set` changed; and `name`, its name in tables. Every other key that
    stands beside `sources` (`model.name`, `tasks`, `data.limit`, `seed`, …) is one of the sources'
    configs, and holds for every source that has it and does not change it in its own `set`."""
    set: dict[str, Any] = Field(default={})
    """Keys, dotted as after `--set`, for every source whose config has them; they take precedence
    over the sources' own `set`. What is given by `--set` of keys that are not the comparison's own
    is kept here."""
    same: Literal["ids", "text", "question"] = "text"
    """What two traces of one item must have in common for their scores to be joined in one row."""
    common: StrictBool = False
    """Leave out the traces that some source lacks, so that all measures are compared on the same
    traces; judges are not asked about traces that are known beforehand to be left out."""
    labels: LabelFile | None = None
    """`path`: a CSV or JSONL file of labels that no run holds (`faithscope docs compare`)."""
    headline: HeadlineConfig | None = None
    """The primary measure of each kind of evidence (`behaviour`, `logit`, `internal`, `judged`),
    each with `measure` and `higher_is`, for the table `headline` and the first screen of the page
    (`faithscope docs compare`); null names none."""
    report: CompareReport = CompareReport()

    @classmethod
    def as_asked(
        cls, values: dict[str, Any], asked: Collection[Key], shipped: bool
    ) -> dict[str, Any]:
        """Moves what the user set of the sources' keys into `set`, so that it takes precedence over
        what the sources set themselves."""
        over, left = values.get("set") or {}, values
        for key in asked:
            parts = [str(part) for part in key]
            value = _value_at(left, parts)
            if value is None and _value_at(values, parts) is not None:
                continue  # a later option has set the section as a whole, or part of it
            if parts[0] == "seed":
                over = {**over, "seed": value}
            elif parts[0] not in cls.model_fields and isinstance(over, dict):
                over, left = {**over, ".".join(parts): value}, _taken(left, parts)
        return left | {"set": over} if over else left

    @model_serializer(mode="wrap")
    def _with_a_seed_that_was_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # A stored default would be passed on to sources that have a seed of their own.
        values = dump(self)
        return values if "seed" in self.model_fields_set else {**_taken(values, ["seed"])}

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
            if unknown := sorted(source.reads - earlier):
                raise ValueError(
                    f"sources: {source.title}: no source before it is called {unknown[0]!r}"
                )
            earlier.add(source.title)
        return self

    @model_validator(mode="after")
    def _keys_for_no_source(self) -> CompareConfig:
        said = [*self.shared, *(key for key in self.set if key != "seed")]
        if said and not any(source.config for source in self.sources):
            guess = did_you_mean(said[0], type(self).model_fields)
            known = guess or f"; known here: {', '.join(type(self).model_fields)}"
            raise ValueError(
                f"unknown key {said[0]!r}: all sources are finished runs, which no key changes"
                f"{known}"
            )
        return self

    @property
    def shared(self) -> dict[str, Any]:
        """Dotted key -> value, for every source that has the key and does not set it itself."""
        own = {"seed": self.seed} if "seed" in self.model_fields_set else {}
        return by_key(self.model_extra or {}) | own

    @property
    def notes(self) -> list[str]:
        return [note for source in self.sources for note in self._notes_of(source)]

    def _notes_of(self, source: Source) -> Iterator[str]:
        """Notes on the keys of a source that are not as the comparison or the source says."""
        name = f"source {source.title}"
        if source.run is not None:
            said = list(dict.fromkeys([*self.shared, *self.set]))
            if said:
                yield f"{name}: is a finished run, which {', '.join(said)} does not change"
            return
        own = by_key(source.set)
        for key, value in self.shared.items():
            over = next((k for k in own if is_above(k, key)), None)
            if over is not None and own[over] != value:
                yield (
                    f"{name}: {over} is {_short(own[over])}, which its own set says, and not "
                    f"{key} {_short(value)}, which is said for all sources"
                )
        for key, value in self.set.items():
            for under in (k for k in own if is_above(key, k) or is_above(k, key)):
                if own[under] != value:
                    yield (
                        f"{name}: {key} is {_short(value)}, as set for all sources, in place of "
                        f"{under} {_short(own[under])} in its own set"
                    )

    @property
    def primaries(self) -> dict[str, Primary]:
        """Kind of evidence -> its primary measure; empty where none was named."""
        named = {} if self.headline is None else dict(self.headline)
        return {
            kind: Primary(tuple(of.measure), of.higher_is == "faithful")
            for kind, of in named.items()
        }

    @property
    def made_of(self) -> Mapping[str, Path]:
        return {source.title: self.folder_of(source) for source in self.sources}

    def folder_of(self, source: Source) -> Path:
        """Run folder of a source, whether or not the run exists yet."""
        if source.run is not None:
            return Path(source.run).expanduser()
        return self.run_dir / FOLDER / source.title


CONFIG = CompareConfig
