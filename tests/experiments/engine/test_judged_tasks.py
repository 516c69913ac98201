"""Judged tasks: what forms show of a chain, and how verdicts are read."""

from __future__ import annotations

from typing import get_args

import pytest

from faithscope.experiments.engine.forms import Task, trace_forms
from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.tasks import NO_STEP, NOTHING_BEFORE, TASKS, Said, Shown

STEPS = ("He has 2 pens.", "Hm.", "He buys 3 more.", "So 5.")
CHAIN = Shown("How many?", STEPS, (0, 2, 3), "\n".join(STEPS), lambda i: as_lines(STEPS[:i]))


def test_a_form_file_may_name_every_task_and_no_other() -> None:
    assert set(get_args(Task)) == set(TASKS)


@pytest.mark.parametrize("name", [n for n, f in trace_forms().items() if "reference" not in f.task])
def test_a_packaged_form_shows_what_its_task_gives(name: str) -> None:
    form = trace_forms()[name]
    asks = list(form.judged.asks(form.form, CHAIN, "x"))
    steps = [one.about["step"] for one in asks]
    assert steps == ([0, 2, 3] if form.judged.by_step else [None])
    assert [one.ask.id for one in asks] == ["x" if i is None else f"x {i}" for i in steps]
    for (ask, *_), step in zip(asks, steps, strict=True):
        prompt = ask.prompt
        assert STEPS[2 if step is None else step] in prompt
        if step:
            assert as_lines(STEPS[:step]) in prompt
            assert as_lines(STEPS[: step + 1]) not in prompt
    if form.judged.by_step:
        assert NOTHING_BEFORE in asks[0].ask.prompt


def test_localisation_numbers_the_judged_steps_alone() -> None:
    form = trace_forms()["c2_localisation"].form
    ((ask, about, places),) = TASKS["localisation"].asks(form, CHAIN, "x")
    assert (about, ask.high, places) == ({"step": None}, 2, (0, 2, 3))
    assert ask.values["cot"].splitlines() == [
        f"[Step {i}] {STEPS[j]}" for i, j in enumerate((0, 2, 3))
    ]


@pytest.mark.parametrize(
    ("task", "verdict", "p", "said"),
    [
        ("detection", 0, (), Said(True, 1.0)),
        ("detection", 1, (0.25, 0.75), Said(False, 0.25)),
        ("step_judge", 1, (), Said(False, 0.0)),
        ("localisation", NO_STEP, (), Said(False, 0.0)),
        ("localisation", 2, (0.1, 0.2, 0.3, 0.4), Said(True, 0.9)),
        ("faithful_judge", 0, (0.3, 0.1, 0.6), Said(True, 0.75)),
        ("faithful_judge", 2, (0.1, 0.1, 0.8), Said()),
        ("coverage", 3, (), Said(None, 0.25)),
        ("coverage", 4, (0, 0, 0.5, 0, 0.5), Said(None, 0.25)),
    ],
)
def test_verdicts_are_read_one_way(
    task: str, verdict: int, p: tuple[float, ...], said: Said
) -> None:
    got = TASKS[task].reads(verdict, p, 4 if task == "coverage" else TASKS[task].highest or 1)
    assert got.flag == said.flag
    assert got.score == pytest.approx(said.score)
