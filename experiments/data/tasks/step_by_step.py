"""LogiQA, TruthfulQA, AQuA and the biology of HLE: multiple choice, reasoned about in numbered
steps (FaithCoT-Bench, A.1 and A.4).

Of the first three data sets 100 questions are drawn with the seed; a limit cuts the list of draws
off. Of HLE all fitting questions are taken, in the data's order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from faithscope.experiments.data.tasks.kinds import choice_question, choice_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.hub import PARQUET, HubData
from faithscope.experiments.data.tasks.sources.options import LETTERS, options_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, column, has, text_of, with_ids
from faithscope.experiments.data.tasks.task import LoadSettings, Task
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SAMPLED = 100
"""Number of questions of a data set without a limit (FaithCoT-Bench, A.1)."""
BIOLOGY = "biology/medicine"
_CHOICES = re.compile(r"\n\s*(?:Answer Choices|Options|Choices)\s*:\s*\n", re.IGNORECASE)


def _sampled(rows: Sequence[SourceRow], name: str, settings: LoadSettings) -> list[SourceRow]:
    """The rows in a seeded random order, cut off at the limit."""
    order = random.Random(f"{name}-{settings.seed}").sample(range(len(rows)), len(rows))
    wanted = SAMPLED if settings.limit is None else settings.limit
    return [rows[i] for i in order[:wanted]]


def _drawn(
    data: HubData, summary: str, question: Callable[[SourceRow, LoadSettings], Question]
) -> Task:
    def load(settings: LoadSettings) -> Iterator[Question]:
        rows = list(with_ids(data.rows(replace(settings, limit=None))))
        for row in _sampled(rows, data.task, settings):
            yield question(row, settings)

    return choice_task(data.task, f"{summary} ({data.summary})", "steps", load)


def _logiqa(row: SourceRow, settings: LoadSettings) -> Question:
    """The question of a LogiQA row: `passage, question, options, label` (AGIEval), or `context,
    query, options, correct_option` with the right option's place from 0 (the hub)."""
    passage, asked = text_of(row, ("passage", "context")), text_of(row, ("question", "query"))
    values: dict[str, Any] = {"question": f"{passage}\n{asked}"}
    answer = column(row, ("label", "correct_option"))
    if not has(row, "label"):
        places = options_of(row).places
        if not (str(answer).isdecimal() and int(answer) < len(places)):
            raise UserError(
                f"{row.where}: 'correct_option' is {answer!r}; give a whole number from 0 to "
                f"{len(places) - 1}"
            )
        answer = LETTERS[places.index(int(answer))]
    return choice_question(
        SourceRow(row.id, row.cells | values | {"label": answer}, row.where), "logiqa", ("label",)
    )


def _truthfulqa(row: SourceRow, settings: LoadSettings) -> Question:
    """The question of a TruthfulQA row (MC1: one option is right). The data has the right option
    first, so options are shuffled by the seed.

    Raises:
        UserError: `mc1_targets` is not as published, or not exactly one option is right.
    """
    targets = column(row, ("mc1_targets",))
    if isinstance(targets, dict) and {"choices", "labels"} <= set(targets):
        choices, labels = targets["choices"], targets["labels"]
        if len(choices) != len(labels):
            raise UserError(
                f"{row.where}: 'mc1_targets' has {len(choices)} choices and {len(labels)} labels; "
                "give one of each per option"
            )
        pairs = list(zip(choices, labels, strict=True))
    elif isinstance(targets, dict):
        pairs = list(targets.items())
    else:
        raise UserError(
            f"{row.where}: 'mc1_targets' is a {type(targets).__name__}; give an object of the "
            "lists 'choices' and 'labels', or of a 1 or 0 for each choice"
        )
    if sum(label == 1 for _, label in pairs) != 1:
        raise UserError(
            f"{row.where}: 'mc1_targets' names {sum(label == 1 for _, label in pairs)} right "
            "choices; MC1 has one"
        )
    random.Random(f"truthfulqa-{settings.seed}-{row.id}").shuffle(pairs)
    options = options_of(SourceRow(row.id, {"options": [text for text, _ in pairs]}, row.where))
    right = [label == 1 for _, label in pairs].index(True)
    gold = LETTERS[options.places.index(right)]
    text = text_of(row, ("question",))
    return Question(row.id, "truthfulqa", text, "choice", gold, options.texts)


def _aqua(row: SourceRow, settings: LoadSettings) -> Question:
    return choice_question(row, "aqua", ("correct",))


def _hle_bio(settings: LoadSettings) -> Iterator[Question]:
    """Questions of HLE's biology that are multiple choice and show no picture; options stand in the
    question's text, after "Answer Choices:".

    Raises:
        UserError: no file is given, no row fits, or a row is not as published.
    """
    if settings.path is None:
        raise UserError(
            "task 'hle_bio' reads cais/hle, which is gated: ask for access on the hub and give a "
            "local copy, --set data.path.hle_bio=FILE_OR_FOLDER"
        )
    rows = read_rows(Path(settings.path), settings.split or "test")
    fitting = [row for row in with_ids(rows) if _is_biology(row)]
    if not fitting:
        raise UserError(
            f"{settings.path}: none of {len(rows)} rows has category 'Biology/Medicine', "
            "answer_type 'multipleChoice' and no image; give the rows of cais/hle"
        )
    for row in fitting[: settings.limit]:
        if has(row, "options") or has(row, "choices"):
            yield choice_question(row, "hle_bio", ("answer",))
            continue
        whole = text_of(row, ("question",))
        text, *listed = _CHOICES.split(whole)
        if len(listed) != 1:
            raise UserError(
                f"{row.where}: the question has no line 'Answer Choices:' before its options; add "
                "it, or give the options in a column 'options'"
            )
        values = row.cells | {"question": text, "options": listed[0]}
        yield choice_question(SourceRow(row.id, values, row.where), "hle_bio", ("answer",))


def _is_biology(row: SourceRow) -> bool:
    chosen = str(column(row, ("answer_type",))).casefold() == "multiplechoice"
    biology = str(column(row, ("category",))).casefold() == BIOLOGY
    return chosen and biology and not has(row, "image")


LOGIQA = _drawn(
    HubData("logiqa", "lucasmccabe/logiqa", "test", revision=PARQUET), "logical deduction", _logiqa
)
TRUTHFULQA = _drawn(
    HubData("truthfulqa", "truthfulqa/truthful_qa", "validation", "multiple_choice"),
    "questions that many answer wrongly",
    _truthfulqa,
)
AQUA = _drawn(HubData("aqua", "deepmind/aqua_rat", "test", "raw"), "algebra in words", _aqua)
HLE_BIO = choice_task(
    "hle_bio", "biology at the frontier (cais/hle, gated: data.path)", "steps", _hle_bio
)
