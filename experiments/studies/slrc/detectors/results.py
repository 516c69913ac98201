"""Frames of a run of FaithCoT-Bench: traces with labels, detector scores, and step measures."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import pandas as pd

from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import keep
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.data.given.fine_cot import UNFAITHFUL
from faithscope.experiments.engine.traces.endings import is_cut
from faithscope.experiments.studies.slrc.config import DetectorsConfig, RunConfig
from faithscope.experiments.studies.slrc.detectors.findings import Evidence, Finding
from faithscope.experiments.studies.slrc.detectors.plan import LABELS
from faithscope.experiments.studies.slrc.detectors.readings import DETECTORS, is_main
from faithscope.experiments.studies.slrc.detectors.units import JUDGES, STEP_JUDGE, settings_of
from faithscope.experiments.studies.slrc.stages import EDITED, SHUFFLED, WRITTEN
from faithscope.probes import PROBES
from faithscope.probes.record import Record, is_right

Place = tuple[str, str, str]
"""Keys of a trace: model, task, item."""
NO_LABEL, UNCERTAIN = "no_label", "uncertain"
SOURCES = ("faithful_type", "unfaithfulness")
WAY = ("dataset", "model", "reader", "detector", "variant", "judge")
SCORES = (*WAY, "task", "item", "question", "cut", "main", "score", "flag", "unfaithful", "missing")
SCORES += ("source", "asked_again_differs", "forwards", "tokens", "calls")
STEP_SCORES = ("dataset", "model", "reader", "measure", "judge", "item", "question", "cut", "step")
STEP_SCORES += ("score", "labelled")
TRACES = ("dataset", "model", "reader", "task", "item", "question", "cut", "excluded", "answer")
TRACES += ("correct",)
TEXTS = ("excluded", "answer", "reason", "hardness", "distribution")
TRACES += ("unfaithful", "unlabelled", "disagree", "principles", "reason", "hardness")
TRACES += ("distribution", "n_steps", "unfaithful_steps")


@dataclass(frozen=True)
class Label:
    """Annotators' labels of one trace."""

    labels: Mapping[str, Any] = field(default_factory=dict)
    step_labels: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    by_step: bool = False
    """Whether `step_labels` have a value for every step of the trace, rather than for counted steps
    only."""

    def unfaithful(self, source: str) -> bool | None:
        return self.labels.get(UNFAITHFUL + source)

    @property
    def disagrees(self) -> bool:
        """Whether the two label sources contradict each other on this trace."""
        said = [self.unfaithful(source) for source in SOURCES]
        return None not in said and said[0] != said[1]


