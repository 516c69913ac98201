"""Judging step by step: what is asked, what is stored, which pairs count, and why others do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml
from rf_frames import frame, judged
from rf_posed import CODE, FORMS, TABLE, WORDS, item

from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.environment import environment
from faithscope.experiments.engine.models.asking import Asker
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.judging.judges import judging_by_step
from faithscope.experiments.studies.rfeval.judging.stepwise import (
    KINDS,
    NOT_ASKED,
    TOO_MANY,
    Kind,
    asks_of_parts,
    n_steps,
    parts_of,
    step_rows,
    why_not,
)
from faithscope.experiments.studies.rfeval.plan import RfPlan, plan
from faithscope.experiments.studies.rfeval.prompts import RfForm
from faithscope.experiments.studies.rfeval.records import about, output_record
from faithscope.experiments.studies.rfeval.results import RfResults, results
from faithscope.experiments.studies.rfeval.saved import row_of
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.tables.chains import scored
from faithscope.experiments.studies.rfeval.tables.frames import OVERALL
from faithscope.experiments.studies.rfeval.tables.steps import (
    LEFT,
    PER_STEP,
    STEP_EXCLUSIONS,
    per_step,
)
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair, judged_stage, steps_stage
from faithscope.interp.generation import Generation

OWN = Output("It says so.\n\nSo it refutes.", "It refutes it.", "C", "complete")
FORCED = Output("Row 2:\n1. it is\n2. not so.", "", "A", "complete")
STEP_FORMS: dict[Kind, RfForm] = {kind: FORMS[f"rf_{kind}"] for kind in KINDS}


def test_every_part_is_asked_about_and_every_transition() -> None:
    parts = parts_of(TABLE, {"baseline": OWN, "intervened": FORCED})
    assert [(p.condition[0], p.place, p.part) for p in parts] == [
        *(("b", 0, "step"), ("b", 1, "step"), ("b", 2, "e"), ("b", 3, "a")),
        *(("i", 0, "r_prime"), ("i", 1, "step"), ("i", 2, "step"), ("i", 3, "step"), ("i", 4, "a")),
    ]
    assert n_steps(parts) == 5
    asked = asks_of_parts(TABLE.posed(WORDS), "m", parts, STEP_FORMS)
    flaws = {(p["condition"], p["place"]): ask for ask, p, *_ in asked if p["kind"] == "flaw"}
    assert len(asked) == 9 + 7  # an output's first part has none before it
    assert flaws["intervened", 1].values["before"] == TABLE.r_prime
    assert flaws["intervened", 1].values["part"] == "Row 2:"
    assert ("baseline", 0) not in flaws
    assert ("intervened", 0) not in flaws
    assert len({(ask.form.name, ask.id) for ask, *_ in asked}) == len(asked)


def record(condition: str, place: int, part: str, kind: str, verdict: Any, **changes: Any) -> dict:
    usage = dict.fromkeys(
        ("calls", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens"), 1
    )
    values = {"judge": "judge", "model": "m", "variant": f"rf_{kind}", "condition": condition}
    values |= {"place": place, "part": part, "kind": kind, "verdict": verdict}
    return values | {"outcome": "parsed"} | usage | changes


def records(condition: str, chain: str) -> list[dict]:
    """Records of a chain such as "r_prime:A step:B! a:B": parts with stances, "!" = flaw named."""
    replies = []
    for place, step in enumerate(chain.split()):
        part, _, stance = step.partition(":")
        replies.append(record(condition, place, part, "stance", stance.rstrip("!")))
        if place:
            replies.append(record(condition, place, part, "flaw", stance.endswith("!")))
    return replies


TRUTHS = {
    "holds": ("step:B step:B e:B a:B", "r_prime:A step:A a:A", 1),
    "goes astray and back": ("step:B step:C step:B e:B a:B", "r_prime:A step:A a:A", 0),
    "says why it turns": ("step:B step:B e:B a:B", "r_prime:A step:A step:B! a:B", 1),
    "turns without a word": ("step:B a:B", "r_prime:A step:A step:B a:B", 0),
}


def test_hand_made_truths_from_stored_records_to_the_table() -> None:
    """Whole blocks are faithful in all of them (misled); step by step two are not."""
    names = list(TRUTHS)
    items = {str(i): item(id=str(i)) for i in range(len(names) + 3)}
    asked = {
        str(i): records("baseline", TRUTHS[name][0]) + records("intervened", TRUTHS[name][1])
        for i, name in enumerate(names)
    }
    asked["4"] = records("baseline", "step:B a:B")
    asked["4"][2] |= {"outcome": "unparsed", "verdict": None}
    asked["5"] = []
    long = Output("\n\n".join("abcd"), "", "B", "complete")
    steps, left = frames_of(asked, {"5": long})
    assert dict(zip(left["item"], left["reason"], strict=True)) == {
        "4": "flaw_unparsed",
        "5": TOO_MANY,
    }
    pairs = scored(frame(*(judged() for _ in items)))
    by_item = per_step(pairs, steps, left).set_index("item")
    # the seventh was not to be judged step by step: it is in no row
    assert list(by_item.index) == ["0", "1", "2", "3", "4", "5"]
    assert by_item["rf_per_step"].tolist()[:4] == [TRUTHS[name][2] for name in names]
    assert by_item["rf"].tolist() == [1] * 6
    row = PER_STEP.make(by_item.reset_index(), pairs).iloc[0]
    assert (row["n"], row["n_without_steps"], row["rf_per_step"]) == (4, 2, 0.5)
    assert (row["n_included"], row["rf_included"]) == (7, 1)
    with pytest.raises(ValueError, match="two rows of"):
        per_step(pairs, pd.concat([steps, steps]), left)
    shuffled = steps.sample(frac=1, random_state=0)
    assert (
        per_step(pairs, shuffled, left)
        .set_index("item")["rf_per_step"]
        .equals(by_item["rf_per_step"])
    )
    went = STEP_EXCLUSIONS.make(steps, left, pairs)
    assert dict(zip(went["reason"], went["n"], strict=True)) == {
        **{"total": 6, "flaw_unparsed": 1, TOO_MANY: 1, "included": 4},
    }


def frames_of(
    asked: dict[str, list[dict[str, Any]]], outputs: Mapping[str, Output]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of the pairs that count, and the others with the reason."""
    counted, left = [], []
    for name, of_item in asked.items():
        both = dict.fromkeys(CONDITIONS, outputs.get(name, OWN))
        if why := why_not(of_item, item(id=name), both, most_steps=7):
            left.append(("judge", "m", item().task, name, why))
        else:
            counted += step_rows("judge", item(id=name), of_item)
    return pd.DataFrame(counted), pd.DataFrame(left, columns=list(LEFT))


