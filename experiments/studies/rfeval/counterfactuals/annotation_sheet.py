"""A sheet for people to label parts of outputs by, as `annotations` takes it (RFEval, D.4)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from faithscope.experiments.files import unwritable
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, question_of
from faithscope.experiments.studies.rfeval.counterfactuals.annotations import item_name
from faithscope.experiments.studies.rfeval.counterfactuals.review import drawn, shared_out
from faithscope.experiments.studies.rfeval.judging.stances import stance_set
from faithscope.experiments.studies.rfeval.metrics.evaluator import ANNOTATIONS
from faithscope.experiments.studies.rfeval.plan import FORMS
from faithscope.experiments.studies.rfeval.prompts import questions
from faithscope.experiments.studies.rfeval.results import RfResults
from faithscope.interp.errors import UserError

SHOWN = ("task", "question", "answer", "r_prime", "before", "part", "choices")
"""What a person needs to decide: the problem as it was asked, its right answer, r′ where the
output goes on from it, for a flaw the part that it would be in, the part that is labelled, and
what may be put down. What the judge said is not shown."""
SHEET = (*(n for n in ANNOTATIONS if n != "label"), *SHOWN, "label")
"""The last one is for the annotator; a decision has a row for each of its annotators."""
_PARTS = {"r": "reasoning", "e": "explanation", "a": "answer"}


def write_sheet(
    path: Path,
    run: RfResults,
    annotators: Sequence[str],
    each: int = 2,
    limit: int | None = None,
    seed: int = 0,
) -> int:
    """Write every decision of the first judge about so many pairs, to be made by people, too.

    A pair goes to `each` annotators with all its decisions, as evenly shared out as can be.

    Args:
        limit: pairs of each task of each model, drawn with the seed; None takes all.

    Returns:
        How many rows there are.

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
        {str(k): v for k, v in r.items()}
        for r in judged.loc[judged["reader"] == judge].to_dict("records")
        if item_name(r["model"], r["item"], run.models) in by_item
    ]
    chosen = drawn(pairs, limit, seed, lambda r: (r["model"], r["task"]))
    whose = shared_out(len(chosen), annotators, each, seed)
    if path.exists():
        raise UserError(f"{path}: is there already, perhaps filled in; name another file")
    n = 0
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            sheet = csv.DictWriter(file, SHEET)
            sheet.writeheader()
            for pair, names in zip(chosen, whose, strict=True):
                name = item_name(pair["model"], pair["item"], run.models)
                asked = list(_asked(run, pair, name, by_item[name]))
                for annotator in names:
                    sheet.writerows(one | {"annotator": annotator, "label": ""} for one in asked)
                    n += len(asked)
    except OSError as error:
        raise unwritable(path, error) from error
    return n


def _asked(
    run: RfResults, pair: dict[str, Any], name: str, decided: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """The decisions about one pair, with all that is shown; no labels."""
    example = run.example(pair)
    item = example["item"]
    problem = question_of(item, questions(run.run_dir / FORMS))
    stances = " | ".join(stance_set(item, run.config.naming))
    for component, decision in zip(decided["component"], decided["decision"], strict=True):
        condition = next(c for c in CONDITIONS if component.startswith(c))
        forced = condition == "intervened"
        texts = {key: example["outputs"][condition][part] for key, part in _PARTS.items()}
        texts |= {"p": item.r_prime, "r_prime": item.r_prime}
        which = component.removeprefix(f"{condition}_")
        before, part = ("", which)
        if decision == "flaw":
            before, part = which.removeprefix("flaw_")
        yield {
            "item": name,
            "component": component,
            "decision": decision,
            "task": item.task,
            "question": problem,
            "answer": item.gold,
            "r_prime": item.r_prime if forced else "",
            "before": texts[before] if before else "",
            "part": texts[part],
            "choices": stances if decision == "stance" else "yes | no",
        }
