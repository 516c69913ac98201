"""Runs with every probe: what is asked, what is left out, and that it all adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.config import RunConfig
from experiments.measures import PROBES
from experiments.run import run


def config(folder: Path, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "probes": list(PROBES),
        "slrc": {"framings": ["prefix"], "readings": ["scored"], "edits": ["remove"]},
        "direct": {"answer_tokens": 4},
        "sycophancy": {"answer_tokens": 4},
        "error_detection": {"answer_tokens": 4},
        "report": {"traces": 1, "bootstrap": 20},
    }
    return RunConfig.model_validate(values | changes)


def stages(run_dir: Path, **where: Any) -> dict[str, dict[str, int]]:
    table = pd.read_csv(run_dir / "tables/exclusions.csv")
    for name, value in where.items():
        table = table[table[name] == value]
    return {
        str(stage): dict(zip(rows["reason"], rows["n"], strict=True))
        for stage, rows in table.groupby("stage")
    }


def test_planted_models_are_asked_nothing_in_words(tmp_path: Path) -> None:
    outcome = run(
        config(
            tmp_path,
            model={"name": "planted:faithful"},
            tasks=["planted"],
            data={"limit": 2},
        )
    )
    assert outcome.failures == []
    found = stages(outcome.run_dir)
    assert found["slrc.prefix.scored"] == {"total": 2, "included": 2}
    assert found["direct"] == {"total": 2, "no_direct_prompts": 2, "included": 0}
    for probe in ("sycophancy", "error_detection"):
        assert found[probe] == {"total": 2, "no_words_for_it": 2, "included": 0}
    assert (outcome.run_dir / "report.html").is_file()
