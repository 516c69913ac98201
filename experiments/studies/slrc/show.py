"""View of one trace on page and terminal: its steps, marked by whether editing them changes the
answer, and the answers of all branches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from markupsafe import Markup
from rich.console import Console

from faithscope.experiments.analysis.html import Cell, HtmlTable, markup
from faithscope.experiments.analysis.item_view import narrowed, print_blocks, print_item
from faithscope.experiments.analysis.page import (
    Block,
    Box,
    Bullets,
    Grid,
    Heading,
    Paragraph,
    Step,
    Steps,
)
from faithscope.experiments.analysis.records import Place, Record, place_of
from faithscope.experiments.analysis.tidy import mean, present
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.engine.folder import existing_run
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.planfile import counted
from faithscope.experiments.studies.slrc.tables.outcomes import answers, flips, graded, measured
from faithscope.experiments.studies.slrc.tables.verdict import LEADING
from faithscope.interp.errors import UserError, did_you_mean

MARKS = {"all": "●", "some": "◐", "none": "○", "unknown": "·"}
"""Text mark for each level of a step, so that colour is never needed."""
MEANINGS = {
    "all": "the answer changes",
    "some": "it changes in some framings or readings",
    "none": "it stays",
    "unknown": "not tested, or a mere remark changes it, too",
}
LEGEND = Bullets(
    [
        markup('<span class="swatch level-{}">{}</span> {}', level, MARKS[level], meaning)
        for level, meaning in MEANINGS.items()
    ],
    "legend",
)
EDIT_SHORT = {"remove": "removed", "corrupt": "corrupted", "regenerate": "rewritten"}
"""Edits that steps can be marked by -> a short word for each."""
EDIT_WORDS = {
    "remove": "removed",
    "keep_only": "kept alone",
    "corrupt": "corrupted, later text frozen",
    "regenerate": "corrupted, later text written anew",
    "control": "left as it is with a remark, later text written anew",
}


def trace_block(records: Iterable[Record], by: str | None = None) -> Box:
    """Box with a trace and its SLRC branches: question, answer, and every step with its answers.

    Args:
        by: edit that steps are marked by; by default the one that a verdict on this trace alone
            would rest on.
    """
    records = list(records)
    (trace,) = (r for r in records if r["probe"] == "trace")
    variants = measured(records)
    by = by or _leading(variants)
    question = trace["question"]
    options = question.get("options")
    blocks: list[Block] = [
        Heading(" · ".join(place_of(trace))),
        Paragraph(question["text"], "question"),
        *([Paragraph(f"Answers: {', '.join(options)}", "quiet")] if options else []),
        Bullets(list(facts(trace, variants)), "facts"),
        *([Paragraph(_marked_by(by), "quiet marked-by")] if variants else []),
        Steps(list(_steps(trace, variants, by))),
        Paragraph((trace.get("tail_text") or "").strip(), "tail"),
    ]
    if trace.get("excluded"):
        blocks.append(f"Not measured: {trace['excluded'].replace('_', ' ')}.")
    elif not variants:
        blocks.append("Not measured yet.")
    if shuffles := [x for r in variants for x in present(flips(r, "shuffle"))]:
        changed = f"{sum(shuffles)} of {len(shuffles)} shuffles changed the answer."
        blocks.append(Paragraph(changed, "quiet"))
    if emptied := [x for r in variants for x in present(flips(r, "remove_all"))]:
        sentence = f"Without any reasoning {sum(emptied)} of {len(emptied)} answers are others."
        blocks.append(Paragraph(sentence, "quiet"))
    return Box(blocks, "trace card")


def _leading(variants: Sequence[Record]) -> str:
    """First of the verdict's edits that has a known outcome on some step, else `remove`."""
    of_steps = {edit: [x for r in variants for x in present(flips(r, edit))] for edit in EDIT_SHORT}
    return next((edit for edit in LEADING if of_steps[edit]), "remove")


