"""The frames that this study's tables are made of, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import pandas as pd

from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.record_frames import record_frame
from faithscope.experiments.analysis.removal_units import UNITS
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.garbage import gc_paused
from faithscope.experiments.studies.slrc.tables.branch_frame import branch_frame
from faithscope.experiments.studies.slrc.tables.measures import all_scores, all_step_scores
from faithscope.experiments.studies.slrc.tables.question_rates import has_samples, question_rates
from faithscope.probes import PROBES


class Sources(Mapping[str, pd.DataFrame]):
    """Name in `Table.of` -> frame: `trace` and each probe, a row per record; `branches` of SLRC's
    edits; `scores` and `step_scores` of all measures; `question_rates` over samples."""

    def __init__(self, records: Sequence[Record], failed: Failures | None = None) -> None:
        """
        Args:
            failed: takes the measures whose score cannot be computed; without it the first of them
                raises its error.
        """
        self._records: dict[str, list[Record]] = {}
        for record in records:
            self._records.setdefault(record["probe"], []).append(record)
        self._failed = failed
        self._made: dict[str, pd.DataFrame] = {}
        self._makers = {
            "branches": lambda: branch_frame(self._of("trace", "slrc")),
            "scores": lambda: all_scores(self._of(*PROBES), self._failed),
            "step_scores": lambda: all_step_scores(self._of(*PROBES), self._failed),
            "question_rates": lambda: question_rates(self._of("trace", *PROBES)),
            "trace": lambda: record_frame(self._of("trace")),
            **{name: lambda name=name: self._of_probe(name) for name in PROBES},
        }

    @property
    def probes(self) -> set[str]:
        """The probes with records, excluded ones included."""
        return set(self._records)

    @property
    def sampled(self) -> bool:
        """Whether questions have several samples."""
        return has_samples(self._of("trace"))

    @property
    def models(self) -> set[str]:
        """The models with records."""
        return {r["model"] for records in self._records.values() for r in records}

    def tasks(self, probe: str) -> set[str]:
        """The tasks of a probe's records."""
        return {r["task"] for r in self._of(probe)}

    def units(self) -> dict[str, Sources]:
        """Unit of removal -> the frames of its records; a record without a unit counts as
        `given`."""
        of_unit: dict[str, list[Record]] = {}
        for record in self._of(*self._records):
            of_unit.setdefault(record.get("unit", "given"), []).append(record)
        found = {u: Sources(of_unit[u], self._failed) for u in UNITS if u in of_unit}
        return found or {"given": Sources([], self._failed)}

    def _of_probe(self, probe: str) -> pd.DataFrame:
        """A row per record of a probe, with the column `stated`: whether its chain states an answer
        that could be read; None where the chain is not among the records."""
        frame = record_frame(self._of(probe))
        places = zip(frame["model"], frame["task"], frame["item"].astype(str), strict=True)
        return frame.assign(stated=[self._stated.get(place) for place in places])

    @cached_property
    def _stated(self) -> dict[Place, bool]:
        return {place_of(r): r.get("answer") is not None for r in self._of("trace")}

    def _of(self, *probes: str) -> list[Record]:
        return [r for probe in probes for r in self._records.get(probe, ())]

    def __getitem__(self, name: str) -> pd.DataFrame:
        if name not in self._made:
            with gc_paused():
                self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)
