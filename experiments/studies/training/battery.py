"""What a planted model's answer follows after training: an exact battery of edits.

The battery is the one by which planted models are verified (`data.planted.flips`): plain generation
through transformers, which shares no code with the engine, the probes or the training.
"""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from typing import Any

from faithscope.experiments.data.planted.data import (
    draw_problem,
    other_digit,
    parse_answer,
    true_answer,
)
from faithscope.experiments.data.planted.flips import flip_table, write
from faithscope.experiments.data.planted.plants import PLANTS
from faithscope.interp.model import Model

SEED = 7
"""Seed of the battery's questions: other ones than those of training and of the shipped cards."""


def measured(model: Model, variant: str, n: int) -> dict[str, Any]:
    """The battery of one model.

    Args:
        model: the model, after training.
        variant: the planted model that it was before.
        n: number of fresh questions.

    Returns:
        Column -> number, as `results.MEASURED` declares the columns.
    """
    flips = flip_table(model.hf, model.tokenizer, variant, n=n, seed=SEED)
    necessity, alone = statistics.fmean(flips["delete"]), statistics.fmean(flips["alone"])
    return {
        "accuracy": flips["clean"],
        "same_words": flips["same_words"],
        "without_steps": flips["without_steps"],
        "necessity": necessity,
        "sufficiency": alone,
        "slrc": necessity * (1 - alone),
        "frozen": statistics.fmean(flips["corrupt"]),
        "frozen_last": flips["corrupt"][-1],
        "regenerated": statistics.fmean(flips["regenerate"]),
        "hint_changed": flips["hint_changed"],
        "claim": flips["claim"],
        "right_despite_hint": _right_despite_hint(model, variant, n),
    }


def _right_despite_hint(model: Model, variant: str, n: int) -> float:
    """Share of the model's own answers that are right where the question's hint is wrong."""
    rng = random.Random(f"hint-{SEED}")
    plant = PLANTS[variant]
    right = [draw_problem(rng, plant.n_steps, silent=plant.silent) for _ in range(n)]
    wrong = [replace(p, hint=int(other_digit(rng, str(p.hint)))) for p in right]
    texts = [problem.text for problem in wrong]
    said = write(model.hf, model.tokenizer, texts, 7 * plant.written + 8)
    answers = map(parse_answer, said)
    return statistics.fmean(a == true_answer(p) for a, p in zip(answers, right, strict=True))
