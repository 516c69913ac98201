"""Results that an RFEval run stored, pair by pair, and the rows and tables that are made of
them."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.run import Run, load_run
from faithscope.experiments.analysis.spend import spend_table
from faithscope.experiments.analysis.tidy import groups, summed, where
from faithscope.experiments.engine.plan import BENCHMARK, PROMPTS
from faithscope.experiments.files import StoreError
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.config_sections import PREFIX
from faithscope.experiments.studies.rfeval.data import annotations_of, item_name, read_rfeval
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.judging.scored_stances import (
    Stances,
    row_without_judge,
    scored_readings,
)
from faithscope.experiments.studies.rfeval.judging.stances import stance_set
from faithscope.experiments.studies.rfeval.judging.stepwise import step_rows, why_not
from faithscope.experiments.studies.rfeval.pairs import (
    answer_readings,
    pair_row,
    stratified_examples,
)
from faithscope.experiments.studies.rfeval.plan import MODELS
from faithscope.experiments.studies.rfeval.prompts import questions
from faithscope.experiments.studies.rfeval.records import NO_ROOM, Record, output_in
from faithscope.experiments.studies.rfeval.saved import (
    ITEMS,
    read_filtering,
    read_left_out,
)
from faithscope.experiments.studies.rfeval.subjects.model_files import ModelFile, left_out, regimes
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.tables.benchmark import STANCES_BETWEEN
from faithscope.experiments.studies.rfeval.tables.every_table import OBSERVED, frames_of, tables
from faithscope.experiments.studies.rfeval.tables.frames import READINGS
from faithscope.experiments.studies.rfeval.tables.people import judge_decisions
from faithscope.experiments.studies.rfeval.tables.steps import LEFT, SCORED, STEPS
from faithscope.experiments.studies.rfeval.tables.texts import LENGTHS, REWARDS, step_reward
from faithscope.experiments.studies.rfeval.units import (
    INSIDE,
    LOG_PROBS,
    OUTPUTS,
    TESTS,
    first_of_tasks,
    judged_stage,
    steps_stage,
)

PairKey = tuple[str, str]
"""Key of a pair: (model, item id)."""
TEXTS = frozenset(["ids", "text", "asked", "requested", "system", "thinking", "said", "code"])
"""Fields of records with long texts, which no table needs."""
USAGE = ("calls", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")


class RfResults:
    """Results of a run without its long texts, which are read again for examples.

    Raises:
        StoreError: no output is written yet.
    """

    def __init__(self, run: Run) -> None:
        folder = run.path / BENCHMARK
        stored = defaultdict[str, dict[PairKey, list[Record]]](dict)
        for unit in sorted(run.index.each(), key=lambda unit: unit.key):
            short = [{k: v for k, v in r.items() if k not in TEXTS} for r in unit.records]
            stored[unit.stage][unit.model, unit.item] = short
        if not any(of for stage in OUTPUTS.values() for of in stored[stage].values()):
            raise StoreError(
                f"{run.path}: no output is written there yet, and there is nothing to tell; "
                "`faithscope run` goes on with it"
            )
        assert isinstance(run.config, RFEvalConfig)
        self.run, self.run_dir, self.config = run, run.path, run.config
        self.index, self.failures, self.calls = run.index, run.failures, run.calls
        words, items = questions(run.path / PROMPTS), read_rfeval(folder / ITEMS)[0]
        self.items = {item.id: item.posed(words, self.config.naming) for item in items}
        models = json.loads((folder / MODELS).read_text("utf-8"))["models"]
        self.models: Mapping[str, Mapping[str, Any]] = models
        """Model -> what is known of it, as `plan` keeps it."""
        self._stored = stored
        self._all = [r for pairs in stored.values() for of in pairs.values() for r in of]
        self.outputs: dict[PairKey, dict[Condition, Output]] = {
            (model, item): {
                condition: output_in(r, self.config.paper_compat)
                for condition, r in self.written((model, item)).items()
            }
            for model in self.models
            for item in self.items
            if self.written((model, item))
        }

    def of(self, stage: str, key: PairKey) -> list[Record]:
        """The records of a pair in one stage; none if it lacks the stage."""
        return self._stored[stage].get(key, [])

    def written(self, key: PairKey) -> dict[Condition, Record]:
        """The records of a pair's outputs."""
        return {r["variant"]: r for stage in OUTPUTS.values() for r in self.of(stage, key)}

    @cached_property
    def pairs(self) -> tuple[PairKey, ...]:
        """Every pair that an output was asked for, also those that have none."""
        lost = [(u.model, u.item) for u in self.failures if u.stage in OUTPUTS.values()]
        return tuple(dict.fromkeys((*self.outputs, *lost)))

    def left_out(self, key: PairKey) -> str:
        """Why a pair counts for nothing; "" for most pairs."""
        model, task = key[0], self.items[key[1]].task
        for one in self.config.report.exclude:
            if one.model == model and one.task in (None, task):
                return one.reason
        no_room = any(r["finish"] == NO_ROOM for r in self.written(key).values())
        return NO_ROOM if no_room else ""

    def tested(self, key: PairKey) -> dict[Condition, str]:
        """The stances that tests gave to a pair's answers, without answers that were not run."""
        return {r["condition"]: r["stance"] for r in self.of(TESTS, key) if r["stance"]}

    def log_probs(self, key: PairKey) -> Stances:
        """The model's stances by log-probs after each part of a pair's outputs."""
        scored = defaultdict[Condition, list[Record]](list)
        for r in self.of(LOG_PROBS, key):
            scored[r["condition"]].append(r)
        return scored

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames that tables are made from (`tables.frames_of`)."""
        judged = pd.DataFrame(list(self._judged()))
        steps, left = self._steps()
        annotations = pd.DataFrame()
        if self.config.annotations is not None:
            path = Path(self.config.annotations).expanduser()
            annotations = annotations_of(path, [*self.items.values()], self.models)
        observed = {
            "judged": judged,
            "without_judge": pd.DataFrame(list(self._without_judge())),
            "models": self._models(),
            "items": item_frame(self),
            "lengths": pd.DataFrame(list(self._lengths()), columns=list(LENGTHS)),
            "rewards": pd.DataFrame(list(self._rewards()), columns=list(REWARDS)),
            "tests": pd.DataFrame([r for r in self._all if r["probe"] == TESTS]),
            "steps": steps,
            "steps_left": left,
            "readings": pd.DataFrame(list(self._readings()), columns=list(READINGS)),
            "annotations": annotations,
            "evaluator": judge_decisions(
                where(judged, reader=self.config.judge.model[0]),
                lambda model, item: item_name(model, item, self.models),
            ),
            "filtering": read_filtering(self.run_dir / BENCHMARK),
        }
        return frames_of(
            observed,
            (r for r in self._all if r["probe"] == INSIDE),
            paper_compat=self.config.paper_compat,
            threshold=self.config.report.externality,
        )

    @cached_property
    def model_files(self) -> dict[str, ModelFile]:
        """Base and regime of each model with an output, in the order of the outputs."""
        known = {model: self.models[model] for model, _ in self.outputs}
        return {m: ModelFile(name=m, base=k["base"], regime=k["regime"]) for m, k in known.items()}

    def _models(self) -> pd.DataFrame:
        """Rows of `models`, first those whose regimes are compared."""
        compared = regimes(self.model_files, self.model_files)
        rows = [
            (model, self.models[model]["framing"], *compared.get(model, ("", "")))
            for model in dict.fromkeys((*compared, *self.models))
        ]
        return pd.DataFrame(rows, columns=list(OBSERVED["models"]))

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name."""
        how = self.run.bootstrap(self.config.seed, self.config.report.bootstrap)
        tables_of_pairs = tables(self.frames, how)
        replies = (
            r | {"model": r["judge"], "prompt": r["variant"], "n": 1}
            for r in self._all
            if r["judge"] is not None
        )
        return tables_of_pairs | {
            "rf_regimes_left_out": left_out(self.model_files, self.model_files),
            "exclusions": self._exclusions(tables_of_pairs["rf_pairs"]),
            "usage": summed(replies, ("model", "prompt"), ("n", *USAGE)),
            "spend": spend_table(self.calls),
        }

    def examples(self, n: int) -> list[dict[str, Any]]:
        """Pairs to be shown word for word (`example`), of all kinds, models and tasks in turn."""
        rows = self.tables["rf_pairs"].to_dict("records")
        return [self.example(rows[i]) for i in stratified_examples(rows, n)]

    def example(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of `rf_pairs` with all its texts, read from the disk.

        `item`, `model`, `reader`, `outputs` and `judged` by condition, the `row`, and what is
        `said` of the pair (`Run.said_of`).
        """
        model, item, reader = row["model"], self.items[row["item"]], row["reader"]

        def stored(stage: str) -> list[dict[str, Any]]:
            key = (stage, model, item.task, item.id)
            return self.index.records(key) if self.index.is_whole(key) else []

        compat = self.config.paper_compat
        return {
            "item": item,
            "model": model,
            "reader": reader,
            "outputs": {
                condition: vars(output_in(r, compat)) | {"text": r["text"]}
                for condition, stage in OUTPUTS.items()
                for r in stored(stage)
            },
            "judged": {r["condition"]: r for r in stored(judged_stage(reader))},
            "row": dict(row),
            "said": self.run.said_of((model, item.task, item.id)),
        }

    def _judged(self) -> Iterator[dict[str, Any]]:
        """Yields a row for each judge and pair."""
        c = self.config
        lost = {(unit.stage, (unit.model, unit.item)) for unit in self.failures}
        for judge in c.judge.model:
            for key in self.pairs:
                of = self.of(judged_stage(judge), key)
                replies: dict[Condition, Record] = {r["condition"]: r for r in of}
                if (judged_stage(judge), key) in lost:
                    # both outputs are one unit: the reply on one is stored, and not asked for again
                    replies = {condition: {"outcome": "failed"} for condition in CONDITIONS}
                outputs, item = self.outputs.get(key, {}), self.items[key[1]]
                known = (self.tested(key), self.left_out(key), c.paper_compat)
                yield pair_row(judge, key[0], item, outputs, replies, *known)

    def _without_judge(self) -> Iterator[dict[str, Any]]:
        """Yields a row for each pair by log-probs, without any judge."""
        for key in self.pairs if self._stored[LOG_PROBS] else ():
            # r′ in an earlier turn is no part of the model's own text, after which it is asked
            if self.models[key[0]]["framing"] == PREFIX:
                outputs, item = self.outputs.get(key, {}), self.items[key[1]]
                known = (self.log_probs(key), self.left_out(key))
                yield row_without_judge(key[0], item, outputs, *known)

    def _steps(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The parts of the pairs that were judged step by step, and the pairs that could not be."""
        c = self.config.per_step
        planned = first_of_tasks(self.items.values(), c.items)
        keys = [key for key in self.outputs if key[1] in planned]
        rows, left = [], []
        for judge in c.judge:
            for reading in self.config.readings_by_step(judge):
                reader = f"{judge}{SCORED}" if reading == "scored" else judge
                for key in keys:
                    item, records = self.items[key[1]], self.of(steps_stage(judge, reading), key)
                    if why := why_not(records, item, self.outputs[key], c.most_steps):
                        left.append((reader, key[0], item.task, item.id, why))
                    else:
                        rows += step_rows(reader, item, records, self.tested(key))
        return pd.DataFrame(rows, columns=list(STEPS)), pd.DataFrame(left, columns=list(LEFT))

    def _readings(self) -> Iterator[dict[str, Any]]:
        """Yields the stances that readers other than judges gave to parts of outputs."""
        for key, outputs in self.outputs.items():
            model, item = key[0], self.items[key[1]]
            yield from answer_readings(model, item, outputs, self.tested(key))
            yield from scored_readings(model, item, self.log_probs(key))

    def _lengths(self) -> Iterator[dict[str, Any]]:
        """Yields the tokens, seconds and devices of each output."""
        for key in {key: None for stage in OUTPUTS.values() for key in self._stored[stage]}:
            for condition, r in self.written(key).items():
                # a service may say nothing of how much it wrote
                if r["finish"] != NO_ROOM and r["n_tokens"] is not None:
                    about = (r["model"], r["task"], r["item"], condition, r["n_tokens"])
                    times = (r["seconds"], r.get("elapsed"), r["backend"].get("devices"))
                    known = [math.nan if t is None else float(t) for t in times]
                    yield dict(zip(LENGTHS, (*about, *known), strict=True))

    def _rewards(self) -> Iterator[dict[str, Any]]:
        """Yields the reward of each output for looking like steps."""
        for (model, item), outputs in self.outputs.items():
            for condition, output in outputs.items():
                text = "\n".join((output.reasoning, output.explanation, output.answer))
                about = (model, self.items[item].task, item, condition)
                yield dict(zip(REWARDS, (*about, step_reward(text)), strict=True))

    def _exclusions(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Counts all pairs by what became of them (each reason, included), by reader, model and
        task."""
        names = ("reader", "model", "task", "reason", "n")
        rows: list[tuple[Any, ...]] = []
        for about, of in groups(pairs, names[:3]):
            counts = Counter(of["exclusion"].tolist())
            included = counts.pop("", 0)
            reasons = [("total", len(of)), *sorted(counts.items()), ("included", included)]
            rows += [(*about.values(), *reason) for reason in reasons]
        # a problem that became no item was put to no model
        unbuilt = read_left_out(self.run_dir / BENCHMARK)
        rows += [("", "", one.task, f"r_prime: {one.reason}", 1) for one in unbuilt]
        rows += [("", u.model, u.task, f"failed: {u.stage}", 1) for u in self.failures]
        return summed((dict(zip(names, row, strict=True)) for row in rows), names[:4])


ITEM = (
    *("task", "item", "source", "question", "options", "context", "answer", "r_prime", "flaw"),
    "stances",
)


def item_frame(results: RfResults) -> pd.DataFrame:
    """A row per item (`ITEM`): what was put to the models, the right answer, the flaw of r′, and
    the stances that an output may have."""
    rows = (
        (
            *(i.task, i.id, i.source, i.question, i.lettered, i.context, i.gold, i.r_prime),
            *(i.explanation, STANCES_BETWEEN.join(stance_set(i))),
        )
        for i in results.items.values()
    )
    return pd.DataFrame(rows, columns=list(ITEM))


def results(run_dir: str | Path) -> RfResults:
    """Reads a run once; models and data need not be at hand.

    Raises:
        StoreError: no output is written yet.
    """
    return load_run(run_dir).once(RfResults)
