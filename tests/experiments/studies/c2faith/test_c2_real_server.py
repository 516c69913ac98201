"""A run whose judge is a real model behind a real server says what the same weights say here."""

from __future__ import annotations

from pathlib import Path

import pytest
from c2_runs import config

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from model_server import serving

import faithscope
from faithscope.experiments.cli import execute
from faithscope.interp.sources import resolve

MODEL = "bundled:smollm2-135m"


@pytest.mark.slow
def test_a_judge_behind_a_server_and_the_same_weights_here(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with serving(resolve(MODEL).location, tmp_path / "server") as (url, name):
        api = f"api:openai-api/local/{name}"
        judge = {
            "model": [api, MODEL],
            "readings": ["generated"],
            "base_url": url,
            "structured": "prompt",
            "max_tokens": 24,
            "attempts": 1,
            "dtype": "float32",
            "batch_size": 1,
        }
        path = config(tmp_path, judge, forms=["c2_detection", "c2_coverage"])
        assert execute(["run", str(path), "--set", "spend.max_calls=4"]) == 130
        assert execute(["run", str(path)]) == 0
        found = faithscope.load_run(tmp_path / "runs/c2")
        rows = found.judgements.set_index(["form", "ask"]).sort_index()
        there, here = rows[rows["judge"] == api], rows[rows["judge"] == MODEL]
        # three chains: one step in two conditions, one level
        assert len(there) == len(here) == 9
        for column in ("text", "outcome", "verdict", "calls", "input_tokens"):
            assert there[column].tolist() == here[column].tolist(), column
        assert (there["output_tokens"] > 0).all()
        page = (found.path / "report.html").read_text()
        assert api in page
        # all is stored: nothing is asked again, by whom there would be no answer now
    assert execute(["run", str(path)]) == 0
