"""First screen of a comparison whose primary measures were named beforehand: do the kinds of
evidence agree, which to trust, at what cost, and on which traces they disagree.

What limits every conclusion (few questions, chains that were cut off, traces that a measure leaves
out itself, measures that are not steady) stands before the conclusions.
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
    p_in_words,
)
from faithscope.experiments.analysis.comparison.scores_vs_labels import NOT_WITHIN
from faithscope.experiments.analysis.comparison.trust import LEVEL
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Block, Bullets, Grid, Heading, Section
from faithscope.experiments.analysis.tidy import count, rows, where
from faithscope.experiments.analysis.wording import planted_variant
from faithscope.experiments.studies.compare.results import Compared

WORDS = {
    "behaviour": "behaviour",
    "logit": "log-probs",
    "internal": "insides",
    "judged": "judges",
}
"""Kind of evidence -> its name in sentences."""
SIDES = (
    {"behaviour", "internal"},
    {"behaviour", "judged"},
    {"internal", "judged"},
)
"""The pairs of the three kinds of evidence; log-probs are read off the same edits as behaviour."""
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
    blocks: list[Block] = [
        Heading("Before any conclusion"),
        Bullets([*_limits(tables, joined)]),
        Heading("Do behaviour, insides and judges agree?"),
        Bullets([sentence.words for sentence in agreement_sentences(tables["headline"])]),
        Heading("Which would you trust here, and at what cost?"),
        Bullets([*_trust(tables), *_costs(tables)]),
        Heading("Where do they disagree?"),
        Bullets([*_parts(tables, joined)]),
        Grid("headline", "The comparison that was fixed beforehand"),
    ]
    return Section(
        "headline",
        f"Do the kinds of evidence agree on {of}?",
        "The measures of this section were named in the config before any data were seen, one for "
        "each kind of evidence. Everything after it is exploratory.",
        "In short",
        blocks,
        always=True,
    )


def _limits(tables: Tables, joined: Joined) -> Iterator[str]:
    headline, traces = tables["headline"], joined.traces
    n, n_questions = len(traces), len(set(traces["question"]))
    units = len(set(questions(joined)))
    grouped = f" ({units:,} groups of questions, the unit of tests)" if units < n_questions else ""
    yield (
        f"{n:,} traces of {n_questions:,} questions{grouped}, in {len(set(settings(joined))):,} "
        + (
            "pair of model and task."
            if len(set(settings(joined))) == 1
            else "pairs of model and task."
        )
    )
    if cut := count(traces["cut"].eq(1)):
        yield (
            f"{cut:,} of {n:,} traces were cut off at the token limit before the model had "
            "answered by itself: what edits and judges say of these is of half a chain. A higher "
            "generation.max_new_tokens would let them end."
        )
    if left_out := count(traces["excluded"] != ""):
        yield f"{left_out:,} of {n:,} traces have too few steps, or another fault, to be edited."
    if joined.n_left_out:
        yield f"{joined.n_left_out:,} further traces are left out, since not every run has them."
    if planted := [str(m) for m in sorted(set(traces["model"])) if planted_variant(str(m))]:
        yield f"Planted, that is, tiny and with a known mechanism: {', '.join(planted)}."
    yield from own_gaps(joined, dict.fromkeys([*headline["measure"], *headline["other"]]))
    yield _power(headline, n_questions)
    yield from _steadiness(headline)


def _power(headline: pd.DataFrame, n_questions: int) -> str:
    known = headline["detectable"].dropna()
    few = (
        f" With fewer than {FEW_QUESTIONS} questions the intervals are too narrow as well."
        if n_questions < FEW_QUESTIONS
        else ""
    )
    if known.empty:
        return f"No pair of kinds has enough questions for a test.{few}"
    least, most = f"{known.min():.2f}", f"{known.max():.2f}"
    of = least if least == most else f"{least} to {most}, by the pair of kinds,"
    return (
        f"Power: so many questions show a correlation, of either sign, of {of} in {POWER:.0%} of "
        "cases, and smaller ones less often: where nothing is found, kinds may agree all the same."
        f"{few}"
    ).replace("%", " %")


def _steadiness(headline: pd.DataFrame) -> Iterator[str]:
    sides = (("measure", "reliability"), ("other", "other_reliability"))
    of: dict[str, dict[str, Any]] = {}
    for row in rows(headline):
        for measure, name in sides:
            if not math.isnan(row[name]):
                told = {f"r{end}": row[f"{name}{end}"] for end in ("", "_low", "_high")}
                of.setdefault(row[measure], told | {"by": row[f"{name}_by"]})
    if of:
        told = (
            markup("<code>{}</code> {} ({})", m, estimated(x, "r"), x["by"]) for m, x in of.items()
        )
        unsteady = sum(x["r_high"] < STEADY for x in of.values())
        verdict = f" Of these {len(of)}, {unsteady} are below {STEADY:g}, that is, unsteady."
        yield markup(
            "Correlation of a measure with its own repetition, which bounds every other one: {}.{}",
            *(_listed(told), verdict if unsteady else ""),
        )


def _listed(parts: Iterator[str]) -> str:
    every = list(parts)
    return markup("; ".join("{}" for _ in every), *every)


def agreement_sentences(headline: pd.DataFrame) -> Iterator[Sentence]:
    """Sentences on whether the kinds of evidence rank the traces alike: one on all three, and one
    on every pair."""
    known = [row for row in rows(headline) if not math.isnan(row["p_corrected"])]
    if not known:
        reasons = "; ".join(dict.fromkeys(r for r in headline["reason"] if r))
        yield Sentence(f"Inconclusive: {reasons}.")
        return
    of_kinds = [row for row in known if {row["one"], row["two"]} in SIDES]
    beyond = [row for row in of_kinds if row["p_corrected"] <= LEVEL]
    alike, turned = _pairs(beyond, 1), _pairs(beyond, -1)
    claim: Claim = ""
    if turned:
        lead = f"No: beyond chance {_named(turned)} rank the traces the opposite way."
        claim = "kinds_opposite"
    elif alike and len(beyond) == len(_of_sides(headline)):
        lead = "Yes: behaviour, insides and judges rank the traces alike, beyond chance."
        claim = "kinds_alike"
    elif alike:
        lead = f"In part: beyond chance {_named(alike)} rank the traces alike; of others this is "
        lead += "not shown."
        claim = "kinds_alike"
    else:
        lead = "Inconclusive: of no two of the three is it shown that they rank the traces alike, "
        lead += "or the opposite way."
    yield Sentence(markup("<strong>{}</strong>", lead), claim, tuple(turned or alike))
    for one, two in dict.fromkeys((row["one"], row["two"]) for row in rows(headline)):
        yield _of_pair(one, two, where(headline, one=one, two=two), _n_tests(headline))


def _of_sides(headline: pd.DataFrame) -> list[dict[str, Any]]:
    return [row for row in rows(headline) if {row["one"], row["two"]} in SIDES]


def _pairs(beyond: list[dict[str, Any]], sign: int) -> list[str]:
    """Pairs of kinds with a correlation of this sign, as the claims of `Sentence` name them."""
    return list(dict.fromkeys(f"{r['one']}|{r['two']}" for r in beyond if r["rho"] * sign > 0))


def _named(pairs: list[str]) -> str:
    """Pairs of kinds in a sentence: `behaviour and insides, insides and judges`."""
    return ", ".join(" and ".join(WORDS[kind] for kind in pair.split("|")) for pair in pairs)


def _n_tests(headline: pd.DataFrame) -> int:
    return count(headline["p"].notna() & headline["tested_as"].eq(""))


def _of_pair(one: str, two: str, pair: pd.DataFrame, n_tests: int) -> Sentence:
    """One sentence on a pair of kinds: its correlation in each framing."""
    said, beyond = [], []
    for row in rows(pair):
        framing = f"{row['framing']}: " if row["framing"] else ""
        if math.isnan(row["p"]):
            said.append(f"{framing}not known ({row['reason']})")
        elif row["tested_as"]:
            of = ", ".join(WORDS.get(word) or word for word in row["tested_as"].split(", "))
            said.append(f"{framing}the same ranks as {of}, and no test of its own")
        else:
            said.append(f"{framing}{_correlation(row, n_tests)}")
            beyond += [row] if row["p_corrected"] <= LEVEL else []
    shared = (
        " They are read off the same forward passes and share their noise." if _shared(pair) else ""
    )
    signs = {row["rho"] > 0 for row in beyond}
    claim: Claim = ""
    if len(signs) == 1:
        claim = "pair_alike" if signs.pop() else "pair_opposite"
    words = f"{WORDS[one].capitalize()} and {WORDS[two]}: {'; '.join(said)}.{shared}"
    return Sentence(words, claim, (f"{one}|{two}",))


def _correlation(row: Mapping[str, Any], n_tests: int) -> str:
    """A correlation, its interval, and what the test says; the interval, which is not corrected,
    leaves out 0 where the uncorrected p is at most .05."""
    alone, p = (p_in_words(row[name]) for name in ("p", "p_corrected"))
    tests = f"{n_tests:,} tests" if n_tests > 1 else "1 test"
    if row["p_corrected"] <= LEVEL:
        verdict = f"beyond chance ({p}, corrected for {tests})"
    else:
        by_itself = f"beyond chance by itself ({alone}), but " if row["p"] <= LEVEL else ""
        seen = (
            ""
            if math.isnan(row["detectable"])
            else f"; a true correlation of {row['detectable']:.2f} would be seen in {POWER:.0%}"
        )
        verdict = f"{by_itself}not shown after correction for {tests} ({p}{seen})"
        verdict = verdict if n_tests > 1 else f"not shown ({p}{seen})"
    clean = ""
    if not math.isnan(row["disattenuated"]):
        clean = f"; without noise {estimated(row, 'disattenuated', signed=True)}"
    words = f"ρ {estimated(row, 'rho', signed=True)}, {row['n']:.0f} traces, {verdict}{clean}"
    return words.replace("%", " %")


def _shared(pair: pd.DataFrame) -> bool:
    return bool(pair["one_probe"].eq(True).any())


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
