"""Results of a run of judges on given chains: rows of verdicts, and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import pandas as pd

from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.engine.forms import TaskForm, trace_forms
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.plan import PROMPTS
from faithscope.experiments.engine.planfile import read as read_plan
from faithscope.experiments.engine.units import Key
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.judge import tables
from faithscope.experiments.studies.judge.chains import FILE, JudgedChain, read_judged
from faithscope.experiments.studies.judge.config import JudgeStudyConfig
from faithscope.experiments.studies.judge.verdicts import (
    FAILED,
    NO_STEPS,
    NOT_JUDGED,
    STEP,
    VERDICT,
    Row,
    chain_row,
    step_rows,
)
from faithscope.probes.record import Record

TEXTS = frozenset(["system", "asked", "requested", "text", "thinking", "problem", "values"])
"""Text fields of a judge's record (its prompt and reply), which are dropped since no table uses
them."""


@dataclass(frozen=True)
class JudgeResults:
    """Verdicts and tables of one run of judges."""

    run: Run
    config: JudgeStudyConfig
    chains: dict[str, JudgedChain]
    forms: dict[str, TaskForm]

    @cached_property
    def _rows(self) -> tuple[list[Row], list[Row]]:
        """Rows of verdicts on chains, and rows of verdicts on steps."""
        of_unit: dict[Key, list[Record]] = {}
        for r in self.run.records(*READINGS):
            key = (r["probe"], r["judge"], r["variant"], r["item"])
            kept = {name: value for name, value in r.items() if name not in TEXTS}
            of_unit.setdefault(key, []).append(kept)
        failed = {(u.stage, u.model, u.task, u.item) for u in self.run.failures}
        chains, steps = [], []
        for key, form, chain in self._asked():
            reading, judge = READINGS[key[0]], key[1]
            records = of_unit.get(key, [])
            without = FAILED if key in failed else NOT_JUDGED if chain.places else NO_STEPS
            row = chain_row(chain, form, reading, judge, records, without)
            chains.append(row)
            steps += step_rows(chain, row, records) if records else ()
        return chains, steps

    def _asked(self) -> Iterator[tuple[Key, TaskForm, JudgedChain]]:
        """Key, form and chain of everything that was to be judged, in the order of the plan."""
        planned = read_plan(self.run.path)
        keys = sorted(self.run.index) if planned is None else planned.by_key
        for key in keys:
            if key[0] in READINGS:
                yield key, self.forms[key[2]], self.chains[key[3]]

    @property
    def verdicts(self) -> list[Row]:
        """One row per judge, reading, form and chain."""
        return self._rows[0]

    @property
    def steps(self) -> list[Row]:
        """One row per judge, reading, form and step that the form gives a verdict on."""
        return self._rows[1]

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the run, by file name."""
        how = Bootstrap(self.config.seed, self.config.report.bootstrap)
        kept = self.config.report.cut == "kept"
        spent = {"spend": spend_table(self.run.calls)} if self.run.calls else {}
        every = pd.DataFrame(self.verdicts, columns=list(VERDICT))
        verdicts, steps = (
            pd.DataFrame([r for r in of if kept or not r["cut"]], columns=list(names))
            for of, names in ((self.verdicts, VERDICT), (self.steps, STEP))
        )
        frames = {
            "every_verdict": every,
            "verdicts": verdicts,
            "steps": steps,
            "held": tables.held_against_labels(verdicts, steps, self.chains, self.config.good),
            "located": tables.located(verdicts, self.chains, self.config.good),
            "fates": tables.with_fates(every, kept),
        }
        return make_tables(tables.TABLES, frames, how) | spent


def results(run: Run) -> JudgeResults:
    """Loads the results of a run; needs neither the judges nor the original file of the chains.

    Raises:
        StoreError: no judge was asked anything yet.
    """
    if not ((run.path / FILE).is_file() and (run.path / PROMPTS).is_dir()):
        raise StoreError(
            f"{run.path}: nothing is judged there yet, and there is nothing to tell; "
            "`faithscope run` goes on with it"
        )
    config = cast("JudgeStudyConfig", run.config)
    known = trace_forms(run.path / PROMPTS)
    forms = {name: known[name] for name in config.forms}
    return JudgeResults(run, config, read_judged(run.path), forms)
