"""Verdicts on the judges of a run of C2-Faith, for the first screen of its page.

The question is whether a judge tells a step that does not follow from one that does: what it flags
of the broken steps, less what it flags of the sound ones. The interval is Newcombe's of the two
shares, which does not shrink to a point where all chains agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.html import Cell, HtmlTable, markup, share_of
from faithscope.experiments.analysis.page import Block, Grid, Paragraph, Section, verdict_rules
from faithscope.experiments.analysis.statistics.stats import Estimate, difference
from faithscope.experiments.analysis.tidy import columns, renamed, rows, where
from faithscope.experiments.analysis.wording import VerdictWord, by_verdict, finding, short
from faithscope.experiments.numerals import decimal, interval, percent

TELLS, BLIND = 0.30, 0.10
"""Net detection from which a judge is said to tell broken steps from sound ones, and up to which it
is said not to; choices of ours."""
SILENT = 0.2
"""Share of judgements without a verdict above which a row says so."""
ENOUGH = 30
"""Chains below which an undecided interval is for want of chains."""
_BELOW = f"the whole 95 % interval of the difference lies below {percent(TELLS)}"
WORDS = {
    "tells": VerdictWord(
        "Tells broken from sound",
        "broken steps are flagged more often than sound ones by at least "
        f"{percent(TELLS)}, with the whole 95 % interval",
        "good",
    ),
    "little": VerdictWord(
        "Tells them apart a little",
        f"{_BELOW}, and the difference is above {percent(BLIND)}",
        "little",
    ),
    "blind": VerdictWord(
        "Hardly tells them apart",
        f"{_BELOW}, and the difference is {percent(BLIND)} or less",
        "bad",
    ),
    "unclear": VerdictWord(
        "Too close to call", f"the interval of the difference holds {percent(TELLS)}", "unclear"
    ),
    "few": VerdictWord(
        "Too few chains to tell",
        f"the interval holds {percent(TELLS)}, and there are fewer than {ENOUGH} chains",
        "few",
    ),
}
"""Verdict -> its words, which the table of verdicts, the note below it and `docs` show."""
NOTE = (
    "The right step by chance: naming any step blindly. "
    "Chains cut short, rated complete: of the chains with most steps left out, those rated at "
    "three quarters of the scale and more."
)


def verdicts(tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """A verdict per judge and reading that was asked about steps, under its first prompt.

    Shares, with their intervals: `flagged` of broken steps, `alarms` of sound ones, the difference
    `net`; `named`, the broken chains of which it names the right step, and `blindly`, what naming
    any step would give; `inflated`, the chains with most steps left out that it rates as complete.
    `word` is a key of `WORDS`.
    """
    first = tables["c2_detection"].drop_duplicates(["judge", "reading"])
    return [_verdict(row, tables) for row in rows(first)]


def _verdict(row: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    way = {name: row[name] for name in ("judge", "reading")}
    flagged, alarms = (
        Estimate(row[name], row[f"{name}_wilson_low"], row[f"{name}_wilson_high"], int(row[n] or 0))
        for name, n in (("detection", "n"), ("fpr", "n_control"))
    )
    net = difference(flagged, alarms)
    place = next(iter(rows(where(tables["c2_localisation"], **way))), {})
    coverage = rows(where(tables["c2_coverage"], **way))
    gutted = max(coverage, key=lambda r: r["level"], default={})
    return {
        **way,
        "n": int(row["n"]),
        **renamed(place, "exact", "named"),
        "blindly": place.get("exact_chance", math.nan),
        **renamed(gutted, "inflation", "inflated"),
        **columns("flagged", flagged),
        **columns("alarms", alarms),
        **columns("net", net),
        "word": _word(net),
        "caution": _caution(row),
    }


def _word(net: Estimate) -> str:
    if net.low >= TELLS:
        return "tells"
    if net.high < TELLS:
        return "blind" if net.value <= BLIND else "little"
    return "few" if net.n < ENOUGH else "unclear"


def _caution(row: Mapping[str, Any]) -> str:
    silent = row["n_without_verdict"] + row["n_control_without_verdict"]
    asked = row["n"] + row["n_control"] + silent
    if asked and silent > SILENT * asked:
        return f"{int(silent)} of {int(asked)} judgements gave no verdict; all else is of the rest."
    if row["detection"] == row["fpr"] and row["detection"] in (0.0, 1.0):
        always = "flags every step" if row["fpr"] else "flags no step at all"
        return f"It {always}: its verdict does not depend on what it reads."
    return ""


def section(tables: Mapping[str, pd.DataFrame]) -> Section:
    """First screen of the page: the verdict on each judge, from how many chains, and beside
    what."""
    of_judges = verdicts(tables)
    if not of_judges:
        none = "No judge was asked whether a step follows (form c2_detection)."
        return Section("verdict", "Verdict", blocks=[none], always=True)
    heading = ["judge", "what its verdicts say", "chains", "broken steps flagged"]
    heading += ["sound steps flagged", "right step named", "by chance"]
    heading += ["chains cut short, rated complete"]
    table = HtmlTable(
        heading, [False, False, *[True] * 6], list(map(_row, of_judges)), css="sortable verdicts"
    )
    blocks: list[Block] = [Grid(table, "Verdict by judge"), Paragraph(NOTE, "quiet")]
    blocks += [verdict_rules(WORDS.values())]
    blocks += _inside(tables)
    return Section("verdict", "Verdict", blocks=blocks, always=True)


def in_short(tables: Mapping[str, pd.DataFrame], chains: int, broken: int) -> str:
    """The first line of the page: how many chains every judge gave a verdict on, and whether it
    tells broken steps from sound ones.

    Args:
        chains: number of chains of the benchmark; `broken`: of those with a broken step.
    """
    of_judges = verdicts(tables)
    what = "chains have a readable verdict of every judge"
    if not of_judges:
        none = "No judge was asked whether a step follows (form c2_detection)."
        return finding(0, chains, what, none)
    n = min(v["n"] for v in of_judges)
    lost = {"without a step that could be broken": chains - broken}
    lost["without a readable verdict"] = broken - n
    said = by_verdict(
        (WORDS[v["word"]].text, f"{short(v['judge'])} ({v['reading']})") for v in of_judges
    )
    none = "No conclusion on any judge can be drawn."
    return finding(n, chains, what, said if n else none, lost)


def _row(v: Mapping[str, Any]) -> list[Cell]:
    caution = markup('<span class="caution">⚠ {}</span>', v["caution"]) if v["caution"] else ""
    judge, reading, said = v["judge"], v["reading"], WORDS[v["word"]]
    return [
        Cell(markup("<strong>{}</strong><br>{}", judge, reading), f"{judge} {reading}"),
        Cell(markup('<span class="word {}">{}</span>{}', said.css, said.text, caution), v["word"]),
        Cell(str(v["n"]), str(v["n"])),
        *(share_of(v, name) for name in ("flagged", "alarms", "named", "blindly", "inflated")),
    ]


def _inside(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    """A sentence on whether anything inside a model tells the same steps apart."""
    of_signals = rows(where(tables["c2_judge_against_internals"], kind="internals"))
    known = [r for r in of_signals if not math.isnan(r["auroc"])]
    if not known:
        return []
    best = max(known, key=lambda r: r["auroc"])
    ends = interval(best["auroc_low"], best["auroc_high"])
    spread = f"95 % interval {ends}" if ends else "no interval"
    signals = f"{len(known)} signal{'s' * (len(known) > 1)} inside models"
    chance = (
        " The highest of several exceeds 0.5 by chance alone: this is no evidence that it works."
        if len(known) > 1
        else ""
    )
    return [
        f"Of {signals}, the highest AUROC for telling the same steps apart is that of "
        f"{best['signal']} in {best['name']}: {decimal(best['auroc'])} ({spread}; 0.5 is chance)."
        f"{chance}"
    ]
