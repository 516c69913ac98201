"""The units of work of an RFEval run, and the phases that do them: outputs, tests, readings and
judgements; reads no weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from faithscope.experiments.config.base import ConfigError, expanded
from faithscope.experiments.config.study import addition_to
from faithscope.experiments.data.question_groups import GROUP, Asked, grouped, groups_read
from faithscope.experiments.data.saved import SavedBenchmark
from faithscope.experiments.data.tasks.sources.rows import files_read
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.prompt_files import as_yaml
from faithscope.experiments.engine.phases import Phases
from faithscope.experiments.engine.plan import (
    BENCHMARK,
    PROMPTS,
    PreparingPlan,
    RunPlan,
    below,
)
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.tallies.input_report import NO_LIMIT, InputReport, Truncation
from faithscope.experiments.studies.rfeval.additions import RfAddition
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.data import (
    Source,
    annotations_of,
    read_annotations,
    read_rfeval,
)
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.judges import (
    judging_by_step,
    judging_whole,
    run_lines,
)
from faithscope.experiments.studies.rfeval.prompts import QUESTIONS, as_files
from faithscope.experiments.studies.rfeval.records import DATASET
from faithscope.experiments.studies.rfeval.saved import ITEMS, item_lines
from faithscope.experiments.studies.rfeval.subjects.subject_stages import SubjectStages
from faithscope.experiments.studies.rfeval.units import Pair, RfUnits, units_of

MODELS = "models.json"
"""File in the folder of the benchmark that says what is known of the models."""


@dataclass(frozen=True)
class RfPlan(RunPlan[RFEvalConfig, Pair]):
    """All work of a run, in the order in which it is done."""

    units: RfUnits
    benchmark: SavedBenchmark
    """The items, and the sources they are from."""
    asked_with: Mapping[str, str]
    """File name -> content of the prompts with which r′ was written and validated for this run."""

    @property
    def batch_size(self) -> int:
        return self.config.generate.batch_size

    def lines(self, index: Index) -> list[str]:
        return [
            f"benchmark   {len(self.units.items)} items, each put twice to every model: as it is, "
            "and forced",
            "",
            *self.table(index),
            *run_lines(self.units, index),
        ]

    def inputs(self) -> dict[str, str]:
        """Files of all that is asked: items, questions, forms, what is known of the models."""
        models = {"models": {name: s.kept() for name, s in self.units.subjects.items()}}
        known = json.dumps(models, indent=1, ensure_ascii=False) + "\n"
        asked = list(self.units.forms.values())
        if self.config.per_step.judge:
            asked += self.units.step_forms.values()
        forms = as_files({f.form.name: f for f in asked})
        questions = {f"{QUESTIONS}.yaml": as_yaml(self.units.words)}
        items = below(BENCHMARK, {**self.benchmark.texts, MODELS: known})
        return items | below(PROMPTS, {**forms, **questions, **self.asked_with})

    def gpus(self, model: str | None = None) -> int:
        """Number of GPUs, to which the files of the models add (`tensor_parallel_size`)."""
        subjects = self.units.subjects.values() if model is None else [self.units.subjects[model]]
        needed = super().gpus(model)
        return max(needed, *(s.tensor_parallel_size for s in subjects)) if needed else 0

    def work(self, store: Store, shard: Shard) -> Phases:
        """One worker's share of a run: the models one after the other, then the judges."""
        whole, judges = self.units, self.config.judge.model
        # a subject that judges comes last, and judges first, so that its weights are read once
        subjects = sorted(whole.subjects, key=lambda model: model in judges)
        batches, meter = self.batches(subjects, shard), Meter()
        whole_outputs = judging_whole(whole, first=subjects[-1])
        declared = [whole_outputs, *(judging_by_step(whole, j) for j in self.config.per_step.judge)]
        asking = [Asker(j, self.config, j.batches(batches), store, meter) for j in declared]
        first = (SubjectStages(whole, batches, store, meter), asking[0])
        # a judge that cannot be used step by step does not stop the others
        return Phases([*first, *asking[1:]], needed=len(first))


def plan(config: RFEvalConfig) -> RfPlan | PreparingPlan[RFEvalConfig, Any]:
    """Reads the items and names every unit; or plans what is to be written and validated before
    that.

    Raises:
        ConfigError: data that holds no item, or a form there is not.
        UserError: data, prompts, annotations or model files that cannot be used, or what the config
            asks for is not installed, or gave no item.
    """
    sheet = expanded(config.annotations)
    if sheet is not None:
        # needed for the tables alone, but a wrong file is no news for the end of a run
        read_annotations(sheet)
    asked_with: Mapping[str, str] = {}
    cuts: tuple[Truncation, ...] = ()
    key = "" if config.counterfactual.written else GROUP
    of_column: Mapping[str, str | None] = {}
    if config.counterfactual.written:
        builder: RfAddition = addition_to(
            "rfeval", "counterfactuals", "counterfactual.written"
        ).load()
        built = builder.build(config, config.run_dir / BENCHMARK)
        if isinstance(built, PreparingPlan):
            return built
        items, benchmark, asked_with = built.items, built.benchmark, built.prompts
        cuts = built.cuts
    else:
        column = config.data.group
        with files_read(column) as files:
            items, sources = items_of_config(config)
        if column is not None:
            of_column = groups_read(files, [item.id for item in items], column, GROUP)
        rows, limit = sum(file.rows for file in files), config.data.limit
        if limit is not None and rows > len(items):
            cuts = (
                Truncation("rows", len(items), rows, f"data.limit={limit} of each task", NO_LIMIT),
            )
        made_of = {"sources": [asdict(s) for s in sources]}
        files = {ITEMS: item_lines(items)}
        benchmark = SavedBenchmark(files, made_of, {"items": len(items)})
    units = units_of(config, items)
    if sheet is not None:
        annotations_of(sheet, units.items, config.model.name)
    groups = grouped((_asked(item, of_column.get(item.id)) for item in items), key)
    input_report = InputReport(cuts, notes=groups.notes, groups=groups.of)
    pairs = units.pairs
    return RfPlan(config, pairs, units, benchmark, asked_with, input_report=input_report)


def _asked(item: Item, group: str | None) -> Asked:
    parts = [item.context, item.question, *sorted(item.options)]
    return Asked(item.id, DATASET, "\n".join(filter(None, parts)), group)


def items_of_config(config: RFEvalConfig, bare: bool = False) -> tuple[list[Item], list[Source]]:
    """The items that a config names, and the sources they are from.

    Raises:
        ConfigError: there are none.
        UserError: as `read_rfeval`.
    """
    d = config.data
    items, sources = read_rfeval(d.file, d.tasks or None, d.limit, d.repository, bare=bare)
    if not items:
        raise ConfigError([f"data.path: no item of {', '.join(d.tasks) or 'any task'} in {d.file}"])
    return items, sources
