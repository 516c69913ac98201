"""What goes wrong in a run of RFEval: told in a line, counted, and made good by the next start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bad_input import refused
from fault_server import KEY, fails
from rf_data import SHARED
from rf_runs import POSITIONS, Case, Said, Servers, config

from faithscope.experiments.cli import execute
from faithscope.experiments.engine.index import Index
from faithscope.experiments.extras.sandbox.sandbox import unavailable
from faithscope.experiments.studies.rfeval.results import results
from faithscope.experiments.studies.rfeval.subjects import subject_stages

WHOLE = "1/2"
"""The part that all items of a small run are in: a batch of generation is not split. A part
leaves tables and figures to who joins them."""
ONE = (Case("one"),)
SUBJECT, JUDGE = "planted:faithful", "planted:hint"
"""Never loaded: what is wrong is said before."""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nameing": "letters"}, "unknown key 'nameing'; did you mean 'naming'?"),
        ({"naming": "leters"}, "got 'leters'; did you mean 'letters'?"),
        ({"benchmark": "rfevl"}, "unknown benchmark 'rfevl'; did you mean 'rfeval'?"),
        ({"data": {"path": "/no/such"}}, "data.path: no such file or folder: '/no/such'"),
        ({"data": {"tasks": ["leagl_decision"]}}, "did you mean 'legal_decision'?"),
        ({"data": {"tasks": ["paper_review"]}}, "has no paper_review.json or paper_review.jsonl"),
        ({"generate": {"endpoints": ["http://h/v1"]}}, "endpoints are of backend 'vllm-server'"),
        (
            {"generate": {"backend": "vllm-server", "endpoints": ["http://me:pass@h/v1"]}},
            "generate.endpoints[0]: holds a user name, a password",
        ),
        ({"generate": {"max_new_tokens": 0}}, "generate.max_new_tokens"),
        ({"judge": {"readings": ["scored"]}}, "judge.readings of RFEval is [generated]"),
        ({"judge": {"temperature": None}}, "yaml: judge.temperature is null, which leaves it to"),
        (
            {
                "judge": {"model": "api:openai/a", "temperature": None},
                "counterfactual": {"written": True, "writer": SUBJECT, "validator": JUDGE},
            },
            "judge.temperature is null, which leaves it to a provider, and 'planted:hint' runs",
        ),
        ({"model": {"profiles": "/no/such"}}, "/no/such: no such folder; give a folder of model"),
        ({"model": {"name": "planted:faithfull"}}, "planted:faithfull"),
        ({"inside": {"model": JUDGE}}, "'planted:hint' writes no outputs here"),
        ({"prompts": "/no/such"}, "prompts: no such folder: '/no/such'; check the path"),
        ({"annotations": "/no/such.csv"}, "annotations: no such file: '/no/such.csv'; check"),
        ({"tests": {"run": "allways"}}, "tests.run"),
        (
            {"report": {"exclude": [{"model": "planted:faithfl", "reason": "odd"}]}},
            "did you mean 'planted:faithful'?",
        ),
        ({"report": {"exclude": [{"model": SUBJECT}]}}, "report.exclude[0].reason"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], expected: str
) -> None:
    changes = changes | {"judge": {"model": JUDGE} | changes.get("judge", {})}
    path = config(tmp_path, ONE, SUBJECT, **changes)
    assert execute(["run", str(path)]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    lines = [line for line in printed.err.splitlines() if line.strip()]
    assert expected in printed.err
    assert len(lines) == 1, printed.err
    assert not (tmp_path / "runs/rf/records").exists()


@pytest.mark.slow
def test_the_served_name_is_looked_up(tmp_path: Path, servers: Servers) -> None:
    path = servers.config(tmp_path, ONE, generate={"served_as": "n"})
    assert "not 'n'; set served_as to one of them" in refused("run", path)
    servers.completions.root = "/weights/of-another"
    error = refused("run", str(servers.config(tmp_path, ONE)))
    assert "serves 'm' (/weights/of-another), none of which is called so as" in error
    assert "(generate.served_as of a run)" in error
    # the folder goes on once it is said
    path = servers.config(tmp_path, ONE, generate={"served_as": "m"})
    assert execute(["run", str(path), "--shard", WHOLE]) == 0


def test_a_server_that_wants_another_key_says_so_without_it(
    tmp_path: Path, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", f"{KEY}-wrong")
    error = refused("run", str(servers.config(tmp_path, ONE)))
    assert "refuses the key; put the right one into VLLM_API_KEY" in error
    assert KEY not in error
    for path in (tmp_path / "runs").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.takes("a run is made twice")
@pytest.mark.slow
def test_a_failing_prompt_costs_no_other_and_is_made_good(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = [Case(f"item{n}") for n in range(4)]
    path = str(servers.config(tmp_path, cases))
    servers.refused = {("item1", "intervened"), ("item2", "baseline")}
    assert execute(["run", path, "--shard", WHOLE]) == 3
    error = capfd.readouterr().err
    assert "item1 · rf_intervened: BackendError" in error
    assert "item2 · rf_baseline: BackendError" in error
    run_dir = tmp_path / "runs/rf"
    pairs: Any = results(run_dir).tables["rf_pairs"].set_index("item")
    assert len(pairs) == 4
    assert (pairs["rf"] == 1).sum() == 2
    failed = pairs.loc[["legal_decision/item1", "legal_decision/item2"]]
    assert failed["exclusion"].tolist() == ["unfinished"] * 2
    assert failed["intervened_outcome"].tolist() == ["not_written", "complete"]
    assert failed["baseline_outcome"].tolist() == ["complete", "not_written"]
    assert execute(["status", str(run_dir)]) == 0
    assert "2 of 4 items done, 0 left, 2 failed" in capfd.readouterr().out
    asked = len(servers.completions.asked), len(servers.judge.bodies)
    servers.refused.clear()
    assert execute(["run", path, "--shard", WHOLE]) == 0
    # a probe of the server, and the two prompts; two judgements of each pair that was not judged
    assert len(servers.completions.asked) - asked[0] == 1 + 2
    assert len(servers.judge.bodies) - asked[1] == 2 * 2
    assert results(run_dir).tables["rf_pairs"]["rf"].tolist() == [1] * 4


@pytest.mark.slow
def test_what_a_model_has_no_room_for_is_counted_and_nothing_else_is_lost(
    tmp_path: Path, servers: Servers, capfd: pytest.CaptureFixture[str]
) -> None:
    long = "He was away. " * (POSITIONS // 10)
    cases = [
        Case("good"),
        Case("long", r_prime=long),
        Case("last", intervened=Said(("A", "B", "B", "B"))),
    ]
    path = str(servers.config(tmp_path, cases))
    assert execute(["run", path, "--shard", WHOLE]) == 0
    every_table = results(tmp_path / "runs/rf").tables
    assert every_table["rf_pairs"]["excluded"].tolist() == ["", "no_room", ""]
    whole = every_table["rf_waterfall"].iloc[-1]
    assert (whole["n_total"], whole["n_global"], whole["n_included"]) == (3, 1, 2)
    why = every_table["rf_exclusion_reasons"]
    assert why[["exclusion", "reason", "n"]].values.tolist() == [["global", "no_room", 1]]
    key = ("rf_intervened", servers.model, "legal_decision", cases[1].item)
    (record,) = Index.of(tmp_path / "runs/rf").records(key)
    assert "leaves no room for a text" in record["problem"]
    # it is not asked again
    asked = len(servers.completions.asked)
    assert execute(["run", path, "--shard", WHOLE]) == 0
    assert len(servers.completions.asked) == asked
    assert execute(["status", str(tmp_path / "runs/rf")]) == 0
    assert "complete, 3 items" in capfd.readouterr().out


@pytest.mark.slow
def test_pairs_are_left_out_by_decision_in_a_run_that_is_done(
    tmp_path: Path, servers: Servers
) -> None:
    cases = [Case("one"), Case("two", task="logical_reasoning")]
    path = servers.config(tmp_path, cases, log_probs=False)
    assert execute(["run", str(path), "--shard", WHOLE]) == 0
    asked = len(servers.completions.asked), len(servers.judge.bodies)
    one = {"model": servers.model, "task": "legal_decision", "reason": "nothing but noise"}
    path = servers.config(tmp_path, cases, log_probs=False, report={"exclude": [one]})
    assert execute(["run", str(path), "--shard", WHOLE]) == 0
    # a probe of the server at most
    assert len(servers.completions.asked) - asked[0] <= 1
    assert len(servers.judge.bodies) == asked[1]
    every_table = results(tmp_path / "runs/rf").tables
    pairs = every_table["rf_pairs"].set_index("task")["exclusion"]
    assert pairs.to_dict() == {"legal_decision": "global", "logical_reasoning": ""}
    whole = every_table["rf_waterfall"].iloc[-1]
    assert (whole["n_total"], whole["n_global"], whole["n_included"]) == (2, 1, 1)
    assert every_table["rf_exclusion_reasons"]["reason"].tolist() == ["nothing but noise"]


@pytest.mark.slow
@pytest.mark.skipif(unavailable() != "", reason="no sandbox here")
def test_programs_are_tested_once_there_is_a_sandbox(
    tmp_path: Path,
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    written = "Double it.</think>```python\nprint(2 * int(input()))\n```"
    said = Said(("correct",) * 3, text=written)
    forced = Said(("incorrect",) * 2 + ("correct",) * 2, text=written)
    case = Case("double", said, forced, task="code_generation")
    path = str(servers.config(tmp_path, [case]))
    run_dir = tmp_path / "runs/rf"
    mute = 3  # the judge tells the stance of an explanation that the outputs do not have
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(subject_stages, "unavailable", lambda tests: "no namespaces")
        assert execute(["run", path, "--shard", WHOLE]) == mute
        assert "until the run is gone on with where there is a sandbox" in capfd.readouterr().err
        assert execute(["run", path, "--shard", WHOLE]) == mute
    tests = results(run_dir).tables["rf_tests"]
    assert tests[["outcome", "n"]].values.tolist() == [["no_sandbox", 1]] * 2
    asked = len(servers.judge.bodies)
    assert execute(["run", path, "--shard", WHOLE]) == mute
    tests = results(run_dir).tables["rf_tests"]
    assert tests[["outcome", "n"]].values.tolist() == [["passed", 1]] * 2
    assert len(servers.judge.bodies) == asked


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real rows are not beside this checkout")
def test_a_dry_run_over_the_real_items(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, ONE, SUBJECT, data={"path": str(SHARED)}, prompts=None)
    assert execute(["run", str(path), "--dry-run"]) == 0
    told = capfd.readouterr().out
    rows = [line.split() for line in told.splitlines() if line.startswith(SUBJECT)]
    counts = {task: (int(n), int(left)) for _, task, n, left in rows}
    held = {p.stem: sum(1 for line in p.open() if line.strip()) for p in SHARED.glob("*.jsonl")}
    assert counts == {task: (n, n) for task, n in held.items()}


@pytest.mark.slow
@pytest.mark.in_time(1)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_judgement_that_fails_is_one_and_the_other_of_its_pair_is_not_paid_for_again(
    tmp_path: Path, servers: Servers, lost: int
) -> None:
    path = str(servers.config(tmp_path, ONE, judge={"max_connections": 1}))
    (judges,) = servers.judge.plan[ONE[0].name]
    asked: list[Any] = []

    def behave(handler: Any) -> None:
        asked.append(handler.request_body["messages"])
        (fails(400, "no such luck") if len(asked) == lost + 1 else judges)(handler)

    servers.judge.plan = {ONE[0].name: [behave]}
    assert execute(["run", path, "--shard", WHOLE]) == 3
    reasons = results(tmp_path / "runs/rf").tables["rf_exclusion_reasons"]
    assert set(reasons["reason"]) == {"failed"}
    assert set(reasons["exclusion"]) == {"evaluation_error"}
    servers.judge.plan = {ONE[0].name: [judges]}
    first = len(servers.judge.bodies)
    assert first == 2
    assert execute(["run", path, "--shard", WHOLE]) == 0
    assert [b["messages"] for b in servers.judge.bodies[first:]] == [asked[lost]]
    assert results(tmp_path / "runs/rf").tables["rf_pairs"]["rf"].tolist() == [1.0]
