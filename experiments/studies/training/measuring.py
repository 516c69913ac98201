"""The runs that measure a model before training and each of its adapters.

They are ordinary runs of another config (`measure.config`), one per model and adapter, in folders
below the training's run folder. The scores of their traces are read as comparisons read them, and
stored in the training's own records, so that its tables need no other folder.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithscope.experiments.config.base import ConfigError, FolderConfig
from faithscope.experiments.config.keys import as_overrides, by_key
from faithscope.experiments.config.load import load_config
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.run import plan as run_plan
from faithscope.experiments.studies.training.config import TrainConfig
from faithscope.interp.errors import UserError

if TYPE_CHECKING:
    from faithscope.experiments.analysis.comparison.scores import Scores

FOLDER = "measured"
"""Folder, below the run folder, of the runs that measure."""
TRACE = "trace"
"""Family of the numbers that say what became of the chains themselves."""
OF_TRACES = {
    "accuracy": "correct",
    "mean_steps": "n_steps",
    "mean_tokens": "n_tokens",
    "cut_off": "cut",
    "excluded": "excluded",
}
"""Name among the measures -> column of `Scores.traces`."""


def run_of(config: TrainConfig, model: str, title: str) -> FolderConfig:
    """The config of the run that measures one model.

    Args:
        model: name of the model, or the folder of its adapter.
        title: name of the run's folder.

    Raises:
        ConfigError: the config of `measure` cannot be read, or does not take the keys.
    """
    assert config.measure is not None
    held = config.model.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
    values = by_key({"model": held}) | by_key(config.measure.set)
    values |= {"model.name": [model], "name": title, "out": str(config.run_dir / FOLDER)}
    try:
        return load_config(config.measure.config, as_overrides(values))
    except UserError as error:
        lines = str(error).split("\n")
        raise ConfigError([f"measure {config.measure.config}: {line}" for line in lines]) from error


def planned(config: TrainConfig, model: str, trained_on: Collection[str]) -> tuple[str, str]:
    """Digest of the plan by which a model is measured, and a line that tells it.

    Args:
        trained_on: texts of the questions that the model is trained on.

    Raises:
        ConfigError: the run cannot be planned, its study has no scores of traces, or all of its
            questions are trained on.
    """
    of_run = run_of(config, model, FOLDER)
    if (study := study_of(of_run.model_dump())).report().scores is None:
        raise ConfigError(
            [f"measure.config: runs of {study.name!r} have no scores of traces; name another"]
        )
    whole = run_plan(of_run)
    questions = {i.question.text for i in whole.items if hasattr(i, "question")}
    known = len(questions & set(trained_on))
    if known and known == len(questions):
        raise ConfigError(
            [
                f"measure: {model} is trained on all {known} questions that it would be measured "
                "on; set another seed, other tasks or another split in measure.set"
            ]
        )
    left_out = f", of which it is trained on {known}, which the table leaves out" if known else ""
    name = getattr(of_run, "probes", [study.name])
    line = f"{model}: {', '.join(name)} on {len(questions)} questions{left_out}"
    return whole.stored().digest, line


def records(run_dir: Path, trained_on: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yields a record per trace of a run that measured one model: what became of the trace, and
    every measure's score, without the join keys of the training.

    Args:
        trained_on: texts of the questions that the model is trained on.
    """
    from faithscope.experiments.analysis.comparison.scores import LABELS, PLACE, question_digest
    from faithscope.experiments.analysis.run import load_run
    from faithscope.experiments.analysis.tidy import rows
    from faithscope.experiments.engine.folder import stored_config

    scores: Scores = study_of(stored_config(run_dir)).report().scores(load_run(run_dir))
    known = {question_digest(text) for text in trained_on}
    of_trace: dict[tuple[Any, ...], list[tuple[str, str, Any, str]]] = defaultdict(list)
    for row in rows(scores.items):
        if row["family"] not in LABELS:
            score = (row["measure"], row["family"], row["value"], row["missing"])
            of_trace[tuple(row[name] for name in PLACE)].append(score)
    for row in rows(scores.traces):
        traits = row | {"excluded": float(bool(row["excluded"]))}
        of = [(name, TRACE, traits[column], "") for name, column in OF_TRACES.items()]
        measures, families, values, missing = zip(
            *of, *of_trace[tuple(row[name] for name in PLACE)], strict=True
        )
        yield {
            **{name: row[name] for name in ("dataset", "task", "item")},
            "trained_on": row["question"] in known,
            "measures": list(measures),
            "families": list(families),
            "values": [None if math.isnan(value) else value for value in values],
            "missing": list(missing),
        }
