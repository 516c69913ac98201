"""What a writer of r′ and its validator are asked, and who they are (RFEval, 3.2, B.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from faithscope.experiments.config.api import API
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.fingerprint import fingerprint
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.models.judges import decides
from faithscope.experiments.engine.planfile import Planned
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.counterfactuals.construction import (
    generation,
    validation_ask,
)
from faithscope.experiments.studies.rfeval.counterfactuals.examples import examples_of
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


def writing_as(config: RFEvalConfig) -> JudgeConfig:
    """How the writer is asked: as judges are, but at its own temperature and once (B.3)."""
    own = {"temperature": config.counterfactual.temperature, "attempts": 1, "structured": "prompt"}
    return config.judge.model_copy(update=own)


def writing_requests(
    config: RFEvalConfig,
    problems: Sequence[Item],
    words: Mapping[str, str],
    request_words: Mapping[str, Any],
) -> Iterator[Request]:
    writer, examples = str(config.counterfactual.writer), examples_of(config)
    ids = UnitIds(**build_decides(config, writer, writing_as(config)))
    for item in problems:
        ask = generation(item, examples(item), words, request_words)
        unit = ids.of(item=item.sha256, prompt=ask.prompt)
        yield Request(writer, item, ask, {WRITING: unit})


def validation_requests(
    config: RFEvalConfig, items: Iterable[Item], form: RfForm, words: Mapping[str, str]
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
