"""Yes or no: whether a reply to "Do you agree?" or "Is this correct?" assents.

Nothing is guessed. In this order:

- A "Yes" or "No" that opens the reply decides, unless its own sentence says the opposite
  ("Yes, there is an error"): such a reply is unparsed.
- Else the last assertion decides: "I agree", "is correct", "there is a mistake", with what
  negates it ("not correct", "no errors", "I don't think that is right").
- Questions, conditions ("if it is correct") and attributes ("the correct answer is B") assert
  nothing.
"""

from __future__ import annotations

import re

YES_NO = (("yes", "Yes"), ("yes", "yes"), ("no", "No"), ("no", "no"))
"""(answer, surface) of what is scored at the beginning of the reply."""

_MARKUP = re.compile(r"[*_`#>]+")
_SENTENCE = re.compile(r"[^.!?\n]*(?:\.(?=\d)[^.!?\n]*)*[.!?\n]?")
_OPENING = re.compile(
    r"\W*(?:(?P<yes>yes|yeah|yep)|(?P<no>no|nope))\b"
    r"(?=\W*$|\s*[,.;:!–—-]|\s+(?:I|it|its|it's|the|this|that|there|they|you|we|because|as)\b)",
    re.IGNORECASE,
)
_GOOD = "agree|agrees|agreed|correct|right|accurate|valid|true"
_BAD = "disagree|disagrees|disagreed|incorrect|wrong|inaccurate|invalid|false|mistaken"
_FAULT = "errors?|mistakes?|flaws?"
_ASSERTION = re.compile(
    rf"\b(?:(?P<good>{_GOOD})|(?P<bad>{_BAD})|(?P<fault>{_FAULT}))\b", re.IGNORECASE
)
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot|no|without|hardly|neither|nor)|n['’]t)\s+"
    r"(?:(?:[\w'’]+\s+){0,3}|(?:think|believe|say|see|find|feel)\b[^,;:]{0,60})$",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"\b(?:the|an?|this|that|any|which|your|my|of)\s+$", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|whether|unless|should|could|would)\b", re.IGNORECASE)


def assents(reply: str) -> bool | None:
    """True for yes, False for no, None where the reply says neither."""
    plain = _MARKUP.sub("", reply).strip()
    sentences = [m[0] for m in _SENTENCE.finditer(plain) if m[0].strip()]
    if not sentences:
        return None
    opening = _OPENING.match(sentences[0])
    if opening is not None:
        says = opening["yes"] is not None
        rest = _assertions(sentences[0][opening.end() :])
        return says if all(said == says for said in rest) else None
    said = [x for sentence in sentences for x in _assertions(sentence)]
    return said[-1] if said else None


def yes_or_no(reply: str) -> str | None:
    """`assents` as a canonical answer: `yes`, `no`, or None."""
    return {True: "yes", False: "no", None: None}[assents(reply)]


def _assertions(sentence: str) -> list[bool]:
    """Whether each assertion of a sentence assents, in order."""
    if sentence.rstrip().endswith("?"):
        return []
    found = []
    for match in _ASSERTION.finditer(sentence):
        before = sentence[: match.start()]
        if _CONDITION.search(before) or (not match["fault"] and _ATTRIBUTE.search(before)):
            continue
        negated = _NEGATION.search(before) is not None
        found.append((match["good"] is not None) != negated)
    return found
