"""A judged item in a terminal: all that was said of it, and nothing that steers the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from c2_runs import config, shown, unshown
from fault_server import FaultServer, fails

import faithscope
from faithscope.experiments.cli import execute
from faithscope.experiments.numerals import significant
from faithscope.experiments.studies.c2faith.results import results


@pytest.fixture(scope="module")
def opened(judged: Path) -> faithscope.Run:
    found = faithscope.load_run(judged)
    return found


def test_an_item_is_shown_with_every_judgement_and_signal(
    judged: Path, opened: faithscope.Run
) -> None:
    item = results(opened).benchmark.causal[-1]
    text = shown(judged, item.id)
    rows = opened.judgements.query("item == @item.id")
    assert len(rows) == 8
    for row in rows.to_dict("records"):
        head = " · ".join((row["judge"], row["form"], row["reading"], row["ask"]))
        assert text.count(f"{head}: ") == 1
        assert row["asked"].splitlines()[0] in text
    for of, step in (("original", item.original), ("perturbed", item.replacement)):
        said = text.partition(f"Step {item.target} of the {of} chain")[2]
        assert said.split()[: len(step.split())] == step.split()
    assert f"right is {item.target}: step {item.target} is broken." in text
    assert "right is -1: no step is broken." in text
    assert text.count("of the model's probability") == 4
    assert f"{item.target} broken" in text
    # six signals in two conditions, each naming one step
    assert text.count("▲") == 2 * (6 + 1)
    assert "\x1b" not in text


def test_a_verdict_is_marked_right_or_wrong(judged: Path, opened: faithscope.Run) -> None:
    scored = opened.judgements.query("reading == 'scored' and task == 'detection'")
    for row in scored.to_dict("records"):
        text = shown(judged, row["ask"], task=row["form"])
        mark = "✓" if row["verdict"] == row["right"] else "✗"
        assert f"Verdict {row['verdict']} (parsed) {mark}; right is {row['right']}" in text
        assert f"{significant(row['mass'], 3)} of the model's probability" in text


def test_it_is_narrowed_by_condition_task_and_chain(judged: Path, opened: faithscope.Run) -> None:
    item = results(opened).benchmark.causal[0]
    broken = shown(judged, f"{item.id}.perturbed")
    assert "control" not in broken
    assert "inside · perturbed" in broken
    assert "c2_localisation" not in shown(judged, item.id, task="c2_detection")
    of_chain = shown(judged, item.chain)
    assert item.id in of_chain
    assert "middle steps are left out (level 0.5)" in of_chain
    assert "c2_coverage_reference" in of_chain


@pytest.mark.parametrize("colour", [False, True])
def test_what_a_chain_holds_cannot_steer_the_terminal(
    judged: Path, opened: faithscope.Run, colour: bool
) -> None:
    [evil] = [i for i in results(opened).benchmark.causal if "alert" in i.problem]
    assert "\x1b" in evil.problem
    text = shown(judged, evil.chain, colour)
    assert "<script>alert(1)</script> ␛[31m" in text
    assert "\x1b[31m" not in text
    steering = {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n"}
    assert steering <= ({"\x1b"} if colour else set())


def test_what_is_not_there_is_named_with_what_was_meant(
    judged: Path, opened: faithscope.Run, capfd: pytest.CaptureFixture[str]
) -> None:
    item = results(opened).benchmark.causal[0].id
    for arguments, expected in (
        (["--item", item.replace("causal", "casual")], f"did you mean {item!r}?"),
        (["--item", "zzz"], "no item 'zzz' among the judgements of this run; there are "),
        (["--item", item, "--task", "c2_detecton"], "did you mean 'c2_detection'?"),
        (["--item", item, "--model", "api:x"], "no model 'api:x' among the judgements"),
    ):
        assert execute(["show", str(judged), *arguments]) == 2
        captured = capfd.readouterr()
        assert expected in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""
    assert execute(["show", str(judged), "--item", item]) == 0
    assert "c2_detection" in capfd.readouterr().out


def test_what_failed_is_told(tmp_path: Path, server: FaultServer) -> None:
    server.default = [fails(400, "no such \x1b]0;thing")]
    judge = {"model": "api:openai/gpt-4.1", "base_url": server.url, "max_retries": 0}
    path = config(tmp_path, judge, forms=["c2_detection"])
    outcome = unshown(path, "data.limit=1")
    assert len(outcome.failures) == 2
    found = faithscope.load_run(outcome.run_dir)
    assert len(found.judgements) == 0
    text = shown(outcome.run_dir, results(found).benchmark.causal[0].id)
    assert text.count("· failed") == 2
    assert "no such" in text
    assert "\x1b" not in text
