"""What a comparison says in words: which measure to trust here, what it costs, and what to mind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.against import ALL, MONITOR, Target
from faithscope.experiments.analysis.comparison.agreement import questions
from faithscope.experiments.analysis.comparison.combining import NONE
from faithscope.experiments.analysis.comparison.joined import Joined
from faithscope.experiments.analysis.comparison.parting import KINDS
from faithscope.experiments.analysis.comparison.scores import COSTS, of_correctness
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.tidy import count, numbers, rows, where
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.studies.compare.results import Compared

FEW, FEW_OF_KIND, FEW_QUESTIONS = 100, 30, 30
"""Traces, traces of either kind, and questions, below which the page warns."""
UNITS = {"forwards": "model calls", "tokens": "tokens", "seconds": "seconds", "dollars": "dollars"}
"""What each of `COSTS` is counted in."""
Tables = Mapping[str, pd.DataFrame]


def answers(tables: Tables, joined: Joined) -> list[str]:
    """Sentences of the first screen, labels first."""
    said = [
        s for label in dict.fromkeys(tables["trust"]["label"]) for s in _of_label(tables, label)
    ]
    if not said:
        said = [
            "No label of these runs tells two kinds of traces apart, or too few traces have one. "
            "Nothing here says which measure is right: the page shows only where measures agree, "
            "what they cost, and where they part. Add labels with --labels FILE."
        ]
    return [*said, *_agreement(tables), *_parting(tables)]


def _of_label(tables: Tables, label: str) -> Iterator[str]:
    every = [row for row in rows(where(tables["trust"], label=label)) if row["family"] != MONITOR]
    measures = [row for row in every if not row["reason"]]
    if measures:
        yield from _of_best(tables, label, measures)
    if sparse := len(every) - len(measures):
        reasons = " or ".join(dict.fromkeys(row["reason"] for row in every if row["reason"]))
        yield markup(
            "By the label <code>{}</code> {} of {} measures cannot be set against others, and none "
            "of these is called the best: they have {}.",
            *(label, f"{sparse:,}", f"{len(every):,}", reasons),
        )


def _of_best(tables: Tables, label: str, measures: list[dict[str, Any]]) -> Iterator[str]:
    best = measures[0]
    yield markup(
        "Against the label <code>{}</code> ({} traces, of which it speaks against {}) "
        "<strong>{}</strong> ({}) tells best which traces the label speaks against: AUROC {}. It "
        "costs {}.",
        *(label, f"{best['n']:,}", f"{best['n_unfaithful']:,}", best["measure"], best["family"]),
        *(_estimate(best, "auroc"), cost_in_words(best)),
    )
    good = [row for row in measures if row["as_good"] is True]
    cost = next((c for c in COSTS if any(not math.isnan(row[c]) for row in good)), None)
    if len(good) > 1 and cost is not None:
        known = [row for row in good if not math.isnan(row[cost])]
        cheapest = min(known, key=lambda row: row[cost])
        several = (
            f"{len(good) - 1:,} of the other {len(measures) - 1:,} measures cannot be told from"
        )
        if cheapest[cost] >= best[cost]:
            yield f"{several} it on these traces; none of them costs less in {UNITS[cost]}."
        else:
            yield markup(
                "{} it on these traces. The cheapest of them in {} is <strong>{}</strong> ({}), "
                "AUROC {}: {}.",
                *(several, UNITS[cost], cheapest["measure"], cheapest["family"]),
                *(_estimate(cheapest, "auroc"), cost_in_words(cheapest)),
            )
    wrong = [row for row in measures if row["auroc_high"] < 0.5]
    if wrong:
        yield markup(
            "{} point the wrong way here, their whole interval below one half (the furthest: "
            "<code>{}</code>). They are shown so, and never turned round.",
            *(f"{len(wrong):,} measure{'' if len(wrong) == 1 else 's'}", wrong[-1]["measure"]),
        )
    combined = where(tables["combined"], label=label, trained_on="other questions")
    for row in rows(combined.dropna(subset=["gain"])):
        gain = _estimate(row, "gain", signed=True)
        word = "no gain" if row["verdict"] == NONE else f"a {row['verdict']}"
        yield markup(
            "All {} measures together ({}) against the best single one: {} ({}).",
            *(f"{row['n_measures']:.0f}", row["classifier"], word, gain),
        )


def _agreement(tables: Tables) -> Iterator[str]:
    of_families = tables["families"]
    shown = of_families.loc[of_families["family"] != of_families["other_family"]]
    told = [
        f"{r['family']} and {r['other_family']} {r['spearman']:+.2f} "
        f"(within models {r['within']:+.2f})"
        for r in rows(shown.dropna(subset=["spearman"]))
    ]
    if told:
        words = f"Mean rank correlation of the measures of two families: {'; '.join(told)}."
        yield words.replace("-", "−")
    pairs = tables["agreement"]
    beyond = pairs.loc[pairs["discovered"]]
    if n := count(pairs["p"].notna()):
        alike = count(beyond["within"] > 0)
        yield (
            f"Of {n:,} pairs of measures that vary within a model and task, {len(beyond):,} rank "
            f"its traces beyond chance: {alike:,} alike, {len(beyond) - alike:,} the other way "
            "round. Of the others it cannot be said that they agree on traces, however well they "
            "agree on models."
        )
    reversed_ = count(pairs["reversed"])
    if reversed_:
        yield (
            f"{reversed_:,} of them agree{'s' if reversed_ == 1 else ''} over all traces and "
            f"disagree{'s' if reversed_ == 1 else ''} within models, or "
            "the other way round (Simpson's paradox): what they share over all traces is a "
            "difference between models, not between traces."
        )


def _parting(tables: Tables) -> Iterator[str]:
    words = {kind.name: kind.words for kind in KINDS}
    known = rows(tables["parting"].loc[tables["parting"]["n_items"] > 0])
    if not known:
        return
    row = max(known, key=lambda r: (r["beyond"], r["n"]))
    of = (
        f"{row['n']:,} of {row['n_items']:,} traces (by chance {row['expected']:.0f}; beyond "
        f"chance {_estimate(row, 'beyond', signed=True, form='.0f')})"
    )
    if row["beyond_low"] > 0:
        yield f"Of four kinds of disagreement the most beyond chance: {words[row['kind']]}, {of}."
    else:
        yield (
            "Of none of the four kinds of disagreement can it be said that it is more frequent "
            f"than by chance; the nearest: {words[row['kind']]}, {of}."
        )


SAME_WORDS = {
    "ids": "the same token ids",
    "text": "the same reasoning, word for word",
    "question": "the same question, whatever the reasoning",
}


def counted_words(compared: Compared) -> str:
    """What is compared, in two sentences or three."""
    joined = compared.joined
    named = {"trace": joined.traces, "measure": joined.measures, "label": joined.labels}
    counts = [f"{len(of):,} {word}{'' if len(of) == 1 else 's'}" for word, of in named.items()]
    left_out = f" {joined.n_left_out:,} that not every run has are left out."
    return (
        f"{', '.join(counts)}, from {len(compared.sources):,} "
        f"run{'s' if len(compared.sources) > 1 else ''}. Scores stand in one row where traces have "
        f"{SAME_WORDS[compared.config.same]}.{left_out if joined.n_left_out else ''}"
    )


def cautions(tables: Tables, joined: Joined, of_labels: list[Target]) -> list[str]:
    """What not to conclude, a sentence each."""
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
    if of_labels and len(joined.measures) > 1 and "" in set(tables["trust"]["reason"]):
        said.append(
            f"The best of {len(joined.measures)} measures is named by the same traces that it was "
            "found on, which flatters it."
        )
    if 1 in set(tables["trust"]["auroc_low"]):
        said.append(
            "An AUROC of 1 with the interval from 1 to 1 says that no draw of these questions held "
            "a mistake, not that the measure makes none."
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
    said.append("Measures that agree may agree on the same mistake: agreement is no truth.")
    return said


def label_directions(joined: Joined) -> list[str]:
    """Which way every label points, as its name tells, a sentence each."""
    return [
        markup(
            "A trace of which <code>{}</code> is 1 counts as one that the label speaks {}.",
            *(row["measure"], "for" if row["higher_is_faithful"] else "against"),
        )
        for row in rows(joined.labels.reset_index())
    ]


def unfinished(tables: Tables) -> list[str]:
    """A warning for every source that is not finished, or of which items failed."""
    return [
        f"{row['source']} is unfinished: {row['n_unfinished']:,} of its items are still to be done"
        f"{', and ' + format(row['n_failed'], ',') + ' units failed' if row['n_failed'] else ''}. "
        f"Go on with it and compare again."
        for row in rows(tables["sources"])
        if row["n_unfinished"] or row["n_failed"]
    ]


def cost_in_words(row: Mapping[str, Any]) -> str:
    """What is known of the costs of an item, in words."""
    known = {cost: row[cost] for cost in COSTS if not math.isnan(row[cost])}
    words = {
        "forwards": "{:.3g} model call" + ("s" if row["forwards"] != 1 else ""),
        "tokens": "{:,.0f} tokens",
        "seconds": "{:.2g} s",
        "dollars": "${:.2g}",
    }
    told = [words[cost].format(value) for cost, value in known.items()]
    return f"{', '.join(told)} a trace" if told else "an unknown amount: no record says"


def best_rows(tables: Tables, label: str, most: int = 12) -> pd.DataFrame:
    """The first rows of `trust`, of one label, without what its sentence says of all of them."""
    return where(tables["trust"], label=label).head(most).drop(columns=["label", "n_unfaithful"])


def of_all(against: pd.DataFrame) -> pd.DataFrame:
    """The rows of `against` over all traces."""
    return where(against, by=ALL)


def _estimate(row: Mapping[str, Any], name: str, signed: bool = False, form: str = ".2f") -> str:
    sign = ("+" if signed else "") + form
    value, low, high = (row[k] for k in (name, f"{name}_low", f"{name}_high"))
    interval = "" if math.isnan(low) else f" [{low:{sign}}, {high:{sign}}]"
    return f"{value:{sign}}{interval}".replace("-", "−")
