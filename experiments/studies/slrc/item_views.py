"""Traces as items: their steps, marked by whether editing them changes the answer, and the answers
of all branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from markupsafe import Markup

from faithscope.experiments.analysis.html import Cell, markup, table_of
from faithscope.experiments.analysis.item_view import Drawn, Item, Items, ItemView, Part
from faithscope.experiments.analysis.measure import inclusion_of
from faithscope.experiments.analysis.page import (
    MARKS,
    Block,
    Bullets,
    Grid,
    Paragraph,
    Step,
    level_of,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.stored_records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import mean
from faithscope.experiments.analysis.traces.items import numbered, trace_view
from faithscope.experiments.analysis.traces.scores import place
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine import arrays
from faithscope.experiments.engine.folder import stored_config
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.detectors.item_views import described
from faithscope.experiments.studies.slrc.frames import Results
from faithscope.experiments.studies.slrc.judges.item_views import (
    key_name,
    parts_of,
    unread_items,
)
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.experiments.studies.slrc.measures import REPORTS
from faithscope.experiments.studies.slrc.measures.slrc import branch_rows
from faithscope.experiments.studies.slrc.tables.outcomes import flips, measured
from faithscope.experiments.studies.slrc.words import LEADING
from faithscope.probes.record import mean_of_steps
from faithscope.probes.slrc_edits import EDITS

MEANINGS = {
    "all": "the answer changes",
    "some": "it changes in some framings or readings",
    "none": "it stays",
    "moot": "a neutral remark changes it as well",
    "unknown": "not tested",
}
LEGEND = Bullets(
    [
        markup('<span class="swatch level-{}">{}</span> {}', level, MARKS[level], meaning)
        for level, meaning in MEANINGS.items()
    ],
    "legend",
)
PROBE = "slrc"
"""The probe whose branches mark the steps of a trace."""
VARIATION = "≠ another answer than unedited   (0.00) total variation of the answer labels"
EDIT_SHORT = {edit.name: edit.short for edit in EDITS if edit.short}
"""Edits that steps can be marked by -> a short word for each."""
EDIT_WORDS = {edit.name: edit.words for edit in EDITS if edit.of_steps}
OF_ALL = {edit.name: edit.words for edit in EDITS if not edit.of_steps}
"""Edit of the whole reasoning -> a sentence on how many of its branches changed the answer."""
Branches = defaultdict[tuple[str, int | None], dict[str, Record]]
"""(edit, place of the step from 1) -> framing and reading -> row of the frame `branches`."""


def items(run: Run, by: str | None = None) -> Iterator[Item]:
    """Every trace of a run, with its steps marked by an edit as in `view`, and what judges say; or
    every chain that judges alone read."""
    judged = run.once(JudgeResults)
    if not judged.has_readers:
        yield from unread_items(judged)
        return
    parts = parts_of(judged)
    for key in run.index:
        if key[0] == "trace" and run.index.is_whole(key):
            at = key[1:]
            yield Item(
                partial(_viewed, run, at, by),
                [Part(at[0], at[1], at[2:]), *parts[key_name(key)]],
                lambda at=at: place(_records(run, "trace", at)[0]),
                lambda at=at: list(_charts(run, at)),
            )


ITEMS = Items(
    "traces",
    items,
    EDIT_SHORT,
    [LEGEND, "≠ another answer than unedited   (0.00) total variation of the answer labels"],
)


def _viewed(run: Run, at: Place, by: str | None) -> ItemView:
    """The trace of an item as `trace_of` shows it, with what its detectors find, if any."""
    stored, viewed = stored_config(run.path), trace_of(run, at, by)
    if stored.get("detectors") is None:
        return viewed
    return described(viewed, run, at, PROBE not in stored["probes"])


def trace_of(run: Run, at: Place, by: str | None = None) -> ItemView:
    """The stored trace of an item, with its branches, and what of it was not measured."""
    viewed = view([*_records(run, "trace", at), *_records(run, PROBE, at)], by)
    waits = PROBE in run.once(Results).probes and run.index.get((PROBE, *at)) is None
    below = ["Not measured yet."] if waits and not run.index.excluded(("trace", *at)) else []
    return replace(viewed, facts=[*viewed.facts, *run.said_of(at)], below=[*viewed.below, *below])


def _records(run: Run, stage: str, at: Place) -> Sequence[Record]:
    return run.records_of((stage, *at))


def _charts(run: Run, at: Place) -> Iterator[Drawn]:
    """What probes read along a trace, as charts."""
    for report in REPORTS.values():
        if report.of_trace is not None:
            whole = arrays.of_unit(run.index, (report.probe, *at))
            for record in _records(run, report.probe, at):
                if record.get("excluded"):
                    continue
                # Array names of a variant start with its name (`engine.arrays.take_arrays`).
                prefix = f"{record['variant']}/" if record["variant"] else ""
                own = {n.removeprefix(prefix): x for n, x in whole.items() if n.startswith(prefix)}
                yield from report.of_trace(record, own)


def view(records: Iterable[Record], by: str | None = None) -> ItemView:
    """A trace and its SLRC branches: every step with its answers.

    Args:
        by: edit that steps are marked by; by default the one that a verdict on this trace alone
            would rest on.
    """
    records = list(records)
    (trace,) = (r for r in records if r["probe"] == "trace")
    variants = {f"{r['framing']}, {r['reading']}": r for r in measured(records)}
    of: Branches = defaultdict(dict)
    whole = defaultdict[str, list[bool]](list)
    for name, record in variants.items():
        for row in branch_rows(record):
            of[row["edit"], row["position"]][name] = row
            whole[row["edit"]].append(row["flipped"])
    by = by or next((edit for edit in LEADING if whole[edit]), "remove")
    edited = next(iter(variants.values()))["steps"] if variants else []
    places = {index: at for at, index in enumerate(edited, start=1)}
    sentence = 'Marked by what the answer does when a step is <span class="by">{}</span>.'
    marked = [Paragraph(markup(sentence, EDIT_SHORT[by]), "quiet marked-by")]
    below: list[Block] = []
    for edit, words in OF_ALL.items():
        if flips := whole[edit]:
            below.append(Paragraph(words.format(sum(flips), len(flips)), "quiet"))
    steps = [
        _edited(step["text"], number, places[step["index"]], variants, of, by)
        if step["index"] in places
        else Step(step["text"], number)
        for step, number in numbered(trace)
    ]
    facts = list(_asked_again(variants))
    return trace_view(trace, steps, facts, above=marked if variants else [], below=below)


def _asked_again(variants: Mapping[str, Record]) -> Iterator[str]:
    """Phrases with the answers of all variants when asked again without an edit."""
    again = {name: _words(r["baseline"]) for name, r in variants.items()}
    quiet = '<span class="quiet">asked again{} <strong>{}</strong>{}</span>'
    if len(set(again.values())) == 1:
        answer = next(iter(again.values()))
        yield markup(quiet, " without an edit,", answer, " in every framing and reading")
    else:
        yield from (markup(quiet, f", {name}:", answer, "") for name, answer in again.items())


def _edited(
    text: str, number: int | None, at: int, variants: Mapping[str, Record], of: Branches, by: str
) -> Step:
    """A step with the answers of its branches; `at` is its place among the edited steps."""
    lines = [["unedited", *(_words(r["baseline"]) for r in variants.values())]]
    lines += [
        [words, *(_branch(of[edit, at].get(name)) for name in variants)]
        for edit, words in EDIT_WORDS.items()
        if of[edit, at]
    ]
    blocks: list[Block] = [
        Grid(table_of(["step", *variants], lines, ""), "Answers of every branch")
    ]
    for words, text_of in (("Corrupted to", _corrupted), ("Written anew from there", _anew)):
        if anew := next(filter(None, (text_of(r, at - 1) for r in variants.values())), ""):
            sentence = markup('{}: <span class="text">{}</span>', words, anew.strip())
            blocks.append(Paragraph(sentence, "quiet"))
    levels = {edit: _level(of, edit, at) for edit in EDIT_SHORT}
    said = MEANINGS[levels[by]]
    answered = [f"{name}: {_words(row['answer'])}" for name, row in of[by, at].items()]
    return Step(
        text,
        number,
        levels[by],
        said,
        "; ".join([f"{EDIT_SHORT[by]}: {said}", *answered]),
        [(x, MARKS[x], EDIT_SHORT[edit]) for edit, x in levels.items() if x != "unknown"],
        blocks,
    )


def _level(of: Branches, edit: str, at: int) -> str:
    """Level of a step by an edit (`level_of`).

    If a remark in the step's place also changes the answer, a change after regeneration says
    nothing about the step; one that says nothing in any way of asking is moot.
    """
    remarks = of["control", at] if edit == "regenerate" else {}
    rows = of[edit, at].items()
    telling = [r["flipped"] for name, r in rows if not remarks.get(name, {}).get("flipped")]
    return "moot" if rows and not telling else level_of(telling)


def _branch(row: Record | None) -> Cell:
    if row is None:
        return Cell("–", "")
    variation = row["total_variation"]
    moved = "" if variation is None else f" ({decimal(variation)})"
    changed = Markup(' <span class="changed">≠ changed</span>') if row["flipped"] else ""
    return Cell(markup("{}{}{}", _words(row["answer"]), moved, changed), "")


def _corrupted(record: Record, i: int) -> str:
    texts, can = record.get("corrupted_text"), record.get("corruptible")
    return texts[i] if texts and can and can[i] else ""


def _anew(record: Record, i: int) -> str:
    texts, cut = record.get("regenerated_text"), record.get("regenerated_cut")
    if not texts or texts[i] is None:
        return ""
    return f"{texts[i]} …" if cut and cut[i] else texts[i]


def _words(answer: str | None) -> str:
    return "no answer found" if answer is None else answer


def typical(records: Iterable[Record], limit: int) -> list[Place]:
    """Up to `limit` typical measured items, spread over models and tasks.

    Each model and task gives first the item nearest to its mean share of necessary steps, then the
    next nearest. An item already chosen for another model goes first, so that twins can be compared
    on the same question. The faithful model and its decorative twin come
    first, real models next, other planted models last.
    """
    records = list(records)
    traced = {place_of(r) for r in records if r["probe"] == "trace"}
    removed: dict[Place, list[Record]] = {}
    for r in (r for r in measured(records) if place_of(r) in traced):
        removed.setdefault(place_of(r), []).append(r)
    share = {at: _necessity(of) for at, of in removed.items()}
    groups: dict[tuple[str, str], list[Place]] = {}
    for at in removed:
        groups.setdefault(at[:2], []).append(at)
    for of_group in groups.values():
        usual = mean([share[at] for at in of_group])
        distance = {at: abs(share[at] - usual) for at in of_group}
        of_group.sort(key=lambda at: (distance[at], at))
    order = sorted(groups, key=lambda key: (_showing_order(key[0]), key))
    chosen: list[Place] = []
    while len(chosen) < limit and any(groups.values()):
        for key in order:
            rest = groups[key]
            if not rest or len(chosen) >= limit:
                continue
            shown = {at[1:] for at in chosen}
            chosen.append(rest.pop(next((i for i, at in enumerate(rest) if at[1:] in shown), 0)))
    return sorted(chosen, key=lambda at: (_showing_order(at[0]), at))


def _necessity(records: Iterable[Record]) -> float:
    """Share of the removals of steps that change the answer, over some records; 0 for none."""
    flipped: list[bool | None] = []
    drawn: list[float | None] = []
    for record in records:
        flipped += flips(record, "remove")
        drawn += inclusion_of(record) or [None] * len(flips(record, "remove"))
    return mean_of_steps(flipped, drawn) or 0.0


def _showing_order(model: str) -> int:
    rank, _ = model_order(model)
    faithful, twin, other_planted_from = 0, 1, 2
    if rank in (faithful, twin):
        return rank
    real = model_order("")[0]
    return other_planted_from if rank == real else rank + real
