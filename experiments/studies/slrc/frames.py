"""The frames and tables of a run over traces: `load_run(...).<name>`.

Texts and token ids are nine tenths of a record and no table counts them, so the records that tables
are made of are without them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.removal_units import in_each_unit
from faithscope.experiments.analysis.run import Frame, Run
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.stored_records import (
    Packer,
    Place,
    Record,
    asked_id,
    place_of,
)
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.analysis.traces.exclusions import EXCLUSIONS, exclusions_table
from faithscope.experiments.analysis.traces.frames import TRACE_FRAMES
from faithscope.experiments.engine.folder import read_environment, stored_config
from faithscope.experiments.engine.planfile import read as read_plan
from faithscope.experiments.engine.traces.endings import REPEATING, is_repeating
from faithscope.experiments.engine.traces.given import unread_of
from faithscope.experiments.engine.units import Unit
from faithscope.experiments.garbage import gc_paused
from faithscope.experiments.studies.slrc.config import ReportConfig, RunConfig, TaxonomyConfig
from faithscope.experiments.studies.slrc.detectors import tables as detectors
from faithscope.experiments.studies.slrc.detectors.frames import FRAMES as DETECTOR_FRAMES
from faithscope.experiments.studies.slrc.detectors.results import FaithResults
from faithscope.experiments.studies.slrc.judges import answer_curve
from faithscope.experiments.studies.slrc.judges.frames import FRAMES as JUDGE_FRAMES
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.experiments.studies.slrc.label_probes.run_labels import run_labels
from faithscope.experiments.studies.slrc.label_probes.values import FittedDirection, RunLabels
from faithscope.experiments.studies.slrc.measure_report import Sizes, SlrcAnalysis
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.measures import PROBES_READ, SCORES, all_scores
from faithscope.experiments.studies.slrc.tables.outcomes import (
    ANSWERS,
    LABEL_MASSES,
    label_masses,
)
from faithscope.experiments.studies.slrc.tables.question_rates import (
    COLUMNS as QUESTION_RATES_COLUMNS,
)
from faithscope.experiments.studies.slrc.tables.question_rates import (
    has_samples,
    question_rates,
)
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.experiments.studies.slrc.topics import COMPARED, OF_MEASURES, TOPICS
from faithscope.interventions import function_of
from faithscope.probes import PROBES


def _of_probe(probe: str, frame: Frame) -> Frame:
    """A frame of a probe's report, its rows completed by the record's framing and reading."""

    def rows(record: Record) -> Iterator[dict[str, Any]]:
        way = {name: record[name] for name in ("framing", "reading") if name in record}
        return (way | dict(row) for row in frame.rows(record))

    return replace(frame, rows=rows, stages=(probe,))


FRAMES = (
    *TRACE_FRAMES,
    Frame(
        "measures",
        "A row per item and measure: its score, and its cost.",
        SCORES,
        stages=PROBES_READ,
        make=lambda run: all_scores(run.records(*PROBES_READ)),
    ),
    Frame(
        "question_rates",
        "A row per question with several samples, measure, variant and yes-or-no outcome.",
        QUESTION_RATES_COLUMNS,
        make=lambda run: _question_rates(run),
    ),
    *(_of_probe(s.probe, frame) for s in REPORTS.values() for frame in s.frames),
    *JUDGE_FRAMES,
    *DETECTOR_FRAMES,
)

TEXTS = {"prompt_ids", "pieces", "tail_ids", "tail_text", "origin", "step_text", "corrupted_text"}
"""Fields of a record that no table uses, which are dropped since they take nine tenths of it."""
TEXTS |= {"corruption_rule", "error_text", "reply", "reply_wrong", "reply_own", "reply_error"}
TEXTS |= {"reply_unmodified", "baseline_p"}
TEXTS |= {f"{kind}_{what}" for kind in ANSWERS.values() for what in ("text", "cut", "mass")}


@dataclass(frozen=True)
class Results:
    """The records of a run without their texts, and the tables made of them.

    Settings of report and taxonomy are the stored ones. The rest of the config is not validated, so
    that a run can be reported on without the models and data it was made with.
    """

    run: Run
    failed: Failures = field(default_factory=Failures)
    """Tables and figures of measures that could not be made."""
    directions: dict[str, list[FittedDirection]] = field(default_factory=dict)
    """Probe -> directions that its tables fitted to hidden states, once `tables` are made."""

    @cached_property
    def stored(self) -> Mapping[str, Any]:
        """The config as stored in the run folder."""
        return stored_config(self.run.path)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Records of trace and probes, sorted by unit so that their order does not depend on the
        run's history; records of too little label mass are marked as excluded."""
        packer = Packer(without=TEXTS)
        with gc_paused():
            without_texts = sorted(
                (
                    (
                        unit.key,
                        [_without_texts(r, packer) for r in self.run.exclusions.marked(unit)],
                    )
                    for unit in self.run.exclusions.units(("trace", *PROBES))
                ),
                key=lambda unit: unit[0],
            )
            return tuple(r for _, of_unit in without_texts for r in of_unit)

    @cached_property
    def probes(self) -> tuple[str, ...]:
        """Names of the probes in the run's config."""
        named = self.stored.get("probes", RunConfig.model_fields["probes"].default)
        return (named,) if isinstance(named, str) else tuple(named)

    @property
    def has_readers(self) -> bool:
        """Whether a model writes or reads the chains; without one, judges alone do."""
        return self.judged.has_readers

    @property
    def detects(self) -> bool:
        """Whether the run has detectors."""
        return self.stored.get("detectors") is not None

    @property
    def detected(self) -> FaithResults:
        """What detectors find in the run."""
        return self.run.once(FaithResults)

    @property
    def judged(self) -> JudgeResults:
        """What judges say in the run."""
        return self.run.once(JudgeResults)

    @cached_property
    def report(self) -> ReportConfig:
        return ReportConfig.model_validate(self.stored.get("report") or {})

    @cached_property
    def taxonomy(self) -> TaxonomyConfig:
        return TaxonomyConfig.model_validate(self.stored.get("taxonomy") or {})

    @cached_property
    def sizes(self) -> Sizes:
        """Model -> size: as counted when its weights were loaded, else as given in the config."""
        counted = read_environment(self.run.path).get("models", {})
        configured = {name: size.sizes for name, size in self.report.parameters.items()}
        return configured | {name: m for name, m in counted.items() if m.get("parameters")}

    @cached_property
    def labels(self) -> RunLabels:
        """The labels of the run's chains and steps by name."""
        return run_labels(self.run, self.records)

    @cached_property
    def analysis(self) -> SlrcAnalysis:
        """What tables need besides frames."""
        # Without a limit every probe measures every item, and the plan need not be read.
        limited = any((self.stored.get(probe) or {}).get("limit") for probe in PROBES)
        planned = read_plan(self.run.path) if limited else None
        return SlrcAnalysis(
            self.stored.get("seed", 0),
            self.report.bootstrap,
            self.run.arrays,
            lambda probe: PROBES[probe].settings.model_validate(self.stored.get(probe) or {}),
            self.taxonomy,
            self.sizes,
            self.report.groups,
            self.report.pairs,
            (lambda key: True) if planned is None else planned.by_key.__contains__,
            lambda: self.labels,
            self.directions,
            self.failed,
            of_items=self.run.groups,
        )

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables of the run, by file name."""
        spent = {"spend": spend_table(self.run.calls)} if self.run.calls else {}
        unread = unread_of(self.run.path)
        made = {}
        if self.has_readers:
            made = tables_of(self.records, self.run.failures, self.analysis, unread)
        if self.judged.judges is not None:
            made |= self.judged.tables
            made |= self._answer_curve(made) if self.has_readers else {}
            lost = EXCLUSIONS.make(self.judged.fates)
            made["exclusions"] = pd.concat([made["exclusions"], lost]) if self.has_readers else lost
        if self.detects:
            made |= detectors.tables_of(self.detected)
            lost = EXCLUSIONS.make(detectors.fates(self.detected))
            made["exclusions"] = pd.concat([made["exclusions"], lost])
        return made | spent

    def _answer_curve(self, made: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Tables of the answer along the reasoning, by measures and by judges of prefixes."""
        judged = self.judged.of_prefixes
        if not judged:
            return {}
        measured: dict[Place, dict[str, np.ndarray]] = {}
        for probe, report in REPORTS.items():
            if (lines := report.answer_lines) is None or probe not in self.probes:
                continue
            known = {place_of(r): r for r in self.records if r["probe"] == probe}
            for place, arrays in self.run.arrays(probe):
                if not known.get(place, {"excluded": "unknown"}).get("excluded"):
                    measured.setdefault(place, {}).update(lines(known[place], arrays))
        others = [
            row
            for probe, report in REPORTS.items()
            if report.answer_line_of is not None and probe in made
            for row in report.answer_line_of(made[probe])
        ]
        traces = [r for r in self.records if r["probe"] == "trace"]
        tasks = {line: self.judged.tasks[form] for line, (form, _) in judged.items()}
        records = {line: of for line, (_, of) in judged.items()}
        how = self.run.bootstrap(self.stored.get("seed", 0), self.report.bootstrap)
        return answer_curve.tables(traces, measured, records, tasks, others, how)


