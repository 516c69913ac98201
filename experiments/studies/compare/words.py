"""First screen of a comparison whose primary measures were named beforehand: do the kinds of
evidence agree, which to trust, at what cost, and on which traces they disagree.

What limits every conclusion (few questions, chains that were cut off, measures that are not steady)
stands before the conclusions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.agreement import questions, settings
from faithscope.experiments.analysis.comparison.conclusions import parting_sentences
from faithscope.experiments.analysis.comparison.disagreements import KINDS
from faithscope.experiments.analysis.comparison.headline import POWER
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.prose import (
    FEW_QUESTIONS,
    Tables,
    cost_in_words,
    estimated,
    of_all,
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
"""Reliability below which a measure is called unsteady."""
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
    return (
        f"{', '.join(counts)}, from {len(compared.sources):,} "
        f"run{'s' if len(compared.sources) > 1 else ''}. Scores stand in one row where traces have "
        f"{SAME_WORDS[compared.config.same]}.{left_out if joined.n_left_out else ''}"
    )


def first_screen(tables: Tables, joined: Joined) -> Section:
    """The section of the page that answers first, from table `headline`."""
    models = sorted(map(str, set(joined.traces["model"])))
    of = models[0] if len(models) == 1 else f"{len(models)} models"
    blocks: list[Block] = [
        Heading("Before any conclusion"),
        Bullets([*_limits(tables, joined)]),
        Heading("Do behaviour, insides and judges agree?"),
        Bullets([*_agreement(tables["headline"])]),
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
    n, n_questions = len(traces), len(set(questions(joined)))
    yield f"{n:,} traces of {n_questions:,} questions, in {len(set(settings(joined))):,} " + (
        "pair of model and task." if len(set(settings(joined))) == 1 else "pairs of model and task."
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
            if math.isnan(of.get(row[measure], {}).get("r", math.nan)):
                told = {f"r{end}": row[f"{name}{end}"] for end in ("", "_low", "_high")}
                of[row[measure]] = told | {"by": row[f"{name}_by"]}
    known = {m: x for m, x in of.items() if not math.isnan(x["r"])}
    if known:
        told = (
            markup("<code>{}</code> {} ({})", m, estimated(x, "r"), x["by"])
            for m, x in known.items()
        )
        unsteady = count(pd.Series([round(x["r"], 2) < STEADY for x in known.values()]))
        verdict = (
            f". Of these {len(known)}, {unsteady} are below {STEADY:g}, that is, unsteady"
            if unsteady
            else ""
        )
        halves = any("halves" in x["by"] for x in known.values())
        caution = " (halves of the steps understate it where a single step decides)"
        yield markup(
            "Reliability, which bounds every correlation: {}{}{}.",
            *(_listed(told), verdict, caution if halves else ""),
        )
    if unknown := [m for m in of if m not in known]:
        yield markup(
            "No reliability is known of {}: not repeated, or the repetition does not vary. A "
            "second judge (<code>judges.model</code> with two names), or a second run on the same "
            "traces, would tell.",
            _listed(markup("<code>{}</code>", m) for m in unknown),
        )


def _listed(parts: Iterator[str]) -> str:
    every = list(parts)
    return markup("; ".join("{}" for _ in every), *every)


def _agreement(headline: pd.DataFrame) -> Iterator[str]:
    known = [row for row in rows(headline) if not math.isnan(row["p_corrected"])]
    if not known:
        reasons = "; ".join(dict.fromkeys(r for r in headline["reason"] if r))
        yield f"Inconclusive: {reasons}."
        return
    of_kinds = [row for row in known if {row["one"], row["two"]} in SIDES]
    beyond = [row for row in of_kinds if row["p_corrected"] <= LEVEL]
    alike = [row for row in beyond if row["rho"] > 0]
    turned = [row for row in beyond if row["rho"] < 0]
    if turned:
        lead = "No: some rank the traces the opposite way, beyond chance."
    elif alike and len(alike) == len(of_kinds) == len(_of_sides(headline)):
        lead = "Yes: behaviour, insides and judges rank the traces alike, beyond chance."
    elif alike:
        lead = "In part: some pairs rank the traces alike beyond chance, and others do not."
    else:
        lead = "Inconclusive: no two of the three rank the traces alike, or the opposite way, "
        lead += "beyond chance."
    yield markup("<strong>{}</strong>", lead)
    for one, two in dict.fromkeys((row["one"], row["two"]) for row in rows(headline)):
        yield _of_pair(one, two, where(headline, one=one, two=two))


def _of_sides(headline: pd.DataFrame) -> list[dict[str, Any]]:
    return [row for row in rows(headline) if {row["one"], row["two"]} in SIDES]


def _of_pair(one: str, two: str, pair: pd.DataFrame) -> str:
    """One sentence on a pair of kinds: its correlation in each framing."""
    said = []
    for row in rows(pair):
        framing = f"{row['framing']}: " if row["framing"] else ""
        if math.isnan(row["rho"]):
            said.append(f"{framing}not known ({row['reason']})")
            continue
        chance = "beyond chance" if row["p_corrected"] <= LEVEL else "not beyond chance"
        clean = ""
        if not math.isnan(row["disattenuated"]):
            clean = f"; without noise {estimated(row, 'disattenuated', signed=True)}"
        said.append(
            f"{framing}ρ {estimated(row, 'rho', signed=True)}, {row['n']:.0f} traces, {chance} "
            f"({p_in_words(row['p_corrected'])} corrected){clean}"
        )
    shared = (
        " They are read off the same forward passes and share their noise." if _shared(pair) else ""
    )
    return f"{WORDS[one].capitalize()} and {WORDS[two]}: {'; '.join(said)}.{shared}"


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
