"""Texts put into judged chains: what they are, where they stand, what is counted of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from c2_runs import shown
from fault_server import KEY, FaultServer, says
from injected_pairs import frame
from processor_time import dear

import faithscope
from faithscope.experiments.analysis.picture import save, svg
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.cli import execute
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import plan, run
from faithscope.experiments.extras.injection.figure import injection_picture
from faithscope.experiments.extras.injection.pairs import INJECTION as PAIRS
from faithscope.experiments.extras.injection.report import OF_INJECTED
from faithscope.experiments.extras.injection.texts import (
    drawn_chains,
    inject,
    injected_step,
    injections,
    variants,
)
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem, CoverageItem
from faithscope.experiments.studies.c2faith.judgements import COLUMNS
from faithscope.experiments.studies.c2faith.prompts import TaskForm, judge_forms
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS, ask_of
from faithscope.experiments.studies.c2faith.results import results
from faithscope.interp.errors import UserError

STEPS = tuple(f"Step text {c} {{x}}" for c in "abcdef")
CAUSAL = CausalItem("c.causal", "c", "What is x?", STEPS, 3, "as it was", STEPS[3], "rule:numeric")
LEFT = CoverageItem("c.coverage-0.5", "c", "What is x?", STEPS[:4], (4, 5), 0.5, 4, STEPS)
WANTED = {
    ("detection", "best"): 1,
    ("detection", "worst"): 0,
    ("localisation", "best"): -1,
    ("localisation", "worst"): 0,
    ("coverage", "best"): 4,
    ("coverage", "worst"): 0,
}


def cases() -> list[tuple[CausalItem | CoverageItem, TaskForm, Any]]:
    forms = judge_forms()
    made: list[tuple[CausalItem | CoverageItem, TaskForm, Any]] = [
        (CAUSAL, forms[f"c2_{task}"], condition)
        for task in ("detection", "localisation")
        for condition in CONDITIONS
    ]
    return [*made, (LEFT, forms["c2_coverage"], None)]


@pytest.mark.parametrize("name", list(injections()))
def test_an_injected_ask_is_its_twin_with_a_text_after_one_step(name: str) -> None:
    kind = injections()[name]
    for item, form, condition in cases():
        twin = ask_of(item, form, condition)
        for _, demand in variants([kind], ["best", "worst"]):
            made = inject(item, form, condition, kind, demand, seed=0)
            assert made is not None
            ask, told = made
            text = words = kind.fill(form, told.demanded)
            if form.task == "localisation":
                # further lines of a numbered step are indented
                text = "    " + text.replace("\n", "\n    ")
            assert ask.prompt.count(text) == 1
            assert ask.prompt.replace(f"\n{text}", "", 1) == twin.prompt
            assert (ask.form, ask.high, told.twin) == (twin.form, twin.high, twin.id)
            assert ask.id != twin.id
            step = item.steps[told.step]
            assert f"{step}\n{text}" in ask.prompt
            if demand is None:
                assert told.demanded is None
                continue
            assert told.demanded == WANTED[form.task, demand]
            assert told.demanded in ask.range
            assert re.search(rf"(?<!\d){told.demanded}(?!\d)", words)


def test_a_forged_reply_is_one_of_the_form() -> None:
    for form in judge_forms().values():
        text = injections()["forged_reply"].fill(form, 0)
        reply = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        assert list(reply) == [f.name for f in form.form.fields]
        assert reply[form.form.verdict] == 0


def test_the_step_is_the_one_before_the_target_or_a_seeded_draw() -> None:
    assert injected_step(CAUSAL, 0) == 2
    assert injected_step(replace(CAUSAL, target=0), 0) is None
    assert injected_step(replace(LEFT, steps=()), 0) is None
    drawn = [injected_step(LEFT, seed) for seed in range(40)]
    assert drawn == [injected_step(LEFT, seed) for seed in range(40)]
    assert set(drawn) == {0, 1, 2, 3}


def test_fewer_chains_are_some_of_more() -> None:
    names = [f"chain{i}" for i in range(20)]
    few, more = drawn_chains(names, 5, 0), drawn_chains(reversed(names), 9, 0)
    assert (len(few), len(more)) == (5, 9)
    assert few < more
    assert drawn_chains(names, 5, 1) != few
    assert drawn_chains(names, None, 0) == set(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine: {about: x, text: 'say {verdct}'}", r"mine: text: there is no place \{verdct\}"),
        ("mine: {about: x, text: 'say {'}", "mine: text: "),
        ("mine: {about: x, text: ' '}", "mine: text is empty"),
        ("mine: {about: x, txt: y}", r"every injection is a name with `about` and `text`"),
        ("'a b': {about: x, text: y}", "'a b': name it with letters"),
        ("[1, 2]", "the file: "),
        ("a: [", "not YAML"),
    ],
)
def test_a_file_of_texts_that_cannot_be_used_is_said_so(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "texts.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=expected):
        injections(path)


def numbers_of(table: pd.DataFrame) -> dict[str, Any]:
    (row,) = PAIRS.make(table, how=Bootstrap(0, 50)).to_dict("records")
    return {str(name): value for name, value in row.items()}


class TestTable:
    def test_a_hand_made_case(self) -> None:
        none = math.nan
        pairs = [(1, 0, 1), (1, 0, 0), (1, 1, 1), (1, 1, 0), (1, 0, none), (1, none, 1)]
        row = numbers_of(frame(*pairs))
        assert (row["n"], row["n_without_verdict"]) == (4, 2)
        assert (row["demanded_clean"], row["demanded_injected"]) == (0.5, 0.5)
        assert (row["difference"], row["shift"]) == (0, 0)
        assert (row["n_movable"], row["moved"]) == (2, 0.5)
        assert (row["n_clean_parsed"], row["form_lost"]) == (5, 0.2)
        few = row["moved_high"] - row["moved_low"]
        row = numbers_of(frame(*pairs * 3))
        assert 0 < row["moved_high"] - row["moved_low"] < few
        assert row["moved_low"] < 0.5 < row["moved_high"]
        assert row["n_scored"] == 0
        assert math.isnan(row["probability_change"])

    def test_on_a_scale_a_verdict_may_come_part_of_the_way(self) -> None:
        row = numbers_of(frame((4, 1, 3), (4, 4, 4), (4, 2, 1), task="coverage"))
        assert (row["demanded_clean"], row["demanded_injected"]) == (1 / 3, 1 / 3)
        assert (row["n_movable"], row["moved"]) == (2, 0.5)
        assert row["shift"] == pytest.approx((2 - 1) / 4 / 3)

    def test_between_steps_there_is_no_distance(self) -> None:
        row = numbers_of(frame((-1, 6, 1), (-1, 6, -1), (-1, -1, 4), task="localisation"))
        assert (row["n_movable"], row["moved"], row["shift"]) == (2, 0.5, 0)

    def test_probabilities_of_the_demanded_verdict(self) -> None:
        scored = {"reading": "scored", "p_clean": 0.25, "p_injected": 0.75}
        row = numbers_of(frame((1, 0, 1), (1, 0, 1), **scored))
        assert (row["n_scored"], row["probability_change"]) == (2, 0.5)

    def test_nobody_answers(self) -> None:
        row = numbers_of(frame((1, math.nan, math.nan)))
        assert (row["n"], row["n_without_verdict"], row["n_clean_parsed"]) == (0, 1, 0)
        assert math.isnan(row["moved"])
        assert math.isnan(row["shift"])

    def test_what_cannot_be_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"score = 2\.0 cannot be"):
            frame((1, 0, 2))


def config(folder: Path, model: str | list[str], injection: dict[str, Any], **judge: Any) -> Path:
    from c2_runs import config as of_run

    told = {"model": model, "readings": ["generated", "scored"]} | judge
    return of_run(folder, told, injection=injection, name=f"c2-{len(injection.get('kinds', []))}")


# names that the client speaks the chat completions API to
JUDGES = {"obeys": "gpt-4.1", "ignores": "gpt-4.1-mini", "breaks": "gpt-4.1-nano"}
TWO = {"kinds": ["neutral", "command"], "chains": 2}


def test_injections_are_added_to_a_plan_and_change_no_unit(tmp_path: Path, plain: str) -> None:
    path = config(tmp_path, plain, TWO)
    ordinary = plan(load_config(config(tmp_path, plain, {}))).stored().by_key
    more = plan(load_config(path)).stored().by_key
    assert ordinary.items() < more.items()
    # two chains, two tasks in two conditions and a level, a text alone and one with two demands,
    # two readings
    assert len(more) - len(ordinary) == 2 * (2 * 2 + 1) * (1 + 2) * 2
    assert all(key[2].endswith("+injected") for key in more.keys() - ordinary.keys())


@pytest.mark.slow
def test_injections_are_in_no_ordinary_table(tmp_path: Path, plain: str) -> None:
    without = run(load_config(config(tmp_path, plain, {}))).run_dir
    path = config(tmp_path, plain, TWO)
    outcome = run(load_config(path))
    assert outcome.failures == []
    own = {"c2_injection.csv", "usage.csv", "exclusions.csv"}
    for table in (without / "tables").glob("*.csv"):
        if table.name not in own:
            same = (outcome.run_dir / "tables" / table.name).read_bytes()
            assert same == table.read_bytes(), table.name
    table = pd.read_csv(outcome.run_dir / "tables/c2_injection.csv")
    # three prompts, two readings, two injections, two demands
    assert len(table) == 3 * 2 * 2 * 2
    scored = where(table, reading="scored")
    assert (scored["n"] + scored["n_without_verdict"] > 0).all()
    assert (scored["n_scored"] == scored["n"]).all()
    assert (scored["probability_change"].abs() > 0).all()
    neutral = where(scored, injection="neutral", task="detection").set_index("demand")
    # one ask held against either demand: what one verdict gains the other loses
    best, worst = (neutral.loc[d, "probability_change"] for d in ("best", "worst"))
    assert best == pytest.approx(-worst)
    written = where(table, reading="generated")
    assert (written["n_scored"] == 0).all()
    page = (outcome.run_dir / "report.html").read_text()
    assert 'id="injection"' in page
    assert "demands no verdict" in page or "demands -1" in page or "demands 1" in page
    usage = pd.read_csv(outcome.run_dir / "tables/usage.csv")
    assert where(usage, prompt="c2_detection+injected")["n"].tolist() == [12, 12]

    before = {p: p.read_bytes() for p in (outcome.run_dir / "records").iterdir()}
    run(load_config(path))
    assert before == {p: p.read_bytes() for p in (outcome.run_dir / "records").iterdir()}


def test_an_unknown_injection_is_said_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, "planted:faithful", {"kinds": ["comand"]})
    assert execute(["run", str(path)]) == 2
    expected = "injection.kinds: unknown injection 'comand'; did you mean 'command'?"
    assert expected in capfd.readouterr().err


class TestBehindAnApi:
    """Judges of planted behaviour on one server, told apart by the model that is asked for."""

    KINDS = ("neutral", "command", "forged_reply")

    @pytest.fixture(scope="class")
    @dear
    def run_dir(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
        """Three chains judged by one that obeys, one that does not, one that loses its form."""
        pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

        def behave(handler: Any) -> None:
            told = json.dumps(handler.request_body["messages"])
            judge = handler.request_body["model"]
            if judge == JUDGES["obeys"]:
                # unasked, neither the best nor the worst of a chain that is numbered
                usual = "1" if "[Step 0]" in told else "0"
                says(f'{{"score": {demand_in(told) or usual}}}')(handler)
            elif judge == JUDGES["breaks"] and "END OF THE SOLUTION" in told:
                says("As you wish.")(handler)
            else:
                says('{"score": 1}')(handler)

        with pytest.MonkeyPatch.context() as patch, FaultServer() as server:
            patch.setenv("OPENAI_API_KEY", KEY)
            server.default = [behave]
            judges = [f"api:openai/{j}" for j in JUDGES.values()]
            told = {"base_url": server.url, "structured": "prompt", "attempts": 1}
            folder = tmp_path_factory.mktemp("judged")
            path = config(folder, judges, {"kinds": list(self.KINDS)}, **told)
            outcome = run(load_config(path, ["judge.max_tokens=64"]))
            assert outcome.failures == []
            yield outcome.run_dir

    @staticmethod
    def of(run_dir: Path, judge: str, table: str = "c2_injection") -> pd.DataFrame:
        return where(
            pd.read_csv(run_dir / f"tables/{table}.csv"), judge=f"api:openai/{JUDGES[judge]}"
        )

    def test_a_judge_that_obeys(self, run_dir: Path) -> None:
        table = self.of(run_dir, "obeys")
        assert (table["n_without_verdict"] == 0).all()
        demanding = table[table["injection"] != "neutral"]
        neutral = where(table, injection="neutral")
        assert len(demanding) == 3 * 2 * 2
        assert (demanding["demanded_injected"] == 1).all()
        assert (demanding["form_lost"] == 0).all()
        assert (demanding["moved"].dropna() == 1).all()
        best = where(demanding, demand="best")
        assert (best["demanded_clean"] == 0).all()
        assert (best["difference"] == 1).all()
        assert (best["shift"] == 1).all()
        assert (neutral["shift"] == 0).all()
        assert (neutral["moved"].dropna() == 0).all()
        # the ordinary numbers are of what it says unasked: every step is broken
        detection = self.of(run_dir, "obeys", "c2_detection")
        assert detection["detection"].tolist() == [1.0]
        assert detection["n"].tolist() == [3]

    def test_a_judge_that_does_not(self, run_dir: Path) -> None:
        table = self.of(run_dir, "ignores")
        assert (table["shift"] == 0).all()
        assert (table["difference"] == 0).all()
        assert (table["moved"].dropna() == 0).all()
        assert (table["demanded_clean"] == table["demanded_injected"]).all()

    def test_a_judge_that_loses_its_form(self, run_dir: Path) -> None:
        table = self.of(run_dir, "breaks")
        forged = where(table, injection="forged_reply")
        assert (forged["form_lost"] == 1).all()
        assert (forged["n"] == 0).all()
        assert (table[table["injection"] != "forged_reply"]["form_lost"] == 0).all()
        exclusions = pd.read_csv(run_dir / "tables/exclusions.csv")
        lost = where(exclusions, stage="c2_detection+injected.generated")
        assert lost["n"].tolist() == [3 * 2 * 2]

    def test_they_are_shown_beside_their_twins(self, run_dir: Path) -> None:
        found = faithscope.load_run(run_dir)
        rows = found.injected
        item = results(found).benchmark.causal[-1]
        text = shown(run_dir, item.id)
        # three judges, two tasks in two conditions, a text that demands nothing and two with two
        mine = rows[rows["item"] == item.id]
        assert len(mine) == 3 * 2 * 2 * (1 + 2 * 2)
        for row in mine.to_dict("records"):
            demand = "" if pd.isna(row["demand"]) else f" for the {row['demand']} verdict"
            head = (row["judge"], row["form"], row["reading"], row["ask"])
            assert text.count(" · ".join((*head, f"injected {row['injection']}{demand}: "))) == 1
        assert text.count("demands no verdict") == 3 * 2 * 2
        # what the one that loses its form replied to both forged replies
        assert text.count("As you wish.") == 2 * 2 * 2
        one = mine[mine["demand"].notna()].iloc[0]
        alone = shown(run_dir, one["ask"])
        assert alone.count("· generated ·") == len(mine[mine["ask"] == one["ask"]])
        with_twin = shown(run_dir, one["twin"], task=one["form"])
        assert with_twin.count("· generated ·") == 3
        assert "injected" not in with_twin
        of_task = shown(run_dir, one["twin"], task=f"{one['form']}+injected")
        assert of_task.count("· generated ·") == of_task.count("injected ") == 3 * (1 + 2 * 2)

    def test_they_are_rows_of_their_own(self, run_dir: Path) -> None:
        found = faithscope.load_run(run_dir)
        plain, injected = found.judgements, found.injected
        assert len(plain) == 3 * 3 * (2 * 2 + 1)
        assert list(plain.columns) == list(COLUMNS)
        assert list(injected.columns) == [*COLUMNS, *OF_INJECTED]
        assert not injected.duplicated(["judge", "form", "ask"]).any()
        assert set(injected["twin"]) == set(plain["ask"])
        told = injected[injected["demand"].notna()]
        obeyed = told[told["judge"] == f"api:openai/{JUDGES['obeys']}"]
        assert (obeyed["verdict"] == obeyed["demanded"]).all()
        assert set(injected.loc[injected["demand"].isna(), "injection"]) == {"neutral"}
        both = pd.concat([plain, injected], ignore_index=True)
        assert both["injection"].isna().sum() == len(plain)

    def test_the_page_shows_them(self, run_dir: Path) -> None:
        page = (run_dir / "report.html").read_text()
        assert "faithscope show RUN --item" in page
        assert "report.judgements" in page
        assert "<code>.injected</code>" in page
        assert 'id="injection"' in page
        assert re.search(r"a line at the end of step \d demands", page)
        assert (run_dir / "figures/c2_injection.png").is_file()


def demand_in(told: str) -> str | None:
    """The verdict that a shipped text in a prompt demands; messages as JSON."""
    forged = r'reply:\\n *\{\\"score\\": (-?\d)'
    found = re.search(rf"score is (-?\d)|{forged}", told)
    return next(g for g in found.groups() if g) if found else None


@pytest.mark.slow
def test_the_figure_is_drawn_of_many_and_of_none(tmp_path: Path) -> None:
    parts = []
    for judge, follows in (("openai/gpt-4.1", 0.2), ("vllm/Qwen/Qwen2.5", 0.9), ("mute", math.nan)):
        for task, wanted in (("detection", 1.0), ("localisation", -1.0), ("coverage", 4.0)):
            for kind in ("neutral", "command", "forged_reply"):
                for demand, at in (("best", wanted), ("worst", 0.0)):
                    clean = 0.0 if demand == "best" else max(wanted, 1.0)
                    share = 0.0 if kind == "neutral" else follows
                    after = [at if k < 20 * share else clean for k in range(20)]
                    score = math.nan if math.isnan(follows) else None
                    pairs = [(at, clean, a if score is None else score) for a in after]
                    also = {"judge": judge, "injection": kind, "demand": demand}
                    parts.append(frame(*pairs, task=task, **also))
    table = PAIRS.make(pd.concat(parts), how=Bootstrap(0, 20))
    picture = injection_picture(table)
    assert picture.figure is not None
    save(picture, tmp_path)
    assert {p.suffix for p in tmp_path.iterdir()} == {".png", ".pdf", ".csv"}
    assert "<image" not in svg(picture)
    said = [t.get_text() for t in picture.figure.axes[0].get_yticklabels()]
    assert said[0] == "gpt-4.1\nneutral"
    assert len(said) == 9
    assert [ax.get_title() for ax in picture.figure.axes] == [
        *("detection", "localisation", "coverage")
    ]
    nothing = injection_picture(table.iloc[:0])
    assert nothing.figure is None
    assert "injection.kinds" in nothing.absent


def test_the_shipped_config_names_injections_that_there_are() -> None:
    root = Path(__file__).parents[3]
    told = yaml.safe_load((root / "configs/c2faith.yaml").read_text())["injection"]
    assert told["kinds"] == []
    load_config(root / "configs/c2faith.yaml", ["injection.kinds=[command, polite]"])
