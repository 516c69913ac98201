"""C2-Faith as a run: planned, judged, killed, gone on with, shared out, paid for, told."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from bad_input import refused
from c2_runs import config, tables, unshown
from fault_server import KEY, says, says_key

from faithscope import load_run
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.run import run
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark
from faithscope.experiments.studies.c2faith.config import C2FaithConfig
from faithscope.experiments.studies.c2faith.plan import C2Plan, plan

REPLIES = [says('{"score": 1}')]


@pytest.mark.takes("a run with its outputs")
def test_what_is_no_verdict_is_counted_and_its_probabilities_are_read(
    tmp_path: Path, model: str
) -> None:
    judge = {"model": model, "readings": ["generated", "scored"], "structured": "prompt"}
    outcome = unshown(config(tmp_path, judge))
    assert outcome.failures == []
    tables = load_run(outcome.run_dir).tables
    detection = tables["c2_detection"].set_index("reading")
    scored, written = detection.loc["scored"], detection.loc["generated"]
    assert (scored["n"], scored["n_without_verdict"]) == (3, 0)
    assert (written["n"], written["n_without_verdict"]) == (0, 3)
    assert tables["c2_coverage"].set_index("reading").loc["scored", "n"] == 3
    lost = tables["exclusions"].query("stage == 'c2_detection.generated'")
    assert lost["n"].sum() == 6


def test_judges_stand_beside_internals_and_chains_do_nothing_to_the_page(judged: Path) -> None:
    against = pd.read_csv(judged / "tables/c2_judge_against_internals.csv")
    assert {"surprisal", "necessity", "information_flow"} <= set(against["signal"])
    page = (judged / "report.html").read_text()
    assert "alert(1)" in page
    assert 'id="c2_reliability-title"' in page
    assert "<script>alert" not in page
    assert "\x1b" not in page


def test_a_judge_here_is_held_to_the_form(judged: Path) -> None:
    for task in ("detection", "localisation", "coverage"):
        table = pd.read_csv(judged / f"tables/c2_{task}.csv").set_index("reading")
        assert table.loc["generated", "n_without_verdict"] == 0
        assert table.loc["generated", "n"] > 0


def test_all_that_a_reply_says_is_kept_and_counted(tmp_path: Path, model: str) -> None:
    path = config(tmp_path, {"model": model, "readings": ["generated", "scored"]})
    form = tmp_path / "prompts/c2_localisation.yaml"
    said = yaml.safe_load(form.read_text())
    score = {"name": "final_score", "kind": "integer", "low": 0, "high": 1}
    said["fields"] = [{"name": "reasoning", "kind": "text"}, *said["fields"], score]
    form.write_text(yaml.safe_dump(said))
    found = load_run(unshown(path, "forms=[c2_localisation]").run_dir)
    placed = found.judgements.query("reading == 'generated'")
    scores = [v["final_score"] for v in placed["values"]]
    assert [list(v) for v in placed["values"]] == [["reasoning", "score", "final_score"]] * 6
    told = found.tables["c2_localisation"].set_index("reading")
    wrong = [(v >= 0) == (s == 1) for v, s in zip(placed["verdict"], scores, strict=True)]
    assert told.loc["generated", "n_final_score"] == 6
    assert told.loc["generated", "contradicts"] == pytest.approx(sum(wrong) / 6)
    assert told.loc["scored", "n_final_score"] == 0
    usage = found.tables["usage"].set_index("reading")
    # of a random model no rationale ends before its 16 tokens
    assert usage.loc["generated", "n_text_cut"] == 6
    assert usage["n_text_cut"].sum() == 6
    assert usage["n_truncated"].sum() == 0


def test_where_nothing_was_judged_there_is_no_report(tmp_path: Path, model: str) -> None:
    perturb = {"levels": [0.5], "acausal": "llm", "writer": model}
    path = config(tmp_path, {"model": model, "readings": ["scored"]}, perturb=perturb)
    with Store(load_config(path, must_be=C2FaithConfig), {}):
        """As a writer leaves it that was stopped before its first step."""
    assert "nothing is judged there yet" in refused("report", str(tmp_path / "runs/c2"))


@pytest.mark.slow
def test_the_saved_items_can_be_judged_by_another_run(tmp_path: Path, model: str) -> None:
    judge = {"model": model, "readings": ["scored"]}
    one = run(load_config(config(tmp_path, judge))).run_dir
    data = {"benchmark": str(one / "benchmark")}
    other = run(load_config(config(tmp_path, judge, name="other", data=data))).run_dir
    for name in ("causal.jsonl", "manifest.json"):
        assert (other / "benchmark" / name).read_bytes() == (one / "benchmark" / name).read_bytes()
    assert tables(other)["c2_detection.csv"] == tables(one)["c2_detection.csv"]


def test_the_first_of_the_saved_items_are_those_of_the_first_chains(tmp_path: Path) -> None:
    judge = {"model": "planted:faithful", "readings": ["scored"]}
    made = plan(load_config(config(tmp_path, judge)))
    assert isinstance(made, C2Plan)
    made.benchmark.saved.save(tmp_path / "saved")
    data = {"benchmark": str(tmp_path / "saved"), "limit": 2}
    first = plan(load_config(config(tmp_path, judge, data=data)))
    built = plan(load_config(config(tmp_path, judge), ["data.limit=2"]))
    assert isinstance(first, C2Plan)
    assert isinstance(built, C2Plan)
    assert first.benchmark.causal == built.benchmark.causal
    assert first.benchmark.coverage == built.benchmark.coverage
    assert set(first.benchmark.left_out) == set(built.benchmark.left_out)
    assert first.stored() == built.stored()
    first.benchmark.saved.save(tmp_path / "first")
    assert Benchmark.load(tmp_path / "first") == first.benchmark


def test_models_here_need_no_prices(tmp_path: Path, model: str) -> None:
    spend = {"prices": "no/such/prices.yaml"}
    judge = {"model": model, "readings": ["scored"]}
    ended = unshown(config(tmp_path, judge, forms="c2_coverage", spend=spend))
    assert (ended.failures, ended.problems, ended.stopped) == ([], [], "")


@pytest.mark.slow
def test_a_model_may_rewrite_the_steps(tmp_path: Path, model: str) -> None:
    perturb = {"levels": [0.5], "acausal": "llm", "writer": model}
    judge = {"model": model, "readings": ["scored"]}
    outcome = run(load_config(config(tmp_path, judge, perturb=perturb)))
    manifest = yaml.safe_load((outcome.run_dir / "benchmark/manifest.json").read_text())
    assert manifest["made_of"]["replacement"]["author"] == model
    # bytes at random are one line now and then; what is refused says why
    made = manifest["counts"]
    assert (
        sum(made["causal"].values())
        + sum(n for why, n in made["left_out"].items() if why.startswith("causal:"))
        == 3
    )
    before = tables(outcome.run_dir)
    run(load_config(tmp_path / "c2.yaml"))
    assert tables(outcome.run_dir) == before


class TestBehindAnApi:
    def judged(self, folder: Path, server: Any, **changes: Any) -> Path:
        judge = {"model": "api:openai/gpt-4.1", "base_url": server.url, "structured": "prompt"}
        return config(folder, judge | {"max_retries": 0}, **changes)

    @pytest.mark.slow
    def test_a_spent_budget_does_not_keep_models_here_from_their_work(
        self, tmp_path: Path, server: Any, model: str
    ) -> None:
        more = {"forms": "c2_coverage", "spend": {"max_calls": 1}}
        path = self.judged(tmp_path, server, **more)
        models = f"judge.model=[api:openai/gpt-4.1, {model}, api:openai/gpt-4o]"
        ended = run(load_config(path, [models]))
        assert sum(server.seen.values()) == 1
        assert "model 'openai/gpt-4.1'" in ended.stopped
        assert "model 'openai/gpt-4o'" in ended.stopped
        usage = load_run(ended.run_dir).tables["usage"].groupby("model")["n"].sum()
        # one level of three chains, by both readings
        assert usage.to_dict() == {"api:openai/gpt-4.1": 1, model: 6}

    def test_who_is_only_looked_into_need_not_think_as_judges_do(
        self, tmp_path: Path, server: Any, model: str
    ) -> None:
        inside = {"model": model, "signals": ["surprisal"]}
        path = self.judged(tmp_path, server, forms="c2_coverage", internals=inside)
        ended = unshown(path, "judge.thinking=true")
        assert (ended.failures, ended.problems) == ([], [])

    @pytest.mark.slow
    def test_a_key_that_good_replies_repeat_is_nowhere_in_the_run_folder(
        self, tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        form = tmp_path / "prompts/c2_coverage.yaml"
        path = self.judged(tmp_path, server, forms="c2_coverage")
        told = yaml.safe_load(form.read_text())
        told["fields"].insert(0, {"name": "rationale", "kind": "text"})
        form.write_text(yaml.safe_dump(told))
        said = '{"rationale": "KEY", "score": 1}'
        server.default = [
            says_key(f"My key is KEY:\n```json\n{said}\n```", "KEY"),
            says(said, served="a-version"),
            says_key(f"<think>KEY</think>{said}", "KEY"),
        ]
        ended = run(load_config(path, ["judge.max_connections=1"]))
        assert (ended.failures, ended.stopped) == ([], "")
        assert f"Bearer {KEY}" in server.keys
        index = Index.of(ended.run_dir)
        judged = [r for key, _ in index.places() for r in index.records(key)]
        served = sorted(r["served"] for r in judged)
        assert served == ["a-version", "m-[OPENAI_API_KEY]", "m-[OPENAI_API_KEY]"]
        for name in ("text", "thinking"):
            assert sum("[OPENAI_API_KEY]" in r[name] for r in judged) == 2
        for command in (["report"], ["show", "--item", judged[0]["ask"]], ["status"]):
            assert execute([command[0], str(ended.run_dir), *command[1:]]) == 0
        kept = [p for p in ended.run_dir.rglob("*") if p.is_file()]
        assert {"config.yaml", "report.html", "spend.main.jsonl", "spend.csv"} <= {
            p.name for p in kept
        }
        assert [p for p in kept if KEY.encode() in p.read_bytes()] == []
        assert KEY not in "".join(capfd.readouterr())

    @pytest.mark.slow
    def test_what_a_judge_was_sent_is_shown_word_for_word(
        self, tmp_path: Path, server: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        path = self.judged(tmp_path, server, forms="c2_coverage")
        # a provider's own temperature, and the form asked for in the prompt
        run_dir = run(load_config(path, ["judge.temperature=null", "judge.max_tokens=64"])).run_dir
        assert [set(body) & {"temperature", "response_format"} for body in server.bodies] == [
            set()
        ] * 3
        sent = {body["messages"][-1]["content"] for body in server.bodies}
        assert all(text.count('"additionalProperties": false') == 1 for text in sent)
        found = load_run(run_dir).judgements
        assert set(found["asked"]) == sent
        records = [r for unit in Index.of(run_dir).each(("judge_generated",)) for r in unit.records]
        assert {f"{r['asked']}\n\n{r['requested']}" for r in records} == sent
        # a terminal is shown signs in place of control characters
        plain = next(r for r in records if "\x1b" not in r["asked"])
        assert execute(["show", str(run_dir), "--item", plain["ask"]]) == 0
        told = " ".join(capfd.readouterr().out.split())
        assert " ".join(f"{plain['asked']} {plain['requested']}".split()) in told
        page = html.unescape((run_dir / "report.html").read_text())
        assert page.count(plain["requested"]) == 3

        # held to the form instead
        more = ["name=held", "judge.structured=schema"]
        held = load_run(run(load_config(path, more)).run_dir).judgements
        prompts = {r["asked"] for r in records}
        assert {body["messages"][-1]["content"] for body in server.bodies[3:]} == prompts
        assert set(held["asked"]) == prompts


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"forms": ["c2_detecton"]}, "unknown form 'c2_detecton'; did you mean 'c2_detection'?"),
        ({"benchmark": "c2fath"}, "unknown benchmark 'c2fath'; did you mean 'c2faith'?"),
        ({"judge": {"model": "api:gpt-4.1"}}, "'api:gpt-4.1' names no provider"),
        ({"judge": {"model": "openai/gpt/x"}}, "over its API: 'api:openai/gpt/x'"),
        ({"perturb": {"acausal": "llm"}}, "acausal 'llm' needs a writer"),
        ({"data": {"path": "/no/such/rows.jsonl"}}, "data.path: "),
        ({"spend": {"max_cst": 3}}, "unknown key 'max_cst'; did you mean 'max_cost'?"),
        ({"perturb": {"levels": [0.5, 0.5]}}, "perturb.levels: 0.5 is listed twice; list it once"),
        ({"perturb": {"low": 0.9, "high": 0.3}}, "perturb: low 0.9 is over high 0.3"),
        (
            {
                "judge": {"model": ["api:openai/a", "api:openai/b"], "base_url": "http://h/v1"},
                "reference": "api:anthropic/c",
            },
            "judge.base_url is one address for openai and anthropic",
        ),
        (
            {"judge": {"temperature": None}},
            "judge.temperature is null, which leaves it to a provider, and 'planted:faithful' runs "
            "here and has none; give a number, 0 for greedy",
        ),
        (
            {
                "judge": {"model": "api:openai/a", "temperature": None},
                "reference": "planted:hint",
            },
            "'planted:hint' runs here and has none; give a number, 0 for greedy, or ask models "
            "behind APIs alone (reference is asked as judges are)",
        ),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    judge = {"model": "planted:faithful"} | changes.pop("judge", {})
    path = config(tmp_path, judge, **changes)
    error = refused("run", path)
    assert expected in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ({"base_url": f"http://me:{KEY}@host/v1"}, "base_url: holds a user name, a password"),
        ({"base_url": f"http://host/v1#{KEY}"}, "base_url: holds a user name, a password"),
        ({"base_url": f"http://host/{KEY}/v1"}, "base_url: holds the value of an environment"),
        ({"extra_body": {"a": [{"X-Api-Key": "0123"}]}}, "extra_body: 'X-Api-Key' is named like"),
        ({"extra_body": {"note": KEY}}, "extra_body: holds the value of an environment variable"),
    ],
)
def test_no_key_comes_into_a_run_folder_by_its_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: dict[str, Any], expected: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    path = config(tmp_path, {"model": "api:openai/gpt-4.1"} | judge)
    error = refused("run", path)
    assert expected in error
    assert KEY not in error
    assert not (tmp_path / "runs").exists()


def test_names_that_are_no_keys_may_be_sent(tmp_path: Path) -> None:
    body = {"prompt_cache_key": "a", "eos_token": "b", "max_tokens": 3, "chat_template_kwargs": {}}
    path = config(tmp_path, {"model": "api:openai/gpt-4.1", "extra_body": body})
    assert load_config(path).model_dump()["judge"]["extra_body"] == body
