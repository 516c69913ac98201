"""What a writer of r′ and its validator are asked, and who they are (RFEval, 3.2, B.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from faithscope.experiments.config.api import API
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.judges import decides
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.construction import (
    generation,
    validation_ask,
)
from faithscope.experiments.studies.rfeval.counterfactuals.examples import Examples
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.prompts import RfForm
from faithscope.probes.judge.form import Ask, Writing

WRITING, VALIDATION = "rf_writing", "rf_validation"
Phase = Literal["rf_writing", "rf_validation"]


@dataclass(frozen=True)
class Request(Planned):
    """One r′ that is asked for, or one that is held against the criteria."""

    model: str
    of: Item
    """Without r′ while it is asked for."""
    ask: Writing | Ask
    units: dict[str, str]

    @property
    def task(self) -> str:
        return self.of.task

    @property
    def item(self) -> str:
        return self.of.id


def asked_model(config: RFEvalConfig, phase: Phase) -> str:
    """Who is asked in a phase."""
    c = config.counterfactual
    return str(c.writer if phase == WRITING else c.validator)


def asked_as(config: RFEvalConfig, phase: Phase) -> JudgeConfig:
    """How it is asked: as judges are, the writer at its own temperature and once."""
    return writing_as(config) if phase == WRITING else config.judge


def writing_as(config: RFEvalConfig) -> JudgeConfig:
    """How the writer is asked: single-shot (B.3)."""
    told = {"temperature": config.counterfactual.temperature, "attempts": 1, "structured": "prompt"}
    return config.judge.model_copy(update=told)


def writing_requests(
    config: RFEvalConfig,
    problems: Sequence[Item],
    words: Mapping[str, str],
    told: Mapping[str, Any],
) -> Iterator[Request]:
    c = config.counterfactual
    examples = Examples.of_config(config)
    ids = UnitIds(**build_decides(config, str(c.writer), writing_as(config)))
    for item in problems:
        ask = generation(item, examples.of(item), words, told)
        yield Request(
            str(c.writer), item, ask, {WRITING: ids.of(item=item.sha256, prompt=ask.prompt)}
        )


def validation_requests(
    config: RFEvalConfig, items: Any, form: RfForm, words: Mapping[str, str]
) -> Iterator[Request]:
    validator = str(config.counterfactual.validator)
    ids = UnitIds(**build_decides(config, validator, config.judge), form=form.form.sha256)
    for item in items:
        ask = validation_ask(item, form, words)
        unit = ids.of(item=item.sha256, values=dict(ask.values))
        yield Request(validator, item, ask, {VALIDATION: unit})


def build_decides(config: RFEvalConfig, model: str, how: JudgeConfig) -> dict[str, Any]:
    weights = None if model.startswith(API) else fingerprint(model, how.revision)
    return {"schema": SCHEMA, "seed": config.seed, "weights": weights, **decides(model, how)}
