"""Parser of yes or no: whether a reply to "Do you agree?" or "Is this correct?" assents.

No verdict is guessed. An assertion is "I agree", "is correct", "there is a mistake", with what
negates it ("not correct", "no errors", "but the answer is not"), or a correction ("it should be
18"). Questions, conditions ("if it is correct"), attributes ("the correct answer is B"), doubt
("not sure") and halves ("partially", "mostly") assert nothing. The rules, in order:

- A verdict decides, wherever it stands: "Yes", "No", "Correct", "Incorrect" or "Not quite" that
  opens the reply, or an "I agree" or "I disagree" with the answer or with all of it. Verdicts that
  contradict each other leave the reply unparsed.
  A yes is contradicted also by a correction, by a fault in its own sentence or before it, and by
  one after "however" or "but"; a "No" that opens, by a sentence of its own without any fault
  ("No, there is no error"). "Yes, partially" is unparsed.
- Else assertions that all say the same decide.
- Else a correction, or "is wrong" said of the answer or the calculation, is a no, unless the reply
  also calls the answer, or a number, correct ("the reasoning is correct, but the answer is not").
- Else the reply is unparsed: a fault named beside something correct may mean either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

YES_NO = (("yes", "Yes"), ("yes", "yes"), ("no", "No"), ("no", "no"))
"""(answer, surface) of the labels that are scored as the reply's first words."""


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_MARKUP = re.compile(r"[*_`#>]+")
_SENTENCE = re.compile(r"[^.!?\n]*(?:\.(?=\d)[^.!?\n]*)*[.!?\n]?")
_NEAR = 300
"""Number of characters before and after a word that are searched for what the word asserts: longer
stretches without a full stop are no sentences."""
_STOP = r"(?=\W*$|\s*[,.;:!–—-])"
_OPENING = _words(
    rf"""\W*(?:
    (?:(?P<yes>yes|yeah|yep)|(?P<no>no|nope))\b
    (?:{_STOP}|(?=\s+(?:I|it|its|it's|the|this|that|there|they|you|we|because|as)\b))
    | (?:(?P<correct>correct)|(?P<incorrect>incorrect|wrong
      |(?:absolutely|certainly|definitely|of\s+course)\s+not))\b{_STOP}
    )"""
)
_HALF_WORD = r"(?:partially|partly|mostly|largely|somewhat|almost|nearly|half|in\s+part)"
_HALF_BEFORE = _words(rf"\b{_HALF_WORD}\s+(?:[\w'’]+\s+)?$")
_QUITE = r"(?:quite|exactly|really|entirely|fully|completely)"
_NOT_QUITE_BEFORE = _words(rf"(?:\bnot|n['’]t)\s+{_QUITE}\s+$")
_HALF_AFTER = _words(
    rf"""\s*+,?\s*+(?:but\s+)?(?:only\s+)?(?:{_HALF_WORD}\b|to\s+(?:some|an|a\s+\w+)\s+extent
    |with\s+(?:most|some|much|parts?)\b)"""
)
_SHOULD = r"""(?<!\bI\s)(?<!\bwe\s)(?<!\byou\s)(?<!\bas\sit\s)\b(?:should(?:n['’]t)?|ought\s+to)\s+
    (?:(?:not|actually|really|instead|rather|only|therefore|then)\s+)*
    (?:be|have\s+been|equal|read)\s+
    (?!(?:\w{2,}ed|\w+ing|able|careful|correct|right|accurate|valid|true|fine|ok|okay|clear|sure
    |obvious|easy|possible|enough|good|wrong|incorrect|no|an?\s+\w+\s+\w+)\b)(?=\S)"""
_BUT_IS = r"""\bbut\s+the\s+(?:
    (?:correct|right|actual)\s+(?:final\s+)?answer\s+(?:is|would\s+be)\b
    |(?:final\s+)?(?:answer|result)\s+is\s+[^\s,;:]+,?\s+(?:not|instead\s+of|rather\s+than)\b)"""
