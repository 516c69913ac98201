"""Counts of r′ that validation accepts and removes (RFEval, appendix B.4, Tables 8 and 9)."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Kept
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import Table

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
