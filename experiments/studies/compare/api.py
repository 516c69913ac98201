"""`faithscope.compare`: runs that are there, side by side, in a folder of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from faithscope.experiments.analysis.run import Run, load_run
from faithscope.experiments.config.errors import explain
from faithscope.experiments.config.yaml_source import Tree
from faithscope.experiments.engine.environment import environment
from faithscope.experiments.engine.folder import (
    SCHEMA,
    check_config,
    to_yaml,
    write_environment,
)
from faithscope.experiments.engine.run import write_outputs
from faithscope.experiments.engine.store import hold
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.experiments.studies.compare.config import CompareConfig
from faithscope.experiments.studies.compare.reading import check_there, config_digest, opened
from faithscope.interp.errors import UserError

INTO = Path("runs/compare")


def compare(
    runs: Sequence[str | Path],
    into: str | Path = INTO,
    *,
    labels: str | Path | None = None,
    same: str = "text",
    **settings: Any,
) -> Run:
    """Hold the measures of runs against each other, trace by trace.

        compared = faithscope.compare(["runs/behaviour", "runs/internals"], labels="labels.csv")
        compared.tables["trust"]

    Args:
        runs: folders of finished or unfinished runs of any study that has scores.
        into: the folder that tables, figures and page are written to; one of the same runs is
            written again.
        labels: a CSV or JSONL file (`config.LabelFile`).
        same: how much of two traces has to be the same: `ids`, `text` or `question`.
        settings: other keys of the config, `report` and `seed`.

    Raises:
        UserError: a folder is no run, or one of another kind, or no trace is in two of them.
    """
    folder = Path(into).expanduser()
    if not runs:
        raise StoreError("compare: name one run folder or more")
    titles = _titles(runs)
    sources = [
        {"run": str(path), "name": title, "digest": config_digest(opened(path, title).run.path)}
        for path, title in zip(runs, titles, strict=True)
    ]
    values: dict[str, Any] = {"name": folder.name, "benchmark": "compare", "sources": sources}
    values |= {"out": str(folder.parent), "same": same, **settings}
    if labels is not None:
        values["labels"] = {"path": str(check_there(labels, "--labels"))}
    config = _checked(values)
    check_config(config)
    before = {name: _text(folder / name) for name in ("config.yaml", "environment.json")}
    with hold(make_folder(folder), "main"):
        write_atomically(folder / "config.yaml", to_yaml(config))
        there = {"schema": SCHEMA, "sessions": [{"worker": "main", **environment()}], "models": {}}
        write_environment(folder, there)
        try:
            write_outputs(folder)
        except UserError:
            # a comparison that cannot be made leaves the folder as it was
            for name, text in before.items():
                (folder / name).unlink() if text is None else write_atomically(folder / name, text)
            raise
    return load_run(folder)


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _checked(values: dict[str, Any]) -> CompareConfig:
    try:
        return CompareConfig.model_validate(values)
    except ValidationError as error:
        tree = Tree(Path("compare"), values, {})
        raise StoreError("\n".join(explain(tree, error, CompareConfig))) from None


def _titles(runs: Sequence[str | Path]) -> list[str]:
    """What tables call the runs: their folders' names, numbered where two are the same."""
    names = [re.sub(r"[^\w.-]", "_", Path(run).expanduser().resolve().name) for run in runs]
    return [
        f"{name}_{names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
