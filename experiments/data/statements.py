r"""Statements of a text's answer, told apart from what it mentions, supposes, denies or takes back.

A statement says that something is the answer ("The answer is …", "Answer: …", 答案是…); anything
else is a mention. Texts of models go on past their answer: with what is wrong about the other
options, with checks, and with the next question of the prompt's own making.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from faithscope.experiments.data.latex import boxes
from faithscope.interventions.conclusion import ANSWER_ELSEWHERE, split_conclusion
from faithscope.interventions.scripts import WORD
from faithscope.interventions.sentences import sentence_starts

_IS = (
    r"(?:\s*[*_\"']*[:：=][*_]*|\s+[-–—](?=\s)|(?:\s+(?:therefore|thus|then|clearly))?\s+(?:is|would\s+be"
    r"|must\s+be|should\s+be|has\s+to\s+be|can\s+only\s+be|equals|comes\s+(?:out\s+)?to|es|est|ist|sera"
    r"|è|é)(?![^\W\d_])(?:\s*:)?)"
)
_ANSWER = rf"(?<![{WORD}])(?:final\s+)?(?:answer|antwort|respuesta|réponse|risposta|resposta)"
_OF_WHAT = (
    r"(?:\s+(?:to|for|of)\s+(?:the|this|that|your)\s+(?:[\w-]+\s+){0,2}?[\w-]+)?"
    r"(?:\s*\([^()\n]{1,40}\))?"
)
HEADING = r"^[ \t]{0,3}\#{1,4}[ \t]*(?:final\s+)?answer[ \t]*:?[ \t]*$"
ANSWER_IS = re.compile(
    rf"(?:{_ANSWER}{_OF_WHAT}{_IS}|{ANSWER_ELSEWHERE}|{HEADING})\s*", re.IGNORECASE | re.MULTILINE
)
"""Words that introduce a stated answer."""
_FINAL = re.compile(rf"(?<![{WORD}])final\s+answer{_OF_WHAT}{_IS}", re.IGNORECASE)
LABEL_IS = re.compile(
    rf"(?:(?<![{WORD}])(?<!initial )(?<!apparent )(?<!opening )(?:answer|category|class"
    r"|classification|label|topic|type|group|verdict|conclusion|prediction|sentiment|polarity)"
    rf"(?:\s+of\s+(?:the|this|that)\s+(?:[\w-]+\s+){{0,2}}?[\w-]+)?(?:\s*\([^()\n]{{1,40}}\))?{_IS}|(?:情感|类别|類別|标签|分类|答案)\s*"
    r"(?:是|为|為|[:：]))\s*(?:(?:therefore|clearly|overall|most\slikely|classified\sas)\s+){0,2}"
    r"(?:(?:a|an|the)\s+)?[\"'“‘(\[]*\Z",
    re.IGNORECASE,
)
"""End of a text right before a label that is stated as the answer."""
_ANNOUNCES = re.compile(r"[:：]\W*\Z")
"""End of a sentence that only announces the answer: "The final answer is:"."""
_LAST_WORD = re.compile(r"(?<![\w.,])[\w.,]+\Z")
CUT_ANSWERS = 2
"""Version of `stated_before_the_cut`, by which generated chains are read; see `Probe.version`."""
_TAG = re.compile(r"<(/?)(?:(?:final[ _-]?)?answer|final|result|solution)\s*>", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"[\s`'\".,…]*(?:(?:and|or|tags?\b.*|(?:(?:your|the|final)\s){0,2}answer(?:\s(?:goes\s)?here)?)"
    r"[\s`'\".,…]*)?",
    re.IGNORECASE | re.DOTALL,
)
"""What stands in or behind a tag that is only spoken of: "in <answer> and </answer> tags"."""
_OR = re.compile(r"[\s$]*(?:(?<!\w)or(?!\w)|或者?|または|หรือ|أو)[\s$]*", re.IGNORECASE)
_RETRACTION = re.compile(
    r"(?:^|[.!?…][\"'”)]*\s+|(?<!\w)(?:but|hmm|oh|no),?\s+)(?:wait|actually|correction|scratch that"
    r"|on second thought|hold on|let me (?:re|double)[\w-]*|no(?=[,.]\s))(?!\w)"
    r"|(?<!\w)(?:(?:i|that) (?:made a mistake|was wrong|is wrong)"
    r"|that['’]s (?:wrong|not right))(?!\w)",
    re.IGNORECASE | re.MULTILINE,
)
_NEGATED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|nothing|(?:is|was|are|were|does|do|did)n['’]t|hardly|without"
    r"|instead of|opposed to|anything but|far from)\s+(?:(?:a|an|the|any|very|really|clearly|so|too"
    r"|entirely|purely|necessarily|particularly|overly|be|being|seem|have|contain|express|option|choice)\s+){0,3}"
    r"|(?<!\bmore )\bthan\s+(?:[\w'’-]+\s+){0,3}|\bnon-?|[不非没沒未]是?|ไม่|غير\s)[\"'“‘(]*\Z",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"(?:(?<!\w)(?:if|unless|whether|suppose|supposing|assuming)(?!\w)(?!\s+(?:i|we|you|one)\s)[^,;]{0,80}"
    r"|(?:would|could|might|should)\s+have\s+been(?!\w)[^,;]{0,30}|(?:如果|假如|要是|若)[^，,]{0,30})\Z",
    re.IGNORECASE,
)
_WOULD = re.compile(r"(?<!\w)(?:would|could|might)(?!\w)|['’]d(?!\w)", re.IGNORECASE)
_CONDITION = re.compile(
    r"(?<!\w)(?:if(?!\s+(?:i|we|you|one)\s)|unless|otherwise|had\s+it|were\s+it)(?!\w)",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[.!?](?=\s|\Z)|[\n。！？]")
_ENDS_CLAUSE = re.compile(rf"{_ENDS_SENTENCE.pattern}|;|:(?=\s)|, but(?!\w)")
_ENDS_UNIT = re.compile(
    r"[.!?](?=[\"'”’)*]{0,4}(?:\s|\Z))|[。！？；]|;\s(?![^\n=]{0,60}=)|,\s(?=[^\W\d_])|\s[-–—]\s(?=[^\W\d_]{2})"
    r"|\s(?:because|since|which|where|when|but|if|and\s(?=[^\W\d_]))(?!\w)",
    re.IGNORECASE,
)
_NEXT_WORD = 12
"""Number of characters after a mention that are searched for its verb: "D would be right if …"."""
_FAR = 120
"""Number of characters of the sentence that are read around a mention."""
_LONGEST = 300
"""Number of characters behind "the answer is" that are read."""
_SIDE = r"(?:[^\n=.,;!?]|[.,](?=\d)){0,40}+="
_EQUATIONS = re.compile(
    r"(?:[ \t:$\\\[]*+\n)*+[^\n=]*+=[^\n]*+"
    rf"(?:\n\s*+(?!(?:[^\W\d_]{{2,20}}\s){{3}}){_SIDE}[^\n]*+){{1,9}}"
)
"""Lines of equations; a line of prose with "=" in it is none."""
_ABBREVIATES = re.compile(r"(?:\b(?:vs|e\.g|i\.e|approx|no|St|Dr|Mr|Ms|Mrs)|\b[A-Za-z])\Z")


def marked(text: str) -> str | None:
    """What the last box or answer tag that is not blank holds: `\\boxed{B}`, `<answer>B</answer>`.

    Of two boxes with "or" between them it is both, which state no answer. A tag that is not closed
    ends where the text does.
    """
    span = _mark(text)
    return text[slice(*span)].strip() if span else None


def final_after_mark(text: str) -> str | None:
    """The text after the last mark, if it states a final answer anew: "\\boxed{5} … Wait, … The
    final answer is 6"."""
    span = _mark(text)
    said = _FINAL.search(text, span[1]) if span else None
    return text[said.start() :] if said else None


