"""Results of a run of C2-Faith: the tidy frames that its tables are made from, and the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pandas as pd

from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.data.saved import MANIFEST
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.plan import BENCHMARK, PROMPTS
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.c2faith.benchmark.features import features
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.inside import INTERNALS, inside_rows, not_inside
from faithscope.experiments.studies.c2faith.judgements import (
    TEXTS,
    USAGE,
    Row,
    in_frame,
    is_varied,
    judgement,
    lost_judgements,
    task_frames,
)
from faithscope.experiments.studies.c2faith.prompts import TaskForm, judge_forms
from faithscope.experiments.studies.c2faith.tables.every_table import COUNTED, OF_RUN, tables
from faithscope.experiments.studies.c2faith.tables.frames import WAY, Frames
from faithscope.experiments.studies.c2faith.units import INSIDE
from faithscope.interventions import middle_region
from faithscope.probes.broken_step import ANSWERS
from faithscope.probes.judge.forced import was_cut

Record = dict[str, Any]


@dataclass(frozen=True)
class C2Results:
    """Results of a run, without its texts."""

    run: Run
    config: C2FaithConfig
    benchmark: Benchmark
    forms: dict[str, TaskForm]
    judged: list[Row]
    """The judgements of the benchmark's own items (`judgements.judgement`)."""
    varied: list[Row]
    """The judgements of asks that an addition varies, which are in no table of the study."""
    inside: list[Record]
    """Records of models' internals, two for each item."""

    @cached_property
    def frames(self) -> Frames:
        """Frames that the tables are made from."""
        scores, places = inside_rows(self.inside, self._region)
        return Frames(
            **task_frames(self.judged, self._region, self.config.reference),
            features=features(self.benchmark.causal),
            internals=pd.DataFrame(scores),
            internals_localisation=pd.DataFrame(places),
        )

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name."""
        how = self.run.bootstrap(self.config.seed, self.config.report.bootstrap)
        all_tables = tables(
            self.frames, seed=how.seed, resamples=how.resamples, groups=how.of_items
        )
        scored = [in_frame(row) for row in self.judged if row["reading"] == "scored"]
        of_run = {
            "scored": pd.DataFrame(scored, columns=[*WAY, "chain", "mass"]).astype({"mass": float}),
            "left_out": self._left_out(),
            "asked": self._asked(),
        }
        all_tables |= make_tables(OF_RUN, of_run, how)
        return all_tables | {"spend": spend_table(self.run.calls)}

    def _region(self, n_steps: int) -> range:
        """The steps of a chain among which its target was drawn."""
        settings = self.benchmark.made_of["settings"]
        return middle_region(n_steps, settings["low"], settings["high"])

    def _left_out(self) -> pd.DataFrame:
        """A row per solution, chain, judgement or signal that is in no estimate."""
        rows: list[tuple[str, str, str, str]] = [
            ("", o.stage, o.reason, o.id) for o in self.benchmark.left_out
        ]
        rows += [
            (r["judge"], f"{_asked(r)}.{r['reading']}", r["outcome"], r["ask"])
            for r in (*self.judged, *self.varied)
            if r["outcome"] != "parsed"
        ]
        rows += [
            (model, INTERNALS, reason, item.id)
            for item in self.benchmark.causal
            if (reason := not_inside(item)) is not None
            for model in self.config.internals.model
        ]
        rows += [
            (r["model"], f"{INTERNALS}.{signal}", "no_stated_answer", r["item"])
            for r in self.inside
            # an item has two records with the same answer
            if r["condition"] == "control" and r["answer"] is None
            for signal in ANSWERS
            if signal in self.config.internals.signals
        ]
        rows += [
            (u.model, u.task, "failed", u.item)
            for u in self.run.failures
            if u.stage not in READINGS
        ]
        return pd.DataFrame(rows, columns=["model", "stage", "reason", "item"])

    def _asked(self) -> pd.DataFrame:
        """A row per judgement, with its usage and with what was cut of it."""
        asked = [
            {"model": r["judge"], "prompt": _asked(r), "reading": r["reading"], "n": 1}
            | {"n_text_cut": int(r["text_cut"]), "n_truncated": int(r["outcome"] == "truncated")}
            | {"n_extra_fields": r["extra_fields"]}
            | {name: r[name] for name in USAGE}
            for r in (*self.judged, *self.varied)
        ]
        return pd.DataFrame(asked, columns=["model", "prompt", "reading", *COUNTED])


def results(run: Run) -> C2Results:
    """Reads a run once; models, data and the prompts' folder need not be at hand.

    Raises:
        StoreError: no judge was asked anything yet.
    """
    if not ((run.path / BENCHMARK / MANIFEST).is_file() and (run.path / PROMPTS).is_dir()):
        raise StoreError(
            f"{run.path}: nothing is judged there yet, and there is nothing to tell; "
            "`faithscope run` goes on with it"
        )
    forms = judge_forms(run.path / PROMPTS)
    # the texts are most of a record, and are dropped as each is read
    judged = [_counted(record, forms) for record in run.records(*READINGS)]
    config, benchmark = cast("C2FaithConfig", run.config), Benchmark.load(run.path / BENCHMARK)
    lost = [u for u in run.failures if u.stage in READINGS]
    judged += [_counted(r, forms) for r in lost_judgements(lost, benchmark, forms, config)]
    return C2Results(
        run,
        config,
        benchmark,
        forms,
        [row for row in judged if not is_varied(row)],
        [row for row in judged if is_varied(row)],
        list(run.records(INSIDE)),
    )


def _counted(r: Record, forms: Mapping[str, TaskForm]) -> Row:
    """A judgement without its texts, and without those among its values."""
    form = forms[r["variant"]]
    numbers = {f.name for f in form.form.fields if f.kind != "text"}
    return judgement({k: v for k, v in r.items() if k not in TEXTS}, form) | {
        "values": {name: x for name, x in r["values"].items() if name in numbers},
        "text_cut": r["outcome"] == "parsed" and was_cut(r["problem"]),
    }


def _asked(r: Row) -> str:
    """Name of the judgement's form, and of the variation where the ask was varied."""
    return "+".join((r["variant"], *([r["varied"]] if is_varied(r) else [])))
