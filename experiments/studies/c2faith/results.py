"""A run of C2-Faith as the tidy frames that its tables are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from faithscope.experiments.analysis.resampling import Drawing
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.engine.folder import StoreError, existing_run
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.ledger import Line, calls_of
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import Unit
from faithscope.experiments.studies.c2faith.config import C2ReportConfig, InjectionConfig
from faithscope.experiments.studies.c2faith.features import features
from faithscope.experiments.studies.c2faith.injected_rows import injected_rows, is_injected
from faithscope.experiments.studies.c2faith.inside import inside_rows, not_inside
from faithscope.experiments.studies.c2faith.judgements import READINGS, USAGE, expected_verdict
from faithscope.experiments.studies.c2faith.metrics.frames import WAY, Frames
from faithscope.experiments.studies.c2faith.metrics.mass import mass_table
from faithscope.experiments.studies.c2faith.plan import FOLDER, FORMS
from faithscope.experiments.studies.c2faith.prompts import TaskForm, judge_forms
from faithscope.experiments.studies.c2faith.records import FINAL_SCORE, TEXTS
from faithscope.experiments.studies.c2faith.saved import MANIFEST, Benchmark, load
from faithscope.experiments.studies.c2faith.tables import tables
from faithscope.experiments.studies.c2faith.units import INJECTED, INSIDE, INTERNALS, STAGES
from faithscope.interventions import middle_region
from faithscope.probes.broken_step import ANSWERS, SIGNALS
from faithscope.probes.judge.forced import was_cut

Record = dict[str, Any]


@dataclass(frozen=True)
class C2Results:
    """The records that count in a run, without their texts, and the units that failed."""

    run_dir: Path
    index: Index
    benchmark: Benchmark
    forms: dict[str, TaskForm]
    records: list[Record]
    failures: list[Unit]
    reference: str | None
    internals: tuple[str, ...]
    """The models that are looked into."""
    signals: tuple[str, ...]
    """Which signals are wanted of them."""
    seed: int
    report: C2ReportConfig
    injection: InjectionConfig

    @cached_property
    def judged(self) -> list[Record]:
        """The judgements of the benchmark's own items."""
        return [r for r in self.records if r["probe"] in READINGS and not is_injected(r)]

    @cached_property
    def injected(self) -> list[Record]:
        """The judgements of items with a text put into their chain; in no table but their own."""
        return [r for r in self.records if r["probe"] in READINGS and is_injected(r)]

    @cached_property
    def calls(self) -> list[Line]:
        """Every call to an API, also those that gave no judgement."""
        return calls_of(self.run_dir)

    @cached_property
    def frames(self) -> Frames:
        """One row per judgement."""
        judged = self.judged
        inside = [r for r in self.records if r["probe"] == INSIDE]
        scores, places = inside_rows(inside, self._region)
        return Frames(
            detection=pd.DataFrame(self._detection(judged)),
            localisation=pd.DataFrame(self._localisation(judged)),
            coverage=pd.DataFrame(self._coverage(judged)),
            injection=pd.DataFrame(
                injected_rows(self.injected, judged, self.forms, self.injection.demands)
            ),
            features=features(self.benchmark.causal),
            internals=pd.DataFrame(scores),
            internals_localisation=pd.DataFrame(places),
        )

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name."""
        made = tables(self.frames, seed=self.seed, resamples=self.report.bootstrap)
        how = Drawing(self.seed, self.report.bootstrap)
        return made | {
            "c2_mass": mass_table(self._scored(), how),
            "exclusions": self._exclusions(),
            "usage": self._usage(),
            "spend": spend_table(self.calls),
        }

    def _scored(self) -> pd.DataFrame:
        """The judgements read from log-probs, each with the verdicts' part of the probability."""
        rows = [
            _judgement(r) | {"mass": r["mass"]}
            for r in self.judged
            if READINGS[r["probe"]] == "scored"
        ]
        names = [*WAY, "item", "chain", "outcome", "mass"]
        return pd.DataFrame(rows, columns=names).astype({"mass": float})

    def _of_task(self, records: Iterable[Record], task: str) -> Iterator[Record]:
        return (r for r in records if self.forms[r["variant"]].task == task)

    def _detection(self, judged: list[Record]) -> Iterator[Record]:
        for r in self._of_task(judged, "detection"):
            p = r["probabilities"]
            score = {"condition": r["condition"], "score": r["verdict"]}
            yield _judgement(r) | score | {"p_flag": p[0] if p else None}

    def _localisation(self, judged: list[Record]) -> Iterator[Record]:
        for r in self._of_task(judged, "localisation"):
            p, low = r["probabilities"], self.forms[r["variant"]].form.verdict_field.low or 0
            yield _judgement(r) | {
                "condition": r["condition"],
                "n_steps": r["n_steps"],
                "n_middle": len(self._region(r["n_steps"])),
                "target": r["target"],
                "predicted": r["verdict"],
                "p_target": p[r["target"] - low] if p else None,
                "final_score": r["values"].get(FINAL_SCORE),
                "probabilities": p,
            }

    def _region(self, n_steps: int) -> range:
        """The steps of a chain among which its target was drawn."""
        settings = self.benchmark.made_of["settings"]
        return middle_region(n_steps, settings["low"], settings["high"])

    def _coverage(self, judged: list[Record]) -> Iterator[Record]:
        told = self._references(judged)
        for r in self._of_task(judged, "coverage"):
            form = self.forms[r["variant"]]
            # a reference that was not read this way was read as written
            reference = told.get((r["item"], form.scale, r["probe"]))
            if reference is None:
                reference = told.get((r["item"], form.scale, STAGES["generated"]))
            yield _judgement(r) | {
                "scale": form.scale,
                "level": r["level"],
                "n_middle": r["n_middle"],
                "n_removed": r["n_removed"],
                "score": r["verdict"],
                "expected": expected_verdict(r, form),
                "probabilities": r["probabilities"],
                "reference": reference,
                "reference_judge": self.reference or "",
            }

    def _references(self, judged: list[Record]) -> dict[tuple[str, str, str], float]:
        return {
            (r["item"], self.forms[r["variant"]].scale, r["probe"]): r["verdict"]
            for r in self._of_task(judged, "coverage_reference")
            if r["verdict"] is not None
        }

    def _exclusions(self) -> pd.DataFrame:
        """Everything that is in no estimate: solutions, chains, judgements, signals, with the
        reason."""
        rows: list[tuple[str, str, str, str]] = [
            ("", o.stage, o.reason, o.id) for o in self.benchmark.left_out
        ]
        rows += [
            (r["model"], f"{_asked(r)}.{READINGS[r['probe']]}", r["outcome"], r["item"])
            for r in (*self.judged, *self.injected)
            if r["outcome"] != "parsed"
        ]
        rows += [
            (model, INTERNALS, reason, item.id)
            for item in self.benchmark.causal
            if (reason := not_inside(item)) is not None
            for model in self.internals
        ]
        rows += [
            (r["model"], f"{INTERNALS}.{signal}", "no_stated_answer", r["item"])
            for r in self.records
            # two records an item, of one answer
            if r["probe"] == INSIDE and r["condition"] == "control" and r["answer"] is None
            for signal in ANSWERS
            if signal in self.signals
        ]
        rows += [(u.model, u.task, "failed", u.item) for u in self.failures]
        frame = pd.DataFrame(rows, columns=["model", "stage", "reason", "item"])
        by = ["model", "stage", "reason"]
        counts = frame.groupby(by, sort=True)["item"].agg(n="count", example="first")
        return counts.reset_index()

    def _usage(self) -> pd.DataFrame:
        """Tokens and calls of every judge, form and reading, and what the token limit cut.

        `n_text_cut`: verdicts whose rationale the limit or the model's last position ended, as
        happens where a model is held to the form; `n_truncated`: replies cut off before theirs.
        """
        rows = [
            {"model": r["model"], "prompt": _asked(r), "reading": READINGS[r["probe"]], "n": 1}
            | {"n_text_cut": r["text_cut"], "n_truncated": r["outcome"] == "truncated"}
            | {name: r[name] for name in USAGE}
            for r in (*self.judged, *self.injected)
        ]
        by, cut = ["model", "prompt", "reading"], ["n_text_cut", "n_truncated"]
        made = pd.DataFrame(rows, columns=[*by, "n", *cut, *USAGE])
        summed = made.astype(dict.fromkeys(cut, int)).groupby(by, sort=False).sum()
        return pd.DataFrame(summed).reset_index()


