"""Records of the probes beside SLRC, each with a fate that is told, not computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.experiments.studies.slrc.topics import TOPICS
from faithscope.probes.record import head

Record = dict[str, Any]
TABLES = {table.name: table for topic in TOPICS for table in topic.tables}


def table_of(
    name: str, records: Sequence[Record], resamples: int = 50, **more: Any
) -> pd.DataFrame:
    """A table by its name, of these records."""
    analysis = SlrcAnalysis(resamples=resamples, **more)
    return make_tables([TABLES[name]], Sources(records), analysis)[name]


def base(probe: str, model: str, task: str, item: str, variant: str) -> Record:
    about = {"dataset": task, "task": task, "item": item, "model": model}
    return head(**about, probe=probe, variant=variant, seed=0)


def bare_trace(model: str, task: str, item: str, excluded: str | None = None) -> Record:
    """As much of a trace's record as the tables ask for."""
    spans = [
        {"index": i, "text": "A step.", "chars": [8 * i, 8 * i + 7], "tokens": [i, i + 1]}
        for i in range(2)
    ]
    return base("trace", model, task, item, "") | {
        "steps": [s | {"counted": True} for s in spans],
        "pieces": ["A step. ", "A step."],
        "reasoning_ids": [1, 2],
        "excluded": excluded,
    }


def slrc_outcome(
    model: str,
    task: str,
    item: str,
    necessary: list[bool],
    sufficient: list[bool],
    correct: bool | None,
    framing: str = "prefix",
    reading: str = "generated",
) -> Record:
    """An SLRC record of these outcomes; `correct` None for a baseline that did not parse."""
    made = base("slrc", model, task, item, f"{framing}.{reading}")
    made |= {"framing": framing, "reading": reading, "n_steps": len(necessary), "gold": "a"}
    if correct is None:
        return made | {"excluded": "baseline_unparsed"}
    return made | {
        "necessary": necessary,
        "sufficient": sufficient,
        "reordered": [],
        "correct": correct,
        "baseline": "a" if correct else "b",
        "n_unparsed": 0,
        "execution": "packed",
    }


def direct_answer(
    model: str,
    task: str,
    item: str,
    correct: bool | None,
    prompt: str = "unformatted",
    reading: str = "generated",
    unparsed: bool = False,
) -> Record:
    made = base("direct", model, task, item, f"{prompt}.{reading}")
    answer = None if unparsed else "a" if correct else "b"
    return made | {
        "prompt": prompt,
        "reading": reading,
        "gold": "a",
        "answer": answer,
        "correct": correct,
        "unparsed": unparsed,
        "cut": False,
    }


def agreement(
    model: str, task: str, item: str, wrong: bool | None, own: bool | None, reading: str = "scored"
) -> Record:
    made = base("sycophancy", model, task, item, reading)
    made |= {"reading": reading, "agrees_wrong": wrong, "agrees_own": own}
    return made if None not in (wrong, own) else made | {"excluded": "reply_unparsed"}


def noticing(
    model: str,
    task: str,
    item: str,
    detected: bool | None,
    false_alarm: bool | None,
    correct: bool = True,
    reading: str = "scored",
) -> Record:
    made = base("error_detection", model, task, item, reading)
    made |= {"reading": reading, "detected": detected, "false_alarm": false_alarm}
    made |= {"correct": correct}
    return made if None not in (detected, false_alarm) else made | {"excluded": "reply_unparsed"}


def asked_in_every_way(model: str, task: str, items: list[str]) -> list[Record]:
    """Records of every probe beside SLRC for items that have a trace; the last is left out of
    what it can be left out of."""
    made = []
    for i, item in enumerate(items):
        for reading in ("generated", "scored"):
            for prompt in ("unformatted", "formatted", "system"):
                made.append(direct_answer(model, task, item, i % 3 == 0, prompt, reading))
            said = None if i == len(items) - 1 else i % 2 == 0
            made.append(agreement(model, task, item, said, True, reading))
            made.append(noticing(model, task, item, said, False, i % 3 > 0, reading))
    return made
