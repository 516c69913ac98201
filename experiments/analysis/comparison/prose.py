"""Prose of a comparison's page: what is compared, what it costs, and what not to conclude."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.agreement import questions
from faithscope.experiments.analysis.comparison.join import OTHER_MODEL, OTHER_TRACE, Joined
from faithscope.experiments.analysis.comparison.scores import (
    COSTS,
    FAILED,
    NOT_RUN,
    of_correctness,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import ALL, Target
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.tidy import count, numbers, rows, where
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.numerals import decimal, estimate, significant

FEW, FEW_OF_KIND, FEW_QUESTIONS = 100, 30, 30
"""Numbers of traces, of traces per class, and of questions, below which the page warns."""
GAPS = 4
"""Number of measures whose own gaps are listed in a sentence."""
NEVER_MEASURED = (NOT_RUN, FAILED, OTHER_TRACE, OTHER_MODEL)
"""Reasons for a missing score that say nothing of the trace."""
APART = 0.1
"""Difference between AUROC over all traces and within models and tasks that calls for a caution."""
UNITS = {"forwards": "model calls", "tokens": "tokens", "seconds": "seconds", "dollars": "dollars"}
"""Kind of cost -> the unit it is counted in."""
Tables = Mapping[str, pd.DataFrame]


def cautions(tables: Tables, joined: Joined, of_labels: list[Target]) -> list[str]:
    """Sentences that warn of conclusions that the data do not support."""
    said = []
    for target in of_labels:
        if of_correctness(target.label):
            said.append(
                f"{target.label} says whether something is right, not whether the reasoning is "
                "faithful: a measure that is good against it tells mistakes, and a right answer "
                "may stand on reasoning that was not used."
            )
        n, bad = len(target.rows), int(target.unfaithful.sum())
        if n < FEW or min(bad, n - bad) < FEW_OF_KIND:
            said.append(
                f"{target.label}: {n} traces, of which it speaks against {bad}, are a glance. "
                "Intervals are wide, and the order of the measures may change with other questions."
            )
        varied = [
            s for s in set(target.settings) if len(set(target.unfaithful[target.settings == s])) > 1
        ]
        if not varied and 0 < bad < n:
            said.append(
                f"{target.label} does not vary within any model and task: whatever tells the "
                "models apart, faithfulness or not, tells its kinds apart. Trained monitors and "
                "combined measures can learn the model instead."
            )
        said += _apart(tables, target.label)
    if count(tables["trust"]["told"].eq(True)) and len(joined.measures) > 1:
        said.append(
            f"The best of {len(joined.measures)} measures is named by the same traces that it was "
            "found on: that it tells is tested, that its AUROC is as high elsewhere is not, and "
            "the highest of many is flattered."
        )
    if (n := len(set(questions(joined)))) < FEW_QUESTIONS:
        said.append(
            f"Intervals come from drawing questions, of which there are {n} here: below "
            f"{FEW_QUESTIONS} they are too narrow, most of all those of scores with few values. "
            "What is called beyond chance is so with any number of questions."
        )
    models = set(joined.traces["model"])
    if planted := [m for m in models if planted_variant(str(m))]:
        said.append(
            f"{len(planted)} of {len(models)} models are planted: known mechanisms in tiny models. "
            "They check measures, and prove nothing of large ones."
        )
    gone = joined.missing.loc[joined.missing["reason"] != "measured"]
    if len(gone):
        empty, cells = (int(numbers(of["n"]).sum()) for of in (gone, joined.missing))
        said.append(
            f"{empty:,} of {cells:,} cells have no score; the last section counts "
            "them by reason. Measures are compared on the traces that have both."
        )
    said += own_gaps(joined, joined.measures.index)
    said.append("Measures that agree may agree on the same mistake: agreement is no truth.")
    return said


def own_gaps(joined: Joined, measures: Iterable[str]) -> Iterator[str]:
    """Sentence on the measures that leave out traces themselves, by what they found (a judge that
    is uncertain, an answer that nobody can read), those that leave out most first."""
    gone = joined.missing.loc[~joined.missing["reason"].isin(("measured", *NEVER_MEASURED))]
    by_measure = {
        str(name): of for name, of in gone.groupby("measure", sort=False) if name in set(measures)
    }
    most = sorted(by_measure.items(), key=lambda pair: -int(numbers(pair[1]["n"]).sum()))
    told = [
        markup(
            "<code>{}</code> {} of {} ({})",
            *(name, f"{int(numbers(of['n']).sum()):,}", f"{int(of['n_items'].iloc[0]):,}"),
            ", ".join(f"{row['reason'].replace('_', ' ')} {row['n']:,}" for row in rows(of)),
        )
        for name, of in most[:GAPS]
    ]
    if told:
        others = f", and {len(most) - GAPS:,} other measures" if len(most) > GAPS else ""
        yield markup(
            "Traces that a measure leaves out itself, by what it found of them: {}{}. It is "
            "compared on the others, which need not be like these.",
            *(markup("; ".join("{}" for _ in told), *told), others),
        )


def _apart(tables: Tables, label: str) -> Iterator[str]:
    """Cautions where AUROC over all traces is far from AUROC within models and tasks."""
    combined = where(tables["combined"], label=label, trained_on="other questions")
    single = rows(where(tables["trust"], label=label))
    together = [row | {"measure": f"all by {row['classifier']}"} for row in rows(combined)]
    every = [*single, *together]

    def gap(row: Mapping[str, Any]) -> float:
        return abs(row["pooled"] - row["auroc"])

    apart = [row for row in every if gap(row) > APART]
    if apart:
        row = max([row for row in apart if row in single] or apart, key=gap)
        yield markup(
            "{} of {} measures, monitors and combinations have another AUROC by <code>{}</code> "
            "over all traces than within models and tasks, by more than {} (the furthest: "
            "<code>{}</code>, {} over all and {} within). Over all traces, telling models or tasks "
            "apart counts as telling traces apart; AUROC is therefore that within.",
            *(f"{len(apart):,}", f"{len(every):,}", label, f"{APART:g}", row["measure"]),
            *(decimal(row["pooled"]), decimal(row["auroc"])),
        )


def label_directions(joined: Joined) -> list[str]:
    """One sentence per label: whether its 1 speaks for or against a faithful trace."""
    return [
        markup(
            "A trace of which <code>{}</code> is 1 counts as one that the label speaks {}.",
            *(row["measure"], "for" if row["higher_is_faithful"] else "against"),
        )
        for row in rows(joined.labels.reset_index())
    ]


def unfinished(tables: Tables) -> list[str]:
    """Warnings for every source that is unfinished or has failed items."""
    return [
        f"{row['source']} is unfinished: {row['n_unfinished']:,} of its items are still to be done"
        f"{', and ' + format(row['n_failed'], ',') + ' units failed' if row['n_failed'] else ''}. "
        f"Go on with it and compare again."
        for row in rows(tables["sources"])
        if row["n_unfinished"] or row["n_failed"]
    ]


def cost_in_words(row: Mapping[str, Any]) -> str:
    """Known mean costs of an item, in words."""
    known = {cost: significant(row[cost]) for cost in COSTS if not math.isnan(row[cost])}
    words = {
        "forwards": "{} model call" + ("s" if row["forwards"] != 1 else ""),
        "tokens": "{} tokens",
        "seconds": "{} s",
        "dollars": "${}",
    }
    told = [words[cost].format(value) for cost, value in known.items()]
    return f"{', '.join(told)} a trace" if told else "an unknown amount: no record says"


def best_rows(tables: Tables, label: str, most: int = 12) -> pd.DataFrame:
    """The first rows of table `trust` for one label, without columns that are the same in all of
    them."""
    return where(tables["trust"], label=label).head(most).drop(columns=["label", "n_unfaithful"])


def of_all(against: pd.DataFrame) -> pd.DataFrame:
    """Rows of table `against` that are over all traces."""
    return where(against, by=ALL)


def estimated(row: Mapping[str, Any], name: str, signed: bool = False, digits: int = 2) -> str:
    value, low, high = (row[k] for k in (name, f"{name}_low", f"{name}_high"))
    return estimate(value, low, high, digits, plus=signed)
