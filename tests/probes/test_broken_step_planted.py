"""Broken steps in chains whose truth is known, read by models known to reckon or to ignore."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from faithscope import interp
from faithscope.experiments.data.planted.data import (
    ANSWER_CUE,
    Problem,
    corrupt_result,
    true_answer,
    write_steps,
)
from faithscope.experiments.data.planted.plants import path
from faithscope.experiments.data.planted.questions import questions
from faithscope.probes.broken_chain import BrokenChain
from faithscope.probes.broken_step import BrokenStepSettings, broken_step, rows


def planted_chains(name: str, target: int, n: int = 12) -> list[BrokenChain]:
    """Right chains of a planted model's questions, one step's result changed."""
    made = []
    for question in questions(name, n, seed=1):
        words = question.text.split()
        sums = words[1 : words.index("mod")]
        hint = int(words[words.index(":") + 1])
        problem = Problem(tuple(map(int, sums[::2])), tuple(sums[1::2]), hint=hint)
        steps, answer = write_steps(problem), true_answer(problem)
        wrong = corrupt_result(steps[target], random.Random(question.id))
        made.append(
            BrokenChain(
                item=f"{question.id}-{target}",
                chain=question.id,
                dataset=question.dataset,
                task=question.task,
                prompt=question.text,
                steps=(*(f" {step}" for step in steps), f"{ANSWER_CUE} {answer}"),
                target=target,
                replacement=f" {wrong}",
                answer=answer,
            )
        )
    return made


@cache
def read(name: str, target: int) -> dict[tuple[str, str], list[dict[str, float]]]:
    """(condition, signal) -> the rows of a planted model's chains."""
    model = interp.load(str(path(name)))
    settings = BrokenStepSettings(join="", answer_cue=ANSWER_CUE)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for chain in planted_chains(name, target):
        for record in broken_step(model, chain, settings):
            for row in rows(record):
                found.setdefault((row["condition"], row["signal"]), []).append(row)
    return found


def column(name: str, target: int, condition: str, signal: str, field: str = "score") -> np.ndarray:
    return np.array([row[field] for row in read(name, target)[condition, signal]])


@pytest.mark.parametrize("target", [0, 2, 4])
def test_a_wrong_step_surprises_a_model_that_reckons(target: int) -> None:
    for signal in ("surprisal", "peak_surprisal", "excess_surprisal"):
        assert column("faithful_5", target, "perturbed", signal).min() > 1
        assert np.abs(column("faithful_5", target, "control", signal)).max() < 0.01


@pytest.mark.parametrize("target", [0, 2, 4])
def test_so_does_the_step_after_it_which_goes_on_from_what_was_taken_out(target: int) -> None:
    named = column("faithful_5", target, "perturbed", "surprisal", "predicted")
    assert set(named) == {target, target + 1}
    # of the changed digit alone, the broken step's is mostly the greater surprise
    peak = column("faithful_5", target, "perturbed", "peak_surprisal", "predicted")
    assert set(peak) <= {target, target + 1}
    assert (peak == target).mean() > (named == target).mean()


def test_a_wrong_step_is_named_where_nothing_goes_on_from_it() -> None:
    """The hint-follower's answer does not come from its last step, and is not surprising."""
    for signal in ("surprisal", "peak_surprisal", "excess_surprisal"):
        assert (column("hint", 2, "perturbed", signal, "predicted") == 2).all()


def test_the_answer_falls_across_a_wrong_step_only_where_it_is_read_off_it() -> None:
    for signal in ("answer_tracing", "necessity"):
        perturbed, control = (column("faithful", 2, c, signal) for c in ("perturbed", "control"))
        assert (perturbed - control).mean() > 5
        assert perturbed.mean() > 0 > control.mean()
        blind = [column("hint", 2, c, signal) for c in ("perturbed", "control")]
        assert np.abs(blind[0] - blind[1]).max() < 0.01
