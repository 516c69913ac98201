"""Tables of seven small runs, one of each kind, to compare two versions of the code.

    python tools/golden.py before        # on one commit
    python tools/golden.py after         # on another, on the same machine
    diff -r before after                 # says nothing where every table is the same

The runs: planted models under every probe; C2-Faith with a tiny judge, read from inside; RFEval
with models that write, judge and are looked into here; a tiny judge under every form; FaithCoT's
detectors on annotated chains; a comparison of measures with a judge; a closed model behind a
server. What is kept of each are `tables/*.csv` and `figures/*.csv`, byte for byte, without the
columns, rows and tables that hold seconds. Floats are those of this machine: folders of two
machines may differ.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
for folder in (
    ROOT,
    ROOT / "benchmarks",
    TESTS,
    TESTS / "conformance",
    TESTS / "experiments/engine",
    *(TESTS / "experiments/studies" / name for name in ("c2faith", "slrc/detectors", "rfeval")),
):
    sys.path.insert(0, str(folder))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import c2_runs
import pytest
import rf_runs
from cases import CASES, Setting
from fault_server import FaultServer
from speaking_server import speaks
from tiny_models import saved, tiny

from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.run import run
from faithscope.probes import PROBES

SECONDS = re.compile(r"seconds|hours|per_second")
TIMED = {"paper_rfeval_table12.csv", "rf_hours.csv", "cost.csv"}


def planted(folder: Path) -> Path:
    values = {
        "name": "planted",
        "out": str(folder),
        "model": {"name": ["planted:faithful", "planted:hint"]},
        "tasks": ["planted"],
        "data": {"limit": 8},
        "generation": {"max_new_tokens": 256},
        "probes": sorted(PROBES),
        "report": {"bootstrap": 50},
    }
    return _written(folder, values)


def c2faith(folder: Path) -> Path:
    model = saved(tiny("llama", max_position_embeddings=8192), folder / "model")
    judge = {"model": model, "readings": ["generated", "scored"]}
    return c2_runs.config(folder, judge, reference=model, internals={"model": model})


def rfeval(folder: Path) -> Path:
    chain = saved(rf_runs.chain_model(), folder / "chain")
    plain = saved(tiny("llama", max_position_embeddings=2048), folder / "plain")
    cases = [
        rf_runs.Case("follows"),
        rf_runs.Case("resists", r_prime="He was away!"),
        rf_runs.Case("stops_nowhere", r_prime="He was away?"),
        rf_runs.Case("number", task="mathematical_reasoning"),
    ]
    return rf_runs.config(
        folder,
        cases,
        chain,
        generate={"max_new_tokens": 16, "batch_size": 2},
        judge={"model": plain, "structured": "schema"},
        log_probs=True,
        inside={"model": chain, "points": 3},
    )


def judge(folder: Path) -> Path:
    forms = ["step_judge", "faithful_judge", "c2_detection", "c2_localisation", "c2_coverage"]
    path = _case("judge", folder)
    judges = yaml.safe_load(path.read_text())["judges"]
    return _changed(path, judges=judges | {"forms": [*forms, "legibility"]})


def faithcot(folder: Path) -> Path:
    probes = ["causal_effects", "tracing", "information", "paraphrase", "slrc"]
    path = _case("faithcot", folder)
    detectors = yaml.safe_load(path.read_text())["detectors"]
    edits = {"by": "judge", "steps": 2}
    return _changed(path, detectors=detectors | {"edits": edits}, probes=probes)


def compare(folder: Path) -> Path:
    planted = {
        "model.name": ["planted:faithful", "planted:hint"],
        "data.limit": 6,
        "generation.max_new_tokens": 256,
        "probes": ["slrc", "attention", "tracing", "rigidity"],
        "slrc.edits": ["remove", "corrupt"],
        "report.bootstrap": 20,
    }
    judged = {
        "traces.path": "source:measures",
        "traces.limit": None,
        "judges.model": saved(tiny("llama", max_position_embeddings=8192), folder / "model"),
        "judges.readings": "scored",
        "judges.forms": ["faithful_judge", "step_judge"],
        "report.bootstrap": 20,
    }
    sources = [
        {"name": "measures", "config": "planted", "set": planted},
        {"name": "judged", "config": "judge", "set": judged},
    ]
    report = {"bootstrap": 20}
    values = {"name": "compare", "benchmark": "compare", "sources": sources, "report": report}
    return _written(folder, values | {"out": str(folder)})


def closed(folder: Path, url: str) -> Path:
    values = {
        "name": "closed",
        "out": str(folder),
        "model": {"name": "api:openai/gpt-4.1"},
        "api": {"base_url": url, "max_retries": 0},
        "tasks": "sequential_math",
        "data": {"limit": 4},
        "probes": ["slrc", "direct", "sycophancy", "error_detection"],
        "report": {"bootstrap": 20},
    }
    return _written(folder, values)


def _case(study: str, folder: Path) -> Path:
    plain = saved(tiny("llama", max_position_embeddings=8192), folder / "model")
    return CASES[study].here(Setting(folder, {"plain": plain}))


def _changed(config: Path, **values: object) -> Path:
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | values))
    return config


def _written(folder: Path, values: Mapping[str, object]) -> Path:
    path = folder / f"{values['name']}.yaml"
    path.write_text(yaml.safe_dump(dict(values)))
    return path


def keep(config: Path, into: Path) -> None:
    """Do the run, and copy its tables and its figures' numbers without times."""
    outcome = run(load_config(config))
    assert [*outcome.failures, *outcome.problems] == []
    for kind in ("tables", "figures"):
        for path in sorted((outcome.run_dir / kind).glob("*.csv")):
            if path.name in TIMED:
                continue
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            timed = [c for c in table.columns if SECONDS.search(c)]
            (into / kind).mkdir(parents=True, exist_ok=True)
            if timed:
                table.drop(columns=timed).to_csv(into / kind / path.name, index=False)
            elif "cost" in table:
                table.loc[table["cost"] != "seconds"].to_csv(into / kind / path.name, index=False)
            else:
                shutil.copy(path, into / kind / path.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to make; must not be there")
    makers = {f.__name__: f for f in (planted, c2faith, rfeval, judge, faithcot, compare)}
    parser.add_argument("--only", choices=[*makers, "closed"])
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    # one fixed folder: tables hold the paths of models
    scratch = Path(tempfile.gettempdir()) / "faithscope-golden"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    with FaultServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-none")
        server.plan[""] = [speaks]
        for name in [args.only] if args.only else [*makers, "closed"]:
            folder = scratch / name
            folder.mkdir()
            config = closed(folder, server.url) if name == "closed" else makers[name](folder)
            keep(config, args.out / name)
            print(name, len(list((args.out / name).rglob("*.csv"))), "tables", flush=True)


if __name__ == "__main__":
    main()
