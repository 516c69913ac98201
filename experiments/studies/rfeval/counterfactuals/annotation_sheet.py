"""A sheet for people to label parts of outputs by, as `annotations` takes it (RFEval, D.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from faithscope.experiments.studies.rfeval.counterfactuals.review import drawn, write_sheet
from faithscope.experiments.studies.rfeval.data import item_name
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.judging.stances import stance_set
from faithscope.experiments.studies.rfeval.metrics.people import ANNOTATIONS
from faithscope.experiments.studies.rfeval.results import RfResults
from faithscope.interp.errors import UserError

SHOWN = ("task", "question", "answer", "r_prime", "before", "part", "choices")
"""What a person needs to decide: the problem as it was asked, its right answer, r′ where the
output goes on from it, for a flaw the part that it would be in, the part that is labelled, and
what may be put down. What the judge said is not shown."""
SHEET = (*(n for n in ANNOTATIONS if n != "label"), *SHOWN, "label")
"""The last one is for the annotator; a decision has a row for each of its annotators."""
_PARTS = {"r": "reasoning", "e": "explanation", "a": "answer"}


def write_annotation_sheet(
    path: Path,
    run: RfResults,
    annotators: Sequence[str],
    each: int = 2,
    limit: int | None = None,
    seed: int = 0,
) -> None:
    """Write every decision of the first judge about so many pairs, to be made by people, too.

    A pair goes to `each` annotators with all its decisions, as evenly shared out as can be.

    Args:
        limit: pairs of each task of each model, drawn with the seed; None takes all.

    Raises:
        UserError: the judge has read nothing yet, fewer annotators than a pair needs, or the file
            is there already or cannot be written.
    """
    judged, decided = run.frames.judged, run.frames.evaluator
    judge = run.config.judge.model[0]
    if decided.empty:
        raise UserError(
            f"{run.run_dir}: {judge} has read no output there yet; `faithscope run` goes on with it"
        )
    by_item = {str(name): of for name, of in decided.groupby("item", sort=False)}
    pairs = [
        ({"model": m, "item": i, "reader": judge}, task, decisions)
        for m, i, task in judged.loc[judged["reader"] == judge, ["model", "item", "task"]].values
        if (decisions := by_item.get(item_name(m, i, run.models))) is not None
    ]
    chosen = drawn(pairs, limit, seed, lambda pair: (pair[0]["model"], pair[1]))
    rows = [_rows(run, pair, decisions) for pair, _, decisions in chosen]
    write_sheet(path, SHEET, "annotator", rows, annotators, each, seed)


def _rows(
    run: RfResults, pair: dict[str, str], decisions: pd.DataFrame
) -> Iterator[dict[str, str]]:
    """Yields the rows of one pair: a decision each, with all that is shown, and no label."""
    example = run.example(pair)
    item = example["item"]
    about = {"task": item.task, "question": item.asked, "answer": item.gold}
    stances = " | ".join(stance_set(item))
    for decision in decisions.to_dict("records"):
        condition, _, which = decision["component"].partition("_")
        assert condition in CONDITIONS
        texts = {key: example["outputs"][condition][part] for key, part in _PARTS.items()}
        texts |= {"p": item.r_prime, "r_prime": item.r_prime}
        before, part = "", which
        if decision["decision"] == "flaw":
            before, part = which.removeprefix("flaw_")
        yield about | {
            **{name: decision[name] for name in ("item", "component", "decision")},
            "r_prime": item.r_prime if condition == "intervened" else "",
            "before": texts[before] if before else "",
            "part": texts[part],
            "choices": stances if decision["decision"] == "stance" else "yes | no",
        }