@pytest.mark.parametrize(("where", "rf"), [("No: row 2 is meant.", 1), (None, 0), ("null", 0)])
def test_a_flaw_named_nowhere_breaks_the_chain_of_steps(where: str | None, rf: int) -> None:
    own, forced, _ = TRUTHS["says why it turns"]
    replies = records("baseline", own) + records("intervened", forced)
    for r in replies:
        if r["kind"] == "flaw":
            r["flaw_location"] = where if r["verdict"] else None
    steps, left = frames_of({"0": replies}, {})
    table = per_step(scored(frame(judged())), steps, left)
    assert table["rf_per_step"].tolist() == [rf]


def test_a_pair_that_does_not_count_whole_says_that() -> None:
    pairs = scored(frame(judged("A A A", "A A A A"), judged(baseline_judged="unparsed")))
    left = pd.DataFrame(
        [
            {"reader": "judge (log-probs)", "model": "m", "task": "legal_decision"}
            | {"item": str(i), "reason": NOT_ASKED}
            for i in range(2)
        ]
    )
    nothing = pd.DataFrame(columns=["reader", "model", "task", "item"])
    went = STEP_EXCLUSIONS.make(nothing, left, pairs)
    assert went["reason"].tolist() == ["total", "evaluation_error", "non_contrast"]


def test_tests_decide_the_answers_of_code() -> None:
    replies = records("baseline", "step:correct a:correct") + records(
        "intervened", "r_prime:X step:X"
    )
    rows_of_steps = step_rows(
        "j", CODE, replies, {"baseline": "incorrect", "intervened": "correct"}
    )
    of = {(r["condition"], r["place"]): (r["part"], r["stance"]) for r in rows_of_steps}
    assert of["baseline", 1] == ("a", "incorrect")
    assert of["intervened", 1] == ("step", "X")
    assert of["intervened", 2] == ("a", "correct")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, plain: str) -> tuple[RfPlan, RfResults]:
    """Written outputs and judgements, and a tiny judge that reads the steps, in both readings."""
    folder = tmp_path_factory.mktemp("steps")
    items = [item(id=f"legal_decision/{i}") for i in range(4)]
    lines = (json.dumps(row_of(i)) for i in items)
    (folder / "items.jsonl").write_text("\n".join(lines), "utf-8")
    whole = plan(config(folder, {"judge": plain, "items": 3, "most_steps": 6}, plain))
    with Store(whole.config, environment(), "main", whole.stored()) as store:
        whole.write_inputs(store)
        for i, pair in enumerate(whole.units.pairs):
            write(store, pair, plain, i)
        batches = {m: [whole.units.of(m)] for m in whole.units.subjects}
        judging = judging_by_step(whole.units, plain)
        Asker(judging, whole.config, judging.batches(batches), store, Meter()).go()
    return whole, results(whole.config.run_dir)


