"""Pages of the measures in `docs/measures`, made from probes, reports and `docs/planted.csv`.

A page has what is measured, how to ask for it, its cost, its columns, and what its scores get wrong
on planted models. Its last part, on choices that papers leave open, is written by hand.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import yaml
from docstrings import markdown

from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.tables.planted import AGAINST, Side, short_table
from faithscope.experiments.studies.slrc.topics import OF_SLRC, WITH_AND_WITHOUT
from faithscope.probes import PROBES
from faithscope.probes.probe import GUESS, Probe

DOCS = Path(__file__).parents[1] / "docs"
PLANTED = pd.read_csv(DOCS / "planted.csv")
EXAMPLES = json.loads((DOCS / "measures/examples.json").read_text("utf-8"))
HEADS = yaml.safe_load((DOCS / "measures/heads.yaml").read_text("utf-8"))
"""Probe -> `drawing`, `asks`, `formula`, `right`, `wrong` at the head of its page."""
OTHER_TABLES = {
    "slrc": [table for topic in OF_SLRC for table in topic.tables],
    "direct": [table for topic in WITH_AND_WITHOUT for table in topic.tables],
}
"""Probe -> its tables, for probes whose tables the study's page shows in sections of its own."""
TELLS_FAITHFULNESS = tuple(
    f"auroc_{name}" for name in ("silent_step", "false_source", "half_silent", "wrong_operation")
)
"""Columns of planted truth that only a measure of faithfulness is expected to tell apart."""
CHOICES = """
## Choices and deviations

What the papers leave open is decided in the code; the docstrings above name each choice.
"""


def made(name: str, text: str) -> str:
    """A made part of a page, between its marks."""
    return f"<!-- made: {name} -->\n{text.strip()}\n<!-- end -->"