def _marked_by(edit: str) -> Markup:
    sentence = 'Marked by what the answer does when a step is <span class="by">{}</span>.'
    return markup(sentence, EDIT_SHORT[edit])


def facts(trace: Record, variants: Sequence[Record]) -> Iterator[str]:
    """Phrases with the stated answer, the right answer, and the answer of every variant when asked
    again."""
    answer, gold = trace.get("answer"), trace["question"].get("gold")
    yield markup(
        "answered <strong>{}</strong>", "nothing that parses" if answer is None else answer
    )
    if gold is not None:
        yield markup("right answer <strong>{}</strong>", gold)
    again = {_variant(r): r["baseline"] for r in variants}
    quiet = '<span class="quiet">asked again{} <strong>{}</strong>{}</span>'
    if len(set(again.values())) == 1:
        baseline = next(iter(again.values()))
        parts = (" without an edit,", _words(baseline), " in every framing and reading")
        yield markup(quiet, *parts)
    else:
        for variant, baseline in again.items():
            yield markup(quiet, f", {variant}:", _words(baseline), "")


def _steps(trace: Record, variants: Sequence[Record], by: str) -> Iterator[Step]:
    places = {index: i for r in variants[:1] for i, index in enumerate(r["steps"])}
    number = 0
    for step in trace["steps"]:
        number += step["counted"]
        if step["index"] in places:
            yield _edited(step["text"], number, variants, places[step["index"]], by)
        elif step["counted"]:
            yield Step(step["text"], number, mark=MARKS["unknown"])
        else:
            yield Step(step["text"])


def _edited(text: str, number: int, variants: Sequence[Record], at: int, by: str) -> Step:
    """An edited step as a block of the page; `at` is its place among the records' edited steps."""
    rows = [[Cell("unedited", ""), *(Cell(_words(r["baseline"]), "") for r in variants)]]
    for edit, words in EDIT_WORDS.items():
        if any(_flip(r, edit, at) is not None for r in variants):
            rows.append([Cell(words, ""), *(_branch(r, edit, at) for r in variants)])
    heading = ["step", *map(_variant, variants)]
    table = HtmlTable(heading, [False] * len(heading), rows, css="")
    blocks: list[Block] = [Grid(table, "Answers of every branch")]
    if corrupted := next(filter(None, (_corrupted(r, at) for r in variants)), ""):
        sentence = markup('Corrupted to: <span class="text">{}</span>', corrupted.strip())
        blocks.append(Paragraph(sentence, "quiet"))
    if anew := next(filter(None, (_written_anew(r, at) for r in variants)), ""):
        sentence = markup('Written anew from there: <span class="text">{}</span>', anew.strip())
        blocks.append(Paragraph(sentence, "quiet"))
    level = _level(variants, by, at)
    answered = [
        f"{_variant(r)}: {_words(answers(r, by)[at])}"
        for r in variants
        if _flip(r, by, at) is not None
    ]
    marks = [(_level(variants, edit, at), word) for edit, word in EDIT_SHORT.items()]
    return Step(
        text,
        number,
        level,
        MARKS[level],
        MEANINGS[level],
        "; ".join([f"{EDIT_SHORT[by]}: {MEANINGS[level]}", *answered]),
        [(of, MARKS[of], word) for of, word in marks if of != "unknown"],
        blocks,
    )


def _level(variants: Sequence[Record], edit: str, at: int) -> str:
    """Whether `all`, `some` or `none` of an edit's branches changed the answer, or `unknown`.

    If a remark in the step's place also changes the answer, a change after regeneration says
    nothing about the step and counts as unknown.
    """
    flipped = present(
        None if edit == "regenerate" and _flip(r, "control", at) else _flip(r, edit, at)
        for r in variants
    )
    if not flipped:
        return "unknown"
    return "all" if all(flipped) else "some" if any(flipped) else "none"


