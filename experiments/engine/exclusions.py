"""What became of every stored unit: which records hold a value that the run's tables count, why the
others do not, and the faults of the chains that they are about.

Every reader of a run, its tally, tables, views and exports, asks here, so that none shows a record
as measured that another leaves out.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from faithscope.experiments.config.study import Stage, study_of
from faithscope.experiments.engine import planfile
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.units import NOTHING_ASKED, Key, Unit, without_value

Chain = tuple[str, str, str]
"""(model, task, item) of the chain that a unit is about: the last three parts of its key."""


def exclusions_of(run_dir: Path) -> Exclusions:
    """The exclusions of a run folder, shared by all who ask before a file changes, so that the
    tables and the tally of one command read each record once."""
    return _exclusions(run_dir, planfile.stamp(run_dir))


@lru_cache(maxsize=1)
def _exclusions(run_dir: Path, stamp: object) -> Exclusions:
    return Exclusions(run_dir, planfile.counted(run_dir))


class Exclusions:
    """Reasons of exclusion and faults of chains in one run folder, read as they are asked for."""

    def __init__(self, run_dir: Path, index: Index) -> None:
        """
        Args:
            index: the stored units that count.
        """
        self.run_dir, self.index = run_dir, index
        self.stored = stored_config(run_dir)
        study = study_of(self.stored)
        self.stages = study.stages()
        there = ((name, self.stages.get(name)) for name in index.stages)
        self._holding = {name: of.faults for name, of in there if of and of.faults}
        self._faults: dict[Key, frozenset[str]] = {}
        self._outcomes: dict[Key, Mapping[str, str | None]] = {}
        self._alike: dict[tuple[tuple[str, str | None], ...], Mapping[str, str | None]] = {}
        self._alike_faults: dict[frozenset[str], frozenset[str]] = {}
        self._study = study

    def stage(self, name: str) -> Stage:
        """The declaration of a stage; a stage that is not declared leaves nothing out."""
        return self.stages.get(name.partition(".")[0], Stage(name))

    @cached_property
    def given(self) -> Mapping[Chain, frozenset[str]]:
        """Chain -> its faults, for chains that no stage stores (`Study.chains`)."""
        return self._study.chains(self.run_dir)

    def units(self, stages: Collection[str]) -> Iterator[Unit]:
        """Yields the units of some stages, in the order of the files and those that hold chains
        first: whether a record counts depends on its chain, which is then read once."""
        of_chains = [name for name in stages if name in self._holding]
        yield from self.index.each(of_chains)
        yield from self.index.each([name for name in stages if name not in of_chains])

    def faults_by_stage(self, chain: Chain) -> dict[str, frozenset[str]]:
        """Stage -> faults of the chain that it stored, for all chains of an item."""
        keys = [key for name in self._holding if self.index.is_whole(key := (name, *chain))]
        for key in (key for key in keys if key not in self._faults):
            self._keep_faults(key, self.index.records(key))
        return {key[0]: self._faults[key] for key in keys}

    def read_faults(self, chains: Collection[Chain]) -> None:
        """Read many chains, each once and in the order of the files, before `faults` is asked for
        them."""
        with self.index.reader() as read:
            for key, entry in self.index.places(self._holding):
                if entry.failed is None and key[1:] in chains and key not in self._faults:
                    self._keep_faults(key, read(entry).records)

    def _keep_faults(self, key: Key, records: Iterable[Mapping[str, Any]]) -> None:
        faults = frozenset[str]().union(*map(self._holding[key[0]], records))
        self._faults[key] = self._alike_faults.setdefault(faults, faults)

    def each(self, chain: Chain) -> list[frozenset[str]]:
        """The faults of each chain of an item."""
        given = self.given.get(chain)
        return [*self.faults_by_stage(chain).values(), *([] if given is None else [given])]

    def faults(self, chain: Chain) -> frozenset[str]:
        """All faults of the chains of an item."""
        return frozenset().union(*self.each(chain))

    def why(self, key: Key, record: Mapping[str, Any]) -> str | None:
        """Why a record of a unit is in no table of the run; None if it is."""
        stage, reason = self.stage(key[0]), without_value(record)
        return reason or stage.leaves_out(record, self.stored, lambda: self.faults(key[1:]))

    def marked(self, unit: Unit) -> Iterator[dict[str, Any]]:
        """Yields the records of a unit; one that the run's tables leave out although it holds a
        value says why in `excluded`, as others do. Its values stay."""
        stage, model, task, item = map(sys.intern, unit.key)
        key = (stage, model, task, item)
        if stage in self._holding and unit.failed is None:
            self._keep_faults(key, unit.records)
        reasons = [(record, self.why(key, record)) for record in unit.records]
        self._keep(key, reasons)
        for record, reason in reasons:
            left_out = reason and not without_value(record)
            yield record | {"excluded": reason} if left_out else record

    def outcomes(self, key: Key, read: Callable[[], Unit]) -> Mapping[str, str | None]:
        """Variant -> why a stored unit has no value of it; None if some record has one. The variant
        is empty where the reason holds for all.

        Args:
            read: reads the unit, of which nothing is known yet.
        """
        if key not in self._outcomes:
            self._keep(key, ((r, self.why(key, r)) for r in read().records))
        return self._outcomes[key]

    def _keep(self, key: Key, reasons: Iterable[tuple[Mapping[str, Any], str | None]]) -> None:
        of: dict[str, list[str | None]] = {}
        for record, reason in reasons:
            of.setdefault(record.get("variant") or "", []).append(reason)
        found = {name: most_frequent(reasons) for name, reasons in of.items()}
        found = found or {"": NOTHING_ASKED}
        # a run of many items has few outcomes
        self._outcomes[key] = self._alike.setdefault(tuple(found.items()), found)


def most_frequent(reasons: list[str | None]) -> str | None:
    """The most frequent of some reasons; None if one of them is None."""
    return None if None in reasons else Counter(reasons).most_common(1)[0][0]
