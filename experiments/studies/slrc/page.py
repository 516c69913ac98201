"""The page of a run over traces, as data for `analysis.page`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from faithscope.experiments.analysis.html import Cell, HtmlTable, estimate_cell, markup, share_cell
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Count,
    Counts,
    Drawing,
    Fold,
    Grid,
    Heading,
    Page,
    Paragraph,
    Section,
    spent_and_failed,
    verdict_rules,
)
from faithscope.experiments.analysis.picture import Picture
from faithscope.experiments.analysis.removal_units import UNIT_WORDS, told_apart, units_apart
from faithscope.experiments.analysis.stored_records import place_of
from faithscope.experiments.analysis.tidy import distinct, rows, where
from faithscope.experiments.analysis.traces.forced_choice import cautions
from faithscope.experiments.analysis.traces.sampled import sampled_steps
from faithscope.experiments.analysis.wording import by_verdict, finding, model_order, short
from faithscope.experiments.numerals import percent
from faithscope.experiments.studies.slrc.columns import COLUMNS, OF_TABLES, REASONS
from faithscope.experiments.studies.slrc.comparison import InRun
from faithscope.experiments.studies.slrc.detectors import page as of_detectors
from faithscope.experiments.studies.slrc.detectors.tables import DETECTOR
from faithscope.experiments.studies.slrc.figures.models import model_readings
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.item_views import LEGEND, trace_of, typical
from faithscope.experiments.studies.slrc.judges import answer_curve
from faithscope.experiments.studies.slrc.judges import page as of_judges
from faithscope.experiments.studies.slrc.measure_report import Topic
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.topics import (
    COMPARED_MODELS,
    INSTRUMENT,
    NOTHING_MEASURED,
    OF_SLRC,
    READING,
    TOPICS,
    TRACES,
    UNITS,
    VERDICT_NOTE,
)
from faithscope.experiments.studies.slrc.words import (
    FEW,
    WORDS,
    Check,
    Verdict,
    instrument_checks,
    tell_apart,
    unsteady_answers,
    verdicts,
)
from faithscope.probes.slrc_edits import EDITS, LEADING

CUT_OFF = {"reasoning_unclosed", "empty_generation"}
"""Exclusion reasons whose remedy is a higher token limit."""
RATES = {e.name: e.heading for e in (*LEADING, *(e for e in EDITS if not e.leads)) if e.heading}
"""Edit -> its column in the table of verdicts; edits that verdicts rest on come first, so that a
narrow window shows them."""
DONE = {edit.name: edit.done for edit in EDITS if edit.done}
"""Edit -> its description on the page's first line."""
WHERE_ITEMS_WENT = "Every item is counted once per stage, and every stage adds up."


def page(results: Results, drawn: Sequence[Picture]) -> Page:
    """The page of a run, with its figures."""
    tables, figures = results.tables, {p.name: p for p in drawn}
    if not results.has_readers:
        return _of_judges(results)
    places = {place_of(r) for r in results.records}
    judged = verdicts(told_apart(tables))
    edited = "slrc" in results.probes
    total, left = (
        sum(r["n"] for r in rows(where(tables["exclusions"], stage="trace", reason=reason)))
        for reason in ("total", "included")
    )
    of_total = "" if left == total else f"{left} of "
    counts = [total, len({model for model, _, _ in places}), len({task for _, task, _ in places})]
    counted = of_total + ", ".join(map(_counted, counts, ("trace", "model", "task")))
    done = set(tables["edits"]["edit"]) if edited else set()
    edits = [words for edit, words in DONE.items() if edit in done]
    sample = (results.stored.get("steps") or {}).get("sample")
    which = "Every step" if sample is None else f"Each of at most {sample} steps, drawn at random,"
    asked = (
        f". {which} was {'; '.join(edits)}; and the answer asked again each time."
        if edits
        else "."
        if edited
        else f". Measured: {', '.join(results.probes)}, without slrc, which edits steps."
    )
    given = (results.stored.get("traces") or {}).get("path")
    title = f"does the model use the reasoning it {'writes' if given is None else 'reads'}?"
    lead = "Do these models use the reasoning they write?"
    if given is not None:
        lead = (
            f"Do these models use the reasoning they read? It was written elsewhere ("
            f"{Path(given).name}); the frame traces says by whom."
        )
    detected = of_detectors.sections(results.detected, tables) if results.detects else []
    shown = tables | results.run.once(InRun).tables
    if results.detects:
        shown = of_detectors.shown(results.detected, shown)
    listed = {name for section in (*detected, *_judges(results)) for name in section.tables}
    return Page(
        results.run.path,
        title,
        f"{lead} {counted}{asked}",
        [
            *detected,
            *([_verdict(tables, judged), READING] if edited else []),
            *_units(tables),
            *_of_topics(results, figures),
            *_judges(results),
            *results.run.once(InRun).sections(),
            *([_traces(results, bool(judged))] if edited else []),
            _exclusions(results),
        ],
        {name: table for name, table in shown.items() if len(table) or name not in listed},
        figures,
        COLUMNS,
        OF_TABLES,
        finding=of_detectors.in_short(results.detected, tables)
        if results.detects
        else _in_short(results, judged),
        order=model_order,
        warnings=[
            *_unfinished(tables["exclusions"]),
            *_mostly_left_out(tables["exclusions"]),
            *_few_items(tables["exclusions"]),
            *sampled_steps(results.records),
            *cautions(results.records),
            *(sentence for v in judged for sentence in unsteady_answers(v, given is not None)),
            *(of_judges.warnings(results.judged) if results.judged.chains else []),
            *(of_detectors.warnings(results.detected) if results.detects else []),
        ],
    )


