"""AG News: the topic of a news article, one of four (Zhang et al., 2015; SLRC, 4.6)."""

from __future__ import annotations

from collections.abc import Iterator

from faithscope.experiments.data.tasks.kinds import label_task
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.rows import SourceRow, column, text_of
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

TOPICS = ("World", "Sports", "Business", "Sci/Tech")
"""The topics in the order of the data's class indices."""
ALSO = {
    "sci-tech": "Sci/Tech",
    "sci & tech": "Sci/Tech",
    "science/technology": "Sci/Tech",
    "science and technology": "Sci/Tech",
    "science & technology": "Sci/Tech",
}
"""Other words that models write for a topic -> the topic. A bare "technology" or "science" is no
conclusion: articles about companies mention both."""

DATA = HubData("ag_news", "fancyzhx/ag_news", "test")


def load(settings: LoadSettings) -> Iterator[Question]:
    """The articles in the data's order, which mixes the topics.

    Raises:
        UserError: the data cannot be read, or a label is no topic.
    """
    for row in DATA.rows(settings):
        text = text_of(row, ("text",))
        yield Question(row.id, DATA.task, text, "label", _topic(row), TOPICS)


def _topic(row: SourceRow) -> str:
    label = column(row, ("label", "label_text"))
    word = str(label).strip().casefold().removesuffix(".0")
    for i, topic in enumerate(TOPICS):
        if word in (str(i), topic.casefold()) or ALSO.get(word) == topic:
            return topic
    known = ", ".join(f"{i} {topic}" for i, topic in enumerate(TOPICS))
    raise UserError(f"{row.where}: label {label!r} is none of {known}; give an index or a name")


AG_NEWS = label_task(
    DATA.task,
    f"topics of news articles ({DATA.summary})",
    "news",
    load,
    TOPICS,
    categories=True,
    also=ALSO,
)
