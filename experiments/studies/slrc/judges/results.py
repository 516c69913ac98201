"""What judges say in a run: rows of verdicts on chains and steps, and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd

from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.stored_records import Place
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.config.base import AT_HAND
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.engine.forms import TaskForm, trace_forms
from faithscope.experiments.engine.forms.tasks import JudgedTask
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.plan import PROMPTS
from faithscope.experiments.engine.planfile import as_file_name
from faithscope.experiments.engine.planfile import read as read_plan
from faithscope.experiments.engine.units import Key
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.slrc.config import (
    JudgesConfig,
    LabelsConfig,
    ReportConfig,
)
from faithscope.experiments.studies.slrc.judges import tables
from faithscope.experiments.studies.slrc.judges.asking import Asked
from faithscope.experiments.studies.slrc.judges.chains import (
    JudgedChain,
    chain_of_trace,
    name_of,
    place_of,
    read_judged,
)
from faithscope.experiments.studies.slrc.judges.verdicts import (
    FAILED,
    NO_STEPS,
    NOT_RUN,
    STEP,
    VERDICT,
    Row,
    chain_row,
    measured,
    step_rows,
)
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.probes.record import Record

TEXTS = frozenset(["system", "asked", "requested", "text", "thinking", "problem", "values"])
"""Text fields of a judge's record (its prompt and reply), which are dropped since no table uses
them."""


class Known(NamedTuple):
    """What is known of a chain besides what judges say of it."""

    chain: JudgedChain
    place: Mapping[str, Any]
    """Its columns `scores.PLACE`; a chain that no model reads has no task."""
    counted_as: tuple[str, str]
    """Model and task that it is counted by: those of its trace, or its writer and data set."""
    excluded: str | None = None
    """Why its trace is excluded, and so is not judged."""


@dataclass(frozen=True)
class JudgeResults:
    """Verdicts of the judges of one run, and tables of them; empty for a run without judges.

    It needs neither the judges nor the original file of the chains.
    """

    run: Run

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """The config as stored in the run folder."""
        return stored_config(self.run.path)

    @cached_property
    def judges(self) -> JudgesConfig | None:
        """The judges of the run, and what they are asked; None for a run without judges."""
        section = self.stored.get("judges")
        return section and JudgesConfig.model_validate(section, context={AT_HAND: False})

    @cached_property
    def good(self) -> Sequence[str]:
        """Names of labels whose true means that all is well."""
        return LabelsConfig.model_validate(self.stored.get("labels") or {}).good

    @cached_property
    def report(self) -> ReportConfig:
        """Settings of the report."""
        return ReportConfig.model_validate(self.stored.get("report") or {})

    @property
    def has_readers(self) -> bool:
        """Whether a model writes or reads the chains; without one, judges alone do."""
        return bool((self.stored.get("model") or {}).get("name"))

    @cached_property
    def stages(self) -> dict[str, Asked]:
        """Stage of a planned unit -> judge, form and reading. A judge is named as in its records,
        so that a run is read where its config names the model otherwise."""
        if self.judges is None:
            return {}
        known = [*self.judges.model, *(asked.judge for asked, _ in self.records)]
        judges = {as_file_name(name): name for name in known}
        stages = {}
        for stage in dict.fromkeys(key[0] for key in self._planned):
            base, _, rest = stage.partition(".")
            form = next((f for f in self.judges.form_names if rest.endswith(f".{f}")), None)
            if base in READINGS and form is not None:
                judge = rest.removesuffix(f".{form}")
                stages[stage] = Asked(READINGS[base], judges.get(judge, judge), form)
        return stages

    @cached_property
    def _planned(self) -> Sequence[Key]:
        """Keys of all planned units, in the order of the plan."""
        planned = read_plan(self.run.path)
        return sorted(self.run.index) if planned is None else list(planned.by_key)

    @cached_property
    def forms(self) -> dict[str, TaskForm]:
        """The forms that judges are asked with, by name.

        Raises:
            StoreError: no judge was asked anything yet.
        """
        if self.judges is None:
            return {}
        if not (self.run.path / PROMPTS).is_dir():
            raise StoreError(
                f"{self.run.path}: nothing is judged there yet, and there is nothing to tell; "
                "`faithscope run` goes on with it"
            )
        known = trace_forms(self.run.path / PROMPTS, any_name=True)
        return {name: known[name] for name in self.judges.form_names}

    @cached_property
    def tasks(self) -> dict[str, JudgedTask]:
        """Name of a form, or `FORM.FIELD` -> how its verdicts are read."""
        return {name: t for form in self.forms.values() for name, t in form.of_name.items()}

    @cached_property
    def known(self) -> dict[str, Known]:
        """What is known of the chains of a run with judges, by `name_of`."""
        if self.judges is None:
            return {}
        if not self.has_readers:
            return {
                name: Known(chain, place_of(chain), (chain.model, chain.dataset))
                for name, chain in read_judged(self.run.path).items()
            }
        return {
            name_of(r): Known(chain_of_trace(r), place(r), (r["model"], r["task"]), r["excluded"])
            for r in self.run.records("trace")
        }

    @cached_property
    def chains(self) -> dict[str, JudgedChain]:
        """The chains of a run with judges, by `name_of`."""
        return {name: of.chain for name, of in self.known.items()}

    @cached_property
    def records(self) -> dict[tuple[Asked, str], list[Record]]:
        """(judge, form and reading; name of a chain) -> records of replies, without their texts."""
        of_unit: dict[tuple[Asked, str], list[Record]] = {}
        for r in self.run.records(*READINGS):
            asked = Asked(READINGS[r["probe"]], r["judge"], r["variant"])
            kept = {name: value for name, value in r.items() if name not in TEXTS}
            if (form := self.forms.get(r["variant"])) and len(form.own) > 1:
                kept["values"] = {n: v for n, v in r["values"].items() if n in form.own}
            of_unit.setdefault((asked, self.name_of(r)), []).append(kept)
        return of_unit

    @property
    def of_prefixes(self) -> dict[str, tuple[str, dict[Place, list[Record]]]]:
        """Line of a judge -> its form about prefixes, and the records of each chain."""
        lines: dict[str, tuple[str, dict[Place, list[Record]]]] = {}
        for (asked, _), records in self.records.items():
            own = self.tasks[asked.form].own
            if own is not None and own.each == "prefix":
                line = f"{asked.form}, {asked.reading} ({asked.judge})"
                of_chains = lines.setdefault(line, (asked.form, {}))[1]
                of_chains[tuple(records[0][k] for k in ("model", "task", "item"))] = records
        return lines

    @cached_property
    def outcomes(self) -> dict[str, dict[str, bool]]:
        """Name of a chain -> outcomes of measures that judges are compared with, as with labels."""
        found: dict[str, dict[str, bool]] = {}
        for probe, report in REPORTS.items() if self.has_readers else ():
            if report.outcomes is None:
                continue
            of_chains: dict[str, list[Record]] = {}
            for record in self.run.records(probe):
                if not record.get("excluded"):
                    of_chains.setdefault(name_of(record), []).append(record)
            for name, records in of_chains.items():
                found.setdefault(name, {}).update(report.outcomes.read(records))
        return found

    def name_of(self, record: Record) -> str:
        """Name of the chain that a record is about."""
        return name_of(record) if self.has_readers else record["item"]

    @cached_property
    def _rows(self) -> tuple[list[Row], list[Row]]:
        """Rows of verdicts on chains, and rows of verdicts on steps."""
        failed = {(u.stage, u.model, u.task, u.item) for u in self.run.failures}
        chains, steps = [], []
        for key, name in self._asked():
            asked = self.stages[key[0]]
            chain, records = self.chains[name], self.records.get((asked, name), [])
            without = self.known[name].excluded or (NOT_RUN if chain.places else NO_STEPS)
            without = FAILED if key in failed else without
            for of in measured(self.forms[asked.form], asked.reading):
                own = of.records(records)
                row = chain_row(name, chain, of, asked, own, without)
                chains.append(row)
                steps += step_rows(chain, row, of, own) if own else ()
        return chains, steps

    def _asked(self) -> Iterator[tuple[Key, str]]:
        """Key and name of every chain that is there and was to be judged, by judge, form and
        reading, in the order of the plan."""
        forms = self.judges.form_names if self.judges else []
        judges = list(dict.fromkeys(asked.judge for asked in self.stages.values()))
        ordered = sorted(
            self.stages,
            key=lambda s: (judges.index(self.stages[s].judge), forms.index(self.stages[s].form)),
        )
        of_stage: dict[str, list[Key]] = {stage: [] for stage in ordered}
        for key in self._planned:
            if key[0] in of_stage:
                of_stage[key[0]].append(key)
        for of in of_stage.values():
            for key in of:
                name = name_of(dict(zip(("model", "task", "item"), key[1:], strict=True)))
                if name in self.chains:
                    yield key, name

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
        """All tables of the judges, by file name; none for a run without judges."""
        if self.judges is None:
            return {}
        how = self.run.bootstrap(self.stored.get("seed", 0), self.report.bootstrap)
        kept, good = self.report.cut == "kept", self.good
        every = pd.DataFrame(self.verdicts, columns=list(VERDICT))
        verdicts, steps = (
            pd.DataFrame([r for r in of if kept or not r["cut"]], columns=list(names))
            for of, names in ((self.verdicts, VERDICT), (self.steps, STEP))
        )
        labelled = {
            name: replace(c, labels={**c.labels, **self.outcomes.get(name, {})})
            for name, c in self.chains.items()
        }
        frames = {
            "every_verdict": every,
            "verdicts": verdicts,
            "steps": steps,
            "held": tables.held_against_labels(verdicts, steps, labelled, good, self.tasks),
            "located": tables.located(verdicts, self.chains, good),
        }
        return make_tables(tables.TABLES, frames, how)

    @cached_property
    def fates(self) -> pd.DataFrame:
        """What became of every chain with every judge, form and reading (`exclusions.FATES`)."""
        verdicts = [row for row in self.verdicts if row["form"] in self.forms]
        every = pd.DataFrame(verdicts, columns=list(VERDICT))
        counted_as = [self.known[row["chain"]].counted_as for row in verdicts]
        return tables.fates(every, counted_as, self.report.cut == "kept")
