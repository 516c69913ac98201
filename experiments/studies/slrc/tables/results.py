"""What a run's records say: read once, for tables, figures and report alike.

Texts and token ids are nine tenths of a record and no table counts them, so they are left
on the disk, where `Results.whole` finds those of one item.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.by_unit import by_unit
from faithscope.experiments.analysis.records import Place, Record
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.engine.arrays import each
from faithscope.experiments.engine.folder import existing_run, read_environment
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.ledger import calls_of
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import Unit
from faithscope.experiments.studies.slrc.config import ReportConfig, RunConfig
from faithscope.experiments.studies.slrc.measures.slice import Analysis
from faithscope.experiments.studies.slrc.tables.edits import edits_by_step_table, edits_table
from faithscope.experiments.studies.slrc.tables.exclusions import exclusions_table
from faithscope.experiments.studies.slrc.tables.label_mass import label_mass_table, without_low_mass
from faithscope.experiments.studies.slrc.tables.models import Sizes
from faithscope.experiments.studies.slrc.tables.probes import probe_tables, step_tables
from faithscope.experiments.studies.slrc.tables.slrc import agreement_table, slrc_table, steps_table
from faithscope.experiments.studies.slrc.taxonomy_config import TaxonomyConfig
from faithscope.probes import PROBES, Settings

TEXTS = frozenset(
    [
        "prompt_ids",
        "pieces",
        "tail_ids",
        "tail_text",
        "origin",
        "step_text",
        "corrupted_text",
        "corruption_rule",
        "error_text",
        "reply",
        "reply_wrong",
        "reply_own",
        "reply_error",
        "reply_unmodified",
    ]
)
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
        made = tables(
            self.records,
            self.failures,
            seed=self.seed,
            resamples=self.report.bootstrap,
            taxonomy=self.taxonomy,
            sizes=self.sizes,
            arrays=lambda probe: ((key[1:], found) for key, found in each(self.index, probe)),
            settings=self._settings,
        )
        if calls := calls_of(self.run_dir, self.index):
            made["spend"] = spend_table(calls)
        return made

    def _settings(self, probe: str) -> Settings:
        return PROBES[probe].settings.model_validate(self.stored.get(probe) or {})

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
    records: Sequence[Record],
    failures: Iterable[Unit] = (),
    *,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
    taxonomy: TaxonomyConfig | None = None,
    sizes: Sizes | None = None,
    arrays: Callable[[str], Iterable[tuple[Place, Mapping[str, np.ndarray]]]] = lambda probe: (),
    settings: Callable[[str], Settings] = lambda probe: PROBES[probe].settings(),
) -> dict[str, pd.DataFrame]:
    """Every table by its file name: those of SLRC, and of the other probes that were asked.

    Those over steps, or over items by what their steps do, have a row per unit of removal.
    """
    thresholds = taxonomy or TaxonomyConfig()
    analysis = Analysis(seed, resamples, arrays, settings)
    masses = label_mass_table(records)

    def over_steps(of_unit: Sequence[Record]) -> dict[str, pd.DataFrame]:
        return {
            "slrc": slrc_table(of_unit, seed=seed, resamples=resamples),
            "edits": edits_table(of_unit, seed=seed, resamples=resamples),
            "edits_by_step": edits_by_step_table(of_unit),
            "agreement": agreement_table(of_unit),
            "steps": steps_table(of_unit),
            **step_tables(of_unit, analysis, thresholds, sizes),
        }

    return {
        **by_unit(records, over_steps),
        "exclusions": exclusions_table(records, failures),
        **({"label_mass": masses} if len(masses) else {}),
        **probe_tables(records, analysis, over_steps=False),
    }


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
