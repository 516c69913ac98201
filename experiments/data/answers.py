"""The answer in what a model wrote (SLRC, section 4.7), read in one of two ways.

`last_*` reads a whole response: the answer is the last thing of its kind. `first_*` reads
the continuation of an answer cue ("… The final answer is"): there the answer comes first
and may be followed by anything, so it is the first of its kind in the first line.

All give a canonical answer, or None where there is none: nothing is guessed. Markdown,
quotes, case and white space do not matter. What goes beyond the paper's one-line rules:

- A label that is negated ("not positive", "rather than negative") or offered among others
  ("positive or negative", "positive/negative") states no answer and is passed over.
- An answer that is marked as one (`\\boxed{…}`, `#### …`) counts before any other number
  or letter; a label stated as the category ("Category: Sports") before one that occurs.
- An article "A" or a pronoun "I" is no letter of a choice.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Mapping, Sequence

from faithscope.experiments.data.numbers import find_numbers
from faithscope.interp.number_ends import CALCULATION

_MARKUP = re.compile(r"[*_`]+")
_BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
_HASHES = re.compile(r"####[ \t]*(.+)")
_NEGATED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|nothing|(?:is|was|are|were|does|do|did)n['’]t|hardly|without"
    r"|instead of|opposed to)\s+(?:(?:a|an|the|any|very|really|clearly|so|too|entirely|purely|"
    r"necessarily|particularly|overly|be|being|seem|have|contain|express)\s+){0,3}"
    r"|(?<!\bmore )\bthan\s+(?:[\w'’-]+\s+){0,3}|\bnon-?)[\"'“‘(]*$",
    re.IGNORECASE,
)
_BETWEEN_OFFERED = re.compile(
    r"[\"'”’).]*+\s*+(?:,?\s*+\b(?:and|or|nor|and/or|vs\.?|versus)\b|/|,)\s*"
    r"(?:(?:a|an|the)\s+)?[\"'“‘(]*",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"\b(?:answer|category|class|classification|label|topic|type|group|verdict|conclusion|"
    r"prediction)\s*(?:is|:|=|would be)\s*(?:(?:therefore|clearly)\s+)?(?:(?:a|an|the)\s+)?"
    r"[\"'“‘(\[]*$",
    re.IGNORECASE,
)
_STATED_CHOICE = (
    r"\b(?i:answer|option|choice)(?i:\s+(?:is|would be|must be))?\s*+[:=]?\s*+"
    r"(?i:(?:option|choice)\s+)?[(\[\"'“]*"
)
_OPERATION = re.compile(r"[^=+−*/×÷\n]{0,30}?(?:[=+\-−*/×÷]|\\(?:times|cdot|div)|\bx\b)[\s$(=]*")
_WORD_FOLLOWS = re.compile(r"\s+[a-z]")


ANSWERS = 1
"""Version of how answers are read out of texts; see `probes.probe.Probe.version`."""


def last_label(text: str, labels: Sequence[str], others: Sequence[str] = ()) -> str | None:
    """The last label word that the text asserts ("last sentiment keyword").

    Args:
        labels: the canonical labels; matched as whole words, whatever their case.
        others: words that answer, but with none of the labels ("neutral"): where one of
            them comes last, there is no answer.
    """
    mentions = _labels(text, labels, others)
    last = mentions[-1][1] if mentions else None
    return last if last in labels else None


def last_category(
    text: str, labels: Sequence[str], also: Mapping[str, str] | None = None
) -> str | None:
    """The category that a text concludes with ("last category, final three lines first").

    In the last three lines that are not blank: the last label stated as the category, else
    the last label at all; where these lines hold none, the same in the whole text. A plural
    ("birds") counts. The order
    in which the labels are listed plays no part: a parser that tried "World" first made
    every aside about the world an answer (Extended Data 2).

    Args:
        also: other words, in small letters, for labels.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    for end in ("\n".join(lines[-3:]), text):
        mentions = _labels(end, labels, (), plural=True, also=also)
        plain = _MARKUP.sub("", end)
        stated = [label for at, label in mentions if _STATES.search(plain[max(0, at - 80) : at])]
        if stated or mentions:
            return (stated or [label for _, label in mentions])[-1]
    return None


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
        others: as of `last_label`.
        also, plural: other words for labels, and their plural count, as of `last_category`.
    """
    mentions = _labels(_first_line(text), labels, others, plural=plural, also=also)
    first = mentions[0][1] if mentions else None
    return first if first in labels else None


def last_number(text: str) -> str | None:
    """The last number of a response: `#### n` or `\\boxed{n}` if there is one, else the last.

    Step counters ("Step 3:", "3. Then …") and ordinals ("3rd") are no numbers here.
    """
    plain = _plain(text)
    for marked in reversed(_marked(plain)):
        if numbers := find_numbers(marked):
            return numbers[-1].canonical
    numbers = find_numbers(plain)
    return numbers[-1].canonical if numbers else None


def marked_answer(text: str) -> str | None:
    """What a text marks as its answer, word for word: the last `\\boxed{…}` or `#### …`."""
    marked = _marked(text)
    return marked[-1].strip() if marked else None


def first_number(text: str) -> str | None:
    """The first number in the first line of a continuation.

    Where it begins a calculation ("3 + 4 = 7"), the answer is what that comes to; one that
    comes to nothing ("3 + 4 is", "3 + 4 = 7 *") gives no answer, not its first operand.
    """
    line = _plain(_first_line(text))
    numbers = find_numbers(line, counters=True)
    if not numbers:
        return None
    answer = numbers[0]
    for one, other in itertools.pairwise(numbers):
        between = line[one.end : other.start]
        if not _OPERATION.fullmatch(between):
            break
        if "=" in between:
            answer = other
    return None if CALCULATION.match(line, answer.end) else answer.canonical


def last_choice(text: str, n_options: int) -> str | None:
    """The letter that a response to a multiple-choice question settles on ("last letter").

    The last one stated (`\\boxed{B}`, "the answer is (B)", "Option B"), else the one that the
    last line opens with or brackets ("B. Vitamin A", "so (B)"), else the last capital that
    stands alone.
    """
    plain = _MARKUP.sub("", text)
    last_line = (plain.strip().splitlines() or [""])[-1]
    letters = _letters(n_options)
    one = rf"(?P<letter>[{letters}](?![\w'’])|[{letters.lower()}](?=[)\]]|\.?\s*$))"
    for where, pattern in (
        (plain, rf"\\boxed\s*\{{\s*+(?:\\text\w*\s*\{{)?\s*+\(?(?P<letter>[{letters}])(?!\w)"),
        (plain, _STATED_CHOICE + one),
        (last_line, rf"(?:^\s*|\()(?P<letter>[{letters}])[.):]"),
        (plain, rf"(?<![\w'’])(?P<letter>[{letters}])(?![\w'’])"),
    ):
        matches = [m for m in re.finditer(pattern, where, re.MULTILINE) if _is_answer(where, m)]
        if matches:
            return matches[-1]["letter"].upper()
    return None


def first_choice(text: str, n_options: int) -> str | None:
    """The first letter in the first line of a continuation: "B", "(b)", "b." """
    line = _MARKUP.sub("", _first_line(text))
    letters = _letters(n_options)
    pattern = (
        rf"(?<![\w'’])(?P<letter>[{letters}](?![\w'’])|(?<=[(\[])[{letters.lower()}](?=[)\]])|"
        rf"(?<!.)[{letters.lower()}](?=[).:]|\s*$))"
    )
    matches = [m for m in re.finditer(pattern, line) if _is_answer(line, m)]
    return matches[0]["letter"].upper() if matches else None


def _labels(
    text: str,
    labels: Sequence[str],
    others: Sequence[str],
    *,
    plural: bool = False,
    also: Mapping[str, str] | None = None,
) -> list[tuple[int, str]]:
    """(offset without markup, label) of every asserted label, in order."""
    plain = _MARKUP.sub("", text)
    by_lower = {label.lower(): label for label in (*others, *labels)} | dict(also or {})
    names = "|".join(re.escape(name) for name in sorted(by_lower, key=len, reverse=True))
    ending = "(?:s|es)?" if plural else ""
    matches = list(re.finditer(rf"(?<!\w)({names}){ending}(?!\w)", plain, re.IGNORECASE))
    offered: set[int] = set()
    for one, other in itertools.pairwise(matches):
        differ = by_lower[one[1].lower()] != by_lower[other[1].lower()]
        if differ and _BETWEEN_OFFERED.fullmatch(plain[one.end() : other.start()]):
            offered |= {one.start(), other.start()}
    return [
        (m.start(), by_lower[m[1].lower()])
        for m in matches
        if m.start() not in offered and not _is_negated(plain, m.start())
    ]


def _is_negated(text: str, at: int) -> bool:
    return bool(_NEGATED.search(text[max(0, at - 60) : at]))


def _first_line(text: str) -> str:
    """The first line that says something: "\\[" and ":" do not."""
    return next((line.strip() for line in text.splitlines() if re.search(r"[^\W_]", line)), "")


def _plain(text: str) -> str:
    """Without emphasis; "\\$5" and "\\text{ dollars}" as a reader sees them."""
    text = re.sub(r"\*\*(?=\S)|(?<=\S)\*\*|`+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)", "", text)
    text = re.sub(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}", r"\1", text)
    return text.replace("\\$", "$").replace("\\%", "%").replace("\\,", "")


def _marked(text: str) -> list[str]:
    marks = [*_BOXED.finditer(text), *_HASHES.finditer(text)]
    return [m[1] for m in sorted(marks, key=lambda m: m.start())]


def _letters(n_options: int) -> str:
    if not 2 <= n_options <= len(string.ascii_uppercase):
        raise ValueError(f"a choice of {n_options} options has no letters; give 2 to 26")
    return string.ascii_uppercase[:n_options]


def _is_answer(text: str, match: re.Match[str]) -> bool:
    """Neither the article "A" nor the pronoun "I", and not ruled out ("not B")."""
    at = match.start("letter")
    word = match["letter"] in ("A", "I") and _WORD_FOLLOWS.match(text, at + 1)
    return not word and not _is_negated(text, at)
