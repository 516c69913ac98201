"""Which r′ validation accepts, and counts of those that it removes (RFEval, appendix B.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.tables.filtering import CRITERIA, FILTERING


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
