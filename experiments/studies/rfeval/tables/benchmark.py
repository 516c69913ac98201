"""What a benchmark holds: items by task and source, and the stances that its items have (RFEval,
Tables 1 and 15)."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Count
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import Table

STANCES_BETWEEN = " | "
"""Text between the stances of an item in the frame `items`."""
SOURCE = Column("source", meaning="Where the problem is from.")
N_ITEMS = Count("n", label="items", meaning="Items that are put to the models.")
ITEMS = Table("rf_items", "items", ("task", SOURCE), (N_ITEMS,), pool=("source", "task"))
"""Items by task and source, and pooled over the sources of a task and over tasks (Table 1)."""
STANCES = Table(
    "rf_stances",
    "items",
    ("task", Column("stances", meaning="All stances that a part of an output may have.")),
    (N_ITEMS,),
)
"""Items by task and set of stances (Table 15)."""
TABLES = (ITEMS, STANCES)
