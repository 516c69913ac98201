"""Judges of chains: what is asked of each, what is counted, and how far labels agree."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused
from run_files import write_rows

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.engine.forms import trace_forms
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.traces.sections import CutConfig
from faithscope.experiments.studies.slrc.judges.asking import asks_of
from faithscope.experiments.studies.slrc.judges.chains import judged_chain
from faithscope.experiments.studies.slrc.judges.verdicts import first_wrong, wrong

NAME = "api:openai/gpt-4.1"
_SUM = re.compile(r"(\d+) \+ (\d+) = (\d+)")
SHARED = Path(__file__).resolve().parents[5].parent / "shared"


def fates(tables: Mapping[str, pd.DataFrame], form: str) -> dict[str, int]:
    """Reason -> number of chains, in the stage of a form."""
    stage = f"{form} · generated · {NAME}"
    return {r["reason"]: r["n"] for r in rows(tables["exclusions"]) if r["stage"] == stage}


def is_right(step: str) -> bool:
    return all(int(a) + int(b) == int(c) for a, b, c in _SUM.findall(step))


def says(prompt: str) -> dict[str, Any]:
    """A judge that checks sums, and holds the word of a chain for its faithfulness."""
    if "The step to be checked:" in prompt:
        step = prompt.partition("The step to be checked:\n")[2].partition("\n")[0]
        return {"rationale": "a sum", "sound": int(is_right(step))}
    if '"judge_role"' in prompt:
        kind = 2 if "unclear" in prompt else 0 if "I guess" in prompt else 1
        return {"classification": kind, "reasoning_summary": "as it says"}
    if "[Step 0]" in prompt:
        steps = re.findall(r"\[Step \d+\] (.*)", prompt)
        first = next((i for i, step in enumerate(steps) if not is_right(step)), -1)
        return {"reasoning": "", "unfaithful_step_index": first, "final_score": int(first < 0)}
    return {"judge_reasoning": "all there", "judge_final_score": 1}


def behave(handler: Handler) -> None:
    request = handler.request_body
    said = says(request["messages"][-1]["content"])
    handler.send(200, completion(json.dumps(said)))


REPLIES = [behave]


def row(i: int, *steps: str, label: int = -1, **more: Any) -> dict[str, Any]:
    return {
        "id": f"gsm8k-{i}",
        "generator": "writer",
        "problem": "How many?",
        "steps": list(steps),
        "final_answer_correct": label < 0,
        "label": label,
    } | more


SOLVED = [
    row(0, "We add 1 + 2 = 3.", "So it is 3."),
    row(1, "We add 1 + 2 = 3.", "Then 3 + 4 = 8.", "So it is 8.", label=1),
    row(2, "I guess 2 + 2 = 5.", "So it is 5.", label=0),
    row(3, "This is unclear to me.", "We add 5 + 5 = 10."),
    row(4),
]


FORMS = ("step_judge", "faithful_judge", "c2_localisation", "c2_coverage", "legibility")


def config(folder: Path, path: Path, url: str, forms: Sequence[str] = FORMS) -> Path:
    known: dict[str, Any] = {
        "name": "judge",
        "out": str(folder / "runs"),
        "traces": {"path": str(path)},
        "judges": {"model": NAME, "base_url": url, "max_retries": 0, "structured": "schema"}
        | {"forms": list(forms)},
        "report": {"bootstrap": 20},
    }
    file = folder / "judge.yaml"
    file.write_text(yaml.safe_dump(known))
    return file


@pytest.mark.takes("a run with its outputs")
def test_a_judge_that_checks_sums_is_held_against_the_labels(
    tmp_path: Path, server: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "solved.jsonl", *SOLVED)
    outcome = run(load_config(config(tmp_path, path, server.url)))
    assert outcome.failures == outcome.problems == []
    tables = load_run(outcome.run_dir).tables
    by = tables["judge_agreement"].set_index(["form", "level", "label"])
    for form in ("step_judge", "c2_localisation"):
        for level in ("chain", "step"):
            sums = by.loc[(form, level, "correct")]
            assert (sums["accuracy"], sums["kappa"], sums["ac2"]) == (1, 1, 1)
            # which steps a judge says something of that names one hangs on what it says
            partly = (form, level) == ("c2_localisation", "step")
            assert math.isnan(sums["auroc"]) if partly else sums["auroc"] == 1
    steps = by.loc[("step_judge", "step", "correct")]
    # of the nine steps, one comes after the first wrong one of its chain in each of two chains
    assert (steps["n"], steps["n_without_label"]) == (7, 2)
    found = tables["judge_localisation"].set_index("form").loc["c2_localisation"]
    assert (found["n_wrong"], found["n_sound"], found["f1"]) == (2, 2, 1)
    forms = tables["judge_forms"].set_index("form")
    faithful = forms.loc["faithful_judge"]
    assert (faithful["n"], faithful["n_without_verdict"], faithful["n_uncertain"]) == (5, 1, 1)
    assert faithful["flagged"] == pytest.approx(1 / 3)
    assert forms.loc["step_judge", "flagged"] == pytest.approx(1 / 2)
    # a rating of 1 of 4: higher is worse
    assert forms.loc["c2_coverage", "mean_score"] == pytest.approx(3 / 4)
    assert fates(tables, "faithful_judge") == {
        "total": 5,
        "uncertain": 1,
        "no_steps": 1,
        "included": 3,
    }
    of_steps = tables["judge_steps"].set_index(["form", "step"])
    assert of_steps.loc[("step_judge", 1), ["n", "flagged"]].tolist() == [4, 1 / 4]
    assert execute(["show", str(outcome.run_dir), "--item", "gsm8k-1"]) == 0
    shown = capsys.readouterr().out
    assert "Then 3 + 4 = 8." in shown
    assert "step_judge" in shown
    verdicts = load_run(outcome.run_dir).verdicts
    assert set(verdicts.columns) >= {"label_correct", "label_final_answer_correct"}
    page = (outcome.run_dir / "report.html").read_text("utf-8")
    assert "Its label correct is False" in page
    # two chains of a kind are too few, though every verdict is right
    assert "Against the label “correct” no conclusion can be drawn: 2 of its chains" in page


@pytest.mark.slow
def test_chains_cut_at_the_limit_are_counted_and_in_no_number_unless_kept(
    tmp_path: Path, server: FaultServer
) -> None:
    rows = [
        {
            "id": str(i),
            "question": "How many?",
            "steps": [f"We add {i} + 2 = {i + 2 + i % 2}.", "So it is done."],
            "labels": {"correct": i % 2 == 0},
            "model": "writer",
            "finish_reason": "length" if i < 3 else "stop",
        }
        for i in range(8)
    ]
    path = write_rows(tmp_path / "mine.jsonl", *rows)
    forms = ["step_judge", "c2_localisation"]
    made = config(tmp_path, path, server.url, forms=forms)
    run_dir = run(load_config(made)).run_dir
    for kept, n in (("left_out", 5), ("kept", 8)):
        asked = len(server.bodies)
        run(load_config(made, [f"report.cut={kept}"]))
        assert len(server.bodies) == asked
        tables = load_run(run_dir).tables
        counted = ["judge_forms", "judge_agreement", "judge_steps"]
        for table in (tables[name] for name in counted):
            assert set(table["n_cut"]) == {3}
            assert set(table["n"]) == {n}
        gone = fates(tables, "step_judge")
        assert gone.get("cut_at_the_limit", 0) == 8 - n
        assert gone["total"] == 8
        page = (run_dir / "report.html").read_text("utf-8")
        assert "3 of 8 cut at the token limit" in page
        assert ("because a token limit cut the chain off" in page) == (kept == "left_out")


@pytest.mark.slow
def test_the_page_says_which_judges_beat_chance(tmp_path: Path, server: FaultServer) -> None:
    right = [row(i, f"We add {i} + 2 = {i + 2}.", "So it is done.") for i in range(10)]
    broken = [
        row(i, f"We add {i} + 2 = {i + 3}.", "So it is done.", label=0) for i in range(10, 20)
    ]
    asked = [r | {"problem": f"How many are {i} and 2?"} for i, r in enumerate(right + broken)]
    path = write_rows(tmp_path / "solved.jsonl", *asked)
    forms = ["step_judge", "c2_coverage"]
    outcome = run(load_config(config(tmp_path, path, server.url, forms=forms)))
    page = (outcome.run_dir / "report.html").read_text("utf-8")
    assert "Against the label “correct” it is better than chance: AUROC 1.00 [0." in page
    # the judge rates every chain alike
    assert "Against the label “correct” it is not distinguished from chance: AUROC 0.50" in page


def test_what_is_asked_has_every_step_before_it_and_no_later_one(tmp_path: Path) -> None:
    (chain, *_) = read_chains(write_rows(tmp_path / "s.jsonl", *SOLVED[1:])).chains
    judged, forms = judged_chain(chain, CutConfig()), trace_forms()
    asks = {one.about["step"]: one.ask for one in asks_of(judged, forms["step_judge"])}
    assert list(asks) == [0, 1, 2]
    assert asks[1].values == {
        "question": "How many?",
        "context": "We add 1 + 2 = 3.",
        "step": "Then 3 + 4 = 8.",
    }
    assert "So it is 8." not in asks[1].prompt
    (whole, *_), *_ = asks_of(judged, forms["c2_localisation"])
    assert (whole.range.start, whole.range.stop) == (-1, 3)
    (holistic, *_), *_ = asks_of(judged, forms["faithful_judge"])
    assert chain.reasoning in holistic.prompt


def test_labels_that_leave_the_first_wrong_step_open_are_left_out(tmp_path: Path) -> None:
    cot = "It says B. I recall a book. So B."
    rows = [
        {
            "row_id": "r",
            "label_type": kind,
            "sentence_span_start": cot.index(text),
            "sentence_span_end": cot.index(text) + len(text),
            "cot": cot,
            "prompt": "Which?",
            "target_model": "m",
        }
        for kind, text in [("UNFAITHFUL_STEP", "I recall a book."), ("FAITHFUL_STEP", "It says B.")]
    ]
    settings = CutConfig(min_chars=3)
    (chain,) = read_chains(write_rows(tmp_path / "a.jsonl", *rows)).chains
    assert first_wrong(judged_chain(chain, settings), "unfaithful", ["correct"]) == 1
    (chain,) = read_chains(write_rows(tmp_path / "b.jsonl", *rows[:1])).chains
    assert first_wrong(judged_chain(chain, settings), "unfaithful", ["correct"]) is None
    (chain,) = read_chains(write_rows(tmp_path / "c.jsonl", *rows[1:])).chains
    assert first_wrong(judged_chain(chain, settings), "unfaithful", ["correct"]) is None


def test_a_label_says_yes_or_no_or_nothing() -> None:
    good = ["correct"]
    assert [wrong("correct", x, good) for x in (True, 0, None, "C")] == [False, True, None, None]
    assert [wrong("unfaithful", x, good) for x in (True, 0)] == [True, False]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper is not beside this checkout")
def test_a_number_says_what_its_name_says() -> None:
    good = ["correct"]
    # PRM800K's rating of 1 is a right step, and a score of 1 may be either
    assert wrong("rating", 1, good) is wrong("rating", 0, good) is None
    assert wrong("score_match", 1.0, good) is None
    assert [wrong("correct", x, good) for x in (0, 1)] == [True, False]
    assert [wrong("unfaithful", x, good) for x in (0, 1)] == [False, True]


@pytest.mark.parametrize("reasoning", ["But first, we look.", "First, we look."])
def test_judges_of_whole_chains_see_the_answer_whatever_letters_stand_before_it(
    reasoning: str,
) -> None:
    row = {"question": "?", "reasoning": reasoning, "kind": "choice"}
    row |= {"options": ["red", "green"], "answer": "B"}
    (chain,) = read_chains([row]).chains
    assert judged_chain(chain, CutConfig()).text == f"{reasoning}\n\nFinal answer: B"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper is not beside this checkout")
def test_the_faithful_judge_is_asked_in_the_papers_words() -> None:
    paper = (SHARED / "papers" / "faithcot-bench.txt").read_text("utf-8")
    printed = paper[paper.index('"evaluation_task"') : paper.index("CoT TRACE GENERATION PROMPT")]
    printed = re.sub(r"^\d+(?: |$)|```", "", printed, flags=re.M)

    def bare(text: str) -> str:
        return re.sub(r"[\s-]", "", text)

    template = trace_forms()["faithful_judge"].form.template
    assert bare(template) == bare(printed)


def test_a_run_without_chains_says_what_it_needs() -> None:
    assert "traces.path: missing" in refused("run", "judge", "--dry-run")
