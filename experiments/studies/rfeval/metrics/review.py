"""People's review of counterfactual reasoning (RFEval, appendix B.3, Tables 5 to 7)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.raters import fleiss_kappa, krippendorff_alpha
from faithscope.experiments.analysis.stats import wilson
from faithscope.experiments.analysis.tidy import check_rows, columns, count, groups, with_interval
from faithscope.experiments.studies.rfeval.metrics.frames import with_overall

REVIEWS = ("item", "task", "reviewer", "decision")
"""A row per decision of a person: `decision` is "yes" or "no"."""
AGREEMENT = ["task", "n_items", "n_double", "n_judgements", "percent_agreement", "pabak"]
AGREEMENT += ["fleiss_kappa", "krippendorff_alpha", "reason"]
ITEMS = ["item", "task", "n_yes", "n_no", "decision"]
RATES = ["task", "n", "n_yes", *with_interval("yes_rate")]


def review_agreement(reviews: pd.DataFrame) -> pd.DataFrame:
    """How far reviewers agree, a row per task and over all.

    `percent_agreement` is the share of item pairs of judgements that are equal; `pabak` = 2p − 1,
    what is left of it where chance gives one half (two categories). Of items with two judgements
    or more; Fleiss' κ of those with exactly two. With one answer everywhere, κ and α say nothing
    and are NaN, with the `reason`.

    Raises:
        ValueError: a column is missing, a decision is neither yes nor no, or a reviewer decided
            an item twice.
    """
    _check(reviews)
    made = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        by_item = {str(item): mine["decision"].tolist() for item, mine in of.groupby("item")}
        several = [d for d in by_item.values() if len(d) > 1]
        pairs = [(a, b) for d in several for i, a in enumerate(d) for b in d[i + 1 :]]
        agreed = sum(a == b for a, b in pairs) / len(pairs) if pairs else math.nan
        row = {**about, "n_items": len(by_item), "n_double": len(several)}
        row |= {"n_judgements": len(of), "percent_agreement": agreed, "pabak": 2 * agreed - 1}
        two = np.array([[d == "yes" for d in found] for found in several if len(found) == 2])
        row["fleiss_kappa"] = fleiss_kappa(two.astype(float)) if len(two) else math.nan
        width = max(map(len, by_item.values()))
        padded = [
            [float(d == "yes") for d in found] + [math.nan] * (width - len(found))
            for found in by_item.values()
        ]
        alpha, reason = krippendorff_alpha(np.array(padded), "nominal")
        made.append(row | {"krippendorff_alpha": alpha, "reason": reason})
    return pd.DataFrame(made, columns=AGREEMENT)


def review_rates(reviews: pd.DataFrame) -> pd.DataFrame:
    """The share of judgements that are "yes", with Wilson's interval (Table 6)."""
    _check(reviews)
    made = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        yes = count(of["decision"] == "yes")
        row = {**about, "n": len(of), "n_yes": yes}
        made.append(row | columns("yes_rate", wilson(yes, len(of))))
    return pd.DataFrame(made, columns=RATES)


def review_items(reviews: pd.DataFrame) -> pd.DataFrame:
    """What came of each item: `accepted` by more than not, `rejected` by more than not, or
    `disputed`, which a further judgement (an adjudicator's) decides."""
    _check(reviews)
    made = []
    for about, of in groups(reviews, ("item", "task")):
        yes = count(of["decision"] == "yes")
        no = len(of) - yes
        said = "disputed" if yes == no else "accepted" if yes > no else "rejected"
        made.append({**about, "n_yes": yes, "n_no": no, "decision": said})
    return pd.DataFrame(made, columns=ITEMS)


def _check(reviews: pd.DataFrame) -> None:
    check_rows("rfeval reviews", reviews, REVIEWS, ("item", "reviewer"))
    if odd := set(reviews["decision"]) - {"yes", "no"}:
        raise ValueError(f"rfeval reviews: decision {min(map(str, odd))!r}; give yes or no")
