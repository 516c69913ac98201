"""Judged tasks: what forms show of a chain, and how verdicts are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.analysis.verdicts import UNCERTAIN, verdict_of
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.engine.forms import as_files, trace_forms
from faithscope.experiments.engine.forms.lines import as_lines
from faithscope.experiments.engine.forms.tasks import (
    NO_STEP,
    NOTHING_BEFORE,
    TASKS,
    ChainView,
    Verdict,
)
from faithscope.experiments.engine.models.judging import Case, of_cases, put_to
from faithscope.interp.errors import UserError
from faithscope.probes.judge.form import Reply
from faithscope.probes.judge.template import Listed

STEPS = ("He has 2 pens.", "Hm.", "He buys 3 more.", "So 5.")
VALUES = {"question": "How many?", "cot": "\n".join(STEPS), "steps": Listed(STEPS)}
VALUES |= {"answer": "5", "cue": "I think it is 5.", "cue_target": "5"}
CHAIN = ChainView(
    "How many?", STEPS, (0, 2, 3), "\n".join(STEPS), lambda i: as_lines(STEPS[:i]), VALUES
)


def test_a_form_of_an_unknown_task_is_refused_with_a_guess(tmp_path: Path) -> None:
    text = as_files(trace_forms())["legibility.yaml"]
    (tmp_path / "legibility.yaml").write_text(text.replace("task: legibility", "task: legible"))
    with pytest.raises(UserError, match="unknown task 'legible'; did you mean 'legibility'"):
        trace_forms(tmp_path)


@pytest.mark.parametrize("name", [n for n, f in trace_forms().items() if "reference" not in f.task])
def test_a_packaged_form_shows_what_its_task_gives(name: str) -> None:
    form = trace_forms()[name]
    asks = list(form.judged.asks(form.form, CHAIN, "x"))
    steps = [one.about["step"] for one in asks]
    if name == "answer_monitor":
        assert steps == [NO_STEP, 0, 2, 3]
        assert [STEPS[3] in one.ask.prompt for one in asks] == [False, False, False, True]
        return
    assert steps == ([0, 2, 3] if form.judged.by_step else [None])
    assert [one.ask.id for one in asks] == ["x" if i is None else f"x {i}" for i in steps]
    for (ask, *_), step in zip(asks, steps, strict=True):
        prompt = ask.prompt
        assert STEPS[2 if step is None else step] in prompt
        if step and name.startswith("monitor"):
            # what is judged stands in the whole text
            assert f"<STEP>\n{STEPS[step]}\n</STEP>" in prompt
            assert CHAIN.values["cot"] in prompt
        elif step:
            assert as_lines(STEPS[:step]) in prompt
            assert as_lines(STEPS[: step + 1]) not in prompt
    if form.judged.by_step and not name.startswith("monitor"):
        assert NOTHING_BEFORE in asks[0].ask.prompt


def test_localisation_numbers_the_judged_steps_alone() -> None:
    form = trace_forms()["c2_localisation"].form
    ((ask, about, places, _),) = TASKS["localisation"].asks(form, CHAIN, "x")
    assert (about, ask.high, places) == ({"step": None}, 2, (0, 2, 3))
    assert ask.values["cot"].splitlines() == [
        f"[Step {i}] {STEPS[j]}" for i, j in enumerate((0, 2, 3))
    ]


@pytest.mark.parametrize(
    ("task", "verdict", "p", "said"),
    [
        ("detection", 0, (), Verdict(True, 1.0)),
        ("detection", 1, (0.25, 0.75), Verdict(False, 0.25)),
        ("step_judge", 1, (), Verdict(False, 0.0)),
        ("localisation", NO_STEP, (), Verdict(False, 0.0)),
        ("localisation", 2, (0.1, 0.2, 0.3, 0.4), Verdict(True, 0.9)),
        ("faithful_judge", 0, (0.3, 0.1, 0.6), Verdict(True, 0.75)),
        ("faithful_judge", 2, (0.1, 0.1, 0.8), Verdict()),
        ("coverage", 3, (), Verdict(None, 0.25)),
        ("coverage", 4, (0, 0, 0.5, 0, 0.5), Verdict(None, 0.25)),
    ],
)
def test_verdicts_are_read_one_way(
    task: str, verdict: int, p: tuple[float, ...], said: Verdict
) -> None:
    got = TASKS[task].reads(verdict, p, 4 if task == "coverage" else TASKS[task].highest or 1)
    assert got.flag == said.flag
    assert got.score == pytest.approx(said.score)


def _records(*verdicts: int | None, p: tuple[tuple[float, ...], ...] = ()) -> list[dict[str, Any]]:
    outcomes = ("parsed" if verdict is not None else "refused" for verdict in verdicts)
    probabilities = p or [()] * len(verdicts)
    names = ("step", "verdict", "outcome", "probabilities")
    rows = zip(range(len(verdicts)), verdicts, outcomes, probabilities, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("task", "records", "verdict"),
    [
        ("step_judge", _records(1, 0, 1, 1), ("parsed", 4, 0, True, 0.25, 1, None)),
        ("step_judge", _records(1, 1), ("parsed", 2, 0, False, 0.0, NO_STEP, None)),
        # a step without a verdict leaves open what comes after it
        ("step_judge", _records(1, None), ("refused", 2, 1, None, 0.0, None, None)),
        ("step_judge", _records(None, 0), ("refused", 2, 1, True, 1.0, None, None)),
        ("step_judge", _records(0, None), ("refused", 2, 1, True, 1.0, 0, None)),
        ("step_judge", _records(None), ("refused", 1, 1, None, None, None, None)),
        (
            "detection",
            _records(1, 1, p=((0.2, 0.8), (0.4, 0.6))),
            ("parsed", 2, 0, False, 0.4, NO_STEP, None),
        ),
        ("localisation", _records(2), ("parsed", 1, 0, True, 1.0, 2, 2)),
        ("faithful_judge", _records(2), (UNCERTAIN, 1, 0, None, None, None, 2)),
    ],
)
def test_a_chain_has_one_verdict_of_all_its_judgements(
    task: str, records: list[dict[str, Any]], verdict: tuple[Any, ...]
) -> None:
    assert verdict_of(TASKS[task], records) == (*verdict, None)


def test_a_record_of_an_older_version_is_read_without_probabilities() -> None:
    (record,) = _records(0)
    del record["probabilities"]
    assert verdict_of(TASKS["step_judge"], [record]).score == 1.0


def test_a_record_says_what_was_asked_and_names_steps_by_their_place_in_the_chain() -> None:
    form = trace_forms()["c2_localisation"]
    (one,) = form.judged.asks(form.form, CHAIN, "x")
    about = {"dataset": "d", "task": form.task, "item": "x", "model": None}
    case = Case(form, form.form.name, "x", CHAIN, about, (one,), {"asks": "x"})
    how = JudgeConfig(model=["api:openai/gpt-4.1"], temperature=0.0)
    (item,) = put_to(how.model[0], how, 0, [case])
    assert list(item.units) == ["judge_generated"]  # an API reads no log-probs
    judging = of_cases(how, 0, how.model)
    reply = Reply("parsed", {form.form.verdict: 2})
    record = judging.record(item, one, how.model[0], "judge_generated", reply)
    assert {name: record[name] for name in about} == about
    assert (record["judge"], record["variant"]) == (how.model[0], "c2_localisation")
    # the third judged step is the fourth of the chain
    assert (record["step"], record["verdict"], record["asked"]) == (None, 3, one.ask.prompt)
    lost = judging.record(item, one, how.model[0], "judge_generated", Reply("refused"))
    assert (lost["verdict"], lost["outcome"]) == (None, "refused")
    assert "asked" not in replace(judging, keeps_prompts=False).record(
        item, one, how.model[0], "judge_generated", reply
    )