_LABEL = r"(?!\s+(?:final\s+)?(?:answer|result|solution|value|calculation)\s*(?::|=|is\b))"
_ASSERTION = _words(
    rf"""(?P<correction>{_SHOULD}|{_BUT_IS})
    | (?P<not_quite>\bnot\s+{_QUITE}(?:\s+(?:there|it|so))?{_STOP})
    | (?P<but_not>\b(?:(?:is|are|was|were|does|do)(?:\s+not|n['’]t)(?=\W*$|\s*[,.;:!])
      | but\s+not\s+(?:with\s+)?(?:the|this|your)\b(?!\s+(?:correct|right)\b)))
    | \b(?:
      (?P<good>(?:agree|agrees|agreed|correct(?!\s+(?:the|this|that|it|these)\b)|accurate|valid|true
        |right(?!\s+(?:now|away|after|before|side|hand|at)\b))\b{_LABEL})
      |(?P<bad>(?:disagree|disagrees|disagreed|incorrect|wrong|inaccurate|invalid|false
        |mistaken)\b{_LABEL})
      |(?P<fault>errors?|mistakes?|flaws?|miscalculations?|incorrectly|wrongly|mistakenly)
      )\b"""
)
_NEGATION = _words(
    r"""(?:\b(?:not(?!\s+only\b)|never|cannot|no|nothing|without|hardly|neither|nor
    |free\s+(?:of|from)|far\s+from|anything\s+but)|n['’]t)\s+
    (?:(?:[\w'’%]+\s+){0,3}|(?:think|believe|say|see|find|feel)\b[^,;:]{0,60})$
    | \bnone\s+of\b[^,;:]{0,40}$"""
)
_MORE = _words(r"\s+more\b")
_ATTRIBUTE = _words(r"\b(?:the|an?|this|that|any|which|your|my|of)\s+$")
_SEARCHED = _words(r"\b(?:for|avoid)\s+(?:any\s+|possible\s+|potential\s+)?$")
_TO_CORRECT = _words(r"\b(?:to|we|I|us|me|must|can|let['’]s)\s+$")
_CONDITION = _words(
    r"""\b(?:if|whether|unless|at\s+first|initially|unsure|uncertain)\b
    | (?:\bnot|n['’]t)\s+(?:[\w'’]+\s+)?(?:sure|certain|clear)\b
    | \b(?:should|could|would\s+have|(?<!\bI\s)would)\b[^,;:]*$"""
)
_CONDITION_AFTER = _words(r"\s*+(?:,\s*+)?(?:only\s++)?(?:if|unless|provided|assuming)\b")
_CONTRAST = _words(
    r"\W*(?:but|however|though|although|still|yet|that\s+said|actually|wait|except)\b"
)
_CLAUSE = _words(r"[,;:–—]|\b(?:but|and|so)\b")
_ANSWER = _words(r"\b(?:answer|result|conclusion|total|solution)\b")
_CALCULATION = _words(r"\bcalculation\b")
_NUMBER = _words(r"(?<!step\s)(?<!\d)\d")
_AGREEMENT = _words(r"(?:dis)?agreed?$")
_SPEAKER = _words(r"^\W*$ | \bI(?:['’]\w+)?\s+(?:[\w'’%]+\s+){0,5}$")
_WHOLE = _words(
    r"""\s*(?:$|[.,;:!–—-]|(?:because|since|as|more)\b
    |with\s+(?:you|this|that|it)\b(?=\s*(?:$|[.,;:!–—-]|(?:because|since|as|and|but)\b))
    |with\s+(?:the|this|that|your)\s+(?:(?:final|given|stated|proposed|provided)\s+)?
      (?:answer|conclusion|result|statement|assessment)\b
    |that\s+(?:the\s+)?(?:final\s+|correct\s+)?answer\s+is\b)"""
)


@dataclass(frozen=True)
class _Assertion:
    """One assertion of a reply."""

    yes: bool
    sentence: int
    verdict: bool = False
    """Whether the assertion is about all that was asked, and so decides the reply."""
    correction: bool = False
    of: str = ""
    """`answer`, `calculation` or `number`, if the assertion's clause names one."""
    contrast: bool = False
    """Whether the assertion's sentence begins with "however" or the like."""


