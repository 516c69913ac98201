"""Words that go with a broken step that is seen, or let pass (C2-Faith, App. F).

The paper names phrases of o4-mini's rationales ("does not follow" against "directly follows") and
of the steps themselves ("let", "just need") without a method. Here: of every phrase of up to three
words the share of texts that hold it, on either side, and the log-odds ratio of the two with half a
text added to each count (Haldane, 1940), which keeps it finite; sorted by how many of its standard
errors it is from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from faithscope.experiments.analysis.tidy import Rows, groups, tabled
from faithscope.experiments.studies.c2faith.metrics.frames import WAY

TEXT = (*WAY, "of", "seen", "text")
"""A judgement's text: `of` is `rationale` or `step`, `seen` whether the broken step was flagged."""
WORDS = [*WAY, "of", "phrase", "n_seen", "n_passed", "share_seen", "share_passed"]
WORDS += ["log_odds_ratio", "z"]
LONGEST = 3
"""Words of a phrase."""
LEAST_TEXTS = 3
"""Texts that must hold a phrase."""
LISTED = 15
"""Phrases of either side."""
_WORD = r"(?u)\\[a-zA-Z]+|[a-zA-Z]+(?:['’][a-z]+)?|\d+(?:\.\d+)?|[=<>≤≥+−×*/^√]"


@tabled(*WORDS)
def words_table(texts: Iterable[Mapping[str, Any]]) -> Rows:
    """The phrases that part most, `LISTED` of either side, by judge, reading, prompt and text.

    A side without texts parts nothing: then there is no row.
    """
    frame = pd.DataFrame(texts, columns=list(TEXT))
    for key, of in groups(frame, (*WAY, "of")):
        seen = of["seen"].to_numpy(dtype=bool)
        if seen.any() and not seen.all():
            yield from (key | line for line in _phrases(of["text"].tolist(), seen))


def _phrases(texts: list[str], seen: np.ndarray) -> list[dict[str, Any]]:
    counted = CountVectorizer(token_pattern=_WORD, ngram_range=(1, LONGEST), binary=True)
    try:
        there = counted.fit_transform(texts)
    except ValueError:  # not a word in any of them
        return []
    n_seen, n_passed = int(seen.sum()), int((~seen).sum())
    with_seen, with_passed = (
        np.asarray(there[side].sum(axis=0), dtype=float).ravel()  # pyright: ignore
        for side in (seen, ~seen)
    )
    a, b = with_seen + 0.5, n_seen - with_seen + 0.5
    c, d = with_passed + 0.5, n_passed - with_passed + 0.5
    log_odds = np.log(a / b) - np.log(c / d)
    z = log_odds / np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    often = with_seen + with_passed >= LEAST_TEXTS
    phrases = counted.get_feature_names_out()
    order = sorted(np.flatnonzero(often), key=lambda i: (-z[i], phrases[i]))
    most = [i for i in order if z[i] > 0][:LISTED] + [i for i in order if z[i] < 0][-LISTED:]
    return [
        {
            "phrase": str(phrases[i]),
            "n_seen": n_seen,
            "n_passed": n_passed,
            "share_seen": with_seen[i] / n_seen,
            "share_passed": with_passed[i] / n_passed,
            "log_odds_ratio": float(log_odds[i]),
            "z": float(z[i]),
        }
        for i in most
    ]