def results(run_dir: str | Path) -> C2Results:
    """Read a run once; models, data and the prompts' folder need not be at hand.

    Raises:
        StoreError: no judge was asked anything yet.
    """
    folder = existing_run(run_dir)
    if not ((folder / FOLDER / MANIFEST).is_file() and (folder / FORMS).is_dir()):
        raise StoreError(
            f"{folder}: nothing is judged there yet, and there is nothing to tell; "
            "`faithscope run` goes on with it"
        )
    stored = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    inside = stored.get("internals") or {}
    index = counted(folder)
    forms = judge_forms(folder / FORMS)
    # the texts are most of a record, and are dropped as each is read
    found = [
        (unit.key, [r if r["probe"] == INSIDE else _counted(r, forms) for r in unit.records])
        for unit in index.each((*READINGS, INSIDE))
    ]
    return C2Results(
        folder,
        index,
        load(folder / FOLDER),
        forms,
        [r for _, records in sorted(found, key=lambda f: f[0]) for r in records],
        index.failures(),
        stored.get("reference"),
        # as it is stored: those models need not be at hand
        tuple(inside.get("model", ())),
        tuple(inside.get("signals", SIGNALS)),
        stored.get("seed", 0),
        C2ReportConfig.model_validate(stored.get("report") or {}),
        InjectionConfig.model_validate(stored.get("injection") or {}),
    )


def _counted(r: Record, forms: Mapping[str, TaskForm]) -> Record:
    """A judgement without its texts: what tables count, also of what stands in the texts.

    Records of runs from before there were `values` have none.
    """
    fields = forms[r["variant"]].form.fields
    given = r.get("values", {})
    return {k: v for k, v in r.items() if k not in TEXTS} | {
        "values": {f.name: given[f.name] for f in fields if f.kind != "text" and f.name in given},
        "text_cut": r["outcome"] == "parsed" and was_cut(r["problem"]),
    }


def _asked(r: Record) -> str:
    """The form, and whether something was put into the chain."""
    return r["variant"] + (INJECTED if is_injected(r) else "")


def _judgement(r: Record) -> Record:
    return {
        "judge": r["model"],
        "reading": READINGS[r["probe"]],
        "prompt": r["variant"],
        "item": r["of"],
        "chain": r["chain"],
        "outcome": r["outcome"],
    }