def _in_short(results: Results, judged: Sequence[Verdict]) -> str:
    """The first line of the page: how many chains count, and the verdict on each model and task.

    Without SLRC, whose edits give verdicts, it has what the first other measure says of itself.
    """
    fates = results.tables["exclusions"]
    # verdicts on several units of removal of one model and task rest on different chains of it
    stages = {(v.model, v.task): f"slrc.{v.framing}.{v.reading}" for v in judged}
    counted = where(fates, stage="trace")
    lost, total = Counter[str](), 0
    for row in rows(counted) + [
        row
        for (model, task), stage in stages.items()
        for row in rows(where(fates, model=model, task=task, stage=stage))
        if row["reason"] != "total"
    ]:
        if row["reason"] == "total":
            total += row["n"]
        elif row["reason"] != "included":
            lost[f"left out ({REASONS.get(row['reason'], row['reason'])})"] += row["n"]
    if judged:
        unedited = where(counted, reason="included")
        for row in rows(unedited):
            if (row["model"], row["task"]) not in stages:
                lost["without a measured edit"] += row["n"]
        one_each = len({v.model for v in judged}) == len(judged)
        named = [v.model if one_each else f"{v.model} on {v.task}" for v in judged]
        said = by_verdict(zip((v.text for v in judged), map(short, named), strict=True))
    elif "slrc" in results.probes:
        said = "No conclusion on the steps can be drawn."
    else:
        of = (report.in_short(results.tables) for report in REPORTS.values() if report.in_short)
        said = next(filter(None, of), "Whether the steps are used was not asked (probe slrc).")
    return finding(total - lost.total(), total, "chains count", said, lost)


def _of_judges(results: Results) -> Page:
    """The page of a run in which no model reads the chains."""
    return Page(
        results.run.path,
        "what do judges say of these chains?",
        of_judges.lead(results.judged),
        [*_judges(results), of_judges.examples(results.judged), _exclusions(results)],
        {name: table for name, table in results.tables.items() if len(table)},
        {},
        COLUMNS,
        OF_TABLES,
        finding=of_judges.in_short(results.judged),
        prefix="judge_",
        order=model_order,
        warnings=of_judges.warnings(results.judged),
    )


def _judges(results: Results) -> list[Section]:
    """Sections on judges; none for a run without any."""
    if results.judged.judges is None:
        return []
    return [of_judges.verdict(results.judged), *of_judges.SECTIONS, answer_curve.SECTION]


def _counted(n: int, thing: str) -> str:
    return f"{n} {thing}{'' if n == 1 else 's'}"


def _unfinished(exclusions: pd.DataFrame) -> list[str]:
    """Warning if some framing and reading has not measured every trace. A detector may lack a probe
    that the run was not asked for."""
    most: dict[tuple[str, str], int] = {}
    for row in rows(where(exclusions, reason="not_run")):
        if row["stage"].startswith(DETECTOR):
            continue
        pair = (row["model"], row["task"])
        most[pair] = max(most.get(pair, 0), row["n"])
    n = sum(most.values())
    are = "trace is" if n == 1 else "traces are"
    warning = f"This run is unfinished: {n} {are} not measured yet. Start it again to go on."
    return [warning] if n else []


def _mostly_left_out(exclusions: pd.DataFrame) -> Iterator[str]:
    """Warnings for every model and task with more than half of its traces excluded."""
    for place in distinct(exclusions, "model", "task"):
        of_traces = rows(where(exclusions, stage="trace", **place))
        reasons = {r["reason"]: int(r["n"]) for r in of_traces}
        total, left = reasons.pop("total", 0), reasons.pop("included", 0)
        if 2 * left < total:
            most = max(reasons, key=reasons.__getitem__)
            remedy = " It needs more tokens: generation.max_new_tokens." if most in CUT_OFF else ""
            rest = (
                f"What follows is of the other {left}." if left else "No conclusion can be drawn."
            )
            yield (
                f"{place['model']} on {place['task']}: {total - left} of {total} traces are left "
                f"out before anything is measured ({reasons[most]}: {REASONS.get(most, most)})."
                f"{remedy} {rest}"
            )


