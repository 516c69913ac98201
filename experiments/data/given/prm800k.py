"""PRM800K (Lightman et al., 2023): solutions whose every step people have rated.

Rows as released (github.com/openai/prm800k, `phase1_train.jsonl` and so on), or plain rows
`problem, steps, ratings` and, where there is one, `ground_truth_answer`. The ratings are of
*correctness*: a wrong step may be faithfully told, a right one made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from faithscope.experiments.data.given.cells import parsed
from faithscope.experiments.data.given.chain import GivenChain, Reader, joined
from faithscope.experiments.data.tasks.sources.rows import SourceRow, each, usable
from faithscope.interp.errors import UserError

ANSWER = "# Answer"
"""What the last step of a finished solution holds."""
GOLD = "ground_truth_answer"
"""The field of the right answer: beside `problem`, in rows of either format."""
BETWEEN = "\n"
"""What stood between steps: the model wrote one a line."""


@dataclass(frozen=True)
class Solution:
    """A problem and the path that its rater took through the proposed steps."""

    id: str
    """The file's stem and the row's number from 0 (or its column `row`): `phase2_train-17`."""
    problem: str
    steps: tuple[str, ...]
    """Texts of the steps, word for word."""
    ratings: tuple[int | None, ...]
    """-1, 0 or 1 per step; None where a rater gave none. A step that a rater wrote is 1."""
    complete: bool
    """Whether the path has all its steps: not so where it ends among several of which none was
    chosen, as where rating ended at an error."""
    answered: bool
    """Whether it reaches an answer: `finish_reason` "solution", or "# Answer" in its last step."""
    gold: str | None = None
    """The right answer (`ground_truth_answer`); None where the row has none."""


def solution_of(row: SourceRow) -> Solution:
    """A row of either format.

    Raises:
        UserError: it is neither, or a field is missing or of the wrong kind.
    """
    if "label" in row.values:
        return _released(row)
    if "steps" in row.values:
        return _plain(row)
    raise UserError(
        f"{row.where}: no field 'label' (PRM800K as released) or 'steps' (plain rows); it has "
        f"{', '.join(map(str, row.values)) or 'none'}"
    )


def _released(row: SourceRow) -> Solution:
    question, label = parsed(row, "question", dict), parsed(row, "label", dict)
    steps, ratings, complete = [], [], True
    for i, step in enumerate(parsed(row, "steps", list, of="label")):
        at = f"label.steps[{i}]"
        if not isinstance(step, dict):
            raise UserError(f"{row.where}: {at} is a {type(step).__name__}; give an object")
        chosen = _chosen(row, step, at)
        if chosen is None:
            complete = False
            break
        steps.append(chosen[0])
        ratings.append(chosen[1])
    return Solution(
        row.id,
        usable(question.get("problem"), "'question.problem'", row),
        tuple(steps),
        tuple(ratings),
        complete,
        complete and label.get("finish_reason") == "solution",
        _gold(row, question, "question."),
    )


def _chosen(row: SourceRow, step: dict[str, Any], at: str) -> tuple[str, int | None] | None:
    """Text and rating of the step that the path goes on with; None where it ends."""
    completions = step.get("completions")
    if completions is None:
        completions = []
    if not isinstance(completions, list):
        raise UserError(f"{row.where}: {at}.completions is no list; give the proposed steps")
    index, human = step.get("chosen_completion"), step.get("human_completion")
    if isinstance(human, dict) and human.get("text") is None:
        human = None
    if index is None and human is None and len(completions) == 1:
        index = 0  # also of solved problems: what is the only one there is not marked as chosen
    if index is None:
        if human is None:
            return None
        where = f"{at}.human_completion"
        # raters wrote a step of their own, a right one, where none that was proposed led on
        rating = human.get("rating") if isinstance(human, dict) else None
        return _text(row, human, where), 1 if rating is None else _rating(row, rating, where)
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(completions):
        raise UserError(
            f"{row.where}: {at}.chosen_completion is {index!r}, there are {len(completions)} "
            "completions; give the index of one from 0, or null"
        )
    where = f"{at}.completions[{index}]"
    text = _text(row, completions[index], where)
    rating = completions[index].get("rating")
    return text, None if rating is None else _rating(row, rating, where)


def _text(row: SourceRow, completion: Any, where: str) -> str:
    text = completion.get("text") if isinstance(completion, dict) else completion
    if not isinstance(text, str):
        raise UserError(f"{row.where}: {where}.text is a {type(text).__name__}; give a text")
    return text


def _plain(row: SourceRow) -> Solution:
    steps, ratings = parsed(row, "steps", list), parsed(row, "ratings", list)
    if len(steps) != len(ratings):
        raise UserError(
            f"{row.where}: {len(steps)} 'steps' but {len(ratings)} 'ratings'; give one for each"
        )
    texts = tuple(_text(row, s, f"steps[{i}]") for i, s in enumerate(steps))
    answered = row.values.get("ends_in_answer")
    if answered is None:
        answered = bool(texts) and ANSWER in texts[-1]
    if not isinstance(answered, bool):
        raise UserError(f"{row.where}: 'ends_in_answer' is {answered!r}; give true or false")
    number = row.values.get("row")
    stem = row.id.rpartition("-")[0]
    return Solution(
        row.id if number is None else f"{stem}-{number}",
        usable(row.values.get("problem"), "'problem'", row),
        texts,
        tuple(
            None if r is None else _rating(row, r, f"ratings[{i}]") for i, r in enumerate(ratings)
        ),
        True,
        answered,
        _gold(row, row.values),
    )


def _gold(row: SourceRow, values: Mapping[str, Any], at: str = "") -> str | None:
    gold = values.get(GOLD)
    return None if gold is None or gold == "" else usable(gold, f"'{at}{GOLD}'", row)


def _rating(row: SourceRow, value: Any, where: str) -> int:
    if isinstance(value, bool) or value not in (-1, 0, 1):
        raise UserError(f"{row.where}: {where}: rating {value!r}; give -1, 0 or 1")
    return int(value)


CORRECT = {-1: False, 1: True}
"""What a rating says of a step's correctness; 0 (neutral) and none say nothing."""


def chain(row: SourceRow) -> GivenChain:
    """One solution: `correct` is False where a step is wrong, True where each is right.

    Of a path that ends among several proposals of which none was chosen, as where each is wrong,
    the chain holds only the steps before: it is labelled `complete: False`, and is not `correct`.

    Raises:
        UserError: as `solution_of`.
    """
    solution = solution_of(row)
    reasoning, spans = joined(solution.steps, BETWEEN)
    ratings = solution.ratings
    labels = {"correct": False} if -1 in ratings else {}
    if not solution.complete:
        labels["complete"] = False
    elif ratings and set(ratings) == {1}:
        labels["correct"] = True
    correct = tuple(None if r is None else CORRECT.get(r) for r in ratings)
    last = solution.steps[-1] if solution.steps else ""
    answer = last.partition(ANSWER)[2].strip() if ANSWER in last else ""
    return GivenChain(
        id=solution.id,
        dataset="prm800k",
        question=solution.problem,
        reasoning=reasoning,
        steps=spans,
        gold=solution.gold,
        answer=answer or None,
        labels=labels,
        step_labels={"correct": correct, "rating": ratings},
        where=row.where,
    )


PRM800K = Reader(
    "prm800k",
    "PRM800K, as released or as problem, steps, ratings (labels of correctness)",
    lambda row: (
        {"problem", "steps", "ratings"} <= set(row)
        or (isinstance(row.get("question"), dict) and isinstance(row.get("label"), dict))
    ),
    lambda rows: iter(each(rows, chain)),
)
