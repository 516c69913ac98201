"""Input files of a run: rows of data, and its config."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_rows(path: Path, *rows: Any) -> Path:
    """Writes a file of JSON lines and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def write_yaml(path: Path, values: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dict(values)), "utf-8")
    return path


def write_config(run_dir: Path, text: str) -> None:
    """Give a run another config, as if it had been made with this one."""
    (run_dir / "config.yaml").write_text(text, "utf-8")
    path = run_dir / "environment.json"
    environment = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(environment | {"config": yaml.safe_load(text)}), "utf-8")