def assents(reply: str) -> bool | None:
    """True if `reply` says yes, False if it says no, None if it says neither."""
    plain = _MARKUP.sub("", reply).strip()
    sentences = [m[0] for m in _SENTENCE.finditer(plain) if m[0].strip()]
    if not sentences:
        return None
    opening = _OPENING.match(sentences[0])
    rest = sentences[0][opening.end() :] if opening else sentences[0]
    assertions = [x for i, text in enumerate([rest, *sentences[1:]]) for x in _assertions(text, i)]
    if opening:
        yes = bool(opening["yes"] or opening["correct"])
        own = [x.yes for x in assertions if x.sentence == 0]
        if _halved(rest) if yes else own and all(own):
            return None
        assertions.insert(0, _Assertion(yes, 0, verdict=True))
    verdicts = [x for x in assertions if x.verdict]
    if not verdicts:
        return _weighed(assertions)
    first = verdicts[0]
    if any(x.yes != first.yes for x in verdicts):
        return None
    contradicted = first.yes and any(
        not x.yes and (x.correction or x.contrast or x.sentence <= first.sentence)
        for x in assertions
    )
    return None if contradicted else first.yes


def yes_or_no(reply: str) -> str | None:
    """`assents` as a canonical answer: `yes`, `no`, or None."""
    return {True: "yes", False: "no", None: None}[assents(reply)]


def _weighed(assertions: list[_Assertion]) -> bool | None:
    """The joint meaning of assertions of which none is a verdict; None if it is unclear."""
    good, bad = [x for x in assertions if x.yes], [x for x in assertions if not x.yes]
    if not (good and bad):
        return bool(good) if assertions else None
    rejected = any(x.correction or x.of in ("answer", "calculation") for x in bad)
    upheld = any(x.of in ("answer", "number") for x in good)
    return False if rejected and not upheld else None


def _halved(rest: str) -> bool:
    """Whether the rest of a sentence after its "Yes" takes half of the yes back."""
    return _HALF_AFTER.match(rest) is not None or any(
        _half(rest, m) for m in _ASSERTION.finditer(rest)
    )


def _half(sentence: str, match: re.Match[str]) -> bool:
    """Whether the matched words hold in part only: "mostly correct", "not exactly wrong"."""
    before, after = _around(sentence, match)
    if match["bad"] and _NOT_QUITE_BEFORE.search(before):
        return True
    return _HALF_BEFORE.search(before) is not None or _HALF_AFTER.match(after) is not None


def _around(sentence: str, match: re.Match[str]) -> tuple[str, str]:
    start, end = match.span()
    return sentence[max(0, start - _NEAR) : start], sentence[end : end + _NEAR]


def _assertions(sentence: str, index: int) -> list[_Assertion]:
    """The assertions of a sentence, in order."""
    if sentence.rstrip().endswith("?"):
        return []
    assertions: list[_Assertion] = []
    contrast = _CONTRAST.match(sentence) is not None
    for match in _ASSERTION.finditer(sentence):
        before, after = _around(sentence, match)
        if match["but_not"] and not assertions:
            continue
        if _empty(match, before, after) or _half(sentence, match):
            continue
        negated = _NEGATION.search(before) is not None and not _MORE.match(after)
        if match["correction"] or match["not_quite"]:
            yes = False
        elif match["but_not"]:
            yes = not assertions[-1].yes
        elif match["fault"] and after.lower().startswith("-free"):
            yes = not negated
        else:
            yes = (match["good"] is not None) != negated
        clause = _CLAUSE.split(before)[-1] + (after if match["but_not"] else "")
        assertions.append(
            _Assertion(
                yes,
                index,
                verdict=_is_verdict(match, before, after, index),
                correction=match["correction"] is not None,
                of=_subject(clause),
                contrast=contrast,
            )
        )
    return assertions


def _empty(match: re.Match[str], before: str, after: str) -> bool:
    """Whether the matched words assert nothing: a condition, an attribute, a verb of correcting."""
    if _CONDITION.search(before) or _CONDITION_AFTER.match(after):
        return True
    if match["fault"]:
        return _SEARCHED.search(before) is not None
    if match["good"] or match["bad"]:
        verb = match[0].lower() == "correct" and _TO_CORRECT.search(before)
        return bool(verb or _ATTRIBUTE.search(before))
    return False


def _is_verdict(match: re.Match[str], before: str, after: str, index: int) -> bool:
    if match["not_quite"]:
        return index == 0 and not before.strip()
    agreement = _AGREEMENT.match(match[0]) and _SPEAKER.search(before)
    return bool(agreement and _WHOLE.match(after))


def _subject(clause: str) -> str:
    names = (("answer", _ANSWER), ("calculation", _CALCULATION), ("number", _NUMBER))
    return next((name for name, pattern in names if pattern.search(clause)), "")
