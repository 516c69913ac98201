"""Runs with every probe: what is asked, what is left out, and that it all adds up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tiny_models
from default_probes import AS_THEY_ARE

from faithscope import load_run
from faithscope.experiments.engine.run import run
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.model import Model


def config(folder: Path, **changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "probes": AS_THEY_ARE,
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


def saved(model: Model, folder: Path, positions: int = 512) -> str:
    """A tiny random model on disk: what it writes is no reasoning."""
    path = Path(tiny_models.saved(model, folder / "model"))
    stored = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(stored | {"max_position_embeddings": positions}))
    return str(path)


@pytest.mark.slow
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
    names = {str(p.relative_to(outcome.run_dir)) for p in outcome.run_dir.rglob("*")}
    assert {
        *("config.yaml", "environment.json", "report.html"),
        *("records/traces.main.jsonl", "records/slrc.main.jsonl"),
        *("tables/slrc.csv", "tables/exclusions.csv"),
    } <= names
    opened = load_run(outcome.run_dir)
    assert (len(opened.traces), len(opened.items), set(opened.steps.position)) == (2, 2, {1, 2, 3})
    assert set(opened.branches.edit) == {"remove", "keep_only", "shuffle", "remove_all"}
    effects = opened.causal_effects
    assert effects["position"].tolist() == [1, 2, 3] * 2
    assert effects["tts_excluded"].dropna().tolist() == ["no_context"] * 2
    assert effects["nldd"].notna().all()
    head_to_head = pd.read_csv(outcome.run_dir / "tables/head_to_head.csv")
    assert {"necessity_scored", "slrc_scored", "tts"} <= set(head_to_head["measure"]) | set(
        head_to_head["other"]
    )
    assert opened.information["no_comparison"].isna().all()
    assert opened.step_information["mi"].notna().tolist() == [True] * 2 * 3
    for _, arrays in opened.arrays("information"):
        assert len(arrays["surprisal"]) == len(arrays["surprisal_without"])
        assert arrays["p_steps"].shape == (3, 5, 10)


@pytest.mark.slow
def test_direct_answers_are_asked_where_the_trace_is_excluded(llama: Model, tmp_path: Path) -> None:
    settings = {
        "model": {"name": saved(llama, tmp_path)},
        "tasks": ["gsm8k"],
        "data": {"path": str(tmp_path / "data.jsonl")},
        # what a random model writes is no calculation, and one step in all
        "slrc": {
            "framings": ["prefix"],
            "readings": ["scored"],
        },
        "steps": {"min_chars": 100_000},
    }
    rows = [f'{{"question": "What is 1 + {i}?", "answer": "#### {1 + i}"}}\n' for i in range(2)]
    (tmp_path / "data.jsonl").write_text("".join(rows))
    outcome = run(config(tmp_path, **settings))
    assert outcome.failures == []
    found = stages(outcome.run_dir)
    assert found["trace"] == {"total": 2, "fewer_than_2_steps": 2, "included": 0}
    for prompt in ("unformatted", "formatted", "system"):
        assert found[f"direct.{prompt}.generated"] == {"total": 2, "included": 2}
    assert {"slrc.prefix.scored", "sycophancy", "error_detection"}.isdisjoint(found)
    kept = {p: p.read_bytes() for p in (outcome.run_dir / "records").iterdir()}
    assert run(config(tmp_path, **settings)).failures == []
    assert {p: p.read_bytes() for p in (outcome.run_dir / "records").iterdir()} == kept


@pytest.mark.slow
def test_every_probe_of_a_task_in_words(llama: Model, tmp_path: Path) -> None:
    settings = {
        "model": {"name": saved(llama, tmp_path, positions=4096)},
        "tasks": ["gsm8k"],
        "data": {"path": str(tmp_path / "data.jsonl")},
        "slrc": {
            "framings": ["prefix"],
            "readings": ["scored"],
        },
        "steps": {"min_chars": 1},
    }
    (tmp_path / "data.jsonl").write_text('{"question": "2 + 1?", "answer": "#### 3"}\n')
    outcome = run(config(tmp_path, **settings))
    assert outcome.failures == []
    found = stages(outcome.run_dir)
    assert found["trace"] == {"total": 1, "included": 1}
    for stage in ("sycophancy.scored", "error_detection.generated", "direct.system.scored"):
        assert found[stage]["total"] == 1
    for name in ("direct", "taxonomy", "sycophancy", "error_detection", "models"):
        for suffix in (".csv", ".md", ".tex"):
            assert (outcome.run_dir / f"tables/{name}{suffix}").is_file()
    direct = pd.read_csv(outcome.run_dir / "tables/direct.csv")
    assert direct["prompt"].unique().tolist() == ["unformatted", "formatted", "system"]
    assert (direct["n"] == 1).all()
    assert (direct.query("reading == 'generated'")["n_cut"] == 1).all()
    opened = load_run(outcome.run_dir)
    assert len(opened.direct) == 3 * 2
    assert opened.direct["task"].unique().tolist() == ["gsm8k"]
    assert opened.direct.query("reading == 'generated'")["reply"].str.len().gt(0).all()
    for frame in (opened.sycophancy, opened.error_detection):
        assert len(frame) == 2
    assert opened.error_detection["excluded"].tolist() == ["no_calculation"] * 2


@pytest.mark.slow
def test_a_probe_may_be_asked_of_fewer_items_than_others(tmp_path: Path) -> None:
    """The paper asks for direct answers to 100 of 500 items (SLRC, 4.3)."""
    changes: dict[str, Any] = {
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": 3},
        "probes": ["flow", "rigidity"],
        "rigidity": {"limit": 1},
    }
    outcome = run(config(tmp_path, **changes))
    assert outcome.failures == []
    of = stages(outcome.run_dir, model="planted:faithful")
    assert of["flow"] == {"total": 3, "included": 3}
    assert of["rigidity"] == {"total": 3, "beyond_limit": 2, "included": 1}
    page = (outcome.run_dir / "report.html").read_text("utf-8")
    assert "This run is unfinished" not in page
    assert "beyond the limit of the probe" in page
