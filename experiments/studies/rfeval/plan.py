"""The units of work of an RFEval run, and the phases that do them: outputs, tests, readings and
judgements; reads no weights.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from faithscope.experiments.data.saved import SavedBenchmark
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.listing import columns, total
from faithscope.experiments.engine.models.prompt_files import as_yaml
from faithscope.experiments.engine.phases import Phases
from faithscope.experiments.engine.planfile import Shard, StoredPlan, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.building import (
    BuildPlan,
    building,
    items_of_config,
)
from faithscope.experiments.studies.rfeval.counterfactuals.construction import (
    ITEMS,
    Built,
    item_lines,
)
from faithscope.experiments.studies.rfeval.data import annotations_of, read_annotations
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.judges import RfJudging, StepJudging, run_lines
from faithscope.experiments.studies.rfeval.prompts import QUESTIONS, as_files
from faithscope.experiments.studies.rfeval.subjects.subject_stages import SubjectStages
from faithscope.experiments.studies.rfeval.units import RfUnits, units_of
from faithscope.interp.errors import UserError

FOLDER = "benchmark"
"""Below the run folder: the items, and what is known of the models."""
MODELS = "models.json"
FORMS = "prompts"
"""Below the run folder: the questions and forms that were asked, as a folder of prompts."""


@dataclass(frozen=True)
class RfPlan:
    """All that is to be done, in the order it is worked on."""

    config: RFEvalConfig
    units: RfUnits
    benchmark: SavedBenchmark
    """The items, and where they are from."""
    asked_with: Mapping[str, str]
    """File name -> content, of the prompts that r′ was written and validated with for this run."""

    def stored(self) -> StoredPlan:
        """What of it is kept in the run folder."""
        return StoredPlan.of(self.units.pairs, self.config.generate.batch_size)

    def summary(self) -> str:
        """What a run would do, for `--dry-run`."""
        index = Index.of(self.config.run_dir)
        counts = Counter((p.model, p.task) for p in self.units.pairs)
        left = Counter((p.model, p.task) for p in self.units.pairs if missing(index, p))
        lines = [
            f"run folder  {self.config.run_dir}",
            f"benchmark   {len(self.units.items)} items, each put twice to every model: as it is, "
            "and forced",
            "",
        ]
        rows = [(*pair, n, left[pair]) for pair, n in counts.items()]
        lines += columns([("model", "task", "items", "left"), *rows, total(rows)])
        return "\n".join(lines + run_lines(self.units, index))

    @property
    def prepares(self) -> str:
        """Nothing: the units are what the run is for."""
        return ""

    def write_inputs(self, store: Store) -> None:
        """Keep what is asked: items, questions, forms, what is known of the models."""
        with store.shared():
            folder = store.run_dir / FOLDER
            self.benchmark.save(folder)
            models = {"models": {name: s.kept() for name, s in self.units.subjects.items()}}
            text = json.dumps(models, indent=1, ensure_ascii=False)
            write_atomically(folder / MODELS, f"{text}\n")
            folder = make_folder(store.run_dir / FORMS)
            asked = list(self.units.forms.values())
            if self.config.per_step.judge:
                asked += self.units.step_forms.values()
            forms = as_files({f.form.name: f for f in asked})
            questions = {f"{QUESTIONS}.yaml": as_yaml(self.units.words)}
            for name, text in {**forms, **questions, **self.asked_with}.items():
                write_atomically(folder / name, text)

    def work(self, store: Store, shard: Shard) -> Phases:
        """One worker's part of a run: the models one after the other, then the judges."""
        whole, judges = self.units, self.config.judge.model
        # a subject that judges comes last, and judges first, so that its weights are read once
        subjects = sorted(whole.subjects, key=lambda model: model in judges)
        size, meter = self.config.generate.batch_size, Meter()
        batches = {model: shard.mine(whole.of(model), size) for model in subjects}
        by_step = [
            StepJudging(whole, batches, judge, store, meter) for judge in self.config.per_step.judge
        ]
        first = (
            SubjectStages(whole, batches, store, meter),
            RfJudging(whole, batches, store, meter),
        )
        # a judge that cannot be used step by step leaves the others theirs
        return Phases([*first, *by_step], needed=len(first))


def plan(config: RFEvalConfig) -> RfPlan | BuildPlan:
    """Read the items and name every unit; or what is to be written and validated before that.

    Raises:
        ConfigError: data that holds no item, or a form there is not.
        UserError: data, prompts, annotations or model files that cannot be used, or no r′ was
            accepted.
    """
    sheet = None if config.annotations is None else Path(config.annotations).expanduser()
    if sheet is not None:
        # needed for the tables alone, but a wrong file is no news for the end of a run
        read_annotations(sheet)
    asked_with: Mapping[str, str] = {}
    if config.counterfactual.written:
        built = building(config, config.run_dir / FOLDER)
        if isinstance(built, BuildPlan):
            return built
        items, benchmark, asked_with = _accepted(built), built.saved, built.prompts
    else:
        items, sources = items_of_config(config)
        made_of = {"sources": [asdict(s) for s in sources]}
        files = {ITEMS: item_lines(items)}
        benchmark = SavedBenchmark(files, made_of, {"items": len(items)})
    units = units_of(config, items)
    if sheet is not None:
        annotations_of(sheet, units.items, config.model.name)
    return RfPlan(config, units, benchmark, asked_with)


def _accepted(built: Built) -> list[Item]:
    if built.items:
        return list(built.items)
    counts = Counter(one.reason for one in built.left_out)
    reasons = ", ".join(f"{n} {reason}" for reason, n in counts.items())
    first = built.left_out[0]
    raise UserError(
        f"counterfactual: none of {len(built.left_out)} items got an r′ that was accepted "
        f"({reasons}; the first, {first.item!r}: {first.detail}); name another writer or "
        "validator, and another run (--set name=…)"
    )
