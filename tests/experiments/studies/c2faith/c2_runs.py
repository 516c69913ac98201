"""Small runs of C2-Faith: three chains, short prompts, one of the chains full of mischief."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import yaml
from prm800k_rows import completion, row, solved, step
from rich.console import Console
from run_files import write_rows, write_yaml

from faithscope.experiments.cli.terminal import show_item
from faithscope.experiments.config.load import load_config
from faithscope.experiments.engine.planfile import Shard
from faithscope.experiments.engine.run import Outcome, run

EVIL = "<script>alert(1)</script> \x1b[31m"


def chains(folder: Path) -> Path:
    evil = row(
        f"What is x? {EVIL}",
        *(step(completion(f"So $x = {7 + 2 * i}$.")) for i in range(5)),
        step(completion("Thus.\n\n# Answer\n\n7")),
    )
    rows = [evil, *(solved(f"Find x, number {n}.", 6, 20 + 40 * n) for n in range(2))]
    return write_rows(folder / "phase1_train.jsonl", *rows)


def prompts(folder: Path) -> Path:
    """Short ones: a byte is a token to the tiny model."""
    path = folder / "prompts"
    path.mkdir()
    verdict = {"name": "score", "kind": "integer"}
    bounds = {
        "detection": {"low": 0, "high": 1},
        "localisation": {"low": -1},
        "coverage": {"low": 0, "high": 4},
        "coverage_reference": {"low": 0, "high": 4},
    }
    places = {
        "detection": "{context} {step}",
        "localisation": "{cot}",
        "coverage": "{question} {degraded_cot}",
        "coverage_reference": "{question} {original_cot} {degraded_cot} {removed_steps}",
    }
    for task, template in places.items():
        values = {
            "task": task,
            "source": "a test",
            "ours": True,
            "fields": [verdict | bounds[task]],
            "verdict": "score",
            "cue": '{"score": ',
            "template": f"Judge: {template}",
        }
        (path / f"c2_{task}.yaml").write_text(yaml.safe_dump(values))
    return path


def config(folder: Path, judge: dict[str, Any], **changes: Any) -> Path:
    data = folder / "data"
    if not data.exists():
        chains(data)
        prompts(folder)
    values: dict[str, Any] = {
        "name": "c2",
        "benchmark": "c2faith",
        "out": str(folder / "runs"),
        "data": {"path": str(data), "splits": "phase1_train"},
        "perturb": {"levels": [0.5]},
        "prompts": str(folder / "prompts"),
        "judge": {"max_tokens": 16, "batch_size": 4, "device": "cpu"} | judge,
        "report": {"bootstrap": 20},
    }
    return write_yaml(folder / f"{(values | changes)['name']}.yaml", values | changes)


def unshown(path: Path, *overrides: str, parts: int = 1) -> Outcome:
    """Runs what a config asks without tables, figures and page; returns the last part's outcome.

    Args:
        parts: number of models, each of whose items are one batch and a part.
    """
    loaded = load_config(path, ["judge.batch_size=99", *overrides])
    return [run(loaded, Shard(k, 1 + parts)) for k in range(parts)][-1]


def tables(run_dir: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted((run_dir / "tables").glob("*.csv"))}


def shown(run_dir: Path, item: str, colour: bool = False, **where: str) -> str:
    file = io.StringIO()
    system = "truecolor" if colour else None
    console = Console(file=file, width=200, force_terminal=colour, color_system=system)
    show_item(console, run_dir, item, **where)
    return file.getvalue()
