"""Summary sentences on a comparison's first screen: which measure to trust here, at what cost.

A sentence that names a best measure, a direction, a gain or a disagreement has passed a test that
counts how many were tried; where none passes, the sentence says so and names none.
`benchmarks/conclusions.py` counts how often these sentences are false of simulated worlds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import pandas as pd

from faithscope.experiments.analysis.colours import FAMILY_NAMES
from faithscope.experiments.analysis.comparison.agreement import settings
from faithscope.experiments.analysis.comparison.combining import GAIN
from faithscope.experiments.analysis.comparison.disagreements import KINDS
from faithscope.experiments.analysis.comparison.join import Joined
from faithscope.experiments.analysis.comparison.prose import (
    UNITS,
    Tables,
    cost_in_words,
    estimated,
)
from faithscope.experiments.analysis.comparison.scores import COSTS
from faithscope.experiments.analysis.comparison.scores_vs_labels import MONITOR
from faithscope.experiments.analysis.comparison.trust import LEVEL
from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.tidy import count, keep, rows, where
from faithscope.experiments.config.comparison import AS_GOOD
from faithscope.experiments.numerals import decimal, p_value

Claim = Literal[
    "",
    "best",
    "as_good",
    "wrong_way",
    "gain",
    "agreement",
    "reversed",
    "disagreements",
    "pair_alike",
    "pair_opposite",
]
"""What a sentence of a comparison claims beyond the numbers of its traces; empty for one that only
describes them, or says that nothing can be concluded. `docs/conclusions.md` has how often each kind
is false: a sentence of another kind is not printed."""


class Sentence(NamedTuple):
    """A summary sentence of the first screen, and what it claims beyond the numbers of these
    traces."""

    words: str
    claim: Claim = ""
    of: tuple[str, ...] = ()
    """Measures, or kinds of disagreement, that the claim is about."""


def answers(tables: Tables, joined: Joined, as_good: float = AS_GOOD) -> list[Sentence]:
    """Summary sentences of the first screen, those on labels first.

    Args:
        as_good: the bound in AUROC that `tables` were made with.
    """
    several = len(set(settings(joined))) > 1
    said = [
        sentence
        for label in dict.fromkeys(tables["trust"]["label"])
        for sentence in _of_label(tables, label, as_good, several)
    ]
    if not said:
        said = [
            Sentence(
                "No label of these runs tells two kinds of traces apart, or too few traces have "
                "one. Nothing here says which measure is right: the page shows only where measures "
                "agree, what they cost, and where they disagree. Add labels with --labels FILE."
            )
        ]
    return [*said, *_agreement(tables, several), *parting_sentences(tables)]


def _of_label(tables: Tables, label: str, as_good: float, several: bool) -> Iterator[Sentence]:
    every = [row for row in rows(where(tables["trust"], label=label)) if row["family"] != MONITOR]
    measures = [row for row in every if not row["reason"]]
    if measures:
        yield _highest(label, measures, several)
        if measures[0]["told"] is True:
            yield _as_good(measures, as_good)
        yield from _wrong_way(measures)
        yield from together(tables, label)
    if sparse := len(every) - len(measures):
        reasons = " or ".join(dict.fromkeys(row["reason"] for row in every if row["reason"]))
        yield Sentence(
            markup(
                "By the label <code>{}</code> {} of {} measures are not ranked, since they have "
                "{}.",
                *(label, f"{sparse:,}", f"{len(every):,}", reasons),
            )
        )


def _highest(label: str, measures: list[dict[str, Any]], several: bool) -> Sentence:
    """Sentence that names the measures better than chance, and which of them has the highest
    AUROC."""
    best, n = measures[0], f"{len(measures):,}"
    told = [row["measure"] for row in measures if row["told"] is True]
    among = " from others of the same model and task" if several else ""
    about = (label, f"{best['n']:,}", f"{best['n_unfaithful']:,}")
    of = "Against the label <code>{}</code> ({} traces, of which it speaks against {}) "
    # The smallest p-value of all measures is that of the measure furthest from chance.
    lowest = min(row["p_highest"] for row in measures)
    chance = "labels exchanged between questions give a highest AUROC as far out with {}"
    gappy = [
        row["measure"] for row in measures if row["p_highest"] <= LEVEL and row["told"] is False
    ]
    if gappy:
        chance += (
            f", but {len(gappy):,} {'is' if len(gappy) == 1 else 'are'} that far out only if the "
            "traces without a score do not go against the measure"
        )
    if not told:
        return Sentence(
            markup(
                of + "none of {} measures tells beyond chance which traces the label speaks "
                "against{}: " + chance + ". None is called the best.",
                *(*about, n, among, p_value(lowest)),
            )
        )
    pooled = f" ({decimal(best['pooled'])} over all traces together)" if several else ""
    gaps = ""
    if best["n_missing"]:
        gaps = (
            f" It has no score of {best['n_missing']:,} traces; if all of these went against it, "
            f"the lower bound of AUROC would be {decimal(best['least_low'])}."
        )
    return Sentence(
        markup(
            of + "{} of {} measures tell beyond chance which traces the label speaks against{}: "
            + chance + ". The highest of these AUROCs has <strong>{}</strong> ({}): {}{}.{} It "
            "costs {}.",
            *(*about, f"{len(told):,}", n, among, p_value(lowest)),
            *(best["measure"], FAMILY_NAMES[best["family"]], estimated(best, "auroc"), pooled),
            *(gaps, cost_in_words(best)),
        ),
        "best",
        tuple(told),
    )  # fmt: skip


def _as_good(measures: list[dict[str, Any]], as_good: float) -> Sentence:
    best, others = measures[0], measures[1:]
    good = [row for row in others if row["as_good"] is True]
    within = f"(at most {as_good:g} of AUROC behind, a bound set beforehand)"
    if not good:
        n = len(others)
        return Sentence(
            f"Of none of the other {n:,} measures is it shown that it is as good {within}."
        )
    words = (
        f"Of {len(good):,} of the other {len(others):,} it is shown that they are as good {within}"
    )
    of = tuple(row["measure"] for row in good)
    cost = next((c for c in COSTS if any(not math.isnan(row[c]) for row in (best, *good))), None)
    cheaper = [row for row in good if cost is not None and row[cost] < best[cost]]
    if cost is None or not cheaper:
        less = "" if cost is None else f"; none of them costs less in {UNITS[cost]}"
        return Sentence(f"{words}{less}.", "as_good", of)
    cheapest = min(cheaper, key=lambda row: row[cost])
    return Sentence(
        markup(
            "{}. The cheapest of them in {} is <strong>{}</strong> ({}), AUROC {}: {}.",
            *(words, UNITS[cost], cheapest["measure"], FAMILY_NAMES[cheapest["family"]]),
            *(estimated(cheapest, "auroc"), cost_in_words(cheapest)),
        ),
        "as_good",
        of,
    )


def _wrong_way(measures: list[dict[str, Any]]) -> Iterator[Sentence]:
    wrong = [row for row in measures if row["wrong_way"] is True]
    if wrong:
        furthest = min(wrong, key=lambda row: row["auroc"])
        yield Sentence(
            markup(
                "{} here, beyond what chance gives the lowest of so many (the furthest: "
                "<code>{}</code>, AUROC {}). They are shown so, and never turned round.",
                "1 measure points the wrong way"
                if len(wrong) == 1
                else f"{len(wrong):,} measures point the wrong way",
                *(furthest["measure"], estimated(furthest, "auroc")),
            ),
            "wrong_way",
            tuple(row["measure"] for row in wrong),
        )


def together(tables: Tables, label: str) -> Iterator[Sentence]:
    """A sentence per classifier of all measures together."""
    combined = where(tables["combined"], label=label, trained_on="other questions")
    for row in rows(combined.dropna(subset=["gain"])):
        gains = row["verdict"] == GAIN
        yield Sentence(
            markup(
                "All {} measures together ({}) against the best single one: {} ({}).",
                *(str(int(row["n_measures"])), row["classifier"]),
                *("a gain" if gains else "no gain is shown", estimated(row, "gain", signed=True)),
            ),
            "gain" if gains else "",
            (row["classifier"],),
        )


def _agreement(tables: Tables, several: bool) -> Iterator[Sentence]:
    pairs = tables["agreement"].loc[tables["agreement"]["tested_as"].eq("")]
    same = count(tables["agreement"]["tested_as"].ne(""))
    if not (n := count(pairs["p"].notna())):
        return
    inside = "vary within a model and task" if several else "vary"
    rest = ", however well they agree on models" if several else ""
    beyond = pairs.loc[pairs["discovered"]]
    apart, own = (keep(beyond, beyond["one_probe"] == one) for one in (False, True))
    again = (
        f" {same:,} further pairs rank the same traces just as one of these does, and are counted "
        "once with it."
        if same
        else ""
    )
    chance = " (a rate of false discoveries is kept: a few of these may be chance)"
    yield Sentence(
        f"Of {n:,} pairs of measures that {inside}, {len(beyond):,} rank traces"
        f"{' of one model and task' if several else ''} alike beyond chance: {_alike(apart)} "
        f"between two probes, and {_alike(own)} within one probe, whose measures are made of the "
        f"same numbers{chance if len(beyond) else ''}. For the others no agreement on traces is "
        f"shown{rest}.{again}",
        "agreement" if len(beyond) else "",
        tuple(f"{r['measure']}|{r['other']}" for r in rows(beyond)),
    )
    if reversed_ := count(pairs["reversed"]):
        one = reversed_ == 1
        turned = pairs.loc[pairs["reversed"]]
        yield Sentence(
            f"{reversed_:,} of these pairs agree{'s' if one else ''} over all traces and "
            f"disagree{'s' if one else ''} within models and tasks, or "
            "the other way round (Simpson's paradox): what they share over all traces is a "
            "difference between models or tasks, not between traces.",
            "reversed",
            tuple(f"{r['measure']}|{r['other']}" for r in rows(turned)),
        )


def nothing_across(agreement: pd.DataFrame) -> str | None:
    """Why no two kinds of evidence can be compared, and the command that would fill it; None where
    some can."""
    if len(_across(agreement).dropna(subset=["p"])):
        return None
    kinds = {*agreement["family"], *agreement["other_family"]} & set(FAMILY_NAMES)
    names = " and ".join(FAMILY_NAMES[kind] for kind in FAMILY_NAMES if kind in kinds)
    if len(kinds) < 2:
        only = f"these runs have measures of {names} alone" if names else "there is one measure"
        return markup(
            "No two kinds of evidence can be compared, since {}. Measure the same traces in "
            "another way, and compare the two runs: <code>faithscope run slrc --set "
            "traces.path=RUN --set tasks=[] --set probes=[attention,knockout]</code> (internals), "
            "or <code>--set judges.model=MODEL</code> (judges).",
            only,
        )
    reasons = dict.fromkeys(reason for reason in _across(agreement)["reason"] if reason)
    return markup(
        "No two measures of {} can be compared within a model and task: {}. More questions would "
        "fill it: <code>--set data.limit=300</code>.",
        *(names, "; ".join(reasons) or "one of two measures does not vary in any"),
    )


def finding_across(agreement: pd.DataFrame) -> Sentence:
    """The finding on all pairs of measures of two kinds of evidence that no probe makes both of."""
    across = _across(agreement)
    apart = keep(across, ~across["one_probe"].astype(bool) & across["tested_as"].eq(""))
    tested = apart.dropna(subset=["p"])
    found = keep(tested, tested["discovered"].astype(bool))
    lead = (
        f"{len(found):,} of {len(tested):,} pairs of measures of two kinds of evidence go together "
        "beyond chance"
    )
    if not len(found):
        return Sentence(
            markup(
                "<strong>{}</strong>: whether any two rank the traces of a model and task alike, "
                "or the opposite way, is inconclusive.",
                lead,
            )
        )
    turned = count(found["within"] < 0)
    alike = len(found) - turned
    said = [f"{alike:,} rank the traces of a model and task alike"] if alike else []
    said += [f"{turned:,} the opposite way" if said else f"{turned:,} rank them the opposite way"]
    words = " and ".join(said if turned else said[:1])
    return Sentence(
        markup("<strong>{}</strong>: {}; of the others this is not shown.", lead, words),
        "agreement",
        tuple(f"{r['measure']}|{r['other']}" for r in rows(found)),
    )


def _across(agreement: pd.DataFrame) -> pd.DataFrame:
    """The pairs of measures of two kinds of evidence."""
    kinds = agreement["family"].isin(FAMILY_NAMES) & agreement["other_family"].isin(FAMILY_NAMES)
    return keep(agreement, kinds & (agreement["family"] != agreement["other_family"]))


def _alike(pairs: pd.DataFrame) -> str:
    alike = count(pairs["within"] > 0)
    turned = len(pairs) - alike
    return f"{len(pairs):,}" + (f" ({turned:,} in the opposite order)" if turned else "")


def parting_sentences(tables: Tables) -> Iterator[Sentence]:
    """The sentence on the most frequent kind of disagreement, if two sides score some trace."""
    words = {kind.name: kind.words for kind in KINDS}
    known = rows(tables["disagreements"].loc[tables["disagreements"]["n_items"] > 0])
    if not known:
        return
    row = max(known, key=lambda r: (r["beyond"], r["n"]))
    of = (
        f"{row['n']:,} of {row['n_items']:,} traces (by chance {decimal(row['expected'], 1)}; "
        f"beyond chance {estimated(row, 'beyond', signed=True, digits=1)})"
    )
    if row["beyond_low"] > 0:
        most = "Of four kinds of disagreement the most beyond chance"
        yield Sentence(f"{most}: {words[row['kind']]}, {of}.", "disagreements", (row["kind"],))
    else:
        yield Sentence(
            "Of none of the four kinds of disagreement can it be said that it is more frequent "
            f"than by chance; the nearest: {words[row['kind']]}, {of}."
        )
