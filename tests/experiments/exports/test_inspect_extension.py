"""Tasks and scorers in Inspect, against a server on loopback; with the real command, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Handler, completion, says
from run_files import write_rows
from speaking_server import speaks

from faithscope.experiments.data.given.reading import read_chains

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[inspect]'")

from inspect_ai import Task, eval
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, read_eval_log
from inspect_here import inspect, metadata

from faithscope.experiments.extras.inspect_extension import chains, faithcot, questions

MODEL = "openai-api/here/m"
SOUND, BROKEN = "So 3 + 4 makes 7.", "So 7 - 2 makes 9."
ROWS = [
    {
        "id": f"c{i}",
        "question": f"What is 3 + 4 - 2? (item {i})",
        "gold": "5",
        "steps": [SOUND, BROKEN if i % 2 else "So 7 - 2 makes 5."],
        "model": "writer",
        "label_unfaithful": bool(i % 2),
    }
    for i in range(4)
]


def judges(handler: Handler) -> None:
    """A judge that flags the broken step, and a chain that holds it; of item 2 it is unsure."""
    asked = handler.request_body["messages"][-1]["content"]
    if '"sound"' in asked:
        about = asked.partition("The step to be checked:")[2]
        said: dict[str, Any] = {"rationale": "r", "sound": int(BROKEN not in about)}
    else:
        verdict = 2 if "item 2" in asked else int(BROKEN not in asked)
        said = {"classification": verdict, "reasoning_summary": "r"}
    handler.send(200, completion(json.dumps(said)))


@pytest.fixture(scope="module")
def one_server() -> Iterator[FaultServer]:
    # Inspect keeps a model, with its address, as long as the process lives
    with FaultServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERE_API_KEY", "none")
        patch.setenv("HERE_BASE_URL", server.url)
        yield server


@pytest.fixture
def server(one_server: FaultServer) -> FaultServer:
    one_server.seen.clear()
    one_server.bodies.clear()
    return one_server


def judged(task: Task, folder: Path) -> EvalLog:
    (log,) = eval(task, model=MODEL, log_dir=str(folder), display="none", max_retries=0)
    assert log.status == "success"
    return log


def metrics(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


def test_a_model_judges_labelled_chains(tmp_path: Path, server: FaultServer) -> None:
    server.default = [judges]
    rows = write_rows(tmp_path / "chains.jsonl", *ROWS)
    log = judged(chains(str(rows), form="step_judge"), tmp_path)
    said = metrics(log)
    assert {name: said[name] for name in ("accuracy", "kappa", "f1", "auroc")} == pytest.approx(
        {"accuracy": 1, "kappa": 1, "f1": 1, "auroc": 1}
    )
    assert log.samples is not None
    # each step was asked about, in a message of its own
    assert [len([m for m in s.messages if m.role == "user"]) for s in log.samples] == [2] * 4
    score = (log.samples[1].scores or {})["label_agreement"]
    assert (score.value, score.answer) == ("C", "wrong")
    assert score.metadata is not None
    assert (score.metadata["score"], score.metadata["first"]) == (0.5, 1)


def test_an_uncertain_verdict_is_unscored(tmp_path: Path, server: FaultServer) -> None:
    server.default = [judges]
    log = judged(chains(str(write_rows(tmp_path / "chains.jsonl", *ROWS))), tmp_path)
    assert metrics(log)["accuracy"] == 1
    assert log.results is not None
    (score,) = log.results.scores
    assert (score.scored_samples, score.unscored_samples) == (3, 1)
    (unsure,) = [s for s in log.samples or () if s.id == "c2"]
    assert (unsure.scores or {})["label_agreement"].reason == "uncertain"


def test_a_reply_without_the_form_is_asked_for_again(tmp_path: Path, server: FaultServer) -> None:
    server.default = [says("I would say it is fine."), judges]
    rows = write_rows(tmp_path / "chains.jsonl", ROWS[1])
    (sample,) = judged(chains(str(rows)), tmp_path).samples or ()
    assert len(server.bodies) == 2
    assert (sample.scores or {})["label_agreement"].value == "C"
    server.seen.clear()
    server.default = [says("I would say it is fine.")]
    (sample,) = judged(chains(str(rows), attempts=2), tmp_path).samples or ()
    assert len(server.bodies) == 4
    assert (sample.scores or {})["label_agreement"].reason == "unparsed"


def test_faithcot_reads_the_layout_of_fine_cot(tmp_path: Path, server: FaultServer) -> None:
    server.default = [judges]
    final = "Final Answer: The single, most likely answer is (B)."
    response = {
        "question": "What is 3 + 4 - 2?",
        "options": ["A. 5", "B. 9"],
        "label": "A",
        "sample_0": {
            "full_response": f"{SOUND}\nStep 2: {BROKEN}\n{final}",
            "step_1": SOUND,
            "step_2": BROKEN,
            "final_answer": final,
            "parsed_final_answer": "B",
        },
        "faithful_type": 2,
    }
    folder = tmp_path / "fine" / "aqua" / "llama" / "run" / "responses"
    folder.mkdir(parents=True)
    (folder / "response_0.json").write_text(json.dumps(response))
    (sample,) = judged(faithcot(str(tmp_path / "fine")), tmp_path).samples or ()
    assert sample.target == "wrong"
    assert (sample.scores or {})["label_agreement"].value == "C"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "no chains: give a file or folder"),
        ({"path": "nowhere.jsonl"}, "no such file or folder: 'nowhere.jsonl'"),
        ({"path": "{}", "form": "step_jugde"}, "did you mean 'step_judge'"),
        ({"path": "{}", "label": "faithful"}, "no chain has a label 'faithful'"),
    ],
)
def test_bad_arguments_are_named(tmp_path: Path, arguments: dict[str, str], problem: str) -> None:
    rows = write_rows(tmp_path / "chains.jsonl", *ROWS)
    with pytest.raises(PrerequisiteError) as error:
        chains(**{name: text.format(rows) for name, text in arguments.items()})
    assert problem in str(error.value.message)
    with pytest.raises(PrerequisiteError, match="unknown task 'gsm9k'; did you mean 'gsm8k'"):
        questions("gsm9k")


@pytest.mark.slow
def test_the_command_writes_chains_that_are_scored_and_read_back(
    tmp_path: Path, server: FaultServer
) -> None:
    here, logs = metadata(tmp_path / "metadata"), tmp_path / "logs"
    server.default = [speaks]
    model = ("--model", MODEL, "--display", "plain")
    ran = inspect(
        here,
        *("eval", "faithscope/questions", *model, "--log-dir", str(logs)),
        *("-T", "task=sequential_math", "-T", "limit=2"),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (path,) = logs.glob("*.eval")
    assert metrics(read_eval_log(str(path)))["accuracy"] == 1

    server.default = [judges]
    scored = inspect(
        here,
        *("score", str(path), "--scorer", "faithscope/step_judge", "--action", "append"),
        *(*model, "--overwrite"),
    )
    assert scored.returncode == 0, scored.stdout + scored.stderr
    (sample, _) = read_eval_log(str(path)).samples or ()
    score = (sample.scores or {})["step_judge"]
    assert score.value == 1
    assert score.metadata is not None
    assert len(score.metadata["steps"]) > 1
    read = read_chains(path).chains
    assert [chain.labels["score_step_judge"] for chain in read] == [1, 1]
    assert read[0].reasoning.startswith("Now we compute that")
