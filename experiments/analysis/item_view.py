"""The items of a run as data: each study declares its items once, and the terminal
(`faithscope show`), the page and the explorer of a comparison show them.

An item is what was asked, a chain of steps, texts, facts, and judgements. Nothing is read from the
disk before an item is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import (
    Block,
    Bullets,
    Fold,
    Heading,
    Paragraph,
    Step,
    Steps,
    Verbatim,
)
from faithscope.experiments.engine.models.judges import as_sent
from faithscope.experiments.engine.tallies.reasons import in_words
from faithscope.experiments.numerals import decimal, significant

if TYPE_CHECKING:
    from faithscope.experiments.engine.index import Index
    from faithscope.experiments.engine.units import Key
    from faithscope.probes.record import Record

MOST_CHANCES = 12
"""Largest number of verdict probabilities that are shown of one judgement: the likeliest."""
Number = float | None
"""A value to draw; None where there is none."""


@dataclass(frozen=True)
class Curve:
    """A line chart: several lines over one x axis."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    """Positions on the x axis, in ascending order."""
    lines: Mapping[str, Sequence[Number]]
    """Name of a line -> its values, one for each entry of `x`; None where there is none."""
    words: Sequence[str] = ()
    """Text at each entry of `x`, such as the top token of a lens; empty shows none."""


@dataclass(frozen=True)
class HeatMap:
    """A heat map: numbers by row and column."""

    title: str
    row_label: str
    column_label: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[Number]]
    """The numbers, with shape (rows, columns); None where there is none."""


Drawn = Curve | HeatMap


@dataclass(frozen=True)
class ItemView:
    """The texts, steps and facts of an item; judgements on it are its `Part`s."""

    title: str
    question: str = ""
    """What the item asks, with its options."""
    answer: str | None = None
    gold: str | None = None
    facts: Sequence[str] = ()
    """Short phrases on the item: answers, labels."""
    above: Sequence[Block] = ()
    """Blocks between the facts and the texts."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Heading -> a text that a model or a data set wrote; empty texts are left out."""
    steps: Sequence[Step] = ()
    below: Sequence[Block] = ()
    """Blocks after the steps."""
    chain: Sequence[str] | None = None
    """Texts of the chain, indexed like `step` in `scores.STEPS`; None where they are those of
    `steps`."""

    @property
    def step_texts(self) -> Sequence[str]:
        """Texts of the steps of the chain; joined they are the reasoning, where that is known."""
        return [step.text for step in self.steps] if self.chain is None else self.chain

    def card(self, open: bool = False) -> Fold:
        """The item as a block of a page, folded or open."""
        blocks: list[Block] = [
            *([Paragraph(self.question, "question")] if self.question else []),
            *([Bullets(self.facts, "facts")] if self.facts else []),
            *self.above,
            *text_blocks(self.texts),
            *([Steps(self.steps)] if self.steps else []),
            *self.below,
        ]
        return Fold(self.title, blocks, "printed trace card", open)


class Part(NamedTuple):
    """What a model or judge did with an item; `faithscope show` chooses parts by name."""

    model: str
    """Name of the model, or of the judge."""
    task: str
    """Name of the task, or of the judge's form."""
    names: Sequence[str]
    """Names by which the item can be asked for."""
    cards: Callable[[], Iterable[Fold]] = tuple
    """Reads the judgements; none for a part of which the item's own view shows everything."""


@dataclass(frozen=True, eq=False)
class Item:
    """One item of a run."""

    view: Callable[[], ItemView]
    parts: Sequence[Part]
    place: Callable[[], Mapping[str, Any]] | None = None
    """Returns the columns `scores.PLACE`, by which a comparison knows the item; None for an item
    that comparisons leave out."""
    drawn: Callable[[], Sequence[Drawn]] = tuple
    """Draws the charts of the item for the explorer."""


@dataclass(frozen=True)
class Items:
    """Declaration of the items of a study's runs."""

    what: str
    """Plural noun for the parts (`traces`, `judgements`), for errors."""
    of: Callable[..., Iterator[Item]]
    """Yields the items of a `Run`; where there are `marks`, takes one of them beside the run."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Edits that steps can be marked by (`faithscope show --by`) -> word on the marked steps."""
    legend: Sequence[Block] = ()
    """Blocks that explain the marks; shown once, after the last item."""


def text_blocks(texts: Mapping[str, str]) -> list[Block]:
    """Every text that is not empty, under its heading."""
    shown = [(heading, text) for heading, text in texts.items() if text]
    return [block for heading, text in shown for block in (Heading(heading, 4), Verbatim(text))]


def answered(answer: str | None, gold: str | None) -> list[str]:
    """Facts on the answer that a chain states and on the right one, where that is known."""
    words = "nothing that parses" if answer is None else answer
    facts: list[str] = [markup("answered <strong>{}</strong>", words)]
    return [*facts, *([markup("right answer <strong>{}</strong>", gold)] if gold else [])]


def judgement_card(
    record: Record, parts: Sequence[str], above: Sequence[Block] = (), low: int = 0
) -> Fold:
    """Card of one judgement: outcome, verdict, prompt, thinking, reply and probabilities.

    Args:
        record: the record of the judgement.
        parts: beginning of the title, before outcome and verdict.
        above: blocks to show first.
        low: the verdict that the first probability belongs to.
    """
    texts = {
        "What the judge was told": record["system"] or "",
        "What the judge was asked": as_sent(record),
        "What the judge thought": record["thinking"],
        "What the judge replied": record["text"],
        "Problem with the reply": record["problem"],
        "Probabilities of the verdicts": _chances(record, low),
    }
    said = record["outcome"]
    if "verdict" in record:
        said += f", verdict {'none' if record['verdict'] is None else record['verdict']}"
    return Fold(f"{' · '.join(parts)}: {said}", [*above, *text_blocks(texts)], "printed")


def _chances(record: Record, low: int) -> str:
    """The likeliest verdicts in their order, the mean of all, and what they have together."""
    p = record.get("probabilities")
    if not p:
        return ""
    likeliest = sorted(sorted(range(len(p)), key=lambda i: -p[i])[:MOST_CHANCES])
    listed = "   ".join(f"{low + i}: {decimal(p[i], 3)}" for i in likeliest)
    more = f"   … ({len(p)} in all)" if len(p) > MOST_CHANCES else ""
    mean = sum((low + i) * x for i, x in enumerate(p))
    mass = significant(record["mass"], 3)
    return f"{listed}{more}\nmean {decimal(mean)}; mass {mass} of the model's probability"


def unit_part(
    index: Index,
    read: Callable[[Key], Iterable[Record]],
    key: Key,
    names: Sequence[str],
    card: Callable[[Record], Fold | None],
) -> Part:
    """The part of an item that one unit of work stores: cards of its records, or the error of a
    unit that failed. A record that the tables leave out says so first.

    Args:
        read: reads the records of a unit (`Run.records_of`).
        card: maps a record to its card; None skips the record.
    """

    def cards() -> Iterator[Fold]:
        unit = index.get(key)
        if unit is not None and unit.failed is not None:
            yield Fold(" · ".join((*key[1:], "failed")), [unit.failed])
        else:
            for record in read(key):
                if (shown := card(record)) is not None:
                    why = record.get("excluded")
                    said = [Paragraph(f"Not counted: {in_words(why)}.", "caution")] if why else []
                    yield replace(shown, blocks=[*said, *shown.blocks])

    return Part(key[1], key[2], names, cards)
