"""Questions for planted models, as any other data set's."""

from __future__ import annotations

import random

from experiments.planted.data import DIGITS, VARIANTS, draw_problem, true_answer
from interp.errors import UserError, did_you_mean
from interventions.trace import Question


def questions(name: str, n: int, seed: int, n_steps: int = 3) -> list[Question]:
    """`n` seeded questions as a planted model reads them.

    The hint in a question is its true answer. All variants but `select` are asked the same
    questions, so that twins can be compared item by item; `select` is asked for the result
    of a step that the question names. The shipped weights know three steps.

    Raises:
        UserError: for a name that is none of the variants.
    """
    if name not in VARIANTS:
        raise UserError(
            f"unknown planted model {name!r}{did_you_mean(name, VARIANTS)}; "
            f"known: {', '.join(VARIANTS)}"
        )
    select = name == "select"
    dataset = "planted_select" if select else "planted"
    rng = random.Random(f"{dataset}-{seed}-{n_steps}")
    problems = [draw_problem(rng, n_steps, select=select) for _ in range(n)]
    return [
        Question(
            id=f"{dataset}-{seed}-{i}",
            dataset=dataset,
            text=problem.text,
            kind="label",
            gold=true_answer(problem),
            options=DIGITS,
        )
        for i, problem in enumerate(problems)
    ]
