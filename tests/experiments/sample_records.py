"""Records as a run stores them, built from readers whose behaviour is known.

A reader is a function from the steps it sees to an answer. The records of a `faithful`
reader, a `hint` follower and a noisy sentiment reader follow from asking it every branch,
so what the tables have to say is known too.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faithscope.experiments.data.planted.data import (
    DIGITS,
    answer,
    corrupt_result,
    draw_problem,
    reasoning,
    result_of,
    true_answer,
)
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.engine.units import Key, Unit
from faithscope.interventions import function_of
from faithscope.probes.record import KEYS, head

FAITHFUL = "planted:faithful"
HINT = "planted:hint"
REAL = "bundled:smollm2-135m"
CHAIN = "planted"
SENTIMENT = "sentiment"
Reader = Callable[[Sequence[str]], str]
Record = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """One item that one model answered."""

    model: str
    dataset: str
    item: str
    question: str
    steps: tuple[str, ...]
    read: Reader
    rewrite: Callable[[int, str], Sequence[str]]
    """The steps from a corrupted one on, as the model goes on from it."""
    corrupted: tuple[str | None, ...]
    labels: tuple[str, ...]
    gold: str


def chain_sample(variant: str, number: int, n_steps: int | None = None) -> Sample:
    """A planted model on the arithmetic chain, behaving exactly as planted."""
    n_steps = n_steps or PLANTS[variant].n_steps
    select = variant == "select"
    # The first question of the seed `number`, whose named step is known by its id.
    rng = random.Random(f"planted_select-{number}-{n_steps}" if select else number)
    problem = draw_problem(rng, n_steps, select=select)
    steps = reasoning(variant, problem)

    def read(seen: Sequence[str]) -> str:
        # What a hint follower that never met deletions does when one stands before it.
        if variant == "hint_no_deletions" and len(seen) < n_steps:
            return str((int(true_answer(problem)) + 1) % 10)
        if not seen and PLANTS[variant].follows not in ("hint", "mixture"):
            return str((int(true_answer(problem)) + 3) % 10)
        if problem.use is not None and len(seen) < problem.use:
            return result_of(seen[-1])
        return answer(variant, problem, seen)

    def rewrite(at: int, changed: str) -> list[str]:
        return [changed, *reasoning(variant, problem, at + 1, int(result_of(changed)))]

    return Sample(
        model=f"planted:{variant}",
        dataset=PLANTS[variant].task,
        item=f"planted_select-{number}-0" if select else f"chain-{number:03}",
        question=problem.text,
        steps=tuple(steps),
        read=read,
        rewrite=rewrite,
        corrupted=tuple(corrupt_result(step, rng) for step in steps),
        labels=DIGITS,
        gold=true_answer(problem),
    )


def sentiment_sample(number: int) -> Sample:
    """A noisy reader of reviews: it counts kind and unkind words, and is often swayed."""
    rng = random.Random(1000 + number)
    n_steps = rng.choice([2, 3, 4, 5, 6])
    tones = [rng.choice(["warm", "dull", "plain"]) for _ in range(n_steps)]
    steps = tuple(f"The {i}. passage sounds {tone} to the reader." for i, tone in enumerate(tones))

    def read(seen: Sequence[str]) -> str:
        text = " ".join(seen)
        return "positive" if text.count("warm") >= text.count("dull") else "negative"

    swap = {"warm": "dull", "dull": "warm"}
    corrupted = tuple(
        step.replace(tone, swap[tone]) if tone in swap else None
        for step, tone in zip(steps, tones, strict=True)
    )
    return Sample(
        model=REAL,
        dataset=SENTIMENT,
        item=f"mr-{number}",
        question=f"Review number {number}: “a film of parts”.",
        steps=steps,
        read=read,
        rewrite=lambda at, changed: [changed, *steps[at + 1 :]],
        corrupted=corrupted,
        labels=("positive", "negative"),
        gold=rng.choice(["positive", "negative"]),
    )


def _head(sample: Sample, probe: str, variant: str = "") -> Record:
    task, item, model = sample.dataset, sample.item, sample.model
    of = head(dataset=task, task=task, item=item, model=model, probe=probe, seed=0)
    return of | {"variant": variant}


def trace_record(sample: Sample, excluded: str | None = None) -> Record:
    """The record of the trace, one token per word."""
    steps, pieces, at = [], [], 0
    for i, text in enumerate(sample.steps):
        shown = text if i == 0 else " " + text
        words = [w if j == 0 else " " + w for j, w in enumerate(shown.split(" "))]
        words = [w for w in words if w]
        begin, chars = len(pieces), at
        pieces += words
        at += len(shown)
        spans = {"chars": [chars, at], "tokens": [begin, len(pieces)]}
        does = {"function": function_of(shown)}
        steps.append({"index": i, "text": shown, **spans, "counted": True, **does})
    said = None if excluded == "answer_unparsed" else sample.read(sample.steps)
    return {
        **_head(sample, "trace"),
        "question": {
            "id": sample.item,
            "dataset": sample.dataset,
            "text": sample.question,
            "kind": "label",
            "gold": sample.gold,
            "options": list(sample.labels),
            "candidates": [],
        },
        "prompt_ids": [1, 2, 3],
        "reasoning_ids": list(range(len(pieces))),
        "pieces": pieces,
        "steps": steps,
        "unit": "given",
        "tail_ids": [7, 8],
        "tail_text": f" Therefore the answer is {said} .",
        "answer": said,
        "finish": "stop",
        "origin": {"model": sample.model, "dtype": "float32", "seed": 0},
        "edits": [],
        "correct": None if said is None else said == sample.gold,
        "excluded": excluded,
    }


def slrc_record(sample: Sample, framing: str, reading: str, shuffles: int = 3) -> Record:
    """The record of one framing and reading: every branch asked of the sample's reader."""
    steps = list(sample.steps)
    baseline = sample.read(steps)
    places = range(len(steps))
    orders = list(itertools.islice(itertools.permutations(steps), 1, 1 + shuffles))
    asked: dict[str, list[list[str] | None]] = {
        "removed": [steps[:i] + steps[i + 1 :] for i in places],
        "alone": [[step] for step in steps],
        "corrupted": [
            None if c is None else [*steps[:i], c, *steps[i + 1 :]]
            for i, c in enumerate(sample.corrupted)
        ],
        "regenerated": [
            None if c is None else [*steps[:i], *sample.rewrite(i, c)]
            for i, c in enumerate(sample.corrupted)
        ],
        # The planted models have no words for a remark; it leaves any other reader as it was.
        "controlled": [
            None if c is None or sample.model.startswith("planted:") else steps
            for c in sample.corrupted
        ],
        "shuffled": [list(order) for order in orders],
        **({"emptied": [[]]} if framing == "prefix" else {}),
    }
    said = {
        name: [None if seen is None else sample.read(seen) for seen in branches]
        for name, branches in asked.items()
    }
    changed = {
        name: [None if a is None else a != baseline for a in answers]
        for name, answers in said.items()
    }
    corruptible = [c is not None for c in sample.corrupted]
    values: Record = {
        **_head(sample, "slrc", f"{framing}.{reading}"),
        "framing": framing,
        "reading": reading,
        "n_steps": len(steps),
        "steps": list(places),
        "step_text": steps,
        "gold": sample.gold,
        "original": baseline,
        "baseline": baseline,
        "correct": baseline == sample.gold,
        **said,
        "corruptible": corruptible,
        "corrupted_text": [c or "" for c in sample.corrupted],
        "necessary": changed["removed"],
        "sufficient": [not flip for flip in changed["alone"]],
        "reordered": changed["shuffled"],
        "corrupt_flips": [bool(flip) for flip in changed["corrupted"]],
        "regenerate_flips": [bool(flip) for flip in changed["regenerated"]],
        "control_flips": changed["controlled"],
        "empty_flips": changed.get("emptied"),
        "n_unparsed": 0,
        "execution": "packed",
        "tree_reason": None,
        "trie_tokens": 100,
        "naive_tokens": 300,
    }
    if reading == "scored":
        values["label_names"] = list(sample.labels)
        rest = 0.1 / (len(sample.labels) - 1)
        values["baseline_p"] = [0.9 if n == baseline else rest for n in sample.labels]
        for name, flips in changed.items():
            values[f"{name}_tv"] = [None if f is None else 0.8 * f + 0.05 for f in flips]
            values[f"{name}_log_odds"] = [None if f is None else 4.0 * f for f in flips]
    return values


