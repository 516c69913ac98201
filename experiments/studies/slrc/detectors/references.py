"""The answer that an edited chain's answer is compared with (FaithCoT-Bench, appendix C.1).

The paper's a is the answer of the chain; its released code reads it in the chain's text. A model
that is asked again after its unedited chain may give another answer, and then every edit seems to
change the chain's answer, whatever it does. So an edit counts where the model, asked in the same
way without the edit, gives the answer that the chain states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from faithscope.experiments.analysis.stored_records import Record

Reference = Literal["stated", "asked_again", "released"]
"""Names of the answer to compare with. `stated`: the answer that the chain states, only for chains
after which the model, asked again, gives it. `asked_again`: the answer that the model gives when
asked again, whatever the chain states. `released`: the stated answer, whatever the model gives. For
a chain without a stated answer all three are what the model gives."""
ASKED_AGAIN = "asked_again_differs"
"""Reason for a missing finding: asked again without any edit, the model gives another answer than
the chain states, so no change can be put down to an edit."""
NO_ANSWERS = "answers_not_kept"
"""Reason for a missing `released` finding: the run is of an earlier version, which stored no
answers to edits."""
_ANSWERS = {
    "necessary": "removed",
    "corrupt_flips": "corrupted",
    "regenerate_flips": "regenerated",
    "removed_flips": "removed",
    "corrupted_flips": "corrupted",
}
"""Field of flips -> field with the answers after the same edits."""


def asked_again(record: Record) -> str | None:
    """The model's answer after the unedited chain, asked in the way of this record."""
    if "baseline" in record:
        return record["baseline"]
    # Records of earlier versions followed only the forced choice.
    return record.get("forced_answer", record.get("answer"))


def differs(stated: str | None, record: Record) -> bool | None:
    """Whether the model, asked again, gives another answer than the chain states; None if none is
    stated."""
    return None if stated is None else asked_again(record) != stated


def changes(
    reference: Reference, stated: str | None, record: Record, flips: str
) -> Sequence[bool | None] | str:
    """Whether each edit changed the answer (None where there was no edit), or the reason why this
    cannot be told for the reference answer.

    Args:
        flips: the field that lists whether each edit changed the answer, compared with the answer
            that the model gives when asked again.
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
