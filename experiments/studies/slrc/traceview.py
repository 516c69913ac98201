"""One trace with what every branch of it answered: the same view for terminal and page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from faithscope.experiments.analysis.html import Cell, HtmlTable, markup
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
from faithscope.experiments.analysis.textual import visible
from faithscope.experiments.analysis.tidy import mean, present
from faithscope.experiments.analysis.wording import model_order
from faithscope.experiments.studies.slrc.tables.outcomes import answers, flips, graded, measured

MARKS = {"all": "●", "some": "◐", "none": "○", "unknown": "·"}
"""A text mark for each level of `StepView.level`, so that colour is never needed."""
MEANINGS = {
    "all": "necessary",
    "some": "necessary in some readings",
    "none": "not necessary",
    "unknown": "not tested",
}
LEGEND = Bullets(
    [
        markup('<span class="swatch level-{}">{}</span> {}', level, MARKS[level], meaning)
        for level, meaning in MEANINGS.items()
    ],
    "legend",
)
STEP_EDITS = ("remove", "keep_only", "corrupt", "regenerate", "control")
EDIT_SHORT = {"remove": "removed", "corrupt": "corrupted", "regenerate": "rewritten"}
EDIT_WORDS = {
    "remove": "removed",
    "keep_only": "kept alone",
    "corrupt": "corrupted, later text frozen",
    "regenerate": "corrupted, later text written anew",
    "control": "left as it is with a remark, later text written anew",
    "shuffle": "steps shuffled",
}


@dataclass(frozen=True)
class Branch:
    """What the model answered after one edit, in one framing and reading."""

    framing: str
    reading: str
    edit: str
    answer: str | None
    """None where no answer parsed."""
    flipped: bool
    total_variation: float | None = None


@dataclass(frozen=True)
class StepView:
    """One step, with the branches that edited it."""

    number: int | None
    """From 1 among the counted steps; None for a stretch too short to be a step."""
    text: str
    branches: tuple[Branch, ...] = ()
    corrupted_text: str | None = None

    @property
    def level(self) -> str:
        """In how many of the framings and readings removal changed the answer."""
        return self.level_of("remove")

    def level_of(self, edit: str) -> str:
        """`all`, `some` or `none` of the branches of an edit changed the answer, or `unknown`."""
        flipped = [b.flipped for b in self.branches if b.edit == edit]
        if not flipped:
            return "unknown"
        return "all" if all(flipped) else "some" if any(flipped) else "none"

    @property
    def mark(self) -> str:
        return MARKS[self.level]

    @property
    def meaning(self) -> str:
        return MEANINGS[self.level]


@dataclass(frozen=True)
class TraceView:
    """A trace, ready to be shown: every text in it is already safe to print."""

    model: str
    task: str
    item: str
    question: str
    options: tuple[str, ...]
    gold: str | None
    answer: str | None
    correct: bool | None
    excluded: str | None
    steps: tuple[StepView, ...]
    tail: str
    baselines: tuple[Branch, ...]
    """What the unedited reasoning led to in each framing and reading; `edit` is `baseline`."""
    shuffles: tuple[Branch, ...]

    @property
    def settled(self) -> bool:
        """Whether every framing and reading gives the unedited reasoning the same answer."""
        return len({b.answer for b in self.baselines}) == 1


def trace_view(records: Iterable[Record]) -> TraceView:
    """The trace of an item with what SLRC measured on it."""
    records = list(records)
    (trace,) = (r for r in records if r["probe"] == "trace")
    of_item = measured(records)
    places = {index: i for r in of_item[:1] for i, index in enumerate(r["steps"])}
    counted = [s["index"] for s in trace["steps"] if s["counted"]]
    return TraceView(
        model=visible(trace["model"]),
        task=visible(trace["dataset"]),
        item=visible(str(trace["item"])),
        question=visible(trace["question"]["text"]),
        options=tuple(map(visible, trace["question"].get("options") or ())),
        gold=_shown(trace["question"].get("gold")),
        answer=_shown(trace.get("answer")),
        correct=trace.get("correct"),
        excluded=trace.get("excluded"),
        steps=tuple(
            StepView(
                number=counted.index(s["index"]) + 1 if s["counted"] else None,
                text=visible(s["text"]),
                branches=_branches_at(of_item, places.get(s["index"])),
                corrupted_text=_corrupted_at(of_item, places.get(s["index"])),
            )
            for s in trace["steps"]
        ),
        tail=visible(trace.get("tail_text") or ""),
        baselines=tuple(
            Branch(r["framing"], r["reading"], "baseline", _shown(r["baseline"]), False)
            for r in of_item
        ),
        shuffles=tuple(b for r in of_item for b in _branches(r, "shuffle") if b is not None),
    )


def trace_block(view: TraceView) -> Box:
    """A trace on a page: the question, what was answered, and its steps, each with its branches."""
    blocks: list[Block] = [
        Heading(f"{view.model} · {view.task} · {view.item}"),
        Paragraph(view.question, "question"),
        Paragraph(_facts(view), "facts"),
        Steps([_step(step, view.baselines) for step in view.steps]),
        Paragraph(view.tail.strip(), "tail"),
    ]
    if view.shuffles:
        flipped = sum(b.flipped for b in view.shuffles)
        said = f"{flipped} of {len(view.shuffles)} shuffles changed the answer."
        blocks.append(Paragraph(said, "quiet"))
    return Box(blocks, "trace card")


def _facts(view: TraceView) -> str:
    answer = "nothing that parses" if view.answer is None else view.answer
    facts = [markup("<span>answered <strong>{}</strong></span>", answer)]
    if view.gold is not None:
        facts.append(markup("<span>right answer <strong>{}</strong></span>", view.gold))
    again = [(f"{b.framing}, {b.reading}:", b.answer, "") for b in view.baselines]
    if view.settled:
        again = [("without an edit,", again[0][1], " in every framing and reading")]
    quiet = '<span class="quiet">asked again{} {} <strong>{}</strong>{}</span>'
    comma = "" if view.settled else ","
    return Markup(" ").join([*facts, *(markup(quiet, comma, *words) for words in again)])


def _step(step: StepView, baselines: Sequence[Branch]) -> Step:
    if not step.branches:
        return Step(step.text)
    blocks: list[Block] = [Grid(_branch_table(step, baselines), "Answers of every branch")]
    if step.corrupted_text:
        said = markup('Corrupted to: <span class="text">{}</span>', step.corrupted_text.strip())
        blocks.append(Paragraph(said, "quiet"))
    removed = [b for b in step.branches if b.edit == "remove"]
    return Step(
        step.text,
        step.number,
        step.level,
        step.mark,
        step.meaning,
        "; ".join([step.meaning, *(f"{b.framing}, {b.reading}: {_words(b)}" for b in removed)]),
        [
            (level, f"{MARKS[level]} {word}")
            for edit, word in EDIT_SHORT.items()
            if (level := step.level_of(edit)) != "unknown"
        ],
        blocks,
    )


def _branch_table(step: StepView, baselines: Sequence[Branch]) -> HtmlTable:
    at = {(b.edit, b.framing, b.reading): b for b in step.branches}
    lines = [[Cell("unedited", ""), *(Cell(_words(b), "") for b in baselines)]]
    for edit in STEP_EDITS:
        of_edit = [at.get((edit, b.framing, b.reading)) for b in baselines]
        lines.append([Cell(EDIT_WORDS[edit], ""), *map(_branch_cell, of_edit)])
    heading = ["step", *(f"{b.framing}, {b.reading}" for b in baselines)]
    return HtmlTable(heading, [False] * len(heading), lines, css="")


def _branch_cell(branch: Branch | None) -> Cell:
    if branch is None:
        return Cell("–", "")
    changed = Markup(' <span class="changed">≠ changed</span>') if branch.flipped else ""
    return Cell(markup("{}{}", _words(branch), changed), "")


def _words(branch: Branch) -> str:
    return "no answer found" if branch.answer is None else branch.answer


def typical(records: Iterable[Record], limit: int) -> list[Place]:
    """Up to `limit` measured items, spread over models and tasks.

    Of each model and task first the item nearest to the mean share of necessary steps, then
    the next nearest; an item that another model already shows is taken first, so that twins
    can be compared on the same question. The faithful model and its decorative twin come
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


def _shown(text: str | None) -> str | None:
    return None if text is None else visible(str(text))


def _branches_at(of_item: Sequence[Record], place: int | None) -> tuple[Branch, ...]:
    if place is None:
        return ()
    found = [
        branches[place]
        for r in of_item
        for edit in STEP_EDITS
        if len(branches := _branches(r, edit)) > place
    ]
    return tuple(b for b in found if b is not None)


def _branches(record: Record, edit: str) -> list[Branch | None]:
    rows = zip(answers(record, edit), flips(record, edit), graded(record, edit, "tv"), strict=True)
    return [
        None
        if flipped is None
        else Branch(record["framing"], record["reading"], edit, _shown(answer), flipped, variation)
        for answer, flipped, variation in rows
    ]


def _corrupted_at(of_item: Sequence[Record], place: int | None) -> str | None:
    if place is None:
        return None
    for r in of_item:
        texts, can = r.get("corrupted_text") or [], r.get("corruptible") or []
        if len(texts) > place and can[place]:
            return _shown(texts[place])
    return None