def _few_items(exclusions: pd.DataFrame) -> Iterator[str]:
    """Warning about models and tasks with so few items that intervals say little."""
    included = rows(where(exclusions, stage="trace", reason="included"))
    few = {f"{r['model']} on {r['task']}": int(r["n"]) for r in included if 0 < r["n"] < FEW}
    if few:
        said = "; ".join(f"{_counted(n, 'item')} of {place}" for place, n in few.items())
        yield f"{said}: a glance, not a reading. Intervals are wide, and other items may differ."


def _units(tables: Mapping[str, pd.DataFrame]) -> Iterator[Section]:
    apart = units_apart(tables)
    if apart:
        sentences = [
            markup("<code>{}</code> on {}: {}", m, task, ", ".join(UNIT_WORDS[u] for u in units))
            for (m, task), units in apart.items()
        ]
        yield replace(UNITS, blocks=[Bullets(sentences)])


def _verdict(tables: Mapping[str, pd.DataFrame], judged: Sequence[Verdict]) -> Section:
    checks = instrument_checks(*(tables[name] for name in ("slrc", "edits", "edits_by_step")))
    planted = any(v.planted for v in judged)
    blocks: list[Block] = [_instrument(checks, planted)]
    if judged:
        # The columns that the verdict rests on come first, so that a narrow page shows them.
        edits = [edit for edit in RATES if any(v.rates.get(edit) for v in judged)]
        named = [RATES[edit] for edit in edits]
        heading = ["model and task", "what the edits say", "items", *named, "SLRC"]
        table = HtmlTable(
            [*heading, "right as written"],
            [False, False, *[True] * (len(edits) + 3)],
            [_verdict_row(v, edits) for v in judged],
            css="sortable verdicts",
        )
        blocks += [Grid(table, "Verdict per model and task")]
        blocks += [Paragraph(VERDICT_NOTE, "quiet"), verdict_rules(WORDS.values())]
    else:
        blocks.append(NOTHING_MEASURED)
    return Section("verdict", "Verdict", blocks=[*blocks, Drawing("edits")], always=True)


def _instrument(checks: Sequence[Check], planted: bool) -> Box:
    """Box of the instrument check: whether planted models come out as planted, check by check.

    Args:
        planted: whether the run has planted models, even if it lacks the edits to check them by.
    """
    passed = sum(check.passed is True for check in checks)
    failed = any(check.passed is False for check in checks)
    whole = "passes" if passed == len(checks) else "fails" if failed else "few"
    outcome = whole if checks else "absent"
    colour = {"passes": "passed", "fails": "failed"}.get(outcome, "")
    shown = markup('<span class="{}">{}</span>', colour, OUTCOMES[outcome])
    blocks: list[Block] = [Heading(markup("Instrument check: {}", shown))]
    said = outcome
    if outcome == "passes" and not tell_apart(checks):
        said = "passes_alone"
    elif not checks and planted:
        said = "unasked"
    blocks.append(INSTRUMENT[said])
    if checks:
        summary = f"{passed} of {len(checks)} checks passed"
        listed = Bullets(list(map(_check, checks)))
        blocks.append(Fold(summary, [listed], "printed", open=outcome in {"fails", "few"}))
    return Box(blocks, f"card instrument {outcome}")


def _check(check: Check) -> str:
    css, sign, word = _MARKS[check.passed]
    return markup(
        '<span class="{}" aria-hidden="true">{}</span><span><code>{}</code>, {}: {}: '
        '<strong>{}</strong>: <span class="{}">{}</span></span>',
        *(css, sign, check.model, check.reading, check.claim, check.found, css, word),
    )


OUTCOMES = {
    **{"passes": "passes", "fails": "fails", "absent": "not made"},
    "few": "too few items to tell",
}
_MARKS = {
    True: ("passed", "✓", "passed"),
    False: ("failed", "✗", "failed"),
    None: ("", "·", "too few items to tell"),
}


