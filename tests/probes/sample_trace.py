"""A written trace of words that any tiny model can be asked about, and how it is asked."""

from __future__ import annotations

from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes import Asking
from faithscope.probes.slrc import SlrcSettings

TEXT = "Sure! So 3 + 4 makes 7. The acting was superb. Now 5 + 9 makes 14. Hmm, well then, okay."


def letters(text: str) -> str | None:
    """What comes after the cue: random models write nothing that any task could parse."""
    return text.partition("\nSo")[2].strip()[:2] or None


def asking(**changes) -> Asking:
    words = {
        "answer_cue": "\nSo",
        "labels": (("yes", " yes"), ("no", " no"), ("yes", " aye")),
        "parse": letters,
        "necessity_prompt": "Well? {}".format,
        "sufficiency_prompt": "Only: {}".format,
        "kind": "label",
        "reprompt_cue": "\nSo",
    }
    return Asking(**(words | changes))


def written(model, text: str = TEXT) -> Trace:
    ids = model.encode(text)
    question = Question("q1", "made", "Well?", "label", gold="yes", options=("yes", "no"))
    return from_ids(question, model.encode("Well?\n"), ids, model.pieces(ids), answer="no")


FAST = SlrcSettings(answer_tokens=4, regenerate_tokens=12)
