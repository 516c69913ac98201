r"""Parsers of the answer in a model's text (SLRC, section 4.7), read in one of two ways.

`last_*` reads a whole response, up to the next question that a model may go on with: the answer is
the last one that the response states as its answer, else the last expression of the answer's kind.
`first_*` reads the continuation of an answer cue ("… The final answer is"): there the answer comes
first and may be followed by anything, so it is the first expression of its kind in the first line.

All return a canonical answer, or None if there is none: nothing is guessed, and no part of an
answer is taken for the whole. Markdown, quotes, case and white space do not matter. Rules beyond
the paper's one-line rules:

- What is marked as the answer (`\boxed{…}`, `#### …`) counts before what is stated in words ("The
  answer is …", 答案是…), this before an answer that stands alone in the first line, and this before
  anything that only occurs. A statement that is taken back ("Wait, …") counts as a mention.
- Two answers in one statement ("A or B") state none.
- What is negated ("not positive", "rather than negative"), offered among others ("positive or
  negative") or supposed ("It would be positive if …") states no answer and is passed over.
- Words end where their script ends: 10 is a number in 答案是10。
- An article "A" or a pronoun "I" is no letter of a choice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from faithscope.experiments.data.latex import as_read, without_emphasis
from faithscope.experiments.data.numbers import (
    LEAD,
    Number,
    canonical_form,
    canonical_number,
    find_numbers,
    stated_number,
)
from faithscope.experiments.data.statements import (
    ANSWER_IS,
    LABEL_IS,
    final_after_mark,
    first_line,
    is_denied,
    is_retracted,
    is_supposed,
    marked,
    stated,
    unit_of,
    without_tags,
)
from faithscope.interp.number_ends import CALCULATION
from faithscope.interventions.conclusion import first_response
from faithscope.interventions.scripts import WORD

ANSWERS = 5
"""Version of the parsers of answers; see `probes.probe.Probe.version`."""

_DIGIT = re.compile(r"\d")
_HASHES = re.compile(r"####[ \t]*(.+)")
_BETWEEN_OFFERED = re.compile(
    r"[\"'”’).]*+\s*+(?:,?\s*+\b(?:and|or|nor|and/or|vs\.?|versus)\b|/|,|[、或和])\s*"
    r"(?:(?:a|an|the)\s+)?[\"'“‘(]*",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"\s*(?:(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|forty"
    r"|(?:thir|four|fif|six|seven|eigh|nine)(?:teen|ty)|a\s(?:hundred|thousand|dozen))(?!\w)"
    r"|[〇零一二三四五六七八九十百千两]+)",
    re.IGNORECASE,
)
_IN_ONE_WORD = re.compile(
    r"(?!(?:correct|right|wrong|clear|unclear|obvious|unknown|found|given|below|above|shown)\b)"
    r"(?:(?:a|an|the)\s)?[^\W\d_]+(?:\s[^\W\d_]+)?[.!]*",
    re.IGNORECASE,
)
"""A stated answer that is no number: "The answer is Saturday." """
_NEAR = 12
"""Characters before a number in which "between" or "from" stands."""
_ALONE = re.compile(r"\s*([$€£¥₹(-]{0,9}\d[\d.,/]{0,20}[%)]?)[.!$]{0,2}[ \t]*\n(?!\s*\Z)")
_OPERATION = re.compile(r"[^=+−*/×÷\n]{0,30}?(?:[=+\-−*/×÷]|\\(?:times|cdot|div)|\bx\b)[\s$(=]*")
_OPENS = re.compile(r"[^=\n]*(?:[+*/×÷]|\\(?:times|cdot|div)|\bx\b)[\s$(]*|[\s$)]*[-−][\s$(]*")
"""An operation on a number that nothing comes of until an "=": the gap in "3 apples * 60"."""
_OR = re.compile(r"[\s$]*(?:(?<!\w)or(?!\w)|或者?|または|หรือ|أو)[\s$]*", re.IGNORECASE)
_BESIDE = re.compile(
    rf"{_OR.pattern}|[-–—]|[\s$]*(?<!\w)(?:to|and)(?!\w)[\s$]*|[至到和と]", re.IGNORECASE
)
"""Text between two numbers of which neither is the answer: "10 or 12", "3 to 5", "3-5"."""
_OFFERS = re.compile(
    r"\s*(?:somewhere\s+|anywhere\s+)?(?:between|either|from)(?!\w)", re.IGNORECASE
)
"""Beginning of a line that offers several numbers: "between", "either", "from"."""
_OFFERED = re.compile(r"(?<!\w)(?:between|either|from)[\s(]*\Z", re.IGNORECASE)
_UNIT_BESIDE = re.compile(rf"(?:\s+[^\W\d_]+){{1,3}}?(?:{_BESIDE.pattern})", re.IGNORECASE)
"""Text between two numbers that are offered with their units, where `_OFFERED` stands before the
first: "from 3 pens to 5 pens"."""
_PRECISION = re.compile(r"\s*(?:decimal|significant|places|digits|d\.?p|s\.?f)", re.IGNORECASE)
"""Words after a number that states the precision of the one before: "3.14 to 2 decimal places"."""

_ONE_WORD = re.compile(r"[^\s.!(]+[\"'”’)\]]*(?:\s*\Z|[.!]|\s\()")
_BEGINS, _ENDS = rf"(?:(?<![{WORD}])|(?=[^{WORD}]))", rf"(?:(?![{WORD}])|(?<=[^{WORD}]))"
"""Patterns of a word's beginning and end: no letter of the word's own script stands beside it."""


def last_label(text: str, labels: Sequence[str], others: Sequence[str] = ()) -> str | None:
    """The label that the text states last ("last sentiment keyword").

    It is the last label stated as the answer ("The sentiment is …"), else the last label asserted.

    Args:
        labels: the canonical labels; matched as whole words, in any case.
        others: words that answer, but with none of the labels ("neutral"): if one of them comes
            last, there is no answer.
    """
    return _concluded(without_emphasis(first_response(text)), labels, others)


def last_category(
    text: str, labels: Sequence[str], also: Mapping[str, str] | None = None
) -> str | None:
    """The category that a text concludes with ("last category, final three lines first").

    It is the last label stated as the category in the last three lines that are not blank, else the
    last label in them; if these lines hold none, the whole text is read by this rule. A plural
    ("birds") counts. The order in which the labels are listed plays no part: a parser that tried
    "World" first made every aside about the world an answer (Extended Data 2).

    Args:
        also: other word, in lower case -> the label that it stands for.
    """
    plain = without_emphasis(first_response(text))
    lines = [line for line in plain.splitlines() if line.strip()]
    ends = ("\n".join(lines[-3:]), plain)
    return next(
        (x for end in ends if (x := _concluded(end, labels, (), plural=True, also=also))), None
    )


def first_label(
    text: str,
    labels: Sequence[str],
    others: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
    *,
    plural: bool = False,
) -> str | None:
    """The first label asserted in the first line of a continuation.

    Args:
        others: words that answer with none of the labels, as for `last_label`.
        also, plural: other words for labels, and whether plurals count, as for `last_category`.
    """
    line = without_emphasis(first_line(without_tags(text)))
    mentions = _labels(line, labels, others, plural=plural, also=also)
    first = mentions[0][1] if mentions else None
    return first if first in labels else None


def last_number(text: str) -> str | None:
    r"""The number that a response states as its answer, else the last number in it.

    It is that of the first line `#### n`, which ends a response; else of the last `\boxed{n}`, or
    of "final answer is n" behind it; else of the last "the answer is n"; else the last number,
    unless a calculation continues with it, or it is an end of a range or one of two that are
    offered ("between 3 and 5", "3 or 4").
    Step counters ("Step 3:", "3. Then …") and ordinals ("3rd") are no numbers here. A marked
    answer, or a number, that cannot be read whole gives no answer (`canonical_number`), and so does
    a text that breaks off at "the answer is".
    """
    plain = as_read(first_response(text))
    if (line := next((m[1] for m in _HASHES.finditer(plain) if _begins(m[1])), None)) is not None:
        return canonical_number(line)
    if (mark := marked(plain)) is not None:
        final = final_after_mark(plain)
        if final and (number := last_number(final)) is not None:
            return number
        long = len(mark) < len(plain) and ("\n" in mark or ANSWER_IS.search(mark))
        return canonical_number(mark) or (last_number(mark) if long else None)
    is_cut = False
    for words, line, end in stated(plain):
        if not line:
            is_cut = True
            continue
        unit, rest = unit_of(line)
        if _IN_WORDS.match(unit) and not _DIGIT.search(unit):
            return None
        if not (digit := _DIGIT.search(unit)):
            ends = line[len(unit) : len(unit) + 1] in ".!。" or not _DIGIT.search(rest)
            if words.startswith("#") or (ends and _IN_ONE_WORD.fullmatch(unit)):
                return None
            continue
        if is_denied(unit, digit.start()):
            continue
        # "Answer:" may also be the heading of a whole solution
        heads = words.rstrip().endswith((":", "：")) and not words.lower().startswith("final")
        if heads and _DIGIT.search(rest) and ("=" in unit or not _begins(unit)):
            continue
        if is_retracted(plain, end):
            break
        return canonical_number(unit) or (last_number(rest) if _DIGIT.search(rest) else None)
    if is_cut:
        return None
    if (alone := _ALONE.match(plain)) and not is_retracted(plain, alone.end()):
        return canonical_number(alone[1])
    mentioned = [n for n in find_numbers(plain) if not is_denied(plain, n.start)]
    if len(mentioned) > 1 and (
        _BESIDE.fullmatch(plain, mentioned[-2].end, mentioned[-1].start)
        and _PRECISION.match(plain, mentioned[-1].end)
    ):
        mentioned.pop()
    if len(mentioned) > 1 and _are_beside(plain, *mentioned[-2:]):
        return None
    return _canonical(stated_number(plain, mentioned))


def marked_answer(text: str) -> str | None:
    """The text that a response marks as its answer: of a line `#### …`, else of a box or a tag."""
    plain = first_response(text)
    lines = [m[1] for m in _HASHES.finditer(plain) if _begins(m[1])]
    return lines[0].strip() if lines else marked(plain)


def first_number(text: str) -> str | None:
    """The first number in the first line of a continuation.

    If the number begins a calculation ("3 + 4 = 7"), the answer is the calculation's result; one
    without a result ("3 + 4 is", "3 + 4 = 7 *") gives no answer, not its first operand. Two offered
    numbers ("10 or 12", "between 3 and 5") or a denied one ("not 5") give none, either.
    """
    line = as_read(first_line(without_tags(text)))
    return _begun_with(line, find_numbers(line, counters=True))


def _begins(line: str) -> bool:
    """Whether a line begins with a number, or with what stands before one."""
    numbers = find_numbers(line, counters=True)
    return bool(numbers) and LEAD.fullmatch(line, 0, numbers[0].start) is not None


def _begun_with(line: str, numbers: Sequence[Number]) -> str | None:
    """The number that a line begins with, or the result of the calculation that it begins."""
    if not numbers or is_denied(line, numbers[0].start):
        return None
    answer, is_open = numbers[0], False
    if len(numbers) > 1 and (_OFFERS.match(line) or _are_beside(line, *numbers[:2])):
        return None
    for one, other in itertools.pairwise(numbers):
        between = line[one.end : other.start]
        if not _OPERATION.fullmatch(between):
            break
        is_open = bool(_OPENS.fullmatch(between))
        if "=" in between:
            answer = other
    return None if is_open or CALCULATION.match(line, answer.end) else _canonical(answer)


def _are_beside(line: str, one: Number, other: Number) -> bool:
    """Whether two numbers are offered as alternatives or a range; "12-3 = 9" is a calculation."""
    together = _BESIDE.fullmatch(line, one.end, other.start) or (
        _OFFERED.search(line, max(0, one.start - _NEAR), one.start)
        and _UNIT_BESIDE.fullmatch(line, one.end, other.start)
    )
    goes_on = CALCULATION.match(line, other.end) or _PRECISION.match(line, other.end)
    return bool(together and not goes_on)


def _canonical(number: Number | None) -> str | None:
    return None if number is None or number.value is None else canonical_form(number.value)


def _concluded(
    text: str,
    labels: Sequence[str],
    others: Sequence[str],
    *,
    plural: bool = False,
    also: Mapping[str, str] | None = None,
) -> str | None:
    """The label stated last as the answer, else the last asserted; None if none of `labels`."""
    by_lower = {name.casefold(): name for name in (*others, *labels)} | dict(also or {})
    if (mark := marked(as_read(text))) and (whole := by_lower.get(_bare(mark))):
        return whole if whole in labels else None
    mentions = _labels(text, labels, others, plural=plural, also=also)
    stated = [m for m in mentions if LABEL_IS.search(text[max(0, m[0] - 120) : m[0]])]
    if not stated and mentions and re.fullmatch(r"\W*", text[: mentions[0][0]]):
        opening = text[mentions[0][0] :].partition("\n")[0]
        stated = mentions[:1] if _ONE_WORD.match(opening) else []
    if stated and is_retracted(text, stated[-1][0]):
        stated = []
    last = (stated or mentions or [(0, None)])[-1][1]
    return last if last in labels else None


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .,:;!\"'“”‘’()[]")


def _labels(
    plain: str,
    labels: Sequence[str],
    others: Sequence[str],
    *,
    plural: bool = False,
    also: Mapping[str, str] | None = None,
) -> list[tuple[int, str]]:
    """(offset, label) of every asserted label in a text without markup, in order."""
    by_lower = {label.lower(): label for label in (*others, *labels)} | dict(also or {})
    names = "|".join(re.escape(name) for name in sorted(by_lower, key=len, reverse=True))
    ending = "(?:s|es)?" if plural else ""
    matches = list(re.finditer(f"{_BEGINS}({names}){ending}{_ENDS}", plain, re.IGNORECASE))
    named = [by_lower[m[1].lower()] for m in matches]
    offered: set[int] = set()
    for (one, a), (other, b) in itertools.pairwise(zip(matches, named, strict=True)):
        if a != b and _BETWEEN_OFFERED.fullmatch(plain[one.end() : other.start()]):
            offered |= {one.start(), other.start()}
    return [
        (m.start(), label)
        for m, label in zip(matches, named, strict=True)
        if m.start() not in offered
        and not is_denied(plain, m.start())
        and not is_supposed(plain, m.start())
    ]
