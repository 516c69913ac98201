r"""The option that a model's text settles on; the rules of `answers`, for letters and their texts.

A statement ("The answer is …", a box, a tag) is one closed unit. It names an option where it is,
from its beginning to its end, a letter ("(B)"), a letter with what is set off from it ("B. False",
"B, since …"), or an option's text. Anything else that holds a letter ("vitamin C", "E = mc^2")
names none.
"""

from __future__ import annotations

import itertools
import re
import string
import unicodedata
from collections.abc import Sequence

from faithscope.experiments.data.latex import as_read, without_emphasis
from faithscope.experiments.data.statements import (
    ANSWER_IS,
    final_after_mark,
    first_line,
    is_denied,
    is_retracted,
    is_supposed,
    marked,
    sentences,
    stated,
    without_tags,
)
from faithscope.interventions.conclusion import first_response
from faithscope.interventions.scripts import WORD

_OPENS = r"(?i:(?:the\s+)?(?:option|choice|letter|answer)(?:\s+is)?:?\s+)?[(\[{\"'“‘$#]*"
_CLOSES = r"[)\]}\"'”’$]*"
_STATED = re.compile(
    rf"(?:{ANSWER_IS.pattern}|(?<![{WORD}])(?:(?<!\bone )(?<!\bno )(?<!\ban )(?<!another )"
    r"(?:answer|(?:right|correct|best)\s(?:option|choice)(?:\sis:?)?)\s"
    r"|(?:(?:right|correct|best|my|final)\s)?(?<!\beach )(?<!\bevery )"
    r"(?:option|choice|selection)(?:\s+is(?:\s*:)?|\s*[:=])"
    r"|should\s(?:choose|pick|select)\s)"
    r"|(?:选择?|選擇?|ตอบ))\s*",
    re.IGNORECASE,
)
"""Words that introduce a stated option."""
_SOFT = r"(?:(?:most\s+likely|probably|clearly|definitely|simply|indeed|therefore|thus|then)\s+)?"
_HEDGE = re.compile(rf"\A{_SOFT}", re.IGNORECASE)
_IS_RIGHT = (
    r"(?:\s*:\s*|\s+(?:is|are|seems|must\s+be|would\s+be)\s+(?:(?:therefore|the|most|only|both|clearly"
    r"|definitely|single)\s+){0,3})(?:correct|right|best|answer|true)(?!\w)"
    r"|\s*+(?:(?:选项|選項)\s*+)?(?:(?:は|が|是|가|이)\s*+)?(?:正しい|正解|正确|正確|對的|对的|정답|맞)"
)
_SO = (
    r"(?<!\w)(?:so|therefore|thus|hence|choose|pick|select|go\swith|leav(?:es|ing)|left\swith|must\sbe"
    r"|it\sis|it['’]s|which\sis|i\.e\.|that\sis)(?!\w)[,:]?\s*"
    r"(?:(?:it\sis|it['’]s|it\smust\sbe|only|us\swith)\s+)?"
)
_IS_WRONG = re.compile(
    rf"{_CLOSES}[:–-]?\s*(?:(?:is|was|are|seems|can\sbe|would\sbe)\s+)?(?:(?:also|clearly|therefore)\s+)?"
    r"(?:(?:not|incorrect|wrong|false|out(?!\s+of)|eliminated|ruled|impossible|excluded)(?!\w)"
    r"|(?:选项|選項)?(?:是|は)?(?:错|不|間違))",
    re.IGNORECASE,
)
_DENIED = re.compile(
    rf"{_CLOSES}\s+(?:is|was)\s+(?:not|incorrect|wrong|false)(?!\w)", re.IGNORECASE
)
_AND = (
    r"(?:\s*(?:[,(]\s*(?:(?:and|or)\s+)?|/|、|，|(?<!\w)(?:and|or|and/or|&)(?!\w)"
    r"|或者?|还是|還是|和|と|または|또는)\s*|[-–])"
)
_ANOTHER_CLAUSE = r"(?:is|was|are|were|would|can|has|does)(?!\w)"
_EXPLAINS = (
    r"(?:because|since|as|and|which|for|with|but|due|given|based|if|is|are|was|fits|seems|in|on|by"
    r"|according|would|must|remains?|matches|best|when|where|rather|instead|not|over)(?!\w)"
)
_BEHIND = re.compile(
    rf"{_CLOSES}(?:\Z|[).:,;!?。，：；]|\s*[-–—(]|\s+{_EXPLAINS}|[^\x00-\x7f{WORD}])"
)
"""What stands behind a letter that is no part of a name: an end, a mark, or an explanation."""
_AHEAD = re.compile(
    rf"(?:\A|\.(?=\s)|(?<!\bPh)(?<!\b[A-Z])\.|[\n!?,;:()\[\]{{}}\"“”'‘’|/=>$#]|(?<!\w)-|(?i:answer|option|choice)-|[^\x00-\x7f{WORD}°]|(?<![{WORD}])(?i:is|be|so|options?|choices?"
    r"|answer|letters?|pick|choose|select|with|to|only|and|or|as|by|than|then|thus|therefore|hence"
    r"|not|it['’]s|leaves|leaving|for|of|both|n?either|except|but|if|are|was|remaining|left|say))\s*\Z"
)
"""What stands ahead of it: "vitamin C" and "group A" are names."""
_SMALL_ENDS = r"(?=[)\]]|[.,;:!]*\s*$|[.,;:]\s|\s+(?:since|because)\b)"
_ARTICLE = re.compile(rf"\s+(?!{_EXPLAINS}|or\b)(?:\d[\d.,]*-)?[a-z]")
_PRONOUN = re.compile(r"\s+(?!(?:because|since|is|or)(?!\w))[a-z]")
_SPECIES = re.compile(
    r"[A-F]\.\s(?:coli|difficile|aureus|albicans|cereus|anthracis|fragilis|pertussis|burgdorferi|botulinum"
    r"|tetani|perfringens|jejuni|trachomatis|diphtheriae|neoformans|elegans|melanogaster|faecalis"
    r"|faecium|histolytica|baumannii|fumigatus|niger|thaliana)(?!\w)"
)
"""Letters that abbreviate a genus: "E. coli"."""
_MARKS = re.compile(r"[)\]}.:,;\s$\"'”’]*(?:[-–—]\s+)?")
_GOES_THROUGH = re.compile(
    r"(?<!\w)(?:each|every|options|choices)(?!\w)[^\n.]{0,40}\s*\Z", re.IGNORECASE
)
"""Line before the options that a text goes through: "Let us evaluate each option:"."""
_GOES_ON = re.compile(r"\d[.,:/]\d")
_NEAR, _LONGEST = 24, 400
_LISTED = r"[ \t]{{0,8}}(?:[-•][ ])?\(?(?i:(?:option|choice)\s+)?(?P<letter>[{letters}])[).:]"
SEVERAL = ""
"""The option of a statement that names several, or a letter with the text of another."""