def _mark(text: str) -> tuple[int, int] | None:
    spans = [span for _, span in boxes(text)]
    tags = [*_TAG.finditer(text), None]
    for tag, following in itertools.pairwise(tags):
        if tag and not tag[1]:
            spans.append((tag.end(), following.start() if following else len(text)))
    filled = sorted(s for s in spans if not _NO_ANSWER.fullmatch(text, *s))
    if not filled:
        return None
    start, end = filled[-1]
    if len(filled) > 1:
        begins = text.rfind("\\boxed", filled[-2][1], start)
        if begins >= 0 and _OR.fullmatch(text, filled[-2][1] + 1, begins):
            start = filled[-2][0]
    return start, end


def without_tags(text: str) -> str:
    """A text without answer tags: `<answer>10</answer>` gives "10"."""
    return _TAG.sub("", text)


def stated(text: str, words: re.Pattern[str] = ANSWER_IS) -> Iterator[tuple[str, str, int]]:
    """Statements of a text, the last one first: (its words, the line it states, where that ends).

    What is said of a hypothetical case is left out. Of equations on lines that follow each other,
    it is the last one.
    """
    for match in reversed(list(words.finditer(text))):
        if not is_supposed(text, match.end()):
            said = text[match.end() : match.end() + _LONGEST]
            equations = _EQUATIONS.match(said)
            line = equations[0].splitlines()[-1] if equations else first_line(said)
            yield match[0], line.strip(), match.end()


