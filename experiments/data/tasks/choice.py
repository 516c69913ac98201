"""What all tasks share that are answered by the letter of an option."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from faithscope.experiments.data.answers import first_choice, last_choice
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.options import options_of, right_letter
from faithscope.experiments.data.tasks.sources.rows import Row, column, text_of, with_ids
from faithscope.experiments.data.tasks.spelling import letter_surfaces, written_by
from faithscope.experiments.data.tasks.task import LoadSettings, Task, wordings
from faithscope.interventions.trace import Question, Trace


def choice_task(
    name: str, summary: str, wording: str, load: Callable[[LoadSettings], Iterable[Question]]
) -> Task:
    """A task of multiple-choice questions, asked in the words of `prompts.yaml`'s `wording`."""
    return wordings()[wording].task(
        name=name,
        summary=summary,
        kind="choice",
        load=load,
        parse=lambda text, question: last_choice(text, len(question.options or ())),
        parse_continuation=lambda text, question: first_choice(text, len(question.options or ())),
        labels=letters,
    )


def letters(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
    """(letter, text to score) of every option."""
    return letter_surfaces(question.labels or (), written_by(trace))


def exam(data: HubData, summary: str, wording: str, answer: Sequence[str]) -> Task:
    """A multiple-choice data set of the hub.

    Args:
        answer: the columns that may name the right option, the first one first.
    """

    def load(settings: LoadSettings) -> Iterator[Question]:
        for row in with_ids(data.rows(settings)):
            yield choice_question(row, data.task, answer)

    return choice_task(data.task, f"{summary} ({data.summary})", wording, load)


def choice_question(row: Row, dataset: str, answer: Sequence[str]) -> Question:
    """A row with a question, options and the name (or the text) of the right one.

    A question that holds its text and its options itself (`{"stem": …, "choices": …}`, as ARC
    and CommonsenseQA were first published) is read too. Options keep the data's order; the
    letters are A, B, C… by that order, whatever the data calls them.

    Raises:
        UserError: something is missing or does not fit; names file, line, value and remedy.
    """
    nested = row.values.get("question")
    if isinstance(nested, dict):
        inner = {"question": nested.get("stem"), "choices": nested.get("choices")}
        row = Row(row.id, row.values | inner, row.where)
    text = text_of(row, ("question",))
    options = options_of(row)
    gold = right_letter(options, column(row, answer), row)
    return Question(row.id, dataset, text, "choice", gold, options.texts)
