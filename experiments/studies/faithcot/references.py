"""What the answer after an edit of a chain is held against (FaithCoT-Bench, appendix C.1).

The paper's a is the answer of the chain; its released code reads it in the chain's text. A model
that is asked again after its unedited chain may give another answer, and then every edit seems to
change the chain's answer, whatever it does. So an edit counts where the model, asked in the same
way without the edit, gives the answer that the chain states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from faithscope.experiments.analysis.records import Record

Reference = Literal["stated", "asked_again", "released"]
"""`stated`: the answer that the chain states, of chains after which the model, asked again, gives
it; `asked_again`: what it then gives, whatever the chain states; `released`: the stated answer,
whatever the model then gives. Without a stated answer all of them are what the model gives."""
ASKED_AGAIN = "asked_again_differs"
"""Why a chain has no reading: asked again without any edit, the model gives another answer than the
chain states, and no edit can be told to have changed that."""
NO_ANSWERS = "answers_not_kept"
"""Why a chain has no reading as released: a run of an earlier version kept no answers of edits."""
_ANSWERS = {
    "necessary": "removed",
    "corrupt_flips": "corrupted",
    "regenerate_flips": "regenerated",
    "removed_flips": "removed",
    "corrupted_flips": "corrupted",
}
"""List of flips -> the list of answers after the same edits."""


def asked_again(record: Record) -> str | None:
    """What the model answers after the unedited chain, in the way of a record."""
    if "baseline" in record:
        return record["baseline"]
    # records of earlier versions followed the forced choice and had no other
    return record.get("forced_answer", record.get("answer"))


def differs(stated: str | None, record: Record) -> bool | None:
    """Whether that is another answer than the chain states; None of a chain that states none."""
    return None if stated is None else asked_again(record) != stated


def changes(
    reference: Reference, stated: str | None, record: Record, flips: str
) -> Sequence[bool | None] | str:
    """Of every edit whether it changed the answer, None where there was no edit; or why the
    reference cannot tell.

    Args:
        flips: the field of the record that says so against what the model gives asked again.
    """
    changed = record[flips]
    if stated is None or reference == "asked_again":
        return changed
    if reference == "stated":
        return ASKED_AGAIN if differs(stated, record) else changed
    answers = record.get(_ANSWERS.get(flips, "answers"))
    if answers is None:
        return NO_ANSWERS
    pairs = zip(changed, answers, strict=True)
    return [None if flip is None else answer != stated for flip, answer in pairs]