def config(folder: Path, per_step: dict[str, Any], judge: str = "") -> RFEvalConfig:
    values = {
        "name": "steps",
        "out": str(folder / "runs"),
        "benchmark": "rfeval",
        "data": {"path": str(folder / "items.jsonl")},
        "model": {"name": "planted:faithful"},
        "judge": {"model": judge or str(folder / "judge"), "max_tokens": 24},
        "per_step": {"readings": ["generated", "scored"]} | per_step,
        "log_probs": False,
        "report": {"bootstrap": 10},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(values), "utf-8")
    loaded = load_config(folder / "config.yaml")
    assert isinstance(loaded, RFEvalConfig)
    return loaded


def write(store: Store, pair: Pair, judge: str, i: int) -> None:
    """Outputs of a pair and its judgement as a whole: the first counts, the second is not in
    contrast, the third has too many steps."""
    outputs = {"baseline": OWN, "intervened": FORCED}
    if i == 2:
        outputs["baseline"] = Output("a\n\nb\n\nc\n\nd", "", "B", "complete")
    for condition, stage in OUTPUTS.items():
        of = about(pair.of, pair.model, stage, condition, 0)
        output = outputs[condition]
        start: Any = SimpleNamespace(prompt=SimpleNamespace(ids=(1,)), r_prime_ids=())
        text = Generation((1,), "stop")
        record = output_record(of, start, "prefix", text, "text", output, output)
        store.add(pair.units[stage], pair.key(stage), [record])
    other = "B" if i == 1 else "A"
    stances = {
        "baseline": dict.fromkeys(("model_reasoning", "model_final_answer"), "B"),
        "intervened": dict.fromkeys(
            ("counterfactual_reasoning", "model_subsequent_reasoning", "model_final_answer"), other
        ),
    }
    judgements = [
        about(pair.of, pair.model, "rf_judged", f"rf_{c}", 0, judge)
        | {"condition": c, "outcome": "parsed", "text": "", "asked": ""}
        | {"values": {f"stance_analysis.{part}.stance": x for part, x in values.items()}}
        | dict.fromkeys(("calls", "input_tokens", "output_tokens"), 1)
        | dict.fromkeys(("reasoning_tokens", "cached_tokens"), 0)
        for c, values in stances.items()
    ]
    stage = judged_stage(judge)
    store.add(pair.units[stage], pair.key(stage), judgements)


@pytest.mark.slow
def test_a_judge_here_reads_the_steps_of_the_pairs_that_count(
    ran: tuple[RfPlan, RfResults],
) -> None:
    whole, run = ran
    [judge] = whole.config.per_step.judge
    stages = [steps_stage(judge, "generated"), steps_stage(judge, "scored")]
    first, second, third, fourth = whole.units.pairs
    for stage in stages:
        assert stage not in fourth.units  # items: 3
        assert run.index.records(second.key(stage)) == []  # not in contrast
        assert run.index.records(third.key(stage)) == []  # 7 steps
        replies = run.index.records(first.key(stage))
        assert [(r["kind"], r["part"]) for r in replies[:3]] == [
            *(("stance", "step"), ("stance", "step"), ("flaw", "step")),
        ]
        assert len(replies) == 16
    assert all(r["outcome"] == "parsed" and sum(r["probabilities"]) > 0.99 for r in replies)
    went = run.tables["rf_per_step_exclusions"]
    of = where(went, reader=f"{judge} (log-probs)")
    assert dict(zip(of["reason"], of["n"], strict=True)) == {
        **{"total": 3, "non_contrast": 1, TOO_MANY: 1, "included": 1},
    }
    table = where(run.tables["rf_per_step"], reader=f"{judge} (log-probs)", task=OVERALL)
    [row] = rows(table)
    assert (row["n"], row["n_without_steps"], row["mean_steps"], row["rf"]) == (1, 1, 5, 1)
    stances = {r["place"]: r["verdict"] for r in replies if r["kind"] == "stance"}
    assert set(stances.values()) <= {"A", "B", "C", "I don't know"}
    used = run.tables["usage"]
    assert where(used, prompt="rf_stance")["n"].tolist() == [18]
    assert (whole.config.run_dir / "prompts" / "rf_flaw.yaml").is_file()
    assert "pairs 3, left 0" in whole.summary()


def test_a_config_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "judge").mkdir()
    with pytest.raises(ConfigError, match=r"reads no outputs here; name it in judge\.model"):
        config(tmp_path, {"judge": "planted:hint"})
    api = "api:openai/o3"
    with pytest.raises(ConfigError, match="add generated"):
        config(tmp_path, {"judge": [api], "readings": ["scored"]}, api)
