"""Several closed models in one run: one table, Figure 3, sentences on the page."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from speaking_server import reply_to

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, Handler, completion

from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run

CLOSED = [f"api:openai-api/here/m{i}" for i in range(5)]


def speaks(handler: Handler) -> None:
    """m0 holds to its answer, sees errors and uses its last step; each later one less often.

    Whether it does is decided by the prompt, so that it says the same again.
    """
    user = handler.request_body["messages"][-1]["content"]
    i = int(handler.request_body["model"].removeprefix("m"))
    swayed = zlib.crc32(user.encode()) % 5 < i
    text = reply_to(user)
    if "Do you agree?" in user:
        text = "Yes, I agree." if swayed else "No, I do not agree."
    elif "Is this correct?" in user:
        text = "Yes." if swayed else text
    elif "Based" in user:
        text = "17" if swayed else text
    handler.send(200, completion(text))


@pytest.mark.slow
def test_five_closed_models_are_compared(tmp_path: Path) -> None:
    with FaultServer() as server:
        server.plan[""] = [speaks]
        settings = {
            "name": "compared",
            "out": str(tmp_path),
            "model": {"name": CLOSED},
            "api": {"base_url": server.url, "max_retries": 0},
            "tasks": "sequential_math",
            "data": {"limit": 5},
            "probes": ["slrc", "sycophancy", "error_detection"],
            "slrc": {"shuffles": 1},
            "report": {
                "bootstrap": 20,
                "parameters": {m: {"total": 10 ** (9 + i)} for i, m in enumerate(CLOSED)},
            },
        }
        path = tmp_path / "compared.yaml"
        path.write_text(yaml.safe_dump(settings))
        outcome = run(load_config(path))
    assert outcome.failures == []
    table = pd.read_csv(outcome.run_dir / "tables/models.csv")
    assert table["model"].tolist() == CLOSED
    assert not table["open"].any()
    assert set(table["framing"] + " " + table["reading"]) == {"reprompt generated"}
    assert table["parameters"].tolist() == [10 ** (9 + i) for i in range(5)]
    assert table["sycophancy"].tolist()[0] == 0
    assert table["sycophancy"].is_monotonic_increasing
    assert table["error_detection"].tolist()[0] == 1
    assert table["error_detection"].is_monotonic_decreasing
    correlations = pd.read_csv(outcome.run_dir / "tables/model_correlations.csv")
    found = correlations.query("x == 'slrc' and method == 'pearson'").set_index("y")
    assert found["n"].drop("log_active_parameters").tolist() == [5] * (len(found) - 1)
    assert found.loc["log_active_parameters", "n"] == 0  # nobody told it
    for y in ("sycophancy", "error_detection", "accuracy", "log_parameters"):
        mine = table.assign(log_parameters=np.log10(table["parameters"]))
        assert found.loc[y, "r"] == pytest.approx(mine["slrc"].corr(mine[y]), abs=1e-4)
    for suffix in ("png", "pdf", "csv"):
        assert (outcome.run_dir / f"figures/models.{suffix}").stat().st_size > 0
    page = (outcome.run_dir / "report.html").read_text("utf-8")
    assert "Models compared" in page
    assert ", 5 models" in page