def last_choice(text: str, n_options: int, options: Sequence[str] = ()) -> str | None:
    r"""The letter of the option that a response to a multiple-choice question settles on.

    That of the last box or answer tag; where this names no option, or there is none, the last one
    stated in words ("The answer is (B)", "B is correct"). Without statements it is one alone in
    the first line; else the last one concluded ("So B"), or that the last line opens with or
    brackets ("B. Vitamin A"); else that of the last sentence in which a letter stands alone. None
    where several are named, or a letter goes with the text of another option.

    Args:
        n_options: number of options, 2 to 26.
        options: their texts, if they are at hand: then a statement may also be an option's text.
    """
    plain = _plain(first_response(text))
    known = _Options(n_options, options)
    mark = marked(plain)
    if mark is not None and (final := final_after_mark(plain)) and (own := known.stated(final)[0]):
        return own
    if mark is not None and (letter := known.named(mark) or known.stated(mark)[0]) is not None:
        return letter or None
    letter, rest = known.stated(plain)
    if letter is None and mark is None:
        ranks = (known.opening(plain), known.concluded(rest), known.mentioned(rest))
        letter = next((x for x in ranks if x is not None), None)
    return letter or None


def first_choice(text: str, n_options: int, options: Sequence[str] = ()) -> str | None:
    """The option that the first line of a continuation states, or the first letter in it: "(b)".

    Args:
        n_options, options: as for `last_choice`.
    """
    line = _plain(first_line(without_tags(text)))
    known = _Options(n_options, options)
    letter = known.named(mark) if (mark := marked(line)) else known.named(line)
    if letter is None and mark is None:
        letter = known.mentioned(line, last=False)
    return letter or None


def _plain(text: str) -> str:
    """A text without marks of emphasis, its letters in one form: 𝐁 and Ｂ are B."""
    return as_read(without_emphasis(unicodedata.normalize("NFKC", text)))


