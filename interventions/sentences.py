"""Beginnings of sentences in reasoning text: prose, but also LaTeX, code and lists.

The splitter is `sentencex` (Wikimedia), which knows abbreviations, initials, decimals,
quotations and brackets, returns character offsets into the untouched text, and takes
linear time. What models write beyond prose is handled around it: stretches that must stay
whole are masked before it looks, line breaks and lone markers are settled after. That takes
linear time too, whatever the text: a model that is stuck writes thousands of brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]

Span = tuple[int, int]
"""Half-open span of characters in a text."""

_WHOLE = re.compile(
    r"""
      (?P<opener>```|~~~|\\begin\{[^{}]+\}|\\\[|\\\(|\$\$)
    | `[^`\r\n]+`                                       # inline code
    | (?<![\\$\w])\$(?=[^\s$])(?:\\.|[^$\\\r\n])*?(?<=\S)\$(?![\d$])   # inline: not "$5 or $10"
    | https?://[^\s<>()\[\]{}"']*[^\s<>()\[\]{}"'.,;:!?]
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSER = {"```": "```", "~~~": "~~~", r"\[": r"\]", r"\(": r"\)", "$$": "$$"}
_CLOSES = re.compile(r"(?=(```|~~~|\\end\{[^{}]+\}|\\\]|\\\)|\$\$))")
_MARK = r"(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})"
_BARE_MARKER = re.compile(
    rf"[\s#>*_\-+•]*\(?(?:(?:step|part|case)\s*)?(?:{_MARK})[.):]+[*_:\s]*|[\s#>*_\-+•.:]+",
    re.IGNORECASE,
)
# Abbreviations of technical prose at which the splitter wrongly ends a sentence.
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\[])(?:approx|vs|eq|eqs|eqn|fig|figs|sec|ch|ex|ref|refs|def|thm|lem|prop|cf|resp|"
    r"i\.e|e\.g|w\.r\.t|s\.t|al|est|min|max|avg|qty|temp|ca|pp?|nos?|lbs?|oz|ft|hrs?|mins?|secs?)"
    r"\.\s*$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St)\.[^\S\r\n]*$")
_BRACKETS = re.compile(
    r"(?P<item>^[^\S\r\n]*(?:\d{1,3}|[A-Za-z]|[ivx]{2,5})\))"  # "2)" opens an item of a list
    r"|(?P<blank>(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n))"
    r"|(?P<open>[(\[{（［【])|(?P<close>[)\]}）］】])",
    re.MULTILINE,
)
_GOES_ON = re.compile(r"[=+/×÷·^≤≥≠≈,;|%)\]}]|[<>](?![A-Za-z/|])")
_FACTORIAL = re.compile(r"(?:\d|\b[A-Za-z]|\))!$")
_AFTER_FACTORIAL = re.compile(r"[*\-–−]\s|[a-z]")
_FULL_STOP = re.compile(r"[。！？｡](?=[^\W_])")
_CLOSING = re.compile(r"[)\]}\"'”’»*_]{1,20}+(?=\s|$)")
_LINE = re.compile(r"[\r\n]+[^\S\r\n]*(?:[\r\n]+[^\S\r\n]*)*")
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n)\s*")
_QUOTES = re.compile(r"[“”„«»‹›‘`「」『』]|(?<!\w)'|'(?!\w)")
MOST_QUOTES = 1_000
"""Most quotation marks of one paragraph that the splitter is shown: it searches the rest of the
paragraph for the end of each."""
_NEAR = 40
"""Number of characters before a place that are searched for a marker or an abbreviation."""


