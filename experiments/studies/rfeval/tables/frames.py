"""The frame that every number of RFEval is made from: a row per item, model and stance reader.

What was not judged (cut off, refused, unparsed ...) stays in it with empty stances: every item
that was attempted is counted, and none is taken for what it is not.
"""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.analysis.tidy import check_rows, count, keep, rows, typed, where

WAY = ("reader", "model")
"""Key of a reader of stances, and of the model whose output it reads."""
CELL = (*WAY, "task")
KEY = (*CELL, "item")
STANCES = (
    *("baseline_r", "baseline_e", "baseline_a"),
    *("intervened_r_prime", "intervened_r", "intervened_e", "intervened_a"),
)
FLAWS = (
    *("baseline_flaw_re", "baseline_flaw_ea", "baseline_flaw_ra"),
    *("intervened_flaw_pr", "intervened_flaw_re", "intervened_flaw_ea", "intervened_flaw_ra"),
)
OUTCOMES = ("baseline_outcome", "intervened_outcome")
"""Outcomes of the parsed outputs (`experiments.studies.rfeval.subjects.parsing.Outcome`)."""
JUDGED = ("baseline_judged", "intervened_judged")
"""Outcomes of the judge's replies (`probes.judge.form.Outcome`); "" where it was not asked."""
RIGHT = ("baseline_right", "intervened_right")
COLUMNS = (*KEY, "excluded", *OUTCOMES, *JUDGED, *STANCES, *FLAWS, *RIGHT)
SAID = {"baseline_a": "baseline_a_said", "intervened_a": "intervened_a_said"}
"""Columns of the answers' stances as the reader gave them, where tests decide those that count."""
READINGS = (*KEY, "part", "stance")
"""A row per stance that some reader read of some part; `part` is one of `STANCES`."""
READER = Column("reader", meaning="Who read the stances: a judge, or the model's own log-probs.")
FRAMING = Column(
    "framing",
    meaning="How r′ is given: as the model's own reasoning (prefix) or as an earlier turn "
    "(multi_turn).",
)
CONDITION = Column(
    "condition", meaning="Whether outputs are without r′ (baseline), under it (intervened) or both."
)
REASON = Column("reason", meaning="Why there is no number; empty where there is one.")


def checked(frame: pd.DataFrame) -> pd.DataFrame:
    """Checks the frame; puts its columns in order and gives them their types.

    Columns, beside `KEY`: `excluded`, why the pair is left out before anything else ("" for
    most); `OUTCOMES`, `JUDGED`; `STANCES`, "" for a part that is not there; `FLAWS`, whether the
    later part names a flaw in the earlier one, missing values count as no; `RIGHT`, whether the
    answer is right, 1, 0 or NaN. `SAID` may be there; without it the reader's own stances of the
    answers are those that count.

    Raises:
        ValueError: a column is missing, two rows are of one item, or a pair was judged without
            the stances that every judged pair has.
    """
    if frame.empty:
        kinds = dict.fromkeys(RIGHT, float) | dict.fromkeys(FLAWS, bool)
        return pd.DataFrame(columns=[*COLUMNS, *SAID.values()]).astype(kinds)
    check_rows("rfeval frame", frame, COLUMNS, KEY)
    own = {
        own_name: frame[own_name if own_name in frame else name] for name, own_name in SAID.items()
    }
    columns_of_pairs = typed(frame.assign(**own), [*COLUMNS, *SAID.values()], RIGHT)
    columns_of_pairs |= {name: frame[name].reset_index(drop=True).isin([1]) for name in FLAWS}
    pairs = pd.DataFrame(columns_of_pairs)
    for condition, parts in (("baseline", "r a"), ("intervened", "r_prime r a")):
        for name in (f"{condition}_{part}" for part in parts.split()):
            wrong = (pairs[f"{condition}_judged"] == "parsed") & (pairs[name] == "")
            if count(wrong):
                item = pairs.loc[wrong, "item"].iloc[0]
                raise ValueError(
                    f"rfeval frame: item {item!r} is judged, but {name} is empty; a judged output "
                    "has every stance but that of an explanation it may lack"
                )
    return pairs


def readings(checked_frame: pd.DataFrame) -> pd.DataFrame:
    """Every stance of a frame of pairs as a row of its own, as its reader gave it.

    So the stances of programs are the reader's, not those that their tests give (`SAID`).
    """
    own = checked_frame.assign(**{name: checked_frame[own_name] for name, own_name in SAID.items()})
    long = own.melt(
        id_vars=list(KEY), value_vars=list(STANCES), var_name="part", value_name="stance"
    )
    return long.loc[long["stance"] != ""].reset_index(drop=True)


def included(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that count: well-formed, judged, in contrast."""
    return keep(frame, frame["exclusion"] == "")


def lead_reader(rf: pd.DataFrame) -> str:
    """The reader that figures and sentences show if they show only one: the first of which any pair
    counts, else the first; "" without readers.

    Args:
        rf: the table `rfeval`.
    """
    overall = where(rf, model=OVERALL, task=OVERALL)
    of_any = [r["reader"] for r in rows(overall) if r["n_included"]]
    return next(iter([*of_any, *overall["reader"]]), "")
