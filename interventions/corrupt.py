"""Corruption of a step so that it says something else: by a number, a word or a negation.

Rules only, no model: the same step and seed give the same corruption. A number is changed first
(SLRC, section 4.8: a number of the calculation, never a step's label), else a word of polarity,
comparison or direction is turned into its opposite, else a negation is put in or taken out. Raw
choices are recorded in the edit, so that another rule can be compared.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from faithscope.interventions.sentences import touched


class NotCorruptible(ValueError):
    """A step in which no rule finds anything to change."""


@dataclass(frozen=True)
class Change:
    """One stretch of a step's text and the text that replaces it."""

    start: int
    end: int
    """Half-open character span in the step's text."""
    new: str
    rule: str
    """Name of the rule: `number`, `word`, `negation`, or that of another module's rule."""


LABEL = re.compile(
    r"(?:^|(?<=[\r\n]))[\s#>*_\-+•]{0,40}+\(?\d{1,3}[.):]+(?=[\s*_]+\S)"
    r"|\b(?:steps?|eqs?\.?|equations?|fig\.?|figures?|tables?|sections?|lines?|parts?|cases?|"
    r"options?|questions?|rules?|examples?)[*_]*[ \t]*\(?#?\d+(?:[ \t]*(?:,|and|to|-|–)[ \t]*\d+)*",
    re.IGNORECASE,
)
"""Labels that count steps, equations or options: never a number of the reasoning."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?!\d|(?:st|nd|rd|th)\b|[.,]\d)")
_NEAR = 80
"""Number of characters before a number that are searched for what the number is."""
_RESULT = re.compile(
    r"(?:=|≈|→|⇒|\b(?:is|are|was|were|be|becomes?|makes?|equals?|gives?|gets?|yields?|leaves?|"
    r"totals?|comes to|results? in))[\s$*_\\({\[£€]*$",
    re.IGNORECASE,
)

_PAIRS = """
positive negative | good bad | better worse | best worst | more less | most least | many few
higher lower | high low | highest lowest | greater smaller | larger smaller | large small
increase decrease | increases decreases | increased decreased | increasing decreasing
rise fall | rises falls | rising falling | rose fell | up down | above below | before after
true false | correct incorrect | correctly incorrectly | right wrong | valid invalid
always never | likely unlikely | possible impossible | agree disagree | agrees disagrees
love hate | loves hates | loved hated | enjoyable unpleasant | excellent awful
great terrible | wonderful dreadful | beautiful ugly | brilliant dull | amazing appalling
interesting boring | favourable unfavourable | favorable unfavorable | praise criticism
strong weak | stronger weaker | strength weakness | strengths weaknesses | happy sad
success failure | pleasant nasty | delightful tedious
fast slow | faster slower | early late | earlier later | old young | older younger
long short | longer shorter | left right | north south | east west | maximum minimum
add subtract | adds subtracts | adding subtracting
plus minus | gain loss | gains losses | with without | outside inside | guilty innocent
support oppose | supports opposes | accept reject | accepts rejects | hot cold
"""
# A word in two pairs is turned into its opposite in the first of them.
OPPOSITES: dict[str, str] = {}
for _pair in re.split(r"[|\n]", _PAIRS.strip()):
    _one, _other = _pair.split()
    OPPOSITES.setdefault(_one, _other)
    OPPOSITES.setdefault(_other, _one)

_WORD = re.compile(
    rf"\b(?:(?P<article>an?)(?P<gap>\s+))?(?P<word>{'|'.join(OPPOSITES)})\b", re.IGNORECASE
)
# "no" before a noun is no answer: only a "yes" or "no" that stands alone is turned.
_YES_NO = re.compile(r"(?<![\w-])(?P<word>yes|no)(?=[\"'”’*_)\]]*(?:[.,;:!?]|\s*$))", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?P<verb>is|are|was|were|does|do|did|can|could|has|have|had|will|would|should|must)"
    r"(?P<not>\s+not\b|n['’]t\b)|\bcannot\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\b(?:is|are|was|were|can|could|will|would|should|must)\b", re.IGNORECASE)


def corruption(text: str, seed: int) -> Change | None:
    """The change that corrupts a step's text; None if no rule finds anything to change.

    A number's leading digit is exchanged for another, drawn by `seed`: of the last number that
    stands as a result ("= 7", "is 7", "makes 7"), else of the last number. The number of digits
    stays, and no longer number begins with zero. A word is turned at its last occurrence, since a
    sentence's conclusion stands at its end, with the article before it if need be.
    """
    rng = random.Random(f"corrupt-{seed}-{text}")
    return _number(text, rng) or _word(text) or _negation(text)


def numbers(text: str) -> list[re.Match[str]]:
    """Every number of the reasoning, in order: no labels, ordinals or parts of names."""
    labels = [m.span() for m in LABEL.finditer(text)]
    return [m for m in _NUMBER.finditer(text) if not touched(labels, *m.span())]


def is_result(text: str, number: re.Match[str]) -> bool:
    """Whether a number stands as a result: "= 7", "is 7", "makes 7"."""
    at = number.start()
    return _RESULT.search(text, max(0, at - _NEAR), at) is not None


def other_leading_digits(digits: str) -> list[str]:
    """Digits that may replace the first digit of a number: never a zero before further digits."""
    single = len(digits) == 1 or digits[1] == "."
    return [d for d in ("0123456789" if single else "123456789") if d != digits[0]]


def _number(text: str, rng: random.Random) -> Change | None:
    matches = numbers(text)
    if not matches:
        return None
    results = [m for m in matches if is_result(text, m)]
    chosen = (results or matches)[-1]
    at = chosen.start()
    return Change(at, at + 1, rng.choice(other_leading_digits(chosen.group())), "number")


def _word(text: str) -> Change | None:
    matches = [*_WORD.finditer(text), *_YES_NO.finditer(text)]
    if not matches:
        return None
    m = max(matches, key=lambda m: m.start("word"))
    old = m["word"]
    low = old.lower()
    new = cased({"yes": "no", "no": "yes"}.get(low) or OPPOSITES[low], old)
    article = m.groupdict().get("article")
    if article and (low[0] in "aeiou") != (new[0].lower() in "aeiou"):
        right = cased("an" if new[0].lower() in "aeiou" else "a", article)
        return Change(m.start("article"), m.end("word"), f"{right}{m['gap']}{new}", "word")
    return Change(m.start("word"), m.end("word"), new, "word")


def _negation(text: str) -> Change | None:
    negated = list(_NEGATED.finditer(text))
    if negated:
        m = negated[-1]
        if m["verb"] is None:
            return Change(m.start() + 3, m.end(), "", "negation")
        return Change(m.start("not"), m.end("not"), "", "negation")
    plain = list(_PLAIN.finditer(text))
    if plain:
        return Change(plain[-1].end(), plain[-1].end(), " not", "negation")
    return None


def cased(word: str, like: str) -> str:
    """`word` in the capitals of `like`."""
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word
