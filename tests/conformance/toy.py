"""A study of the smallest kind: it has models write a word about each number.

All that the engine, the command line and comparisons know of it stands in `STUDY`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import pandas as pd
from pydantic import StrictInt

from faithscope.experiments.analysis.columns import plain
from faithscope.experiments.analysis.item_view import Item, Items, ItemView, Part
from faithscope.experiments.analysis.page import Grid, Page, Section
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.run import Frame, Report, Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.analysis.wording import finding
from faithscope.experiments.config.api import API, HOW_FAST, SpendConfig
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.config.study import Stage, Study, by_name
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.models.judging import Judging
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.plan import RunPlan
from faithscope.experiments.engine.planfile import Planned, Shard
from faithscope.experiments.engine.store import Store
from faithscope.experiments.engine.units import UnitIds
from faithscope.experiments.engine.worker import Records
from faithscope.interp.model import Model
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.record import Record, head


class ToyConfig(FolderConfig):
    """The settings of the toy study."""

    FREE: ClassVar[tuple[str, ...]] = (
        *FolderConfig.FREE,
        "spend.",
        *(f"judge.{key}" for key in HOW_FAST),
    )

    benchmark: str
    judge: JudgeConfig
    """The models that are asked."""
    n: StrictInt = 5
    spend: SpendConfig = SpendConfig()
    token_budget: StrictInt | None = None


@dataclass(frozen=True)
class Number(Planned):
    """One number put to one model."""

    model: str
    n: int
    units: dict[str, str]
    task: str = "numbers"

    @property
    def item(self) -> str:
        return str(self.n)

    @property
    def ask(self) -> Writing:
        return Writing(self.item, f"How many are {self.n}?")


@dataclass(frozen=True)
class ToyPlan(RunPlan[ToyConfig, Number]):
    """Every number put to every model."""

    @property
    def batch_size(self) -> int:
        return self.config.judge.batch_size

    def lines(self, index: Index) -> list[str]:
        judge = self.config.judge
        asks = self.judging.pending(index, {model: self.of(model) for model in judge.model})
        return spending_lines(asks, judge, self.config.spend)

    @property
    def judging(self) -> Judging[Number]:
        return Judging(
            self.config.judge,
            self.config.seed,
            {model: {"word": "generated"} for model in self.config.judge.model},
            asks=lambda index, item, judge, stage: [ItemPrompt(item.ask)],
            about=lambda item: {},
        )

    def work(self, store: Store, shard: Shard) -> ToyWork:
        batches = self.batches(self.config.judge.model, shard)
        return ToyWork(self.judging, self.config, batches, store, after_judging=["length"])


def plan(config: ToyConfig) -> ToyPlan:
    def number(model: str, n: int) -> Number:
        stages = ("word",) if model.startswith(API) else ("word", "length")
        return Number(model, n, {s: UnitIds(stage=s, model=model).of(n=n) for s in stages})

    return ToyPlan(config, tuple(number(m, n) for m in config.judge.model for n in range(config.n)))


class ToyWork(Asker[Number]):
    """Two stages: what a model writes about a number, and how long that is."""

    def record(
        self, item: Number, prompt: ItemPrompt, judge: str, stage: str, reply: Reply
    ) -> Record:
        return _head(item, "word") | reply.to_record()

    def after_judging(self, model: Model) -> None:
        def length(item: Number) -> Records:
            (record,) = self.index.records(item.key("word"))
            return [_head(item, "length") | {"length": len(record["text"])}]

        items = [i for i in self.lacking(model.name, "length") if "word" not in self.missing(i)]
        self.each(model, items, "length", length)


def _head(item: Number, stage: str) -> Record:
    about = {"dataset": "numbers", "task": item.task, "item": item.item, "model": item.model}
    return head(**about, probe=stage, seed=0)


COLUMNS = plain({"text": "The word.", "length": "How long the word is."})


@dataclass(frozen=True)
class Results:
    """What the records of a run come to."""

    run: Run

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        columns = ("model", "item", "probe", "text", "length")
        rows = [{c: r.get(c) for c in columns} for r in self.run.records("word", "length")]
        return {"words": pd.DataFrame(rows)}


def page(results: Results, drawn: Sequence[Picture]) -> Page:
    words = Section("words", "Words", "What was written.", blocks=[Grid("words", "Words")])
    said = "A word about each number."
    n = len(results.tables["words"])
    first = finding(n, n, "words count", said)
    page = (results.run.path, "words", said, [words], results.tables, {}, COLUMNS, {})
    return Page(*page, finding=first)


def items(run: Run) -> Iterator[Item]:
    for row in rows(run.words):
        view = partial(ItemView, row["item"], texts={"Word": row["text"]})
        yield Item(view, [Part(row["model"], row["task"], [row["item"]])])


REPORT = Report(
    results=Results,
    frames=(
        Frame("words", "A row per number: its word.", {"text": "the word"}, stages=("word",)),
        Frame(
            "lengths", "A row per number: how long its word is.", ("length",), stages=("length",)
        ),
    ),
    page=page,
    columns=COLUMNS,
    items=Items("words", items),
)
CONFIG, STAGES = ToyConfig, by_name(Stage("word"), Stage("length"))
STUDY = Study("toy", at=__name__)