class _Options:
    def __init__(self, n: int, texts: Sequence[str]):
        if not 2 <= n <= len(string.ascii_uppercase):
            raise ValueError(f"a choice of {n} options has no letters; give 2 to 26")
        self.letters = string.ascii_uppercase[:n]
        self.raw = {x: _plain(text) for x, text in zip(self.letters, texts, strict=False)}
        words = {x: _words(text) for x, text in self.raw.items()}
        self.texts = {x: text for x, text in words.items() if len(text) > 1 or text.isdecimal()}
        small = rf"[{self.letters.lower()}]{_SMALL_ENDS}"
        self.one = rf"(?P<letter>[{self.letters}](?![{WORD}]|['’]\w)|{small})"
        self.unit = re.compile(rf"{_SOFT}{_OPENS}{self.one}")
        self.alone = re.compile(rf"(?<![{WORD}'’])(?P<letter>[{self.letters}])(?![{WORD}'’])")

    def named(self, unit: str) -> str | None:
        """The letter that a statement's unit names; None where it names no option."""
        unit = _HEDGE.sub("", unit.strip(), count=1)
        same = [x for x, text in self.texts.items() if text == _words(unit)]
        if same:
            return same[0] if len(same) == 1 else SEVERAL
        if re.fullmatch(rf"[{self.letters}]{{2,}}", unit) and len(set(unit)) > 1:
            return SEVERAL
        match = self.unit.match(unit)
        letter = match["letter"].upper() if match else ""
        rest = _set_off(unit[match.end() :]) if match else ""
        if letter and rest == self.texts.get(letter):
            return letter
        if match and _DENIED.match(unit, match.end()):
            return None
        if match and _BEHIND.match(unit, match.end()) and not _is_name(unit, match):
            other = self._begun(rest) if self._begun(rest) != letter else None
            named = {letter, *self._beside(unit, match), *filter(None, (other,))}
            return letter if len(named) == 1 else SEVERAL
        return self._begun(_words(unit))

    def _begun(self, words: str) -> str | None:
        """The letter of the option with whose text the words of a unit begin; of the longest."""
        begun = [
            x
            for x, text in self.texts.items()
            if words.startswith(text)
            and _BEHIND.match(words, len(text))
            and not _GOES_ON.match(words, len(text) - 1)
        ]
        return max(begun, key=lambda x: len(self.texts[x]), default=None)

    def stated(self, text: str) -> tuple[str | None, str]:
        """The option stated last in words, and the text from the last statement that names none."""
        right = rf"(?<![{WORD}'’])(?P<letter>[{self.letters}])(?={_CLOSES}(?i:{_IS_RIGHT}))"
        found: list[tuple[int, str]] = [
            (m.start(), letter if len({letter, *self._beside(text, m)}) == 1 else SEVERAL)
            for m in re.finditer(right, text)
            if self._is_meant(text, m) and (letter := m["letter"])
        ]
        unread = 0
        for _, line, end in stated(text, _STATED):
            letter = self.named(line)
            if letter is not None:
                found.append((end, letter))
                break
            unread = max(unread, end)
        at, letter = max(found, default=(0, None))
        if letter is not None:
            # the text of an option may itself begin with "No." or "Wait, "
            own = self.raw.get(letter, "")
            behind = text[at:].replace(own, "", 1) if own in text[at : at + _LONGEST] else text[at:]
            letter = None if is_retracted(behind, 1) else letter
        return letter, self._without_list(text)[unread if letter is None else 0 :]

    def opening(self, text: str) -> str | None:
        """The letter that stands alone in the first line, or with its option in the whole text."""
        begun = self.unit.match(text.strip())
        letter = begun["letter"].upper() if begun else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        lists = len(lines) > 1 and re.match(_LISTED.format(letters=self.letters), lines[1])
        whole = {_set_off(x[begun.end() :]) for x in (text.strip(), lines[0])} if begun else set()
        if self.texts.get(letter) in whole and not lists:
            return letter
        small = re.fullmatch(rf"\s*{_OPENS}{self.one}{_CLOSES}[.:]?\s*", text)
        alone = re.match(rf"\s*{_OPENS}(?P<letter>[{self.letters}]){_CLOSES}\.?[ \t]*\n", text)
        found = small or alone
        return found["letter"].upper() if found and not is_retracted(text, found.end()) else None

    def concluded(self, text: str) -> str | None:
        """The letter of the last "so B", or that the last line opens with or brackets."""
        begins = len(text) - len((text.splitlines() or [""])[-1])
        ends = rf"{_CLOSES}\s*(?:[,;!。(]|\.(?!\w)|$)"
        so = rf"(?i:{_SO}){_OPENS}(?P<letter>[{self.letters}])(?={ends})"
        opens = rf"(?:^[ \t]*|\()(?P<letter>[{self.letters}])[.):]"
        found = [
            *re.finditer(so, text, re.MULTILINE),
            *re.compile(opens, re.MULTILINE).finditer(text, begins),
        ]
        meant = [m for m in found if self._is_meant(text, m)]
        return max(meant, key=lambda m: m.start("letter"))["letter"] if meant else None

    def mentioned(self, text: str, *, last: bool = True) -> str | None:
        """The letter that stands alone in the last sentence that has one, or the first letter."""
        alone = [m for m in self.alone.finditer(text) if self._is_meant(text, m)]
        if not alone:
            small = re.search(rf"(?:\A|[(\[]){self.unit.pattern}", text) if not last else None
            return small["letter"].upper() if small and _BEHIND.match(text, small.end()) else None
        if not last:
            letters = {alone[0]["letter"], *self._beside(text, alone[0])}
        else:
            at = alone[-1].start()
            start = next(a for a, b in reversed(sentences(text)) if a <= at < b)
            letters = {m["letter"] for m in alone if m.start() >= start}
            letters |= self._beside(text, alone[-1])
        return letters.pop() if len(letters) == 1 else SEVERAL

    def _is_meant(self, text: str, match: re.Match[str]) -> bool:
        """Whether a letter stands for an option: it is no article and no part of a name, and is
        neither denied, supposed nor ruled out ("not B", "B is wrong")."""
        start, end = match.span("letter")
        line = text[end : end + _LONGEST].partition("\n")[0]
        return not (
            _is_name(text, match)
            or self._begun(_set_off(line)) not in (None, match["letter"])
            or not _BEHIND.match(text, end)
            or not _AHEAD.search(text, max(0, start - _NEAR), start)
            or is_denied(text, start)
            or is_supposed(text, start)
            or _IS_WRONG.match(text, end)
        )

    def _beside(self, text: str, match: re.Match[str]) -> set[str]:
        """The letters that are offered beside the one of a match: "B or C", "A and B"."""
        found: set[str] = set()
        letter = rf"(?P<letter>[{self.letters}])(?![{WORD}'’])"
        after = re.compile(rf"{_CLOSES}{_AND}{_OPENS}{letter}(?!{_CLOSES}\s+{_ANOTHER_CLAUSE})")
        at = match.end("letter")
        while (other := after.match(text, at)) and not _is_article(text, other):
            found.add(other["letter"])
            at = other.end("letter")
        near = text[max(0, match.start("letter") - _NEAR) : match.start("letter")]
        before = re.search(rf"(?<![{WORD}'’]){letter}{_CLOSES}{_AND}{_OPENS}\Z", near)
        return found | ({before["letter"]} if before else set())

    def _without_list(self, text: str) -> str:
        """A text without the options that it lists at its end, a line each, and without the letters
        of options that it goes through in order."""
        lines = text.rstrip().splitlines()
        opens = [re.match(_LISTED.format(letters=self.letters), line) for line in lines]
        n, first = len(lines), "["
        while n and (not lines[n - 1].strip() or ((m := opens[n - 1]) and m["letter"] < first)):
            first = m["letter"] if (m := opens[n - 1]) else first
            n -= 1
        if len({m["letter"] for m in opens[n:] if m}) > 1:
            lines, opens = lines[:n], opens[:n]
        heads = [(i, m) for i, m in enumerate(opens) if m]
        follows = [a[1]["letter"] < b[1]["letter"] for a, b in itertools.pairwise(heads)]
        for (i, m), before, after in zip(heads, [False, *follows], [*follows, False], strict=False):
            if before or after or _GOES_THROUGH.search("\n".join(lines[max(0, i - 2) : i])):
                lines[i] = f"{lines[i][: m.start('letter')]}•{lines[i][m.end('letter') :]}"
        return "\n".join(lines)


def _set_off(text: str) -> str:
    """The words that stand behind a letter: "False" of ". False", "- False" or "(False)"."""
    return _words(_MARKS.sub("", text, count=1))


def _words(text: str) -> str:
    """A text in one case, without punctuation at its ends, to be compared with others."""
    text = " ".join(text.casefold().split()).strip(" .,:;!\"'“”‘’$")
    return text[1:-1] if text[:1] + text[-1:] == "()" else text


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is an article, a pronoun, or stands for a genus ("E. coli")."""
    return _is_article(text, match) or bool(_SPECIES.match(text, match.start("letter")))


def _is_article(text: str, match: re.Match[str]) -> bool:
    """Whether a letter is the article "A" or the pronoun "I"."""
    words = {"A": _ARTICLE, "I": _PRONOUN}.get(match["letter"])
    return bool(words and words.match(text, match.end("letter")))
