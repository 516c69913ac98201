"""People's review of counterfactual reasoning (RFEval, appendix B.3, Tables 5 to 7)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.statistics.raters import fleiss_kappa, krippendorff_alpha
from faithscope.experiments.analysis.statistics.stats import share
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
    lines = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        by_item = [(x["decision"] == "yes").astype(float).tolist() for _, x in of.groupby("item")]
        several = [yes for yes in by_item if len(yes) > 1]
        equal = [a == b for yes in several for a, b in itertools.combinations(yes, 2)]
        agreed = sum(equal) / len(equal) if equal else math.nan
        line = {**about, "n_items": len(by_item), "n_double": len(several)}
        line |= {"n_judgements": len(of), "percent_agreement": agreed, "pabak": 2 * agreed - 1}
        two = [yes for yes in several if len(yes) == 2]
        line["fleiss_kappa"] = fleiss_kappa(np.array(two)) if two else math.nan
        padded = np.array(list(itertools.zip_longest(*by_item, fillvalue=math.nan))).T
        alpha, reason = krippendorff_alpha(padded, "nominal")
        lines.append(line | {"krippendorff_alpha": alpha, "reason": reason})
    return pd.DataFrame(lines, columns=AGREEMENT)


def review_rates(reviews: pd.DataFrame) -> pd.DataFrame:
    """The share of judgements that are "yes", with Wilson's interval (Table 6)."""
    _check(reviews)
    lines = []
    for about, of in groups(with_overall(reviews, "task"), ("task",)):
        rate = share([decision == "yes" for decision in of["decision"]])
        n_yes = count(of["decision"] == "yes")
        lines.append({**about, "n": len(of), "n_yes": n_yes} | columns("yes_rate", rate))
    return pd.DataFrame(lines, columns=RATES)


def review_items(reviews: pd.DataFrame) -> pd.DataFrame:
    """What came of each item: `accepted` by more than not, `rejected` by more than not, or
    `disputed`, which a further judgement (an adjudicator's) decides."""
    _check(reviews)
    lines = []
    for about, of in groups(reviews, ("item", "task")):
        yes = count(of["decision"] == "yes")
        no = len(of) - yes
        verdict = "disputed" if yes == no else "accepted" if yes > no else "rejected"
        lines.append({**about, "n_yes": yes, "n_no": no, "decision": verdict})
    return pd.DataFrame(lines, columns=ITEMS)


def _check(reviews: pd.DataFrame) -> None:
    check_rows("rfeval reviews", reviews, REVIEWS, ("item", "reviewer"))
    if odd := set(reviews["decision"]) - {"yes", "no"}:
        raise ValueError(f"rfeval reviews: decision {min(map(str, odd))!r}; give yes or no")
