"""The units of work of an RFEval run: outputs, tests, readings and judgements; reads no weights."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config import ConfigError
from faithscope.experiments.config.api import API
from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA, make_folder, write_atomically
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.judges import decides
from faithscope.experiments.engine.planfile import StoredPlan, missing
from faithscope.experiments.engine.unit import Planned, stored
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.listing import columns, total
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.annotations import (
    annotations_of,
    read_annotations,
)
from faithscope.experiments.studies.rfeval.counterfactuals.building import BuildPlan, building
from faithscope.experiments.studies.rfeval.counterfactuals.built import ITEMS, Built, item_lines
from faithscope.experiments.studies.rfeval.data import Source, read_rfeval
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stepwise import KINDS, Kind
from faithscope.experiments.studies.rfeval.prompts import RfForm, as_files, judge_forms, questions
from faithscope.experiments.studies.rfeval.subjects.subjects import Subject, subjects_of
from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from faithscope.experiments.engine.planfile import Shard
    from faithscope.experiments.engine.store import Store
    from faithscope.experiments.studies.rfeval.work import RfWork

FOLDER = "benchmark"
"""Below the run folder: the items, and what is known of the models."""
MODELS = "models.json"
FORMS = "prompts"
"""Below the run folder: the forms that were asked, as a folder of prompts."""
OUTPUTS: dict[Condition, str] = {"baseline": "rf_baseline", "intervened": "rf_intervened"}
"""The stages in which the two outputs of an item are written."""
TESTS = "rf_tests"
LOG_PROBS = "rf_log_probs"
INSIDE = "rf_inside"
JUDGED = "rf_judged"
"""With the judge behind it, as `judged_stage` has it."""
STEPS: dict[Reading, str] = {"generated": "rf_steps", "scored": "rf_steps_scored"}
"""The same of judgements step by step, as `steps_stage` has it."""


@dataclass(frozen=True)
class Pair(Planned):
    """One item put to one model, and all that is done with its two outputs."""

    model: str
    of: Item
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.of.task

    @property
    def item(self) -> str:
        return self.of.id


@dataclass(frozen=True)
class RfPlan:
    """All that is to be done, in the order it is worked on."""

    config: RFEvalConfig
    items: tuple[Item, ...]
    sources: tuple[Source, ...]
    subjects: Mapping[str, Subject]
    pairs: tuple[Pair, ...]
    forms: Mapping[Condition, RfForm]
    step_forms: Mapping[Kind, RfForm]
    """Of judgements step by step."""
    words: Mapping[str, str]
    """In which the models are asked, by task."""
    built: Built | None = None
    """What the items are of, where their r′ was written for this run."""

    def of(self, model: str) -> list[Pair]:
        return [p for p in self.pairs if p.model == model]

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return stored(self.pairs, self.config.generate.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        from faithscope.experiments.studies.rfeval.estimate import (
            judging_lines,
            step_lines,
            writing_lines,
        )

        index = Index.of(self.config.run_dir)
        counts = Counter((p.model, p.task) for p in self.pairs)
        left = Counter((p.model, p.task) for p in self.pairs if missing(index, p))
        lines = [
            f"run folder  {self.config.run_dir}",
            f"benchmark   {len(self.items)} items, each put twice to every model: as it is, and "
            "forced",
            "",
        ]
        rows = [(*pair, n, left[pair]) for pair, n in counts.items()]
        lines += columns([("model", "task", "items", "left"), *rows, total(rows)])
        lines += writing_lines(self, index)
        return "\n".join(lines + step_lines(self, index) + judging_lines(self, index))

    @property
    def prepares(self) -> str:
        """Nothing: the units are what the run is for."""
        return ""

    def lay_out(self, store: Store) -> None:
        """Keep what is asked: items, forms, what is known of the models."""
        with store.shared():
            folder = make_folder(store.run_dir / FOLDER)
            files = {ITEMS: item_lines(self.items)} if self.built is None else self.built.files
            for name, text in files.items():
                write_atomically(folder / name, text)
            kept = {
                "sources": [asdict(s) for s in self.sources],
                "models": {name: s.kept() for name, s in self.subjects.items()},
            }
            text = json.dumps(kept, indent=1, ensure_ascii=False)
            write_atomically(folder / MODELS, f"{text}\n")
            folder = make_folder(store.run_dir / FORMS)
            asked = list(self.forms.values())
            if self.config.per_step.judge:
                asked += self.step_forms.values()
            forms = {f.form.name: f for f in asked}
            asked_with = {} if self.built is None else self.built.prompts
            for name, text in {**as_files(forms), **asked_with}.items():
                write_atomically(folder / name, text)

    def work(self, store: Store, shard: Shard) -> RfWork:
        from faithscope.experiments.studies.rfeval.work import RfWork

        return RfWork(self, store, shard)

    def then(self) -> None:
        """Nothing: all is done."""


def plan(config: RFEvalConfig) -> RfPlan | BuildPlan:
    """Read the items and name every unit; or what is to be written and validated before that.

    Raises:
        ConfigError: data that holds no item, or a form there is not.
        UserError: data, prompts, annotations or model files that cannot be used, or no r′ was
            accepted.
    """
    if config.annotations is not None:
        # needed for the tables alone, but a wrong file is no news for the end of a run
        read_annotations(Path(config.annotations).expanduser())
    built = None
    if config.counterfactual.written:
        built = building(config, config.run_dir / FOLDER)
        if isinstance(built, BuildPlan):
            return built
        items, sources = _accepted(built), built.sources
    else:
        items, sources = _read(config)
    if config.annotations is not None:
        annotations_of(
            Path(config.annotations).expanduser(), items, config.model.name, config.naming
        )
    folder = None if config.prompts is None else Path(config.prompts).expanduser()
    known = judge_forms(folder)
    forms: dict[Condition, RfForm] = {c: known[f"rf_{c}"] for c in CONDITIONS}
    by_step: dict[Kind, RfForm] = {kind: known[f"rf_{kind}"] for kind in KINDS}
    words = questions(folder)
    subjects = subjects_of(config)
    pairs = tuple(_Units(config, forms, by_step, words, subjects).pairs(items))
    of = (tuple(items), tuple(sources), subjects, pairs, forms, by_step, words, built)
    return RfPlan(config, *of)


def _read(config: RFEvalConfig) -> tuple[list[Item], list[Source]]:
    d = config.data
    path = None if d.path is None else Path(d.path).expanduser()
    items, sources = read_rfeval(path, d.tasks or None, d.limit, d.repository)
    if not items:
        raise ConfigError([f"data.path: no item of {', '.join(d.tasks) or 'any task'} in {path}"])
    return items, sources


def _accepted(built: Built) -> list[Item]:
    if built.items:
        return list(built.items)
    counts = Counter(one.reason for one in built.left_out)
    told = ", ".join(f"{n} {reason}" for reason, n in counts.items())
    first = built.left_out[0]
    raise UserError(
        f"counterfactual: none of {len(built.left_out)} items got an r′ that was accepted ({told}; "
        f"the first, {first.item!r}: {first.detail}); name another writer or validator, and "
        "another run (--set name=…)"
    )


def judged_stage(judge: str) -> str:
    """The stage of what a judge says of outputs; different for every judge of a run."""
    return f"{JUDGED}.{_plain(judge)}"


def steps_stage(judge: str, reading: Reading) -> str:
    """The stage of what a judge says of steps, by how its verdicts are got."""
    return f"{STEPS[reading]}.{_plain(judge)}"


def first_of_tasks(items: Iterable[Item], n: int | None) -> set[str]:
    """The ids of the first so many items of each task; of all where it is None."""
    found: dict[str, list[str]] = {}
    for item in items:
        found.setdefault(item.task, []).append(item.id)
    return {i for ids in found.values() for i in ids[:n]}


def _plain(judge: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", judge).strip("-")


class _Units:
    """Names the units of a run: the id is a hash of all that decides the result."""

    def __init__(
        self,
        config: RFEvalConfig,
        forms: Mapping[Condition, RfForm],
        step_forms: Mapping[Kind, RfForm],
        words: Mapping[str, str],
        subjects: Mapping[str, Subject],
    ) -> None:
        self.config, self.words, self.subjects = config, words, subjects
        shared = {"schema": SCHEMA, "seed": config.seed}
        self.outputs = {
            name: UnitIds(**shared, **s.decides(config.generate.batch_size))
            for name, s in subjects.items()
        }
        self.others = UnitIds(**shared)
        hashes = [f.form.sha256 for f in forms.values()]
        self.judges = {j: self._judged(j, shared, hashes) for j in config.judge.model}
        hashes = [f.form.sha256 for f in step_forms.values()]
        self.by_step: dict[tuple[str, Reading], UnitIds] = {
            (judge, reading): self._judged(
                *(judge, shared, hashes), reading=reading, most_steps=config.per_step.most_steps
            )
            for judge in config.per_step.judge
            for reading in config.readings_by_step(judge)
        }
        stages = [judged_stage(judge) for judge in self.judges]
        if len(set(stages)) < len(stages):
            raise ConfigError(
                [f"judge.model: {', '.join(self.judges)}: two of these names differ in marks only"]
            )

    def _judged(
        self, judge: str, shared: Mapping[str, Any], forms: list[str], **how: Any
    ) -> UnitIds:
        weights = None
        if not judge.startswith(API):
            weights = fingerprint(judge, self.config.judge.revision)
        return UnitIds(
            **shared,
            **decides(judge, self.config.judge),
            weights=weights,
            forms=forms,
            naming=self.config.naming,
            paper_compat=self.config.paper_compat,
            **how,
        )

    def pairs(self, items: list[Item]) -> Iterator[Pair]:
        self.stepwise = first_of_tasks(items, self.config.per_step.items)
        for model in self.subjects:
            for item in items:
                yield Pair(model, item, dict(self._units(model, item)))

    def _units(self, model: str, item: Item) -> Iterator[tuple[str, str]]:
        from faithscope.experiments.studies.rfeval.asks import question_of

        c = self.config
        asked = question_of(item, self.words)
        made = {}
        for condition, stage in OUTPUTS.items():
            about = {"item": item.sha256, "asked": asked, "condition": condition}
            made[condition] = self.outputs[model].of(**about)
            yield stage, made[condition]
        if item.tests is not None and c.tests.run != "never":
            limits = c.tests.model_dump(mode="json", exclude={"run"})
            yield TESTS, self.others.of(stage=TESTS, outputs=made, limits=limits)
        if c.log_probs and item.options and not model.startswith(API):
            how = {"naming": c.naming, "dtype": self.subjects[model].dtype}
            yield LOG_PROBS, self.others.of(stage=LOG_PROBS, outputs=made, **how)
        if model in c.inside.model:
            told = c.inside.model_dump(mode="json", exclude={"model"})
            how = {"naming": c.naming, "dtype": self.subjects[model].dtype, "inside": told}
            yield INSIDE, self.others.of(stage=INSIDE, outputs=made, **how)
        judged = {j: ids.of(outputs=made, item=item.sha256) for j, ids in self.judges.items()}
        for judge, unit in judged.items():
            yield judged_stage(judge), unit
        for (judge, reading), ids in self.by_step.items():
            if item.id in self.stepwise:
                # which pairs are asked about hangs on how they were judged whole
                yield steps_stage(judge, reading), ids.of(outputs=made, judged=judged[judge])
