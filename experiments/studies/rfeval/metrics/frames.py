"""The frame that every number of RFEval is made from: a row per item, model and stance reader.

What was not judged (cut off, refused, unparsed ...) stays in it with empty stances: every item
that was attempted is counted, and none is taken for what it is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.statistics.stats import Estimate, wilson
from faithscope.experiments.analysis.tidy import (
    check_rows,
    columns,
    count,
    keep,
    numbers,
    rows,
    typed,
    where,
    with_interval,
)

WAY = ("reader", "model")
"""Who read the stances, and whose output it is."""
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
"""Of the parsed outputs (`experiments.studies.rfeval.subjects.parsing.Outcome`)."""
JUDGED = ("baseline_judged", "intervened_judged")
"""Of the judge's replies (`probes.judge.form.Outcome`); "" where it was not asked."""
RIGHT = ("baseline_right", "intervened_right")
COLUMNS = (*KEY, "excluded", *OUTCOMES, *JUDGED, *STANCES, *FLAWS, *RIGHT)
SAID = {"baseline_a": "baseline_a_said", "intervened_a": "intervened_a_said"}
"""The answers' stances as the reader itself gave them, where tests decide those that count."""
READINGS = (*KEY, "part", "stance")
"""A row per stance that some reader read of some part; `part` is one of `STANCES`."""
OVERALL = "overall"
"""The name of what is pooled: all tasks, or all models."""


def checked(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its columns in order, of their kinds, and nothing in it that cannot be.

    Columns, beside `KEY`: `excluded`, why the pair is left out before anything else ("" of
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


def attempted(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that were not left out before anything else (appendix C.4, global exclusion)."""
    return keep(frame, frame["exclusion"] != "global")


def included(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that count: well-formed, judged, in contrast."""
    return keep(frame, frame["exclusion"] == "")


def with_overall(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The frame, and all of it again under `OVERALL` in each of the named columns (and in all).

    Grouped by these columns, every row then counts once in its own group and once in each pool.
    """
    pooled = [frame]
    for name in names:
        pooled += [part.assign(**{name: OVERALL}) for part in list(pooled)]
    return pd.concat(pooled, ignore_index=True)


def lead_reader(rf: pd.DataFrame) -> str:
    """The reader of whom figures and sentences are, where they are of one: the first of which any
    pair counts, "" of none.

    Args:
        rf: the table `rfeval`.
    """
    overall = where(rf, model=OVERALL, task=OVERALL)
    of_any = [r["reader"] for r in rows(overall) if r["n_included"]]
    return next(iter([*of_any, *overall["reader"]]), "")


def share_of(values: Any) -> Estimate:
    """The share of values that are 1, with Wilson's interval; NaN, not known, is not 1."""
    return wilson(count(numbers(values) == 1), len(values))


VALUE_SHARES = ("value", "n_of", "n", *with_interval("share"))


def value_shares(values: Any, of: Iterable[str]) -> list[dict[str, Any]]:
    """`VALUE_SHARES` of each of the named values: `n` of `n_of` rows have it."""
    counts = {value: count(values == value) for value in of}
    about = {"n_of": len(values)}
    return [
        about | {"value": value, "n": n} | columns("share", wilson(n, len(values)))
        for value, n in counts.items()
    ]
