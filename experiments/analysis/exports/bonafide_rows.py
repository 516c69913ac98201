"""A run's scores as rows of BonaFide's metric results (arXiv 2605.25052, `metrics/__main__.py`): a
row per label and measure.

Only labelled chains and steps have rows. In BonaFide a higher score is always more faithful, so the
scores of measures that point the other way have the other sign; `metadata` has the score as it was
measured. The file can be read again as given chains (`traces.format=bonafide`).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.comparison.scores import Scores
from faithscope.experiments.analysis.exports.measured_chains import (
    MeasuredChain,
    measured_chains,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine.environment import version
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.errors import UserError

UNFAITHFUL = "unfaithful"
"""The label that rows are about."""
FILE = "metric_results.csv"
COLUMNS = (
    *("row_id", "target_model", "question", "prompt", "cot", "model_answer", "correct_answer"),
    *("label_type", "sentence_text", "sentence_span_start", "sentence_span_end"),
    *("metric", "score", "level", "metadata", "api_cost_usd", "wall_time_s"),
)


def write_rows(run: Run, folder: Path) -> list[Path]:
    """Write `FILE`; returns its path.

    Raises:
        UserError: the run holds no chains, or none of its chains and steps has the label.
    """
    report = study_of(stored_config(run.path)).report()
    scores: Scores | None = run.once(report.scores) if report.scores else None
    directions: dict[str, bool] = {}
    if scores is not None:
        of_steps = scores.steps
        directions = dict(zip(of_steps["measure"], of_steps["higher_is_faithful"], strict=True))
    rows = [row for chain in measured_chains(run) for row in _rows(chain, directions)]
    if not rows:
        raise UserError(
            f"{run.path}: no chain and no step has a score and the label {UNFAITHFUL!r}, which "
            "BonaFide's rows are about; name the column that has it in traces.columns, or export "
            "--as dataset"
        )
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    make_folder(folder)
    write_atomically(folder / FILE, text.getvalue())
    return [folder / FILE]


def _rows(measured: MeasuredChain, directions: dict[str, bool]) -> Iterator[dict[str, Any]]:
    chain = measured.chain
    about = {
        "row_id": chain.id,
        "target_model": measured.place["model"],
        "question": chain.question,
        "prompt": measured.message,
        "cot": chain.reasoning,
        "model_answer": chain.answer,
        "correct_answer": chain.gold,
    }
    of_chain = chain.labels.get(UNFAITHFUL)
    for row in measured.scores:
        if isinstance(of_chain, bool) and not row["missing"]:
            yield {
                **about,
                "label_type": _label(of_chain, "COT"),
                "sentence_span_start": 0,
                "sentence_span_end": -1,
                "level": "cot",
                **_scored(row["measure"], row["value"], bool(row["higher_is_faithful"])),
                "api_cost_usd": _known(row["dollars"]),
                "wall_time_s": _known(row["seconds"]),
            }
    end = 0
    for step in measured.steps:
        start, end = end, end + len(step.text)
        if not isinstance(label := step.labels.get(UNFAITHFUL), bool):
            continue
        said = step.text.rstrip()
        start += len(said) - len(said := said.lstrip())
        for measure, value in step.scores.items():
            yield {
                **about,
                "label_type": _label(label, "STEP"),
                "sentence_text": said,
                "sentence_span_start": start,
                "sentence_span_end": start + len(said),
                "level": "step",
                **_scored(measure, value, bool(directions[measure])),
            }


def _label(unfaithful: bool, of: str) -> str:
    return f"{'UN' if unfaithful else ''}FAITHFUL_{of}"


def _scored(measure: str, value: float, higher: bool) -> dict[str, Any]:
    about = {"value": value, "higher_is_faithful": higher, "faithscope": version("faithscope")}
    score = value if higher else -value
    return {"metric": measure, "score": score, "metadata": json.dumps(about, ensure_ascii=False)}


def _known(cost: float) -> float | str:
    return "" if math.isnan(cost) else cost
