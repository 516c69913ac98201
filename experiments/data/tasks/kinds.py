"""Tasks by the kind of their answers: a number, one of several words, the letter of an option."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from faithscope.experiments.data.answers import (
    first_label,
    first_number,
    last_category,
    last_label,
    last_number,
)
from faithscope.experiments.data.choices import first_choice, last_choice
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.sources.gold import right_letter, stated
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.options import options_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, column, text_of, with_ids
from faithscope.experiments.data.tasks.spelling import (
    letter_surfaces,
    number_surfaces,
    word_surfaces,
    written_by,
)
from faithscope.experiments.data.tasks.task import LoadSettings, Task, wordings
from faithscope.interventions.trace import Question, Trace

Load = Callable[[LoadSettings], Iterable[Question]]
MAX_CANDIDATES = 12
MIN_CANDIDATES = 4


def number_task(name: str, summary: str, load: Load) -> Task:
    """A task of problems with a number for an answer, asked in the paper's words for GSM8K."""

    def labels(question: Question, trace: Trace | None) -> tuple[tuple[str, str], ...]:
        texts = () if trace is None else ("".join(trace.pieces), trace.tail_text)
        return number_surfaces(candidates(question, trace), question.text, *texts)

    return wordings()["math"].task(
        name=name,
        summary=summary,
        kind="number",
        load=load,
        parse=lambda text, question: last_number(text),
        parse_continuation=lambda text, question: first_number(text),
        labels=labels,
    )


def candidates(question: Question, trace: Trace | None) -> tuple[str, ...]:
    """Answers to score against each other: canonical, distinct, at most `MAX_CANDIDATES`.

    They are, in order: the gold answer, the trace's answer, the numbers that end the trace's steps
    (the last step first), the question's own candidates; if these are fewer than `MIN_CANDIDATES`,
    neighbours of the first are added. An edited trace has the candidates of the unedited one
    (`Trace.unedited`).
    """
    answers = [question.gold]
    if trace is not None:
        answers.append(trace.answer)
        answers += [last_number(step.text) for step in reversed(trace.counted_steps)]
    answers += [canonical_number(c) for c in question.candidates]
    distinct = list(dict.fromkeys(c for c in answers if c is not None))
    if distinct and "/" not in distinct[0]:
        near = (_moved(distinct[0], by) for by in (1, -1, 10, 2))
        spare = [c for c in near if c not in distinct]
        distinct += spare[: max(0, MIN_CANDIDATES - len(distinct))]
    return tuple(distinct[:MAX_CANDIDATES])


def _moved(number: str, by: int) -> str:
    whole, point, part = number.partition(".")
    return f"{int(whole) + by}{point}{part}"


def label_task(
    name: str,
    summary: str,
    wording: str,
    load: Load,
    options: tuple[str, ...] | None = None,
    *,
    others: Sequence[str] = (),
    categories: bool = False,
    also: Mapping[str, str] | None = None,
    articles: Mapping[str, str] | None = None,
) -> Task:
    """A task that is answered by one of several words, asked in `prompts.yaml`'s `wording`.

    Args:
        options: the answer words; by default those of each question.
        others: words that answer, but with none of the options ("neutral").
        categories: whether the words are categories, which a text concludes with in its last lines,
            and which may be in the plural.
        also: other word, in lower case -> the option that it stands for.
        articles: option -> the article that may stand before it.
    """

    def words(question: Question) -> tuple[str, ...]:
        return options or question.options or ()

    def parse(text: str, question: Question) -> str | None:
        if categories:
            return last_category(text, words(question), also)
        return last_label(text, words(question), others)

    return wordings()[wording].task(
        name=name,
        summary=summary,
        kind="label",
        load=load,
        parse=parse,
        parse_continuation=lambda text, question: first_label(
            text, words(question), others, also, plural=categories
        ),
        labels=lambda question, trace: word_surfaces(words(question), written_by(trace), articles),
        options=options,
    )


def choice_task(name: str, summary: str, wording: str, load: Load) -> Task:
    """A task of multiple-choice questions, asked in the words of `prompts.yaml`'s `wording`."""
    return wordings()[wording].task(
        name=name,
        summary=summary,
        kind="choice",
        load=load,
        parse=lambda text, question: last_choice(text, *_choice(question)),
        parse_continuation=lambda text, question: first_choice(text, *_choice(question)),
        labels=lambda question, trace: letter_surfaces(question.labels or (), written_by(trace)),
    )


def _choice(question: Question) -> tuple[int, tuple[str, ...]]:
    options = question.options or ()
    return len(options), options


def exam(data: HubData, summary: str, wording: str, answer: Sequence[str]) -> Task:
    """A task of a multiple-choice data set of the hub.

    Args:
        answer: the columns that may name the right option; if several do, all must agree.
    """

    def load(settings: LoadSettings) -> Iterator[Question]:
        for row in with_ids(data.rows(settings)):
            yield choice_question(row, data.task, answer)

    return choice_task(data.task, f"{summary} ({data.summary})", wording, load)


def choice_question(row: SourceRow, dataset: str, answer: Sequence[str]) -> Question:
    """The question of a row with a question, options and the name (or the text) of the right
    option.

    A column `question` that holds both text and options (`{"stem": …, "choices": …}`, as ARC and
    CommonsenseQA were first published) is read too. Options keep the data's order; letters are A,
    B, C… in that order, whatever names the data uses.

    Raises:
        UserError: something is missing or does not fit; with file, line, value and remedy.
    """
    nested = row.values.get("question")
    if isinstance(nested, dict):
        inner = {"question": nested.get("stem"), "choices": nested.get("choices")}
        row = SourceRow(row.id, row.cells | inner, row.where)
    text = text_of(row, ("question",))
    options = options_of(row)
    column(row, answer)  # raises: there is none
    gold = right_letter(options, stated(row, answer), row)
    return Question(row.id, dataset, text, "choice", gold, options.texts)