def enclosed(
    text: str, opener: re.Pattern[str], closer: re.Pattern[str], least: int = 0
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Each opener with the closer next to it, in order, disjoint.

    Equals the pattern "opener, as little as possible, closer", which takes quadratic time if
    nothing closes: a closer that one opener does not find, no later one will.

    Args:
        least: least number of characters between opener and closer.
    """
    at = 0
    while opens := opener.search(text, at):
        closes = closer.search(text, opens.end() + least)
        if closes is None:
            return
        yield opens, closes
        at = closes.end()


def whole_spans(text: str) -> tuple[Span, ...]:
    """Stretches that no boundary may cut: code, LaTeX, addresses; in order, disjoint.

    Fenced code that is left open goes to the end. Any other stretch that is not closed counts as
    none.
    """
    spans: list[Span] = []
    closers: dict[str, list[int]] = defaultdict(list)
    for closer in _CLOSES.finditer(text):
        closers[closer[1]].append(closer.start())
    at = 0
    while found := _WHOLE.search(text, at):
        end = found.end()
        if opener := found["opener"]:
            closer = _CLOSER.get(opener) or opener.replace("begin", "end", 1)
            i = bisect_left(closers[closer], end)
            if i < len(closers[closer]):
                end = closers[closer][i] + len(closer)
            elif opener in ("```", "~~~"):
                end = len(text)
            else:
                at = found.start() + 1
                continue
        spans.append((found.start(), end))
        at = end
    return tuple(spans)


def masked(text: str) -> str:
    """`text` with every whole stretch written over by letters; same length, same offsets."""
    out = list(text)
    for start, end in whole_spans(text):
        out[start:end] = "X" * (end - start)
    return "".join(out)


def bracket_spans(text: str) -> tuple[Span, ...]:
    """The outermost stretches from a bracket to its closing bracket, in order, disjoint.

    Any bracket closes any other: [0, 1) is an interval. A bracket that is not closed in its
    paragraph opens nothing. Brackets within `masked` stretches do not count.
    """
    opened: list[int] = []
    spans: list[Span] = []
    for m in _BRACKETS.finditer(text):
        if m["blank"]:
            opened.clear()
        elif m["open"]:
            opened.append(m.start())
        elif m["close"] and opened:
            start = opened.pop()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, m.end()))
    return tuple(spans)


def outside(spans: Sequence[Span], at: int) -> bool:
    """Whether an offset lies within none of ordered, disjoint spans; a span's ends are outside of
    it."""
    i = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return i < 0 or not spans[i][0] < at < spans[i][1]


def touched(spans: Sequence[Span], start: int, end: int) -> bool:
    """Whether a span of one character or more overlaps one of ordered, disjoint spans."""
    i = bisect_right(spans, start, key=lambda span: span[1])
    return i < len(spans) and spans[i][0] < end


def next_visible(text: str, at: int) -> int:
    """Offset of the first character from `at` on that is not white space."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _visible_from(text: str, places: Iterable[int]) -> Iterator[int]:
    """`next_visible` of several places, with each stretch of white space scanned once."""
    at = -1
    for place in sorted(places):
        if place > at:
            at = next_visible(text, place)
            yield at


def paragraph_starts(text: str, start: int = 0, end: int | None = None) -> tuple[int, ...]:
    """Offsets where blocks between blank lines begin, the first visible character first."""
    end = len(text) if end is None else end
    part = masked(text[start:end])
    starts = {next_visible(part, 0)} | {m.end() for m in _BLANK_LINE.finditer(part)}
    return tuple(start + b for b in sorted(starts) if b < len(part))


def _with_few_quotes(text: str) -> str:
    """`text` with quotation marks blanked in paragraphs that have more than `MOST_QUOTES` of
    them."""
    if len(_QUOTES.findall(text)) <= MOST_QUOTES:
        return text
    paragraphs = (
        _QUOTES.sub(" ", p) if len(_QUOTES.findall(p)) > MOST_QUOTES else p
        for p in text.split("\n\n")
    )
    return "\n\n".join(paragraphs)


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> tuple[int, ...]:
    """Offsets where sentences of `text[start:end]` begin, the first visible character first.

    A line break ends a sentence too, since models do not wrap their lines, unless the next line
    begins in lower case. A lone marker ("2.", "Step 3:", "-") belongs to what follows. Closed
    brackets stay whole, and so do formulas that continue after "5!" or "...".
    """
    end = len(text) if end is None else end
    part = masked(text[start:end])
    # A lone \r shifts the splitter's own offsets at "\r\n" by one: a blank serves it as well.
    flat = _with_few_quotes(part.replace("\r", " "))
    ends = [b["end_index"] for b in get_sentence_boundaries("en", flat)]
    candidates = set(_visible_from(part, [0, *(_after_closing(part, e) for e in ends)]))
    fences = [
        e for b, e in whole_spans(text[start:end]) if text.startswith(("```", "~~~"), start + b)
    ]
    candidates |= {next_visible(part, e) for e in fences}
    # The splitter takes "12。3" for one number, so full stops are added as candidates.
    candidates |= {m.end() for m in _FULL_STOP.finditer(part)}
    for line in _LINE.finditer(part):
        if line.end() < len(part) and not _runs_on(part, line):
            candidates.add(line.end())
    brackets = bracket_spans(part)
    starts = sorted(
        b
        for b in candidates
        if b < len(part) and outside(brackets, b) and not _formula_runs_on(part, b)
    )
    return tuple(start + b for b in _settled(part, starts))


def _after_closing(text: str, at: int) -> int:
    """The offset after quotation marks, brackets and emphasis that close the sentence ending at
    `at`."""
    if at and at < len(text) and not text[at - 1].isspace():
        closing = _CLOSING.match(text, at)
        if closing:
            return closing.end()
    return at


def _runs_on(text: str, line: re.Match[str]) -> bool:
    blank = _BLANK_LINE.search(line.group()) is not None
    at = line.start()
    while at and text[at - 1].isspace():
        at -= 1
    return not blank and text[line.end()].islower() and text[at - 1 : at] != "."


def _formula_runs_on(text: str, at: int) -> bool:
    """Whether the text at offset `at` continues a formula before it on the same line."""
    before = text[max(0, at - 16) : at].rstrip(" \t")
    if not before or before[-1] in "\r\n":
        return False
    factorial = _FACTORIAL.search(before) and _AFTER_FACTORIAL.match(text, at)
    return before.endswith("\\!") or bool(factorial or _GOES_ON.match(text, at))


def _settled(text: str, starts: Sequence[int]) -> list[int]:
    """The starts of sentences left once lone markers and abbreviations are joined to the next
    text."""
    settled: list[int] = []
    for at in starts:
        start = settled[-1] if settled else at
        # "\0" marks the cut, which is no beginning of a line
        before = text[start:at] if at - start <= _NEAR else f"\0{text[at - _NEAR : at]}"
        if before and (_BARE_MARKER.fullmatch(before) or _abbreviated(before, text[at])):
            continue
        settled.append(at)
    return settled


def _abbreviated(before: str, following: str) -> bool:
    continues = following.islower() or following.isdigit() or following in "(\\$"
    return bool((continues and _ABBREVIATED.search(before)) or _TITLE.search(before))