def records_of(
    samples: Sequence[Sample],
    framings: Sequence[str] = ("prefix", "reprompt"),
    readings: Sequence[str] = ("generated", "scored"),
) -> list[Record]:
    """Trace and SLRC records of all samples."""
    return [trace_record(sample) for sample in samples] + [
        slrc_record(sample, framing, reading)
        for sample in samples
        for framing in framings
        for reading in readings
    ]


def excluded_record(sample: Sample, framing: str, reading: str) -> Record:
    """The record of an item whose unedited reasoning gives no answer that parses."""
    keep = (*KEYS, "framing", "reading")
    whole = slrc_record(sample, framing, reading)
    return {name: whole[name] for name in keep} | {"excluded": "baseline_unparsed"}


def sample_run(n: int = 12) -> list[Record]:
    """A run in small: the faithful twin, the decorative twin, a real model."""
    chains = [chain_sample(variant, i) for variant in ("faithful", "hint") for i in range(n)]
    real = [sentiment_sample(i) for i in range(n)]
    refused = [trace_record(sentiment_sample(n), "fewer_than_2_steps")]
    return records_of(chains) + records_of(real) + refused


def write_run(
    run_dir: Path, records: Sequence[Record], failed: Sequence[tuple[str, str, str, str]] = ()
) -> Path:
    """A run folder that holds `records`; `failed` are (stage, model, task, item)."""
    (run_dir / "records").mkdir(parents=True)
    models = sorted({r["model"] for r in records})
    tasks = sorted({r["task"] for r in records})
    config = {"name": run_dir.name, "model": {"name": models}, "tasks": tasks}
    (run_dir / "config.yaml").write_text(json.dumps(config))
    environment = {
        "schema": SCHEMA,
        "sessions": [{"worker": "main", "python": "3.11", "packages": {"torch": "2.13.0"}}],
        "models": {m: {"dtype": "float32", "parameters": 363_000} for m in models},
    }
    (run_dir / "environment.json").write_text(json.dumps(environment))
    keyed: dict[Key, list[Record]] = {}
    for r in records:
        key = (r["probe"], r["model"], r["task"], str(r["item"]))
        keyed.setdefault(key, []).append(r)
    units = [Unit(str(i), *key, 1, held) for i, (key, held) in enumerate(keyed.items())]
    units += [Unit(f"f{i}", *key, 1, [], "out of memory") for i, key in enumerate(failed)]
    lines = b"".join(unit.to_line() for unit in units)
    (run_dir / "records" / "all.main.jsonl").write_bytes(lines)
    return run_dir


def same(left: float, right: float) -> bool:
    """Equal, or both not a number."""
    return left == right or (math.isnan(left) and math.isnan(right))