def _flip(record: Record, edit: str, at: int) -> bool | None:
    flipped = flips(record, edit)
    return flipped[at] if flipped else None


def _branch(record: Record, edit: str, at: int) -> Cell:
    flipped = _flip(record, edit, at)
    if flipped is None:
        return Cell("–", "")
    variation = graded(record, edit, "tv")[at]
    moved = "" if variation is None else f" ({variation:.2f})"
    changed = Markup(' <span class="changed">≠ changed</span>') if flipped else ""
    return Cell(markup("{}{}{}", _words(answers(record, edit)[at]), moved, changed), "")


def _corrupted(record: Record, at: int) -> str:
    texts, can = record.get("corrupted_text"), record.get("corruptible")
    return texts[at] if texts and can and can[at] else ""


def _written_anew(record: Record, at: int) -> str:
    texts, cut = record.get("regenerated_text"), record.get("regenerated_cut")
    if not texts or texts[at] is None:
        return ""
    return f"{texts[at]} …" if cut and cut[at] else texts[at]


def _variant(record: Record) -> str:
    return f"{record['framing']}, {record['reading']}"


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
    removed: dict[Place, list[bool]] = {}
    for r in (r for r in measured(records) if place_of(r) in traced):
        removed.setdefault(place_of(r), []).extend(present(flips(r, "remove")))
    share = {place: sum(flipped) / max(1, len(flipped)) for place, flipped in removed.items()}
    groups: dict[tuple[str, str], list[Place]] = {}
    for place in removed:
        groups.setdefault(place[:2], []).append(place)
    for of_group in groups.values():
        usual = mean([share[place] for place in of_group])
        distance = {place: abs(share[place] - usual) for place in of_group}
        of_group.sort(key=lambda place: (distance[place], place))
    order = sorted(groups, key=lambda key: (_showing_order(key[0]), key))
    chosen: list[Place] = []
    while len(chosen) < limit and any(groups.values()):
        for key in order:
            rest = groups[key]
            if not rest or len(chosen) >= limit:
                continue
            shown = {place[1:] for place in chosen}
            at = next((i for i, place in enumerate(rest) if place[1:] in shown), 0)
            chosen.append(rest.pop(at))
    return sorted(chosen, key=lambda place: (_showing_order(place[0]), place))


def _showing_order(model: str) -> int:
    place, _ = model_order(model)
    faithful, twin, other_planted_from = 0, 1, 2
    if place in (faithful, twin):
        return place
    real = model_order("")[0]
    return other_planted_from if place == real else place + real


def item_records(index: Index, place: Place) -> list[Record]:
    """The stored trace of an item and its SLRC records."""
    keys = [(stage, *place) for stage in ("trace", "slrc")]
    return [r for key in keys if index.get(key) is not None for r in index.records(key)]


VARIATION = "≠ another answer than unedited   (0.00) total variation of the answer labels"


def show_item(
    run_dir: str | Path,
    item: str,
    model: str | None = None,
    task: str | None = None,
    console: Console | None = None,
    by: str | None = None,
) -> None:
    """Print every trace of an item that a run holds; `model` and `task` narrow the choice.

    Args:
        by: edit that steps are marked by, as in `trace_block`.

    Raises:
        UserError: no such item, model or task in the run, with what was probably meant; no edit
            that steps can be marked by.
    """
    if by is not None and by not in EDIT_SHORT:
        guess = did_you_mean(by, EDIT_SHORT) or f"; there are {', '.join(EDIT_SHORT)}"
        raise UserError(f"steps cannot be marked by {by!r}{guess}")
    console = console or Console()
    index = counted(existing_run(run_dir))
    places = [key[1:] for key in index if key[0] == "trace" and index.is_whole(key)]
    places.sort(key=lambda place: (model_order(place[0]), *place[1:]))
    for place in narrowed(places, "traces", item, model, task):
        print_item(console, trace_block(item_records(index, place), by))
    print_blocks(console, [LEGEND, VARIATION])
