"""A run of RFEval as it was stored, read once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from faithscope.experiments.engine.folder import existing_run
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.ledger import Line, calls_of
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.engine.store import Unit
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.built import ITEMS
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.inside.scored_stances import ScoredStance
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.step_results import StepJudgements, is_steps
from faithscope.experiments.studies.rfeval.plan import FOLDER, MODELS
from faithscope.experiments.studies.rfeval.records import NO_ROOM, Record, output_in
from faithscope.experiments.studies.rfeval.subjects.injection import Framing
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import INSIDE, JUDGED, LOG_PROBS, OUTPUTS, TESTS

PairKey = tuple[str, str]
"""(model, item id)."""


@dataclass(frozen=True)
class RfStored:
    """What counts in a run, without the long texts; texts are read again for examples."""

    run_dir: Path
    index: Index
    config: RFEvalConfig
    items: Mapping[str, Item]
    models: Mapping[str, Mapping[str, Any]]
    """What is known of each model, as `plan.MODELS` keeps it."""
    outputs: Mapping[PairKey, Mapping[Condition, Output]]
    written: Mapping[PairKey, Mapping[Condition, Record]]
    """The records of outputs without ids and texts."""
    tested: Mapping[PairKey, Mapping[Condition, str]]
    test_outcomes: Mapping[PairKey, Mapping[Condition, str]]
    """What the tests of code came to: `sandbox.Outcome`, `no_sandbox` or `not_run`."""
    log_probs: Mapping[PairKey, Mapping[Condition, list[ScoredStance]]]
    judged: Mapping[str, Mapping[PairKey, Mapping[Condition, Record]]]
    """Judge -> the records of its judgements without texts."""
    by_step: StepJudgements
    inside: list[Record]
    """What models showed inside; no arrays."""
    failures: list[Unit]

    @classmethod
    def read(cls, run_dir: str | Path) -> Self:
        """Read a run; models and data need not be at hand.

        Raises:
            StoreError: no output is written yet.
        """
        folder = existing_run(run_dir)
        if not (folder / FOLDER / ITEMS).is_file():
            raise StoreError(
                f"{folder}: nothing was asked there yet, and there is nothing to tell; "
                "`faithscope run` goes on with it"
            )
        stored = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
        config = RFEvalConfig.model_validate(stored)
        items, _ = read_rfeval(folder / FOLDER / ITEMS)
        index = counted(folder)
        written: dict[PairKey, dict[Condition, Record]] = defaultdict(dict)
        outputs: dict[PairKey, dict[Condition, Output]] = defaultdict(dict)
        tested: dict[PairKey, dict[Condition, str]] = {}
        came_to: dict[PairKey, dict[Condition, str]] = {}
        log_probs: dict[PairKey, dict[Condition, list[ScoredStance]]] = {}
        judged: dict[str, dict[PairKey, dict[Condition, Record]]] = defaultdict(dict)
        by_step, inside = StepJudgements(), []
        stages = {key[0] for key, _ in index.places()}
        for unit in sorted(index.each(stages), key=lambda u: u.key):
            key = (unit.model, unit.item)
            if unit.stage in OUTPUTS.values():
                for r in unit.records:
                    outputs[key][r["variant"]] = output_in(r, config.paper_compat)
                    written[key][r["variant"]] = _short(r)
            elif unit.stage == TESTS:
                tested[key] = {r["condition"]: r["stance"] for r in unit.records}
                came_to[key] = {r["condition"]: r["outcome"] for r in unit.records}
            elif unit.stage == LOG_PROBS:
                log_probs[key] = {
                    c: [_scored(r) for r in unit.records if r["condition"] == c] for c in CONDITIONS
                }
            elif is_steps(unit.stage):
                by_step.add(unit.stage, key, unit.records)
            elif unit.stage == INSIDE:
                inside += unit.records
            elif unit.stage.startswith(JUDGED):
                for r in unit.records:
                    judged[r["judge"]].setdefault(key, {})[r["condition"]] = _short(r)
        if not outputs:
            raise StoreError(f"{folder}: no output is written there yet; `faithscope run` goes on")
        known = json.loads((folder / FOLDER / MODELS).read_text("utf-8"))
        order = {item.id: at for at, item in enumerate(items)}
        models = {name: at for at, name in enumerate(known["models"])}
        keys = sorted(outputs, key=lambda k: (models.get(k[0], 0), order[k[1]]))
        return cls(
            folder,
            index,
            config,
            {item.id: item for item in items},
            known["models"],
            {key: outputs[key] for key in keys},
            written,
            tested,
            came_to,
            log_probs,
            judged,
            by_step,
            inside,
            index.failures(),
        )

    @property
    def pairs(self) -> tuple[PairKey, ...]:
        """Every pair that an output was asked for, also those that have none."""
        return tuple(dict.fromkeys((*self.outputs, *self.lost)))

    @cached_property
    def lost(self) -> tuple[PairKey, ...]:
        """The pairs of which an output failed."""
        failed = {(u.model, u.item): None for u in self.failures if u.stage in OUTPUTS.values()}
        return tuple(key for key in failed if len(self.outputs.get(key, {})) < len(OUTPUTS))

    def left_out(self, key: PairKey) -> str:
        """Why a pair counts for nothing; "" of most."""
        model, task = key[0], self.items[key[1]].task
        for one in self.config.report.exclude:
            if one.model == model and one.task in (None, task):
                return one.reason
        no_room = any(r["finish"] == NO_ROOM for r in self.written.get(key, {}).values())
        return NO_ROOM if no_room else ""

    def tests_of(self, key: PairKey) -> dict[Condition, str]:
        """The stances that tests gave; none of an answer that was not run."""
        return {c: stance for c, stance in self.tested.get(key, {}).items() if stance}

    @cached_property
    def framings(self) -> dict[str, Framing]:
        """How r′ was put to each model."""
        return {m: told["framing"] for m, told in self.models.items()}

    @cached_property
    def calls(self) -> list[Line]:
        """Every call to an API, also those that gave no judgement."""
        return calls_of(self.run_dir)


_TEXTS = ("ids", "text", "asked", "requested", "system", "thinking")
"""What no table counts."""


def _short(record: Record) -> Record:
    parts = ("reasoning", "explanation", "answer", "paper_parts")
    return {k: v for k, v in record.items() if k not in _TEXTS and k not in parts}


def _scored(record: Record) -> ScoredStance:
    return ScoredStance(
        record["part"], record["stance"], tuple(record["probabilities"]), record["mass"]
    )
