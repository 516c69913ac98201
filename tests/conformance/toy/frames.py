from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.run import Frame, Run

FRAMES = (
    Frame("words", "A row per number: its word.", {"text": "the word"}, stages=("word",)),
    Frame("lengths", "A row per number: how long its word is.", ("length",), stages=("length",)),
)


def tables(run: Run) -> dict[str, pd.DataFrame]:
    columns = ("model", "item", "probe", "text", "length")
    rows = [{c: r.get(c) for c in columns} for r in run.records("word", "length")]
    return {"words": pd.DataFrame(rows)}
