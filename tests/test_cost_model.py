"""Dry runs say hours and memory by a cost model, whose error is what the measured rows give."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithscope.experiments.config.api import SpendConfig
from faithscope.experiments.config.judge import JudgeConfig
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine import cost_model
from faithscope.experiments.engine.cost_model import CPU, DEVICES, H100, H200, Work, Written
from faithscope.experiments.engine.models import hours
from faithscope.experiments.engine.models.hours import Replies, asking_lines, costs_of
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.plan import plan
from faithscope.probes import PROBES
from faithscope.probes.judge.form import Writing
from faithscope.probes.probe import Size

sys.path.append(str(Path(__file__).parents[1] / "tools"))
import cost_errors

BIG = "Some/Model-8B"


def lines_of(tmp_path: Path, **values: Any) -> list[str]:
    path = tmp_path / "c.yaml"
    config = {"name": "h", "out": str(tmp_path), "model": {"name": BIG}, "probes": ["slrc"]}
    config |= {"tasks": ["word_problems"], "data": {"limit": 20}} | values
    path.write_text(json.dumps(config))
    return plan(load_config(path, must_be=TracesConfig, at_hand=False)).summary().splitlines()


def test_the_errors_that_are_stated_are_those_of_the_measured_rows() -> None:
    rows = cost_errors.rows()
    assert {row.source for row in rows} >= {
        *("gpu_h100", "items_at_once_h200", "forest_h100", "tracing_h100"),
        *("forest_epyc-2core", "peers_epyc-zen4-2core-shared"),
    }
    for device in DEVICES:
        assert device.error == cost_errors.stated(device, rows)
    page = cost_errors.PAGE.read_text("utf-8")
    made = page.partition(cost_errors.BEGIN)[2].partition(cost_errors.END)[0].strip()
    assert made == cost_errors.table(rows), "python tools/cost_errors.py --write"


def test_a_dry_run_says_hours_memory_basis_and_error_without_weights(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    table = [line for line in lines if line.startswith(BIG) and "GiB" in line]
    assert [line.split()[3] for line in table] == ["125", "1,000", "8,192"]
    said = "\n".join(lines)
    assert f"the size in the name of {BIG}" in said
    assert f"measured on H100: {H100.error}" in said
    assert "dollars" not in said
    # twice as many items take twice as long, and cost it at the price that the user gave
    more = lines_of(tmp_path, data={"limit": 40}, gpu_hour=1e4)
    (long,) = (line.split() for line in more if line.startswith(BIG) and " 1,000 tokens" in line)
    (short,) = (line.split() for line in table if " 1,000 tokens" in line)
    assert float(long[6]) == pytest.approx(2 * float(short[6]), rel=0.1)
    assert float(long[-1].replace(",", "")) == pytest.approx(1e4 * float(long[6]), rel=0.1)


@pytest.mark.parametrize("model", ["planted:faithful", "Some/Model"])
def test_models_of_unknown_size_have_no_hours(tmp_path: Path, model: str) -> None:
    tasks = ["planted"] if model.startswith("planted") else ["word_problems"]
    assert not any(
        "hours" in line for line in lines_of(tmp_path, model={"name": model}, tasks=tasks)
    )


@pytest.mark.parametrize(
    ("name", "billions", "run"),
    [
        ("Qwen/Qwen3-8B", 8.2, 6.9),
        ("meta-llama/Llama-3.1-70B-Instruct", 70, 68),
        ("bundled:smollm2-135m", 0.135, 0.106),
        ("Qwen/Qwen3-30B-A3B", 30, 2.6),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 1.5, 1.2),
    ],
)
def test_a_name_tells_a_size(name: str, billions: float, run: float) -> None:
    shape = cost_model.of_name(name)
    assert shape is not None
    assert shape.parameters / 1e9 == pytest.approx(billions, rel=0.08)
    assert shape.run / 1e9 == pytest.approx(run, rel=0.15)


def test_a_config_tells_a_shape() -> None:
    values = {
        **{"num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32},
        **{"num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151_936},
        **{"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768},
    }
    shape = cost_model.of_config(values)
    assert shape is not None
    assert shape.parameters / 1e9 == pytest.approx(30.2, rel=0.02)
    assert shape.run / 1e9 == pytest.approx(2.7, rel=0.05)
    assert cost_model.of_config({}) is None


def test_more_work_takes_longer_and_side_by_side_items_share_steps() -> None:
    shape = cost_model.of_name(BIG)
    assert shape is not None
    work = Work(5_000, 300, 40, 3, (Written(20, 300, 300), Written(20, 24, 300)))
    base = cost_model.seconds(H100, shape, work)
    assert cost_model.seconds(H100, shape, replace(work, tokens=50_000)) > 1.2 * base
    assert cost_model.seconds(H100, shape, work, at_once=8) < 0.5 * base
    assert cost_model.seconds(CPU, shape, work) > 100 * base
    assert cost_model.seconds(H200, shape, work) < base
    # past the token budget, texts wait for their turn
    few, many = (cost_model.writing(H100, shape, Written(n, 8_000, 8_000)) for n in (8, 80))
    assert many == pytest.approx(10 * few, rel=0.01)


def test_the_device_that_is_there_is_known_by_its_driver(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hours, "DRIVER", tmp_path)
    assert hours.device_here("auto") is CPU
    (tmp_path / "0000").mkdir()
    (tmp_path / "0000" / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    assert hours.device_here("auto") is H200
    assert hours.device_here("cpu") is CPU


def test_judges_here_have_hours_and_those_behind_apis_a_price() -> None:
    judge = JudgeConfig(model=[BIG, "api:openai/gpt-4.1"], max_tokens=1_000)
    asks = [Writing(str(i), "Is this step right? " * 50) for i in range(40)]
    both = dict.fromkeys(judge.model, asks)
    lines = asking_lines(both, {BIG: asks}, judge, SpendConfig())
    written, scored = (line.split() for line in lines if line.startswith(BIG))
    assert "1,000" in written
    assert "scored" in scored
    assert float(scored[-3]) < 0.1 * float(written[-3])
    (priced,) = (line for line in lines if line.startswith("api:"))
    assert priced.split()[1] == "40"
    # nothing is left to ask: no table
    assert asking_lines({BIG: []}, {BIG: []}, judge, SpendConfig()) == []
    assert asking_lines({"planted:faithful": asks}, {}, judge, SpendConfig()) == []


def test_replies_past_the_batch_wait_for_it() -> None:
    costs = costs_of(BIG, "auto")
    assert costs is not None
    few, many = (
        hours._of_replies(Replies([500] * n, 256), costs, H100, 16).seconds for n in (16, 160)
    )
    assert many == pytest.approx(10 * few)


def test_texts_that_probes_write_follow_their_settings() -> None:
    size, slrc = Size(), PROBES["slrc"]
    scored = slrc.settings(readings=["scored"], edits=["remove"])
    assert slrc.texts(size, scored) == []
    (regenerated,) = slrc.texts(size, slrc.settings(readings=["scored"]))
    assert (regenerated.n, regenerated.tokens) == (2 * size.steps, 220)
    (chains,) = PROBES["mediation"].texts(size, PROBES["mediation"].settings())
    assert chains == (1, size.rewritten, 1)
    assert [
        t.n for t in PROBES["hints"].texts(size, PROBES["hints"].settings(cues=["sycophancy"]))
    ] == [1, 2]
    assert PROBES["attention"].texts(size, PROBES["attention"].settings()) == []
    assert sum(t.n for t in PROBES["resample"].texts(size, PROBES["resample"].settings())) == 60


@pytest.mark.parametrize(
    "name", ["/a/b/c.gguf", "./x.gguf", "~/x/y", "a..b/c", "org/na me", "w.gguf"]
)
def test_names_of_no_repository_are_looked_up_nowhere(name: str) -> None:
    assert costs_of(name, "auto") is None
