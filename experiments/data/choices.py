r"""The letter of an option in what a model wrote; the rules stand in `answers`."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from faithscope.experiments.data.latex import as_read, boxes
from faithscope.experiments.data.statements import (
    ANSWER_IS,
    first_line,
    is_denied,
    is_retracted,
    is_supposed,
    sentences,
)
from faithscope.interventions.conclusion import first_response
from faithscope.interventions.scripts import WORD

_MARKUP = re.compile(r"[*_`]+")
_OPENS = r"(?i:(?:the\s+)?(?:option|choice|letter)\s+)?[(\[{\"'“]*"
_CLOSES = r"[)\]}.\"'”]*"
_SMALL_ENDS = r"(?=[)\]]|[.,;:!]*\s*$|[.,;:]\s|\s+(?:since|because)\b)"
_STATED = (
    rf"(?:{ANSWER_IS.pattern}|(?<![{WORD}])(?:(?:answer|(?:right|correct|best)\s(?:option|choice))\s*"
    r"|(?:option|choice)(?:\s+is(?:\s*:)?|\s*[:=])\s*)|(?:选择?|選擇?|ตอบ)\s*)"
)
_IS_RIGHT = (
    r"(?:\s*:\s*|\s+(?:is|are|seems|must\s+be|would\s+be)\s+(?:(?:therefore|the|most|only|both|clearly"
    r"|definitely|single)\s+){0,3})(?:correct|right|best|answer|true)(?!\w)"
    r"|\s*(?:选项|選項)?\s*(?:は|が|是|가|이)?\s*(?:正しい|正解|正确|正確|对的|對的|정답|맞)"
)
_SO = (
    r"(?<!\w)(?:so|therefore|thus|hence|choose|pick|select|go\swith|leaves|leaving|must\sbe|it\sis|it['’]s)"
    r"(?!\w)[,:]?\s*(?:(?:it\sis|it['’]s|it\smust\sbe|only|us\swith)\s+)?"
)
_IS_WRONG = re.compile(
    rf"{_CLOSES}\s*(?:[:–-]\s*|(?:is|was|are|seems|can\sbe|would\sbe)\s+)?"
    r"(?:(?:also|clearly|therefore)\s+)?"
    r"(?:(?:not|incorrect|wrong|false|out(?!\s+of)|eliminated|ruled|impossible"
    r"|excluded)(?!\w)"
    r"|(?:选项|選項)?(?:是|は)?(?:错|不|間違))",
    re.IGNORECASE,
)
_AND = (
    r"(?:\s*(?:,\s*(?:(?:and|or)\s+)?|/|、|，|(?<!\w)(?:and|or|and/or|&)(?!\w)"
    r"|或者?|还是|還是|和|と|または|또는)\s*|[-–])"
)
_ANOTHER_CLAUSE = r"(?:is|was|are|were|would|can|has|does)(?!\w)"
_NOT_ARTICLE = (
    "because|since|as|and|or|is|was|which|for|with|but|due|given|based|if|seems|fits|are|would|must"
)
_ARTICLE = re.compile(rf"\s+(?!(?:{_NOT_ARTICLE})(?!\w))[a-z]")
_PRONOUN = re.compile(r"\s+(?!(?:because|since|is|or)(?!\w))[a-z]")
_OPENS_OPTION = r"[ \t]{{0,8}}(?:[-•][ ])?\(?(?i:(?:option|choice)\s+)?(?P<letter>[{letters}])[).:]"


def last_choice(text: str, n_options: int) -> str | None:
    r"""The letter that a response to a multiple-choice question settles on ("last letter").

    The last one in a box (`\boxed{B}`); else the last one stated ("The answer is (B)", "B is
    correct"); else one alone in the first line; else the last one concluded ("So B"), or that the
    last line opens with or brackets ("B. Vitamin A"); else that of the last sentence in which a
    capital stands alone. Where a box, a statement or that sentence has several, there is none.
    """
    plain = as_read(_MARKUP.sub("", first_response(text)))
    letters = _letters(n_options)
    for rank in (_boxed, _stated, _opening, _concluded, _mentioned):
        if found := rank(plain, letters):
            return found.pop().upper() if len(found) == 1 else None
    return None


def first_choice(text: str, n_options: int) -> str | None:
    """The first letter in the first line of a continuation: "B", "(b)", "b." """
    line = as_read(_MARKUP.sub("", first_line(text)))
    letters = _letters(n_options)
    pattern = (
        rf"(?<![{WORD}'’])(?P<letter>[{letters}](?![{WORD}'’])|(?<=[(\[])[{letters.lower()}](?=[)\]])|"
        rf"(?<!.)[{letters.lower()}](?=[).:]|\s*$))"
    )
    first = next((m for m in re.finditer(pattern, line) if _is_answer(line, m)), None)
    offered = {first["letter"], *_others(line, first, letters)} if first else set()
    return offered.pop().upper() if len(offered) == 1 else None


def _boxed(text: str, letters: str) -> set[str]:
    inside = next(
        (
            text[slice(*span)].strip()
            for _, span in reversed(boxes(text))
            if text[slice(*span)].strip()
        ),
        "",
    )
    if opens := re.match(rf"\(?([{letters}])[.:)]|([{letters}])\Z", inside):
        return {opens[1] or opens[2]}
    if re.fullmatch(rf"[{letters}]{{2,}}", inside):
        return set(inside) | {""}
    return set(re.findall(rf"(?<![{WORD}'’])[{letters}](?![{WORD}'’])", inside))


def _stated(text: str, letters: str) -> set[str]:
    one = rf"(?P<letter>[{letters}](?![{WORD}'’])|[{letters.lower()}]{_SMALL_ENDS})"
    after = rf"(?i:{_STATED}){_OPENS}{one}"
    before = rf"(?<![{WORD}'’])(?P<letter>[{letters}])(?={_CLOSES}(?i:{_IS_RIGHT}))"
    found = [
        m
        for p in (after, before)
        for m in _matches(p, text)
        if not is_supposed(text, m.start("letter"))
    ]
    last = max(found, key=lambda m: m.start("letter"), default=None)
    if last is None or is_retracted(text, last.end()):
        return set()
    return {last["letter"].upper(), *_others(text, last, letters)}


def _opening(text: str, letters: str) -> set[str]:
    alone = re.match(rf"\s*[(\[\"'“]*([{letters}])[)\]\"'”.]*[ \t]*\n", text)
    return {alone[1]} if alone and not is_retracted(text, alone.end()) else set()


def _concluded(text: str, letters: str) -> set[str]:
    text = _without_list(text, letters)
    begins = len(text) - len((text.splitlines() or [""])[-1])
    so = rf"(?i:{_SO}){_OPENS}(?P<letter>[{letters}])(?={_CLOSES}\s*(?:[,;!。]|$))"
    opens = rf"(?:^[ \t]*|\()(?P<letter>[{letters}])[.):]"
    found = [
        *_matches(so, text),
        *(m for m in _matches(opens, text) if m.start("letter") >= begins),
    ]
    last = max(found, key=lambda m: m.start("letter"), default=None)
    return {last["letter"]} if last else set()


def _mentioned(text: str, letters: str) -> set[str]:
    text = _without_list(text, letters)
    alone = list(_matches(rf"(?<![{WORD}'’])(?P<letter>[{letters}])(?![{WORD}'’])", text))
    if not alone:
        return set()
    last = alone[-1].start("letter")
    start = next(a for a, b in reversed(sentences(text)) if a <= last < b)
    return {m["letter"] for m in alone if m.start("letter") >= start}


def _without_list(text: str, letters: str) -> str:
    """A text without the options that it lists at its end, a line each."""
    lines = text.rstrip().splitlines()
    opens = re.compile(_OPENS_OPTION.format(letters=letters))
    n = len(lines)
    while n and (not lines[n - 1].strip() or opens.match(lines[n - 1])):
        n -= 1
    named = {m["letter"] for line in lines[n:] if (m := opens.match(line))}
    return "\n".join(lines[:n] if len(named) > 1 else lines)


def _others(text: str, match: re.Match[str], letters: str) -> set[str]:
    """The letters that are offered beside the one of a match: "B or C", "A and B"."""
    found: set[str] = set()
    letter = rf"(?P<letter>[{letters}])(?![{WORD}'’])"
    after = re.compile(rf"{_CLOSES}{_AND}{_OPENS}{letter}(?!{_CLOSES}\s+{_ANOTHER_CLAUSE})")
    at = match.end("letter")
    while (other := after.match(text, at)) and not _is_article(text, other):
        found.add(other["letter"])
        at = other.end("letter")
    near = text[max(0, match.start("letter") - 24) : match.start("letter")]
    before = re.search(rf"(?<![{WORD}'’]){letter}{_CLOSES}{_AND}{_OPENS}\Z", near)
    return found | ({before["letter"]} if before else set())


def _matches(pattern: str, text: str) -> Iterator[re.Match[str]]:
    matches = re.finditer(pattern, text, re.MULTILINE)
    return (m for m in matches if _is_answer(text, m))


def _letters(n_options: int) -> str:
    if not 2 <= n_options <= len(string.ascii_uppercase):
        raise ValueError(f"a choice of {n_options} options has no letters; give 2 to 26")
    return string.ascii_uppercase[:n_options]


def _is_article(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is the article "A" or the pronoun "I"."""
    words = {"A": _ARTICLE, "I": _PRONOUN}.get(match["letter"])
    return bool(words and words.match(text, match.end("letter")))


def _is_answer(text: str, match: re.Match[str]) -> bool:
    """Neither an article or a pronoun, nor ruled out ("not B", "B is wrong")."""
    if _is_article(text, match) or is_denied(text, match.start("letter")):
        return False
    return not _IS_WRONG.match(text, match.end("letter"))