def unit_of(line: str) -> tuple[str, str]:
    """What a line states first, up to the end of its clause, and the rest of the line."""
    for end in _ENDS_UNIT.finditer(line):
        if end.start() and not (
            end[0] == "." and _ABBREVIATES.search(line, max(0, end.start() - 8), end.start())
        ):
            return line[: end.start()], line[end.end() :]
    return line, ""


def is_retracted(text: str, at: int) -> bool:
    """Whether the text after an offset takes back or reconsiders the statement before it."""
    return bool(_RETRACTION.search(text, at))


def stated_before_the_cut(text: str) -> str:
    """The sentence in which a response that the token limit cut off states its answer; empty if
    there is none, or if it is taken back. What else such a text says is said on the way.

    A statement that the limit cut, too, is read without its last word, which may lack its end.
    """
    said = text[split_conclusion(list(text), closing=()) :]
    ends = (at for at in (*sentence_starts(said), len(said)) if at)
    end = next((at for at in ends if not _ANNOUNCES.search(said[:at])), len(said))
    if end == len(said):
        return _LAST_WORD.sub("", said)
    return "" if is_retracted(said, end) else said[:end]


def is_denied(text: str, at: int) -> bool:
    """Whether the words at an offset are negated ("not", "rather than")."""
    return bool(_NEGATED.search(text[max(0, at - 60) : at]))


def is_supposed(text: str, at: int) -> bool:
    """Whether the words at an offset are said of a hypothetical case: "It would be B if …"."""
    before = _ENDS_CLAUSE.split(text[max(0, at - _FAR) : at])[-1]
    after = _ENDS_CLAUSE.split(text[at : at + _FAR])[0]
    would = _WOULD.search(before + after[:_NEXT_WORD]) and _CONDITION.search(before + after)
    return bool(would or _SUPPOSED.search(before))


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences and lines of a text, in order."""
    ends = [*(m.end() for m in _ENDS_SENTENCE.finditer(text)), len(text)]
    return [(a, b) for a, b in zip([0, *ends], ends, strict=False) if text[a:b].strip()]


def first_line(text: str) -> str:
    """The first line that says something: "\\[" and ":" do not."""
    return next((line.strip() for line in text.splitlines() if re.search(r"[^\W_]", line)), "")
