"""From records to tables: long and tidy, the same bytes for the same records.

The functions ending in `_table` take flat records and give DataFrames; `write_tables`
reads a run folder and writes each as CSV, Markdown and LaTeX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from experiments.config import ReportConfig
from experiments.config.probes import TaxonomyConfig
from experiments.measures import PROBES
from experiments.runs.folder import make_folder, read_environment
from experiments.runs.store import Unit, existing_run, read_failures, read_records, write_atomically
from experiments.tables import stats
from experiments.tables.edits import edits_by_step_table, edits_table
from experiments.tables.exclusions import exclusions_table
from experiments.tables.outcomes import Record
from experiments.tables.paper import paper_tables
from experiments.tables.probes import probe_tables
from experiments.tables.slrc import agreement_table, slrc_table, steps_table
from experiments.tables.textual import to_csv, to_latex, to_markdown


def tables(
    records: Sequence[Record],
    failures: Iterable[Unit] = (),
    *,
    seed: int = 0,
    resamples: int = stats.RESAMPLES,
    taxonomy: TaxonomyConfig | None = None,
) -> dict[str, pd.DataFrame]:
    """Every table by its file name: those of SLRC, and of the other probes that were asked."""
    return {
        "slrc": slrc_table(records, seed=seed, resamples=resamples),
        "edits": edits_table(records, seed=seed, resamples=resamples),
        "edits_by_step": edits_by_step_table(records),
        "agreement": agreement_table(records),
        "exclusions": exclusions_table(records, failures),
        "steps": steps_table(records),
        **probe_tables(records, seed, resamples, taxonomy or TaxonomyConfig()),
    }


def read_run(run_dir: str | Path) -> tuple[list[dict[str, Any]], list[Unit]]:
    """All records that count, and the units that failed."""
    return read_records(run_dir, "trace", *PROBES), read_failures(run_dir)


def report_settings(run_dir: str | Path) -> tuple[int, ReportConfig, TaxonomyConfig]:
    """The seed, and the settings of report and taxonomy, of a run.

    The rest of its config is not asked whether it holds on this machine: a run folder can
    be reported on far from the models and the data it was made with.
    """
    stored = yaml.safe_load((existing_run(run_dir) / "config.yaml").read_text("utf-8"))
    return (
        stored.get("seed", 0),
        ReportConfig.model_validate(stored.get("report") or {}),
        TaxonomyConfig.model_validate(stored.get("taxonomy") or {}),
    )


def run_tables(run_dir: str | Path) -> dict[str, pd.DataFrame]:
    """The tables of a run, with the seed and resamples of its config."""
    seed, settings, taxonomy = report_settings(run_dir)
    records, failures = read_run(run_dir)
    return tables(records, failures, seed=seed, resamples=settings.bootstrap, taxonomy=taxonomy)


def write_tables(run_dir: str | Path) -> dict[str, pd.DataFrame]:
    """Write `tables/<name>.csv`, `.md` and `.tex` of a run; gives the tidy tables by name.

    Beside them `paper_<name>`: the same numbers in the layout of the paper's tables.
    """
    made = run_tables(run_dir)
    folder = make_folder(existing_run(run_dir) / "tables")
    laid_out = paper_tables(made, read_environment(existing_run(run_dir)).get("models"))
    read = {t.name: t.printed for t in laid_out}
    for name, table in (made | {t.name: t.data for t in laid_out}).items():
        for suffix, render in _RENDERERS.items():
            shown = table if suffix == ".csv" else read.get(name, table)
            write_atomically(folder / f"{name}{suffix}", render(shown))
    return made


_RENDERERS: dict[str, Callable[[pd.DataFrame], str]] = {
    ".csv": to_csv,
    ".md": to_markdown,
    ".tex": to_latex,
}
