"""The paper's reviews and items, with the counts that it prints."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pandas as pd
from rf_published import TASK_NAMES, grid

from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.results import item_frame


def frame_of(items: Sequence[Item]) -> pd.DataFrame:
    """The frame `items` of a run of these items."""
    results: Any = SimpleNamespace(items={item.id: item for item in items})
    return item_frame(results)


def items_of(labels: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The frame `items` of what labels are of, in the paper's order of tasks."""
    ids = dict.fromkeys(label["item"] for label in labels)
    task = {id: id.partition("/")[0] for id in ids}
    texts = dict.fromkeys(("source", "question", "options", "context", "r_prime", "stances"), "")
    rows = [{"task": task[id], "item": id} | texts for id in ids]
    return pd.DataFrame(rows)


def reviews_of_the_paper() -> list[dict[str, Any]]:
    """Reviews with the yes rate and the agreement of each task in Tables 5 and 6."""
    agreed, accepted, labels = grid(5, "task"), grid(6, "task"), []
    for name in agreed.index.drop("Overall"):
        n, yes = (int(accepted[column][name]) for column in ("n", "# yes"))
        split = round((1 - agreed["Percent agreement"][name]) * n / 2)
        both = (yes - split) // 2
        verdicts = ["yn"] * split + ["yy"] * both + ["nn"] * (n // 2 - split - both)
        labels += reviews(*verdicts, task=TASK_NAMES[name])
    return labels


REVIEW = {"component": "r_prime", "decision": "valid"}


def reviews(*verdicts: str, task: str = "legal_decision") -> list[dict[str, Any]]:
    """Reviews of an item each: "yn" is yes by one person and no by the next; "." is none."""
    return [
        REVIEW | {"item": f"{task}/{i}", "annotator": f"{j}", "label": str(verdict == "y")}
        for i, of_item in enumerate(verdicts)
        for j, verdict in enumerate(of_item)
        if verdict != "."
    ]
