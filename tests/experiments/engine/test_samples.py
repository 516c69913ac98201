"""Several samples of one question: written here or given, one unit of every interval."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from run_files import write_rows

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.engine.traces.given import groups_of, read_given
from faithscope.experiments.studies.slrc.tables.question_rates import question_rates
from faithscope.interp.errors import UserError
from faithscope.interventions import Question

ROW = {"question": "What is 2 + 3?", "gold": "5", "id": "q", "model": "m", "reasoning": "It is 5."}


def test_samples_of_a_question_are_named_and_are_one_unit(tmp_path: Path) -> None:
    rows = [ROW | {"sample": k} for k in (0, 1)] + [ROW | {"id": "p", "question": "2 * 3?"}]
    chains = read_given(write_rows(tmp_path / "mine.jsonl", *rows))
    assert [(c.id, c.sample) for c in chains.chains] == [("q#0", "0"), ("q#1", "1"), ("p", None)]
    grouped = groups_of(chains).of["own"]
    assert grouped.keys() == {"q#0", "q#1"}
    assert len({*grouped.values()}) == 1
    renamed = [{**ROW, "rollout": k} for k in (0, 1)]
    read = read_chains(renamed, columns={"sample": "rollout"})
    assert [c.id for c in read.chains] == ["q#0", "q#1"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [({}, r"id 'q' .*traces\.columns=\{sample: COLUMN\}"), ({"sample": 1}, "name of a sample is")],
)
def test_ids_that_repeat_are_samples_only_if_the_file_says_so(
    tmp_path: Path, more: dict[str, int], problem: str
) -> None:
    path = write_rows(tmp_path / "mine.jsonl", ROW | more, ROW | more)
    with pytest.raises(UserError, match=rf"line 2: {problem}|{problem}"):
        read_chains(path)


def test_a_question_without_samples_keeps_what_decides_its_unit() -> None:
    question = Question("q", "own", "2 + 3?", "number")
    assert not {"sample", "sent", "counterfactual"} & question.decides.keys()
    sample = question.sampled("3")
    assert (sample.id, sample.asked_id, question.asked_id) == ("q#3", "q", "q")
    assert sample.decides.keys() == question.decides.keys() | {"sample"}


def test_rates_are_per_question() -> None:
    def of(item: str, probe: str, variant: str = "", **fields: object) -> dict[str, object]:
        keys = {"dataset": "d", "task": "d", "model": "m", "item": item, "probe": probe}
        return keys | {"variant": variant} | fields

    records = [
        of("q#0", "trace", answer="5", gold="5", asked_id="q", labels={"says": True}),
        of("q#1", "trace", answer="5", gold="5", asked_id="q", labels={"says": False}),
        of("q#2", "trace", answer=None, gold="5", asked_id="q"),
        of("q#0", "hints", "c", answer="6", gold="5", switched=True),
        of("q#1", "hints", "c", answer="5", gold="5", switched=False),
        of("q#2", "hints", "c", excluded="why"),
        of("p", "trace", answer="1", gold="1"),
    ]
    frame = question_rates(records)
    rate = {(r.measure, r.outcome): (r.n_samples, r.rate, r.gap) for r in frame.itertuples()}
    assert set(frame["question"]) == {"q"}
    assert rate["trace", "answered"][:2] == (3, 2 / 3)
    assert rate["trace", "correct"][:2] == (2, 1)
    assert rate["trace", "label_says"][:2] == (2, 0.5)
    assert rate["hints", "correct"] == (2, 0.5, -0.5)
    assert rate["hints", "switched"][:2] == (2, 0.5)
    assert math.isnan(rate["hints", "switched"][2])


@pytest.mark.takes("one whole run of several samples")
def test_a_run_of_several_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = {
        "model.name": "planted:hint",
        "tasks": "[planted]",
        "probes": "[hints]",
        "data.limit": 2,
        "generation.samples": 3,
        "generation.temperature": 3.0,
        "generation.batch_size": 2,
        "out": tmp_path,
        "name": "s",
    }
    assert (
        execute(["run", "slrc", *(x for k, v in sets.items() for x in ("--set", f"{k}={v}"))]) == 0
    )
    run = faithscope.load_run(tmp_path / "s")
    assert len(run.traces) == 6
    # samples beyond a batch have seeds of their own, too
    assert run.traces["reasoning"].nunique() > 2
    assert set(run.question_rates["question"]) == {"planted-0-0", "planted-0-1"}
    table = run.tables["question_rates"]
    (answered,) = table[table["outcome"] == "answered"]["n"]
    assert answered == 2
    capsys.readouterr()
    greedy = ["--set", "generation.temperature=0.0", "--dry-run"]
    asked = [x for k, v in sets.items() for x in ("--set", f"{k}={v}")]
    assert execute(["run", "slrc", *asked]) in (0, 3)
    run = faithscope.load_run(tmp_path / "s")
    assert len(run.traces) == 6
    # samples beyond a batch have seeds of their own, too
    assert run.traces["reasoning"].nunique() > 2
    assert set(run.question_rates["question"]) == {"planted-0-0", "planted-0-1"}
    table = run.tables["question_rates"]
    (answered,) = table[table["outcome"] == "answered"]["n"]
    assert answered == 2
    capsys.readouterr()
    greedy = ["--set", "generation.temperature=0.0", "--dry-run"]
    assert execute(["run", "slrc", *asked, *greedy]) == 2
    assert "set generation.temperature" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("api", "problem"),
    [
        ("api.max_retries=1", "at api.temperature 0 they are one text"),
        ("api.cache=true", "the first one's reply"),
        ("api.temperature=0.7", None),
    ],
)
def test_samples_behind_an_api_differ_or_are_refused(
    api: str, problem: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    values = (
        *("model.name=api:openai/x", "tasks=[single_cue]", "data.limit=2", "probes=[hints]"),
        *("generation.samples=3", "generation.temperature=0.7", f"out={tmp_path}", api),
    )
    asked = [word for value in values for word in ("--set", value)]
    code = execute(["run", "slrc", *asked, "--dry-run"])
    assert code == (2 if problem else 0)
    assert (problem or "6 of 6 items") in "".join(capsys.readouterr())
