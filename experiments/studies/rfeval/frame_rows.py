"""Rows of the tidy frames that tables are made from: what each reader made of what was stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.tidy import groups, summed
from faithscope.experiments.studies.rfeval.asks import Condition
from faithscope.experiments.studies.rfeval.counterfactuals.annotations import item_name
from faithscope.experiments.studies.rfeval.counterfactuals.built import read_left_out
from faithscope.experiments.studies.rfeval.inside.scored_stances import scored_readings
from faithscope.experiments.studies.rfeval.inside.without_judge import row_without_judge
from faithscope.experiments.studies.rfeval.judging.step_results import COUNTED, reader_of
from faithscope.experiments.studies.rfeval.metrics.evaluator import DECISION
from faithscope.experiments.studies.rfeval.metrics.frames import FLAWS, SAID, STANCES
from faithscope.experiments.studies.rfeval.metrics.lengths import LENGTHS
from faithscope.experiments.studies.rfeval.pairs import answer_readings, pair_row
from faithscope.experiments.studies.rfeval.plan import FOLDER
from faithscope.experiments.studies.rfeval.records import NO_ROOM
from faithscope.experiments.studies.rfeval.run_records import RfStored
from faithscope.experiments.studies.rfeval.subjects.injection import PREFIX
from faithscope.experiments.studies.rfeval.units import first_of_tasks, steps_stage
from faithscope.probes.judge.form import Reply


def pairs(run: RfStored) -> Iterator[dict[str, Any]]:
    """A row for each judge and pair."""
    naming = run.config.naming
    for judge in run.config.judge.model:
        of_judge = run.judged.get(judge, {})
        for key in run.pairs:
            model, item = key[0], run.items[key[1]]
            replies: dict[Condition, Reply] = {
                c: Reply(r["outcome"], r["values"]) for c, r in of_judge.get(key, {}).items()
            }
            yield pair_row(
                judge,
                model,
                item,
                run.outputs.get(key, {}),
                replies,
                run.tests_of(key),
                run.left_out(key),
                naming,
                run.config.paper_compat,
            )


def unjudged(run: RfStored) -> Iterator[dict[str, Any]]:
    """A row for each pair, read without any judge."""
    if not run.log_probs:
        return
    for key in run.pairs:
        if run.framings[key[0]] != PREFIX:
            continue  # r′ is no part of its own text, after which it could be asked
        yield row_without_judge(
            key[0],
            run.items[key[1]],
            run.outputs.get(key, {}),
            run.log_probs.get(key, {}),
            run.left_out(key),
            run.config.naming,
        )


def steps(run: RfStored) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs as read step by step, and those that were left out of it."""
    c = run.config
    stages = {
        steps_stage(judge, reading): reader_of(judge, reading)
        for judge in c.per_step.judge
        for reading in c.readings_by_step(judge)
    }
    planned = first_of_tasks(run.items.values(), c.per_step.items)
    tested = {key: run.tests_of(key) for key in run.outputs}
    return run.by_step.frames(
        stages, run.items, planned, run.outputs, tested, c.per_step.most_steps
    )


def readings(run: RfStored) -> Iterator[dict[str, Any]]:
    """What each way of reading made of each part of an output."""
    for key, written in run.outputs.items():
        model, item = key[0], run.items[key[1]]
        yield from answer_readings(model, item, written, run.tests_of(key), run.config.naming)
        yield from scored_readings(model, item, run.log_probs.get(key, {}))


def lengths(run: RfStored) -> Iterator[dict[str, Any]]:
    """Tokens, seconds and devices of each output."""
    for (model, item), conditions in run.written.items():
        for condition, r in conditions.items():
            # a service may say nothing of how much it wrote
            if r["finish"] != NO_ROOM and r["n_tokens"] is not None:
                about = (model, run.items[item].task, item, condition, r["n_tokens"])
                times = (r["seconds"], r.get("elapsed"), r["backend"].get("devices"))
                times = [math.nan if t is None else float(t) for t in times]
                yield dict(zip(LENGTHS, (*about, *times), strict=True))


def items(run: RfStored) -> Iterator[dict[str, Any]]:
    """What was put to the models."""
    for item in run.items.values():
        yield {
            "task": item.task,
            "item": item.id,
            "question": item.question,
            "options": item.lettered,
            "context": item.context,
            "r_prime": item.r_prime,
        }


def evaluator(run: RfStored, frame: pd.DataFrame) -> pd.DataFrame:
    """What the first judge said of each part, as people's labels name them: of programs too what
    it took their answers for, not what came of their tests."""
    rows = []
    for r in frame.to_dict("records"):
        if r["reader"] != run.config.judge.model[0]:
            continue
        item = item_name(r["model"], r["item"], run.models)
        own = {n: str(r[SAID.get(n, n)]) for n in STANCES}
        rows += [(item, n, "stance", stance) for n, stance in own.items() if stance]
        rows += [
            (item, n, "flaw", str(bool(r[n])))
            for n in FLAWS
            if r[f"{n.partition('_')[0]}_judged"] == "parsed"
        ]
    return pd.DataFrame(rows, columns=[*DECISION, "label"])


def exclusions(run: RfStored, pairs: pd.DataFrame) -> pd.DataFrame:
    """Where every pair went: total, each reason, included, by reader, model and task."""
    rows = []
    for about, of in groups(pairs, ("reader", "model", "task")):
        counts = Counter(of["exclusion"].tolist())
        included = counts.pop("", 0)
        reasons = [("total", len(of)), *sorted(counts.items()), ("included", included)]
        rows += [about | {"reason": reason, "n": n} for reason, n in reasons]
    # what became no item was put to no model
    rows += [
        {"reader": "", "model": "", "task": one.task, "reason": f"r_prime: {one.reason}", "n": 1}
        for one in read_left_out(run.run_dir / FOLDER)
    ]
    rows += [
        {"reader": "", "model": u.model, "task": u.task, "reason": f"failed: {u.stage}", "n": 1}
        for u in run.failures
    ]
    return summed(rows, ("reader", "model", "task", "reason"))


def tests(run: RfStored) -> pd.DataFrame:
    """How many outputs of code came to what in their tests.

    `test_broken`, `no_sandbox` and `not_run` say nothing of an answer: its stance is the judge's.
    """
    names = ("model", "task", "condition", "outcome")
    rows = [
        dict(zip(names, (key[0], run.items[key[1]].task, condition, outcome), strict=True))
        for key, outcomes in run.test_outcomes.items()
        for condition, outcome in outcomes.items()
    ]
    return summed((row | {"n": 1} for row in rows), names)


def usage(run: RfStored) -> pd.DataFrame:
    """Calls and tokens of every judge, by form."""
    rows = [
        {"model": judge, "prompt": r["variant"], "n": 1} | {name: r[name] for name in COUNTED}
        for judge, of in run.judged.items()
        for conditions in of.values()
        for r in conditions.values()
    ]
    rows += [
        {"model": judge, "prompt": form} | used for (judge, form), used in run.by_step.usage.items()
    ]
    return summed(rows, ("model", "prompt"), ("n", *COUNTED))
