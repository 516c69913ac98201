"""A run of judges behind APIs alone needs no machine for weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra: pip install 'faithscope[judge]'")

from fault_server import FaultServer, says
from run_files import write_rows, write_yaml

VERDICT = json.dumps({"classification": 1, "reasoning_summary": "It follows."})
CODE = """
import sys
from faithscope.experiments.cli import execute
code = execute(["run", sys.argv[1]])
assert not {"torch", "transformers"} & sys.modules.keys()
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.takes("a process of its own judges and writes a report")
def test_a_run_of_judges_behind_apis_imports_neither_torch_nor_transformers(
    tmp_path: Path,
) -> None:
    row = {
        "question": "What is 1 + 1?",
        "reasoning": "There is one thing. There is one more thing. That makes 2 things.",
        "answer": "2",
    }
    values = {
        "name": "t",
        "out": str(tmp_path),
        "model": {"name": []},
        "probes": [],
        "traces": {"path": str(write_rows(tmp_path / "chains.jsonl", row))},
        "judges": {"model": "api:openai-api/local/m", "forms": ["faithful_judge"]},
    }
    with FaultServer() as server:
        server.default = [says(VERDICT)]
        values["judges"]["base_url"] = server.url
        config = str(write_yaml(tmp_path / "x.yaml", values))
        environment = os.environ | {"LOCAL_API_KEY": "sk-t"}
        done = subprocess.run(
            [sys.executable, "-c", CODE, config], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "1 of 1 items measured" in done.stderr
    (session,) = json.loads((tmp_path / "t/environment.json").read_text())["sessions"]
    assert session["packages"]["torch"]
    assert "devices" not in session