def _verdict_row(v: Verdict, edits: Sequence[str]) -> list[Cell]:
    tag = markup('<span class="tag">{}</span>', v.built_to) if v.built_to else ""
    variant = ""
    if (v.framing, v.reading) != ("prefix", "generated"):
        variant = markup(' <span class="tag">{}, {}</span>', v.framing, v.reading)
    cautions = [markup('<span class="caution">⚠ {}</span>', c) for c in v.cautions]
    slrc = v.slrc
    return [
        Cell(
            markup(
                "<strong>{}</strong><br>{}{}{}{}",
                *(v.model, v.task, markup("<br>") if tag else "", tag, variant),
            ),
            f"{v.model} {v.task}",
        ),
        Cell(
            markup('<span class="word {}">{}</span>{}', v.word, v.text, markup("").join(cautions)),
            v.word,
        ),
        Cell(str(v.n), str(v.n)),
        *(_rate(v, edit) for edit in edits),
        estimate_cell(slrc.value, slrc.low, slrc.high),
        Cell(percent(v.accuracy_written), repr(v.accuracy_written), f"again {percent(v.accuracy)}"),
    ]


def _rate(v: Verdict, edit: str) -> Cell:
    """The mean over items, and the rate of all edits together where it differs."""
    if (rate := v.rates.get(edit)) is None:
        return share_cell(math.nan)
    cell = share_cell(rate.value, rate.low, rate.high)
    if percent(v.pooled[edit]) == percent(rate.value):
        return cell
    return replace(cell, interval=f"{cell.interval}; pooled {percent(v.pooled[edit])}")


def _of_topics(results: Results, figures: Mapping[str, Picture]) -> list[Section]:
    """Sections of the topics that have tables; topics that share a section are shown together."""
    sections: dict[str, Section] = {}
    for topic in (topic for topic in TOPICS if _is_there(topic, results, figures)):
        shown = [table for table in topic.tables if table.caption]
        blocks: list[Block] = []
        if topic is COMPARED_MODELS:
            blocks += model_readings(*(results.tables[table.name] for table in shown))
        blocks += [Drawing(figure) for figure in topic.figures]
        blocks += [Grid(t.name, t.caption) for t in shown if not t.folded]
        blocks += [Fold(t.folded, [Grid(t.name, t.caption)]) for t in shown if t.folded]
        section = topic.section(results.taxonomy) if callable(topic.section) else topic.section
        before = sections.get(section.name, section)
        sections[section.name] = replace(before, blocks=[*before.blocks, *blocks])
    return list(sections.values())


def _is_there(topic: Topic, results: Results, figures: Mapping[str, Picture]) -> bool:
    if topic is COMPARED_MODELS:
        return "models" in figures
    if topic in OF_SLRC and "slrc" not in results.probes:
        return False
    failed = results.failed.reasons
    return any(t.name in results.tables or ("table", t.name) in failed for t in topic.tables)


def _traces(results: Results, measured: bool) -> Section:
    places = typical(results.records, results.report.traces)
    if places:
        shown = [trace_of(results.run, place).card(open=True) for place in places]
        return replace(TRACES, blocks=[LEGEND, *shown])
    none = "The config asks for none (report.traces: 0)." if measured else "None was measured."
    return replace(TRACES, text=none)


def _exclusions(results: Results) -> Section:
    exclusions = results.tables["exclusions"]
    cards = [
        Box([Heading(f"{model} · {task}"), Counts(lines)], "card")
        for (model, task), lines in waterfalls(exclusions).items()
    ]
    return Section(
        "exclusions",
        "Where the items went",
        WHERE_ITEMS_WENT,
        blocks=[
            Box(cards, "falls"),
            *spent_and_failed(results.run.calls, "answer", results.run.failures),
            Fold("As a table", [Grid("exclusions", "Exclusions")]),
        ],
    )


def waterfalls(exclusions: pd.DataFrame) -> dict[tuple[str, str], list[Count]]:
    """Waterfall of each model's and task's items: the total, then per stage the losses and the
    rest."""
    falls: dict[tuple[str, str], dict[str, list[tuple[str, int]]]] = {}
    for row in rows(exclusions):
        stages = falls.setdefault((row["model"], row["task"]), {})
        stages.setdefault(row["stage"], []).append((row["reason"], int(row["n"])))
    order = sorted(falls, key=lambda pair: (model_order(pair[0]), pair))
    return {pair: list(_waterfall(falls[pair])) for pair in order}


def _waterfall(stages: Mapping[str, Sequence[tuple[str, int]]]) -> Iterator[Count]:
    total = next(iter(stages.values()))[0][1]
    yield Count("asked", total, 1.0)
    for name, ((_, _), *lost, (_, left)) in stages.items():
        # the stage of a judge names it, with whatever marks its name has
        is_judged = " · " in name
        stage = name.removeprefix("slrc.").replace(".", ", ").replace("_", " ")
        stage = name if is_judged else stage
        at, then = (
            ("", "traces to edit") if name == "trace" else (f" ({stage})", f"measured, {stage}")
        )
        yield from (Count(f"− {REASONS.get(reason, reason)}{at}", n) for reason, n in lost)
        yield Count(then, left, left / total if total else 0.0)