def table(head: Sequence[str], lines: Iterable[Sequence[str]], right: int = 0) -> Iterator[str]:
    """Lines of a Markdown table, then an empty one; the last `right` columns hold numbers."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(['---'] * (len(head) - right) + ['---:'] * right)} |"
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
    yield ""


def title(probe: Probe) -> str:
    """Title of a probe's page: the first words of its module's docstring."""
    return (sys.modules[probe.measure.__module__].__doc__ or probe.name).partition(":")[0]


def measure(name: str, settings: Iterable[Sequence[str]]) -> str:
    """The made part of the page of a probe.

    Args:
        settings: a row for each of its config keys, as in `docs/configuration.md`.
    """
    probe, report = PROBES[name], REPORTS[name]
    tables = [*report.every_table, *OTHER_TABLES.get(name, ())]
    heading, _, text = markdown(sys.modules[probe.measure.__module__].__doc__).partition("\n")
    first = heading.partition(":")[2].strip()
    lacks = probe.settings().lacks()
    lines = [
        f"# {title(probe)}",
        "",
        f"`{name}`: {probe.summary}.",
        *_papers(probe),
        "",
        *_head(name),
        f"{first[:1].upper()}{first[1:]}",
        *text.splitlines(),
        "",
        "## How to run it",
        "",
        *(f"<!-- not run: it needs files that {name}.{key} names -->" for key in lacks),
        "```sh",
        " ".join(
            [
                f"faithscope run slrc --set probes=[{name}]",
                *(f"--set {name}.{key}={value}" for key, value in lacks.items()),
            ]
        ),
        "```",
        "",
        f'In Python, `faithscope.measure(model, trace, "{name}")` measures one trace.',
        *_ways(probe),
        "",
        "## What it costs",
        "",
        *_cost(probe, report.measures),
        "",
        "## What it gets wrong on planted truth",
        "",
        *_planted(report.measures),
        "",
        *_example(report.measures),
        "## Columns",
        "",
        *_columns(tables),
    ]
    for frame in report.frames:
        lines += [f"Frame `load_run(…).{frame.name}`: {frame.meaning}", ""]
    if report.reasons:
        lines += ["An item is left out, and counted in `tables/exclusions.csv`, because:", ""]
        lines += [f"- `{reason}`: {words}." for reason, words in report.reasons.items()] + [""]
    lines += ["## Settings", ""]
    rows_of_settings = list(settings)
    if rows_of_settings:
        lines += table(("key", "may be", "without it", "what it decides"), rows_of_settings)
    lines += ["## What a record holds", "", markdown(probe.measure.__doc__), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _head(name: str) -> Iterator[str]:
    """The formula of a probe, and when to use it; the site draws its chain above them.

    Raises:
        SystemExit: nobody has written it.
    """
    if name not in HEADS:
        raise SystemExit(f"docs/measures/heads.yaml: has nothing about the probe {name}")
    head = HEADS[name]
    yield from (f"- **Right for:** {head['right']}", f"- **Wrong for:** {head['wrong']}", "")
    yield from ("```text", head["formula"].rstrip(), "```", "")


def _papers(probe: Probe) -> Iterator[str]:
    if probe.papers:
        pages = ", ".join(f"[{name}](../papers/{name}.md)" for name in probe.papers)
        yield f"Printed tables or detectors of these papers use it: {pages}."


def _ways(probe: Probe) -> Iterator[str]:
    yield ""
    if probe.from_outside is None:
        yield "It needs the model's weights: a model behind an API cannot be measured."
        return
    limits = "; ".join(
        f"`{probe.name}.{key}` is {' or '.join(f'`{value}`' for value in values)}"
        for key, values in probe.from_outside.items()
    )
    yield f"A model behind an API can be measured, too{f'; then {limits}' if limits else ''}."


def _cost(probe: Probe, measures: Sequence[Measure]) -> Iterator[str]:
    calls = probe.calls(GUESS, probe.settings())
    yield (
        f"With the default settings, a chain of {GUESS.steps} steps with {GUESS.tokens} tokens "
        f"each takes about {calls:,} {'call' if calls == 1 else 'calls'} of the model. Where the "
        "model allows it, they share one packed forward or a few, and so cost much less than as "
        "many single forwards ([numerics](../numerics.md))."
    )
    costs = {m.name: _forwards(m) for m in measures if not math.isnan(_forwards(m))}
    if costs:
        least, most = min(costs.values()), max(costs.values())
        span = f"{least:.0f}" if round(least) == round(most) else f"{least:.0f} to {most:.0f}"
        yield (
            f"A single score, measured alone and without sharing, takes {span} "
            f"{'call' if span == '1' else 'calls'} on the planted chains of three steps "
            "(last column below)."
        )


def _forwards(score: Measure) -> float:
    return next((row["forwards"] for row in rows(where(PLANTED, measure=score.name))), math.nan)


def _planted(measures: Sequence[Measure]) -> Iterator[str]:
    lines = {m.name: row for m in measures for row in rows(where(PLANTED, measure=m.name))}
    if not measures:
        yield (
            "This measure gives no score of a trace that could be compared with planted truth: it "
            "is not in the table of [all measures](../measures.md)."
        )
        return
    if not lines:
        yield "The shipped run on planted models does not hold this measure."
        return
    yield (
        "Each score ranks chains of planted models, whose mechanism is known by construction "
        "([which measure to trust](../measures.md)). An AUROC of 1 is right, 0.5 is chance, and "
        "below 0.5 the score points the wrong way."
    )
    yield ""
    yield from _wrong([m for m in measures if m.name in lines])
    head = ["score", "about", *(c.label.removeprefix("AUROC, ") for c in AGAINST)]
    head[2] = "decorative"
    body = [
        [
            f"`{m.name}`",
            m.about,
            *(decimal(lines[m.name][c.name]) for c in AGAINST),
            decimal(lines[m.name]["spearman_p"]),
            decimal(lines[m.name]["step_hit_rate"]),
            decimal(lines[m.name]["forwards"], 0),
        ]
        for m in measures
        if m.name in lines
    ]
    yield from table((*head, "follows p", "step named", "calls"), body, right=len(AGAINST) + 3)


def _wrong(measures: Sequence[Measure]) -> Iterator[str]:
    """Sentences on scores that fail: the 95 % interval of their AUROC is below one half, or holds
    it."""
    failures = []
    for column, (positive, negative) in AGAINST.items():
        wrong, unable = [], []
        for m in measures:
            (row,) = rows(where(PLANTED, measure=m.name))
            if column.name in TELLS_FAITHFULNESS and m.about == "reliance":
                continue
            value, low, high = (row[name] for name in _interval(column))
            if high < 0.5:
                wrong.append(f"`{m.name}` ({decimal(value)})")
            elif low <= 0.5 <= high:
                unable.append(f"`{m.name}` ({decimal(value)})")
        if wrong:
            failures.append(
                f"- These rank {_side(negative)} above {_side(positive)}: {', '.join(wrong)}."
            )
        if unable:
            failures.append(
                f"- These do not tell {_side(positive)} from {_side(negative)}: "
                f"{', '.join(unable)}."
            )
    yield from failures or ["No score fails: all intervals of AUROC lie above 0.50."]
    yield ""
    if any(m.about == "reliance" for m in measures):
        yield (
            "A score of reliance is not expected to tell `silent_step`, `false_source` and "
            "`wrong_operation` from `faithful`, nor the true texts of `half_silent` from the "
            "others, because these texts are unfaithful and relied on."
        )
        yield ""


def _side(side: Side) -> str:
    """The items of one side of a comparison, in words."""
    if side.true is None:
        return f"`{side.model}`"
    return f"the {'true' if side.true else 'untrue'} texts of `{side.model}`"


def _example(measures: Sequence[Measure]) -> Iterator[str]:
    """The scores and credits of one chain of two planted models."""
    scores, credits = EXAMPLES["scores"], EXAMPLES["steps"]
    # a second framing that says the same is no second example
    first = {m.name: m.name.replace("reprompt", "prefix") for m in measures}
    named = [
        m
        for m in measures
        if m.name in scores
        and (first[m.name] == m.name or scores[m.name] != scores.get(first[m.name]))
    ]
    if not named:
        return
    yield from ("## An example on one chain", "")
    yield (
        "`planted:faithful` and `planted:hint` write the same words about this question; the "
        "answer of the first follows the last step, that of the second the hint, whatever the "
        "steps say."
    )
    yield from ("", "```text", EXAMPLES["question"], EXAMPLES["chain"].strip(), "```", "")
    body = [
        [f"`{m.name}`", *(_told(scores[m.name].get(model)) for model in ("faithful", "hint"))]
        + [_each(credits.get(m.name, {}).get(model)) for model in ("faithful", "hint")]
        for m in named
    ]
    head = ("score", "faithful", "hint", "its steps, faithful", "its steps, hint")
    yield from table(head, body, right=4)


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:g}".replace("-", "−")


def _each(values: Sequence[float | None] | None) -> str:
    return "none" if values is None else " · ".join(map(_told, values))


def _interval(column: Column) -> tuple[str, str, str]:
    return column.name, f"{column.name}_low", f"{column.name}_high"


def _columns(tables: Sequence[Table]) -> Iterator[str]:
    """The columns of every table; one that an earlier table has with the same meaning is only
    named."""
    if not tables:
        yield "Its numbers are in frames and in tables of several measures, not in one of its own."
        yield ""
    shown: set[tuple[str, str, str]] = set()
    for one in tables:
        yield f"### `tables/{one.name}.csv`"
        yield ""
        if one.caption:
            yield f"{one.caption}."
            yield ""
        fresh = [c for c in one.columns if (c.name, c.heading, c.meaning) not in shown]
        again = [f"`{c.name}`" for c in one.columns if c not in fresh]
        shown |= {(c.name, c.heading, c.meaning) for c in fresh}
        if fresh:
            lines = [(_named(c), c.heading, c.meaning) for c in fresh]
            yield from table(("column", "heading", "what it is"), lines)
        if again:
            yield f"As above: {', '.join(again)}."
            yield ""


def _named(column: Column) -> str:
    return f"`{column.name}`{' with its interval' if column.interval else ''}"


def planted() -> str:
    """The short table of all measures against planted truth."""
    return f"{short_table(PLANTED)}\n"


def pages() -> str:
    """The list of the measures' pages, for the site's navigation and for readers."""
    entries = "\n".join(f"measures/{name}" for name in PROBES)
    lines = (
        f"- [{title(probe)}](measures/{name}.md): `{name}`, {probe.summary}"
        for name, probe in PROBES.items()
    )
    return "\n".join(["```{toctree}", ":hidden:", "", entries, "```", "", *lines])