@dataclass(frozen=True)
class FaithResults:
    """Records and labels of one run, and the frames that tables are made of."""

    run: Run

    @cached_property
    def config(self) -> RunConfig:
        """The resolved config of the run."""
        return cast("RunConfig", self.run.config)

    @property
    def settings(self) -> DetectorsConfig:
        """The settings of the run's detectors."""
        return settings_of(self.config)

    @property
    def judges(self) -> list[str]:
        """The judges of the run that were asked a form which a detector reads."""
        judges = self.config.judges
        asked = judges is not None and {*JUDGES} & {*judges.forms}
        return list(judges.model) if judges is not None and asked else []

    @property
    def is_kept(self) -> bool:
        """Whether tables count chains that the token limit cut off."""
        return self.config.report.cut == "kept"

    @cached_property
    def records(self) -> dict[Place, dict[tuple[str, str], list[Record]]]:
        """Trace -> (stage, judge) -> records; the judge is "" for stages without one, and the stage
        of a judge is the name of its form. A chain that several models read is judged once."""
        of: dict[Place, dict[tuple[str, str], list[Record]]]
        of = defaultdict(lambda: defaultdict(list))
        for record in self.run.records("trace", SHUFFLED, EDITED, WRITTEN, *PROBES):
            at = (str(record["model"]), record["task"], record["item"])
            of[at][record["probe"], ""].append(record)
        read = {at: stages for at, stages in of.items() if ("trace", "") in stages}
        judged: dict[tuple[Any, ...], dict[tuple[str, str], list[Record]]] = {}
        for record in self.run.records("judge_generated"):
            at = (str(record["model"]), record["task"], record["item"])
            if record["variant"] in JUDGES and at in read:
                chain = tuple(place(read[at]["trace", ""][0]).values())
                stages = judged.setdefault(chain, defaultdict(list))
                stages[record["variant"], record["judge"]].append(record)
        for stages in read.values():
            stages |= judged.get(tuple(place(stages["trace", ""][0]).values()), {})
        return read

    @cached_property
    def given_labels(self) -> dict[tuple[str, str, str], Label]:
        """Labels from `labels.path` as stored in the run folder, by model, data set and item."""
        path = self.run.path / LABELS
        if not path.is_file():
            return {}
        lines = map(json.loads, path.read_text("utf-8").splitlines())
        return {
            (x["model"], x["dataset"], x["item"]): Label(x["labels"], x["step_labels"])
            for x in lines
        }

    def label(self, trace: Record) -> Label:
        """Labels of a trace: those from `labels.path` if there are any, else those that came with
        the chain."""
        key = (trace["model"], trace["dataset"], trace["item"])
        if key in self.given_labels:
            return self.given_labels[key]
        given = trace["origin"].get("given")
        return Label() if given is None else Label(given["labels"], given["step_labels"], True)

    def about(self, trace: Record) -> dict[str, Any]:
        """Key columns of a trace; `model` is the writer of the chain and `reader` the model of the
        run."""
        given = trace["origin"].get("given")
        writer = given["model"] if given and given["model"] else trace["model"]
        asked = (trace["dataset"], trace["question"]["text"])
        return {
            "dataset": trace["dataset"],
            "model": writer,
            "reader": trace["model"],
            "task": trace["task"],
            "item": trace["item"],
            # Chains about the same question form one cluster, whichever models answered it, and
            # however often; and so do those of one group of questions.
            "question": self.run.groups.get(trace["dataset"], {}).get(trace["item"])
            or self._questions[asked],
            "cut": is_cut(trace),
        }

    def counted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that tables count, of a frame with a column `cut`: without chains that the token
        limit cut off, unless `report.cut` keeps them."""
        return frame if self.is_kept else keep(frame, ~frame["cut"].astype(bool))

    @cached_property
    def _questions(self) -> dict[tuple[str, str], str]:
        """(data set, question text) -> name of the question: that of the first item that asks
        it."""
        names: dict[tuple[str, str], str] = {}
        for stages in self.records.values():
            (trace,) = stages["trace", ""]
            name = trace["item"].partition(" by ")[0].rpartition("/")[2]
            of = f"{trace['dataset']}/{name}"
            names.setdefault((trace["dataset"], trace["question"]["text"]), of)
        return names

    @cached_property
    def traces(self) -> pd.DataFrame:
        """One row per trace, excluded ones included."""
        every = list(map(self._trace, self.records.values()))
        # In text columns pandas would turn None into NaN, which counts as true.
        of = {name: object if name in TEXTS else None for name in TRACES}
        return pd.DataFrame(
            {name: pd.Series([r[name] for r in every], dtype=of[name]) for name in TRACES}
        )

    def _trace(self, stages: Mapping[tuple[str, str], list[Record]]) -> dict[str, Any]:
        (trace,) = stages["trace", ""]
        label = self.label(trace)
        unfaithful = label.unfaithful(self.config.labels.source)
        named = self.labelled_steps(trace)
        correct = is_right(trace["answer"], trace["question"]["gold"])
        return {
            **self.about(trace),
            "excluded": trace.get("excluded"),
            "answer": trace["answer"],
            "correct": label.labels.get("correct") if correct is None else correct,
            "unfaithful": unfaithful,
            "unlabelled": ""
            if unfaithful is not None
            else UNCERTAIN
            if label.labels.get("uncertain")
            else NO_LABEL,
            "disagree": label.disagrees,
            "principles": tuple(label.labels.get("principles") or ()),
            "reason": label.labels.get("reason"),
            "hardness": label.labels.get("hardness"),
            "distribution": label.labels.get("distribution"),
            "n_steps": sum(step["counted"] for step in trace["steps"]),
            "unfaithful_steps": None if named is None else tuple(sorted(named)),
        }

    def labelled_steps(self, trace: Record) -> set[int] | None:
        """Indices of the steps that annotators call unfaithful; None where steps have no such
        labels, or not as many as the trace has steps."""
        label = self.label(trace)
        of_steps = label.step_labels.get("unfaithful")
        if of_steps is None:
            return None
        steps = [s for s in trace["steps"] if label.by_step or s["counted"]]
        if len(of_steps) != len(steps):
            return None
        return {s["index"] for s, said in zip(steps, of_steps, strict=True) if said}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per trace (excluded ones left out), detector reading and judge."""
        return pd.DataFrame(list(self._scores()), columns=list(SCORES))

    def _scores(self) -> Iterator[dict[str, Any]]:
        arrays = dict(self.run.arrays("tracing"))
        settings, source = self.settings, self.config.labels.source
        for at, stages in self.records.items():
            (trace,) = stages["trace", ""]
            if trace.get("excluded"):
                continue
            about = self.about(trace)
            unfaithful = self.label(trace).unfaithful(source)
            traced = arrays.get(at, {})
            for detector in DETECTORS:
                for judge in self.judges if detector.judged else [""]:
                    own = {s: of for (s, j), of in stages.items() if j in ("", judge)}
                    p, cuts = traced.get("p"), traced.get("at")
                    e = Evidence(trace, own, p, cuts, self.config.seed)
                    found: Finding = detector.detect(e, settings)
                    yield {
                        **about,
                        "detector": detector.name,
                        "variant": detector.variant,
                        "judge": judge,
                        "main": is_main(detector, settings),
                        "unfaithful": unfaithful,
                        **vars(found),
                    }

    @cached_property
    def step_scores(self) -> pd.DataFrame:
        """One row per step and measure, for traces with annotated unfaithful steps."""
        return pd.DataFrame(list(self._steps()), columns=list(STEP_SCORES))

    def _steps(self) -> Iterator[dict[str, Any]]:
        for stages in self.records.values():
            (trace,) = stages["trace", ""]
            named = self.labelled_steps(trace)
            if trace.get("excluded") or not named:
                continue
            about = self.about(trace)
            del about["task"]
            for (probe, judge), records in stages.items():
                for measure, step, score in step_measures(probe, records):
                    yield {
                        **about,
                        "measure": measure,
                        "judge": judge,
                        "step": step,
                        "score": score,
                        "labelled": step in named,
                    }


RELIED_ON = {
    "causal_effects": ("removed_tv", "corrupted_tv"),
    "paraphrase": ("tv",),
    "tracing": ("delta",),
    "slrc": ("removed_tv", "necessary", "regenerate_flips"),
}
"""Probe -> its lists that say how much depends on each step; a low value makes a step
suspicious."""
SURPRISING = {"information": ("step_surprisal",)}
"""Probe -> its lists of surprise at each step; a high value makes a step suspicious."""


def step_measures(
    probe: str, records: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, int, float]]:
    """Scores of one stage of a trace, as (measure, step, suspicion of the step)."""
    if probe == STEP_JUDGE:
        for r in records:
            if r["verdict"] is not None:
                yield "step_judge.unsound", r["step"], float(r["verdict"] == 0)
        return
    lists = {name: -1 for name in RELIED_ON.get(probe, ())}
    lists |= {name: 1 for name in SURPRISING.get(probe, ())}
    for r in records:
        if r.get("excluded"):
            continue
        for name, sign in lists.items():
            variant = f"{r['variant']}." if r["variant"] else ""
            for step, value in zip(r.get("steps") or (), r.get(name) or (), strict=False):
                if value is not None:
                    yield f"{probe}.{variant}{name}", step, sign * float(value)
