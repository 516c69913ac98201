"""A small run of every study, all of whose models stand here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import c2_runs
import rf_runs
import yaml
from tiny_models import tiny

from faithscope.experiments.config.load import load_config

OUTPUTS = ("tables", "figures")


@dataclasses.dataclass(frozen=True)
class Case:
    """A study's run, made in a folder."""

    write: Callable[[Path, Mapping[str, str]], Path]
    """Writes the config, whose runs go below that folder; is given the models by name."""
    stages: tuple[str, ...]
    """In the order in which they are stored."""

    def run_dir(self, path: Path) -> Path:
        return load_config(path).run_dir


def models(folder: Path) -> dict[str, str]:
    """Folders of tiny models: `plain` says anything, `chain` writes outputs of its own."""
    return {
        "plain": rf_runs.saved(tiny("llama", max_position_embeddings=8192), folder / "plain"),
        "chain": rf_runs.saved(rf_runs.chain_model(), folder / "chain"),
    }


def _written(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / f"{values['name']}.yaml"
    path.write_text(yaml.safe_dump(values | {"out": str(folder / "runs")}))
    return path


def _slrc(folder: Path, models: Mapping[str, str]) -> Path:
    return _written(
        folder,
        {
            "name": "slrc",
            "model": {"name": ["planted:faithful", "planted:hint"]},
            "tasks": ["planted"],
            "data": {"limit": 4},
            "generation": {"batch_size": 2},
            "probes": ["slrc", "tracing"],
            "report": {"traces": 1, "bootstrap": 20},
        },
    )


def _c2faith(folder: Path, models: Mapping[str, str]) -> Path:
    judge = {"model": models["plain"], "readings": ["generated", "scored"]}
    plain = models["plain"]
    return c2_runs.config(folder, judge, reference=plain, internals={"model": plain})


def _rfeval(folder: Path, models: Mapping[str, str]) -> Path:
    cases = [
        rf_runs.Case("follows"),
        rf_runs.Case("resists", r_prime="He was away!"),
        rf_runs.Case("stops_nowhere", r_prime="He was away?"),
        rf_runs.Case("number", task="mathematical_reasoning"),
    ]
    return rf_runs.config(
        folder,
        cases,
        models["chain"],
        generate={"max_new_tokens": 16, "batch_size": 1},
        judge={"model": models["plain"], "structured": "schema", "batch_size": 2},
        log_probs=True,
        inside={"model": models["chain"], "points": 3, "refine": 2},
    )


def _toy(folder: Path, models: Mapping[str, str]) -> Path:
    values = {"name": "toy", "benchmark": "toy", "model": "planted:faithful"}
    return _written(folder, values)


CASES = {
    "toy": Case(_toy, ("word", "length")),
    "slrc": Case(_slrc, ("traces", "slrc", "tracing")),
    "c2faith": Case(_c2faith, ("judge_generated", "judge_scored", "broken_step")),
    "rfeval": Case(
        _rfeval, ("rf_baseline", "rf_intervened", "rf_log_probs", "rf_inside", "rf_judged")
    ),
}
