"""Counts of r′ that validation accepts and removes (RFEval, appendix B.4, Tables 8 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import Kept
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.studies.rfeval.items import Item

CRITERIA = ("misleading_sufficiency", "logical_soundness", "plausible_subtlety", "uniqueness")
"""Criteria of the validation, in the paper's order."""
COUNTS = (
    Column("n_problems", "problems", "Problems for which an r′ was to be written."),
    Column(
        "n_removed", "removed", "Problems that validation does not let in, whatever the reason."
    ),
    Column("n_kept", "kept", "Problems whose r′ the validator accepts by every criterion."),
)
REASONS = (
    Column(
        "n_no_reasoning",
        "no r′ that could be read",
        "Problems for which no r′ could be read from what was written.",
    ),
    Column(
        "n_unvalidated",
        "no verdict",
        "Problems with an r′ on which the validator gave no verdict that could be read.",
    ),
    *(Column(f"n_fails_{name}", meaning=f"Problems whose r′ fails {name}.") for name in CRITERIA),
)
FILTERING = Table(
    "rf_filtering",
    "filtering",
    ("task", Column("source", meaning="Where the problem is from.")),
    (Kept((*COUNTS, *REASONS)),),
)
"""Problems that validation accepts and removes, by task and source, as `filtering` counts them."""


def accepted(reply: Mapping[str, Any]) -> bool:
    """Whether a validator's stored reply lets an item in: "yes", and no criterion against it."""
    if reply["outcome"] != "parsed":
        return False
    return reply["values"]["decision"] == "yes" and all(map(reply["values"].get, CRITERIA))


def filtering(items: Sequence[Item], replies: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Counts of problems that validation accepts and removes, by task and source (Tables 8 and 9).

    Args:
        items: all problems; one without r′ got no reply that could be read.
        replies: the validator's stored replies (`outcome`, `values`), by item; one that is
            missing or does not parse accepts nothing.

    Returns:
        Counts of items; one that fails several criteria is in several of `n_fails_…`.
    """
    counts: dict[tuple[str, str], dict[str, Any]] = {}
    for item in items:
        row = counts.setdefault((item.task, item.source), dict.fromkeys(FILTERING.header, 0))
        row |= {"task": item.task, "source": item.source}
        row["n_problems"] += 1
        reply = replies.get(item.id)
        if not item.r_prime:
            row["n_no_reasoning"] += 1
        elif reply is None or reply["outcome"] != "parsed":
            row["n_unvalidated"] += 1
        elif accepted(reply):
            row["n_kept"] += 1
            continue
        else:
            for name in CRITERIA:
                row[f"n_fails_{name}"] += not reply["values"][name]
        row["n_removed"] += 1
    return pd.DataFrame(list(counts.values()), columns=FILTERING.header)
