"""What a run's records say: read once, for tables, figures and report alike.

Texts and token ids are nine tenths of a record and no table counts them, so they are left
on the disk, where `Results.whole` finds those of one item.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from faithscope.experiments.analysis.by_unit import by_unit
from faithscope.experiments.analysis.records import Place, Record
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.engine.arrays import each
from faithscope.experiments.engine.folder import existing_run, read_environment
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.account import calls_of
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.studies.slrc.config import ReportConfig, RunConfig
from faithscope.experiments.studies.slrc.measures.slice import Sizes, SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.exclusions import exclusions_table
from faithscope.experiments.studies.slrc.tables.outcomes import label_mass_table, without_low_mass
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig
from faithscope.experiments.studies.slrc.topics import TOPICS
from faithscope.probes import PROBES

TEXTS = {"prompt_ids", "pieces", "tail_ids", "tail_text", "origin", "step_text", "corrupted_text"}
TEXTS |= {"corruption_rule", "error_text", "reply", "reply_wrong", "reply_own", "reply_error"}
TEXTS |= {"reply_unmodified"}
"""Fields of a record that no table counts."""


@dataclass(frozen=True)
class Results:
    """The records that count in a run, without their texts, and the units that failed."""

    run_dir: Path
    index: Index
    records: list[Record]
    failures: list[Unit]
    probes: tuple[str, ...]
    """Those that the run asks, as its config names them."""
    seed: int
    report: ReportConfig
    taxonomy: TaxonomyConfig
    stored: Mapping[str, Any]
    """The run's config, as it lies there."""

    @cached_property
    def sizes(self) -> Sizes:
        """Of the models: as counted when their weights were loaded, else as the config tells."""
        counted = read_environment(self.run_dir).get("models", {})
        told = {name: size.sizes for name, size in self.report.parameters.items()}
        return told | {name: m for name, m in counted.items() if m.get("parameters")}

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name."""
        analysis = SlrcAnalysis(
            self.seed,
            self.report.bootstrap,
            lambda probe: ((key[1:], found) for key, found in each(self.index, probe)),
            lambda probe: PROBES[probe].settings.model_validate(self.stored.get(probe) or {}),
            self.taxonomy,
            self.sizes,
        )
        made = tables(self.records, self.failures, analysis)
        if calls := calls_of(self.run_dir):
            made["spend"] = spend_table(calls)
        return made

    def whole(self, place: Place) -> list[Record]:
        """The trace of an item and its SLRC records, texts included."""
        return item_records(self.index, place)


def results(run_dir: str | Path) -> Results:
    """Read a run once.

    The settings of report and taxonomy are the stored ones; the rest of the config is not
    asked whether it holds on this machine: a run folder can be reported on far from the
    models and the data it was made with.
    """
    folder = existing_run(run_dir)
    stored = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    index = counted(folder)
    units = ((u.key, [_counts(r) for r in u.records]) for u in index.each(("trace", *PROBES)))
    report = ReportConfig.model_validate(stored.get("report") or {})
    records = [r for _, of_unit in sorted(units, key=lambda unit: unit[0]) for r in of_unit]
    return Results(
        folder,
        index,
        without_low_mass(records, report.least_label_mass),
        index.failures(),
        _probes(stored),
        stored.get("seed", 0),
        report,
        TaxonomyConfig.model_validate(stored.get("taxonomy") or {}),
        stored,
    )


def tables(
    records: Sequence[Record], failures: Iterable[Unit] = (), analysis: SlrcAnalysis | None = None
) -> dict[str, pd.DataFrame]:
    """Every table by its file name: those of SLRC, and of the other probes that were asked.

    Those over steps, or over items by what their steps do, have a row per unit of removal.
    """
    told = analysis or SlrcAnalysis()
    masses = label_mass_table(records)
    return {
        **by_unit(records, lambda of_unit: of_topics(of_unit, told)),
        "exclusions": exclusions_table(records, failures),
        **({"label_mass": masses} if len(masses) else {}),
        **of_topics(records, told, over_steps=False),
    }


def of_topics(
    records: Sequence[Record], analysis: SlrcAnalysis, over_steps: bool = True
) -> dict[str, pd.DataFrame]:
    """The tables about steps, of the records of one unit of removal; or the others."""
    made: dict[str, pd.DataFrame] = {}
    for topic in TOPICS:
        of_topic = [table for table in topic.tables if table.over_steps == over_steps]
        if of_topic and topic.when(records):
            for table in of_topic:
                made[table.name] = table.make(made[table.of] if table.of else records, analysis)
    return made


def _probes(stored: dict[str, Any]) -> tuple[str, ...]:
    named = stored.get("probes") or RunConfig.model_fields["probes"].default
    return (named,) if isinstance(named, str) else tuple(named)


def item_records(index: Index, place: Place) -> list[Record]:
    """The trace of an item and its SLRC records, as stored."""
    keys = [(stage, *place) for stage in ("trace", "slrc")]
    return [r for key in keys if index.get(key) is not None for r in index.records(key)]


def _counts(record: dict[str, Any]) -> Record:
    """A record without its texts, in less memory: equal words are one object."""
    kept = {name: _packed(value) for name, value in record.items() if name not in TEXTS}
    if record["probe"] == "trace":
        kept.pop("question", None)
        kept["reasoning_ids"] = array("q", record["reasoning_ids"])
        kept["steps"] = [{k: v for k, v in s.items() if k != "text"} for s in record["steps"]]
    return kept


def _packed(value: Any) -> Any:
    if isinstance(value, str):
        return sys.intern(value)
    if isinstance(value, list):
        return tuple(sys.intern(v) if isinstance(v, str) else v for v in value)
    return value
