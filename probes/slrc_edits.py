"""The edits of SLRC, each declared once: its name, the fields of its branches, and its words.

To add an edit of a step, add its text to `TEXTS` if no other edit has it, its name to `EditName`,
and an `Edit` to `EDITS`: records, tables, figures and pages are made from these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from faithscope.interventions import (
    Trace,
    corrupt_step,
    keep_only_step,
    remark_after_step,
    remove_step,
)

if TYPE_CHECKING:
    from faithscope.interp.model import Model
    from faithscope.probes.text_model import TextModel

EditName = Literal["remove", "corrupt", "regenerate", "control"]
"""Edits that a config may name."""
Text = Callable[["Model | TextModel", Trace, int, int], Trace]
"""Function (model, trace, index of a step, seed) -> the trace with the step edited. It raises
`NotCorruptible` or `NotWritable` where a step cannot be edited so."""
TEXTS: dict[str, Text] = {
    "removed": lambda model, trace, step, seed: remove_step(trace, step),
    "alone": lambda model, trace, step, seed: keep_only_step(trace, step),
    "corrupted": lambda model, trace, step, seed: corrupt_step(
        trace, step, seed, model.encode, model.pieces
    ),
    "remarked": lambda model, trace, step, seed: remark_after_step(
        trace, step, model.encode, model.pieces
    ),
}
"""Kind of text -> how it is made of a trace; several edits may share one."""
SURE = ("removed", "alone")
"""Kinds of text that every step has."""


@dataclass(frozen=True)
class Edit:
    """One edit of a chain's steps, or of all its reasoning."""

    name: str
    """Name in configs and tables."""
    answers: str
    """Record field with the answer of each branch; the edit's other fields begin with this name."""
    flips: str
    """Record field that lists whether each branch changed the answer; of `keep_only`, whether each
    step alone gives the answer back."""
    words: str
    """What is done to a step, after "the step is"; of an edit of all reasoning, a sentence with
    places for how many of how many branches changed the answer."""
    text: str = ""
    """Kind of text of a step's branch (`TEXTS`); empty for an edit of all reasoning."""
    anew: bool = False
    """Whether the model writes the text after the edited step anew."""
    if_text: str = ""
    """Kind of text that must exist of a step, besides its own, for the step to be edited."""
    chosen: bool = False
    """Whether the edit runs only where the setting `edits` names it."""
    short: str = ""
    """One word for the edit, of edits that steps are marked by on the page."""
    heading: str = ""
    """Heading of its rate of changed answers in the table of verdicts; empty leaves it out."""
    done: str = ""
    """What was done to every step, on the page's first line; empty leaves it out."""
    leads: int = 0
    """Rank among the edits that a verdict rests on, the least misleading first; 0 for none."""
    seldom: str = ""
    """What a verdict that rests on the edit says if no single step decides."""

    @property
    def of_steps(self) -> bool:
        """Whether each branch is of one step, and not of all reasoning."""
        return bool(self.text)


EDITS = (
    Edit(
        "remove",
        "removed",
        "necessary",
        "removed",
        text="removed",
        chosen=True,
        short="removed",
        heading="step removed",
        done="removed",
        leads=3,
        seldom="Removing one step seldom changed the answer",
    ),
    Edit(
        "corrupt",
        "corrupted",
        "corrupt_flips",
        "corrupted, later text frozen",
        text="corrupted",
        chosen=True,
        short="corrupted",
        heading="step changed, rest frozen",
        done="changed with the rest left as it was",
        leads=2,
        seldom="Changing one step seldom changed the answer",
    ),
    Edit(
        "regenerate",
        "regenerated",
        "regenerate_flips",
        "corrupted, later text written anew",
        text="corrupted",
        anew=True,
        chosen=True,
        short="rewritten",
        heading="step changed, rest rewritten",
        done="changed with the rest written anew",
        leads=1,
        seldom="Changing one step did no more than an idle remark",
    ),
    Edit(
        "control",
        "controlled",
        "control_flips",
        "left as it is with a remark, later text written anew",
        text="remarked",
        anew=True,
        # a control only where there is a corruption: the two are compared step by step
        if_text="corrupted",
        chosen=True,
        heading="a remark put in, rest rewritten",
    ),
    Edit("keep_only", "alone", "sufficient", "kept alone", text="alone", done="kept alone"),
    Edit("shuffle", "shuffled", "reordered", "{} of {} shuffles changed the answer."),
    Edit(
        "remove_all",
        "emptied",
        "empty_flips",
        "With all steps removed the answer changed in {} of {}.",
        heading="all steps removed",
    ),
)
BY_NAME = {edit.name: edit for edit in EDITS}
CHOSEN = tuple(edit for edit in EDITS if edit.chosen)
LEADING = tuple(sorted((edit for edit in EDITS if edit.leads), key=lambda edit: edit.leads))
"""Edits that a verdict may rest on, the least misleading first."""
