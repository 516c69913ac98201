"""Questions for planted models, in the form of any other data set's questions."""

from __future__ import annotations

import random
from functools import cache

from faithscope.experiments.data.planted.data import (
    DIGITS,
    Problem,
    draw_problem,
    true_answer,
)
from faithscope.experiments.data.planted.plants import PLANTS, plant_named
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question


def questions(name: str, n: int, seed: int) -> list[Question]:
    """`n` seeded questions as the planted model `name` reads them, with as many operations as it
    knows.

    The hint in a question is its true answer. All variants of one length but `select` are
    asked the same questions, so that twins can be compared item by item; `select` is asked
    for the result of a step that the question names.

    Raises:
        UserError: `name` is none of the variants.
    """
    dataset = plant_named(name).task
    return [
        Question(
            id=f"{dataset}-{seed}-{i}",
            dataset=dataset,
            text=problem.text,
            kind="label",
            gold=true_answer(problem),
            options=DIGITS,
        )
        for i, problem in enumerate(_problems(name, n, seed))
    ]


def _problems(name: str, n: int, seed: int) -> list[Problem]:
    plant = PLANTS[name]
    rng = random.Random(f"{plant.task}-{seed}-{plant.n_steps}")
    select = plant.follows == "named"
    # all models of a task read the same questions, those that write every operation, too
    silent = max(p.silent for p in PLANTS.values() if p.task == plant.task)
    return [draw_problem(rng, plant.n_steps, select=select, silent=silent) for _ in range(n)]


def named_step(item: str) -> int:
    """The step, counted from 0, that a question of `select` asks for.

    Args:
        item: the question's id, `planted_select-SEED-NUMBER`.

    Raises:
        UserError: `item` is no id of such a question.
    """
    return (problem_asked("select", item).use or 0) - 1


def problem_asked(name: str, item: str) -> Problem:
    """The problem of a question that the planted model `name` reads.

    Args:
        item: the question's id, `TASK-SEED-NUMBER`.

    Raises:
        UserError: `item` is no id of such a question.
    """
    dataset, *rest = item.split("-")
    if dataset != PLANTS[name].task or len(rest) != 2 or not all(x.isdigit() for x in rest):
        raise UserError(f"{item!r} is no question of the planted model {name!r}")
    seed, number = map(int, rest)
    return _drawn(name, seed, number // _BLOCK)[number % _BLOCK]


_BLOCK = 256


@cache
def _drawn(name: str, seed: int, block: int) -> tuple[Problem, ...]:
    """The problems of one block of questions, after drawing the blocks before it again."""
    return tuple(_problems(name, (block + 1) * _BLOCK, seed)[-_BLOCK:])