def tables_of(
    records: Sequence[Record],
    failures: Iterable[Unit] = (),
    analysis: SlrcAnalysis | None = None,
    unread: Mapping[tuple[str, str], int] | None = None,
) -> dict[str, pd.DataFrame]:
    """All tables by file name: those of SLRC, and those of other probes with records.

    Tables about steps have one row per unit of removal. A measure's table that cannot be made for
    one unit is made for none (`SlrcAnalysis.failed`).
    """
    analysis = analysis or SlrcAnalysis()
    failed, frames = analysis.failed, Sources(records, analysis.failed)
    masses = label_masses(records)
    of_units = {unit: of_topics(own, analysis) for unit, own in frames.units().items()}
    made = {
        **in_each_unit(of_units),
        "exclusions": exclusions_table(records, failures, analysis.is_planned, unread),
        **({LABEL_MASSES.name: masses} if len(masses) else {}),
        **of_topics(frames, analysis, over_steps=False),
    }
    return {n: t for n, t in made.items() if failed is None or ("table", n) not in failed}


def of_topics(
    frames: Sources, analysis: SlrcAnalysis, over_steps: bool = True
) -> dict[str, pd.DataFrame]:
    """Tables of topics, either those about steps (for the frames of one unit of removal) or the
    others."""
    asked = (t for t in TOPICS if t.over_steps == over_steps and t.configured(analysis))
    made: dict[str, pd.DataFrame] = {}
    for topic in (t for t in asked if t.when(frames)):
        # the study's own figures and page need its own tables
        failed = analysis.failed if topic in OF_MEASURES or topic in COMPARED else None
        made = make_tables(topic.tables, frames, analysis, failed, made)
    return made


def _of_question(question: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """What tables need of the question of a trace that is one of several samples."""
    if not (asked := asked_id(question)):
        return {}
    labels = (record["origin"].get("given") or {}).get("labels", {})
    return {"asked_id": asked, "gold": question["gold"], "labels": labels}


def _question_rates(run: Run) -> pd.DataFrame:
    results = run.once(Results)
    return question_rates(results.records if has_samples(results.records) else ())


def _without_texts(record: dict[str, Any], packer: Packer) -> Record:
    if record["probe"] == "trace":
        numbers = {name: value for name, value in record.items() if name not in TEXTS}
        question = numbers.pop("question", None) or {}
        if of_pair := question.get("of_pair"):
            numbers |= {"pair": of_pair["name"], "reversed": of_pair["reversed"]}
        numbers |= _of_question(question, record)
        numbers[REPEATING] = is_repeating(record)
        numbers["reasoning_ids"] = array("q", record["reasoning_ids"])
        numbers["steps"] = [
            packer.record(
                {k: v for k, v in s.items() if k != "text"} | {"function": function_of(s["text"])}
            )
            for s in record["steps"]
        ]
        return packer.record(numbers)
    return packer.record(record)
