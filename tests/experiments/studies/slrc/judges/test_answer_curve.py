"""The answer along the reasoning, by a model and by a judge of the beginnings of its chains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion

from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.forms import trace_forms
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.judges import answer_curve
from faithscope.experiments.studies.slrc.measure_report import ALONG

NAME = "api:openai/gpt-4.1"


def behave(handler: Handler) -> None:
    """A judge that says the last number of what it reads, once it has read two steps."""
    text = handler.request_body["messages"][-1]["content"]
    so_far = text.partition("<REASONING>")[2].partition("</REASONING>")[0]
    found = re.findall(r"-?\d+", so_far)
    told = found[-1] if len(found) > 2 else "none"
    handler.send(200, completion(json.dumps({"told": told})))


REPLIES = [behave]


@pytest.mark.slow
def test_a_model_and_a_judge_of_prefixes_are_on_one_axis(
    tmp_path: Path, server: FaultServer
) -> None:
    config = tmp_path / "both.yaml"
    known: dict[str, Any] = {
        "name": "both",
        "out": str(tmp_path / "runs"),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": 4},
        "probes": ["tracing", "hints"],
        "judges": {"model": NAME, "base_url": server.url, "max_retries": 0}
        | {"forms": ["answer_monitor", "legibility"]},
        "report": {"bootstrap": 20, "traces": 0},
    }
    config.write_text(yaml.safe_dump(known))
    outcome = run(load_config(config))
    found = load_run(outcome.run_dir)
    curve = found.tables["answer_curve"]
    judge = f"answer_monitor, generated ({NAME})"
    assert set(curve["line"]) == {"forced answer", "probability of the answer", judge}
    assert set(curve["n"]) == {found.tables["answer_gap"]["n"].iloc[0]}
    assert curve[curve["line"] == judge]["answer_there"].iloc[0] == 0
    assert (outcome.run_dir / "figures" / "answer_curve.png").is_file()
    assert "When is the answer there" in (outcome.run_dir / "report.html").read_text("utf-8")
    held = found.tables["judge_agreement"]
    assert "hints_followed" in set(held["label"])


def test_the_gap_is_the_share_of_the_reasoning_in_which_the_text_does_not_tell() -> None:
    ends = {-1: 0.0, 0: 0.5, 1: 1.0}
    place = ("m", "t", "i")
    steps = [{"index": i, "tokens": (5 * i, 5 * i + 5)} for i in range(2)]
    trace = {"model": "m", "task": "t", "item": "i", "steps": steps, "reasoning_ids": [0] * 10}
    records = [
        {"step": step, "given": k, "of": 2, "verdict": told, "answer": "7", "answers": []}
        | {"probabilities": (), "outcome": "parsed"}
        for k, (step, told) in enumerate([(-1, "none"), (0, "none"), (1, "7")])
    ]
    task = trace_forms()["answer_monitor"].judged
    read = answer_curve._of_judge(records, task, ends)  # pyright: ignore[reportPrivateUsage]
    assert read is not None
    np.testing.assert_allclose(read, np.clip(2 * ALONG - 1, 0, 1))
    made = answer_curve.tables(
        [trace],
        {place: {"forced": np.ones(11)}},
        {"judge": {place: records}},
        {"judge": task},
        [],
        Bootstrap(),
    )
    (gap,) = made["answer_gap"]["gap"]
    assert gap == pytest.approx(1 - np.clip(2 * ALONG - 1, 0, 1).mean())
