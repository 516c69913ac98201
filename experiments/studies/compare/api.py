"""`faithscope.compare`: compares existing runs and writes the comparison into a folder of its
own."""

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
    differences,
    stored_config,
    to_yaml,
    write_environment,
)
from faithscope.experiments.engine.run import write_outputs
from faithscope.experiments.engine.store import hold
from faithscope.experiments.files import StoreError, make_folder, write_atomically
from faithscope.experiments.studies.compare.config import CompareConfig
from faithscope.experiments.studies.compare.reading import config_digest, opened, readable_labels
from faithscope.experiments.studies.compare.results import joined_sources, opened_sources
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
    """Compare the measures of several runs with each other, trace by trace.

        compared = faithscope.compare(["runs/behaviour", "runs/internals"], labels="labels.csv")
        compared.tables["trust"]

    Args:
        runs: folders of finished or unfinished runs of any study that has scores.
        into: the folder that tables, figures and page are written to; the same comparison is
            written again there, and another one is refused.
        labels: a CSV or JSONL file (`config.LabelFile`).
        same: how much of two traces has to be the same: `ids`, `text` or `question`.
        settings: other keys of the config, `report` and `seed`.

    Raises:
        UserError: a folder is no run, or one of another kind, or no trace is in two of them; the
            labels cannot be read; or `into` holds something else.
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
        values["labels"] = {"path": str(readable_labels(labels, "--labels"))}
    config = _checked(values)
    check_config(config)
    _check_free(folder, config)
    if labels is not None:
        # Labels that match no trace are found here in seconds, before all tables are made.
        joined_sources(config, opened_sources(config, folder))
    before = {name: _text(folder / name) for name in ("config.yaml", "environment.json")}
    with hold(make_folder(folder), "main"):
        write_atomically(folder / "config.yaml", to_yaml(config))
        there = {"schema": SCHEMA, "sessions": [{"worker": "main", **environment()}], "models": {}}
        write_environment(folder, there)
        try:
            write_outputs(folder)
        except UserError:
            # If the comparison cannot be made, the folder is left as it was before.
            for name, text in before.items():
                (folder / name).unlink() if text is None else write_atomically(folder / name, text)
            raise
    return load_run(folder)


def _check_free(folder: Path, config: CompareConfig) -> None:
    """Refuse a folder that holds anything but the same comparison, so that nothing is overwritten.

    The compared runs may have made progress since, and settings of display may differ.
    """
    if not folder.is_dir() or not any(p.name != ".locks" for p in folder.iterdir()):
        return
    if not (folder / "config.yaml").is_file():
        raise StoreError(f"{folder}: is a folder with something else in it; give another: --into")
    then, now = _compared(stored_config(folder)), _compared(config.model_dump(mode="json"))
    if differing := differences(then, now, ("out", "name", "report.")):
        changes = "; ".join(f"{k}: {there} there, {here} now" for k, there, here in differing)
        raise StoreError(
            f"{folder}: holds another comparison ({changes}), which stays; give this one a folder "
            "of its own: --into DIR"
        )


def _compared(values: dict[str, Any]) -> dict[str, Any]:
    """The part of a config that decides what is compared, with runs and labels as absolute
    paths."""
    sources = values.get("sources") or []
    runs = [str(Path(str(s.get("run"))).expanduser().resolve()) for s in sources]
    labels = (values.get("labels") or {}).get("path")
    whole = None if labels is None else str(Path(labels).expanduser().resolve())
    return values | {"sources": runs, "labels": whole}


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _checked(values: dict[str, Any]) -> CompareConfig:
    try:
        return CompareConfig.model_validate(values)
    except ValidationError as error:
        tree = Tree(Path("compare"), values, {})
        raise StoreError("\n".join(explain(tree, error, CompareConfig))) from None


def _titles(runs: Sequence[str | Path]) -> list[str]:
    """Names of the runs in tables: their folders' names, numbered where two are equal."""
    names = [re.sub(r"[^\w.-]", "_", Path(run).expanduser().resolve().name) for run in runs]
    return [
        f"{name}_{names[: i + 1].count(name)}" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]
