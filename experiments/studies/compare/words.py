"""First screen of a comparison whose primary measures were named beforehand: do the kinds of
evidence agree, which to trust, at what cost, and on which traces they disagree.

It opens with the finding in a sentence and its picture. What such data can show (power,
reliability) stands in a line below, and everything else is folded, with its counts in the
summaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.agreement import questions, settings
from faithscope.experiments.analysis.comparison.conclusions import (
    Claim,
    Sentence,
    parting_sentences,
)
from faithscope.experiments.analysis.comparison.disagreements import KINDS
from faithscope.experiments.analysis.comparison.headline import POWER
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.prose import (
    FEW_QUESTIONS,
    Tables,
    cost_in_words,
    estimated,
    of_all,
    own_gaps,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import NOT_WITHIN
from faithscope.experiments.analysis.comparison.triangle import WORDS, beyond, unknown
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Drawing,
    Fold,
    Grid,
    Paragraph,
    Section,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.tidy import count, rows, where
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.numerals import decimal, percent
from faithscope.experiments.studies.compare.results import Compared

STEADY = 0.7
"""Reliability below which a measure is called unsteady, if its interval is below."""
OPENED = 3
"""Number of disagreeing traces that the first screen links."""


SAME_WORDS = {
    "ids": "the same token ids",
    "text": "the same reasoning, word for word",
    "question": "the same question, whatever the reasoning",
}


def counted_words(compared: Compared) -> str:
    """Numbers of traces, measures, labels and runs, and how traces are joined, as sentences."""
    joined = compared.joined
    named = {"trace": joined.traces, "measure": joined.measures, "label": joined.labels}
    counts = [f"{len(of):,} {word}{'' if len(of) == 1 else 's'}" for word, of in named.items()]
    left_out = f" {joined.n_left_out:,} that not every run has are left out."
    units = (
        f" Measures are compared over {len(compared.comparison.joined.traces):,} questions: a "
        "question has the mean of the scores of its samples, and the label of most of them."
    )
    return (
        f"{', '.join(counts)}, from {len(compared.sources):,} "
        f"run{'s' if len(compared.sources) > 1 else ''}. Scores stand in one row where traces have "
        f"{SAME_WORDS[compared.config.same]}.{left_out if joined.n_left_out else ''}"
        f"{units if compared.config.report.per == 'question' else ''}"
    )


def first_screen(tables: Tables, joined: Joined) -> Section:
    """The section of the page that answers first, from table `headline`."""
    models = sorted(map(str, set(joined.traces["model"])))
    of = models[0] if len(models) == 1 else f"{len(models)} models"
    headline = tables["headline"]
    limits = dict(_limits(tables, joined))
    blocks: list[Block] = [
        *opening(headline, "headline"),
        Fold(f"What limits this: {'; '.join(filter(None, limits.values()))}", [Bullets([*limits])]),
        Fold(
            "Which kind to trust here, and what each costs",
            [Bullets([*_trust(tables), *_costs(tables)])],
        ),
        Fold("Chains on which they disagree", [Bullets([*_parts(tables, joined)])]),
        Fold("The numbers of the picture", [Grid("headline", "The comparison fixed beforehand")]),
    ]
    return Section(
        "headline",
        f"Do behaviour, log-probabilities, internals and judges agree on {of}?",
        short="In short",
        blocks=blocks,
        always=True,
    )


def opening(headline: pd.DataFrame, picture: str | Picture) -> list[Block]:
    """The finding, its picture, and a line on what so many questions and such measures can show.

    Where there is nothing to show this is one sentence: why, and the command that would fill it.

    Args:
        picture: `triangle.headline_picture` of the table, or its name on the page.
    """
    if not count(headline["rho"].notna()):
        return [_nothing(headline)]
    said = [_power(headline), _steadiness(headline), *unknown(headline)]
    said.append("The four measures were named in the config before any data were seen.")
    below = markup(" ".join("{}" for _ in said), *said)
    return [next(agreement_sentences(headline)).words, Drawing(picture), Paragraph(below, "quiet")]


def _nothing(headline: pd.DataFrame) -> str:
    reasons = list(dict.fromkeys(r for r in headline["reason"] if r))
    lacking = all(reason.startswith("no run has") for reason in reasons)
    remedy = (
        "Name measures that the runs have (tables/measures.csv) in the section headline of the "
        "config, or compare with a run that has these: <code>faithscope compare RUN…</code>"
        if lacking
        else "More questions fill it: <code>faithscope run compare_model --set data.limit=300 "
        "--set name=larger</code>"
    )
    of = "behaviour, log-probabilities, internals and judges"
    return markup(f"No two of {of} can be compared: {{}}. {remedy}.", "; ".join(reasons))


def _limits(tables: Tables, joined: Joined) -> Iterator[tuple[str, str]]:
    """Sentences on what limits every conclusion, and each in a few words."""
    headline, traces = tables["headline"], joined.traces
    n, n_questions = len(traces), len(set(traces["question"]))
    units = len(set(questions(joined)))
    grouped = f" ({units:,} groups of questions, the unit of tests)" if units < n_questions else ""
    n_settings = len(set(settings(joined)))
    pairs = "pair" if n_settings == 1 else "pairs"
    yield (
        f"{n:,} traces of {n_questions:,} questions{grouped}, in {n_settings:,} {pairs} of model "
        "and task.",
        f"{n:,} traces of {n_questions:,} questions",
    )
    if cut := count(traces["cut"].eq(1)):
        yield (
            f"{cut:,} of {n:,} traces were cut off at the token limit before the model had "
            "answered by itself: what edits and judges say of these is of half a chain. A higher "
            "generation.max_new_tokens would let them end.",
            f"{cut:,} cut off",
        )
    if left_out := count(traces["excluded"] != ""):
        yield (
            f"{left_out:,} of {n:,} traces have too few steps, or another fault, to be edited.",
            f"{left_out:,} not edited",
        )
    if joined.n_left_out:
        yield (
            f"{joined.n_left_out:,} further traces are left out, since not every run has them.",
            f"{joined.n_left_out:,} not in every run",
        )
    if planted := [str(m) for m in sorted(set(traces["model"])) if planted_variant(str(m))]:
        yield (
            f"Planted, that is, tiny and with a known mechanism: {', '.join(planted)}.",
            "planted models",
        )
    named = dict.fromkeys([*headline["measure"], *headline["other"]])
    for words in own_gaps(joined, named):
        yield words, "gaps of single measures"


def _power(headline: pd.DataFrame) -> str:
    n = max(row["n_questions"] for row in rows(headline))
    few = " Intervals of so few are too narrow as well." if n < FEW_QUESTIONS else ""
    known = headline["detectable"].dropna()
    if known.empty:
        return f"Power: {n:,} questions are too few for a test.{few}"
    least, most = decimal(float(known.min())), decimal(float(known.max()))
    of = least if least == most else f"{least} to {most}, by the pair,"
    return (
        f"Power: with {n:,} questions a true ρ of ±{of} is found in {percent(POWER)} of cases, "
        f"a smaller one less often; what is not found may be there all the same.{few}"
    )


def _steadiness(headline: pd.DataFrame) -> str:
    sides = (("measure", "reliability"), ("other", "other_reliability"))
    of: dict[str, dict[str, Any]] = {}
    for row in rows(headline):
        for measure, name in sides:
            if not math.isnan(row[name]):
                told = {f"r{end}": row[f"{name}{end}"] for end in ("", "_low", "_high")}
                of.setdefault(row[measure], told | {"by": row[f"{name}_by"]})
    if not of:
        return "Reliability: not known, since no measure was taken twice."
    told = (markup("<code>{}</code> {} ({})", m, estimated(x, "r"), x["by"]) for m, x in of.items())
    unsteady = sum(x["r_high"] < STEADY for x in of.values())
    verdict = f" Of these {len(of)}, {unsteady} are below {STEADY:g}, that is, unsteady."
    return markup(
        "Reliability, the ρ of a measure with its own repetition, which bounds every other one: "
        "{}.{}",
        *(_listed(told), verdict if unsteady else ""),
    )


def _listed(parts: Iterator[str]) -> str:
    every = list(parts)
    return markup("; ".join("{}" for _ in every), *every)


def agreement_sentences(headline: pd.DataFrame) -> Iterator[Sentence]:
    """The finding on the kinds of evidence, and a sentence for each pair that the picture colours:
    whether the two rank the traces alike, or the opposite way.

    Pairs of measures that are read off the same forward passes are not counted in the finding.
    """
    pairs = {
        pair: rows(where(headline, one=pair[0], two=pair[1]))
        for pair in dict.fromkeys((row["one"], row["two"]) for row in rows(headline))
    }
    apart = {pair: of for pair, of in pairs.items() if not any(r["one_probe"] is True for r in of)}
    n_untested = sum(all(math.isnan(row["p"]) for row in of) for of in pairs.values())
    yield Sentence(_finding(apart, n_untested))
    for (one, two), of in pairs.items():
        signs = {sign for row in of if (sign := beyond(row))}
        if len(signs) == 1:
            claim: Claim = "pair_alike" if signs == {1} else "pair_opposite"
            yield Sentence(f"{WORDS[one]} and {WORDS[two]}", claim, (f"{one}|{two}",))


def _finding(pairs: Mapping[tuple[str, str], list[dict[str, Any]]], n_untested: int) -> str:
    tested = {
        pair: known
        for pair, of in pairs.items()
        if (known := [row for row in of if not math.isnan(row["p_corrected"])])
    }
    if not tested:
        none = "No two kinds of evidence that are measured apart could be tested."
        return markup("<strong>{}</strong>", none)
    of_sign: dict[int, list[str]] = {1: [], -1: []}
    for (one, two), of in tested.items():
        for sign, names in of_sign.items():
            found = [row["framing"] for row in of if beyond(row) == sign]
            only = f" ({found[0]} only)" if found and len(found) < len(of) and found[0] else ""
            names += [f"{WORDS[one]} and {WORDS[two]}{only}"] if found else []
    n = len({pair for pair, of in tested.items() if any(map(beyond, of))})
    traces = [f"{int(row['n']):,}" for of in tested.values() for row in of]
    least, most = (f(traces, key=lambda x: int(x.replace(",", ""))) for f in (min, max))
    over = f"{most} traces" if least == most else f"{least} to {most} traces"
    lead = (
        f"{n:,} of {len(tested):,} pairs of kinds of evidence go together beyond chance, on {over}"
    )
    ways = {1: "rank the traces alike", -1: "rank them the opposite way"}
    said = [f"{', '.join(names)} {ways[sign]}" for sign, names in of_sign.items() if names]
    rest = "of the others this is not shown" if n < len(tested) else ""
    if not said:
        rest = "whether any two rank the traces alike, or the opposite way, is inconclusive"
    told = "; ".join(filter(None, [*said, rest]))
    untested = f" {n_untested:,} further could not be tested." if n_untested else ""
    return markup("<strong>{}</strong>: {}.{}", lead, told, untested)


def _trust(tables: Tables) -> Iterator[str]:
    headline, against = tables["headline"], of_all(tables["against"])
    names = dict.fromkeys([*headline["measure"], *headline["other"]])
    labels = list(dict.fromkeys(against["label"]))
    if not labels:
        yield (
            "No label of faithfulness has values here, so nothing says which kind is right: "
            "agreement is no truth. Add labels with labels.path, or take chains whose labels vary "
            "within a model (paper/bonafide, paper/faithcot_compare)."
        )
    for label in labels:
        chosen = where(against, label=label, measure=set(names))
        known = chosen.dropna(subset=["auroc"])
        if known.empty:
            between = NOT_WITHIN in set(chosen["reason"])
            why = (
                "varies only between models or tasks: it says which model is faithful, and not "
                "which measure to trust on this model's traces"
                if between
                else "does not have two values with scores enough"
            )
            yield markup("The label <code>{}</code> {}.", label, why)
            continue
        told = (
            markup("<code>{}</code> {}", row["measure"], estimated(row, "auroc"))
            for row in rows(known)
        )
        yield markup(
            "AUROC of the primary measures against the label <code>{}</code>, within models and "
            "tasks (one half is chance): {}. The test of which measure is best, over all of them, "
            "is in the next section.",
            *(label, _listed(told)),
        )


def _costs(tables: Tables) -> Iterator[str]:
    headline = tables["headline"]
    measures = {row["measure"]: row for row in rows(tables["measures"])}
    named = {
        name: kind
        for kind_of, name_of in (("one", "measure"), ("two", "other"))
        for kind, name in zip(headline[kind_of], headline[name_of], strict=True)
        if name in measures
    }
    costs = (
        markup("{} (<code>{}</code>) {}", WORDS[kind], name, cost_in_words(measures[name]))
        for name, kind in named.items()
    )
    if named:
        yield markup("Cost: {}.", _listed(costs))


def _parts(tables: Tables, joined: Joined) -> Iterator[str]:
    said = [sentence.words for sentence in parting_sentences(tables)]
    yield from said or ["No trace has two sides that say something of it."]
    words = {kind.name: kind.words for kind in KINDS}
    listed = tables["disagreements_items"].sort_values("gap", ascending=False, kind="stable")
    shown: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows(listed):
        shown.setdefault(tuple(row[name] for name in KEY), row)
    for key, row in list(shown.items())[:OPENED]:
        at = joined.index.get_loc(key)
        yield markup(
            '<a href="explore.html#open={}">{}</a> ({}): {}.',
            *(at, row["item"], row["task"], words[row["kind"]]),
        )
