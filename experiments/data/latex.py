"""Removal of LaTeX, Markdown and HTML around an answer: it is parsed as a reader sees it."""

from __future__ import annotations

import re

from faithscope.interventions.sentences import Span

_BRACE = re.compile(r"(\\boxed\s*\{)|(?<!\\)[{}]")
_EMPHASIS = re.compile(r"(?<!\d)\*\*(?=\S)|(?<=\S)\*\*(?!\d)|`+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_STARS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")
_FONT = re.compile(
    r"\\(?:text\w*|math(?:rm|bf|it|sf|tt|normal)|mbox|operatorname|bm|boldsymbol)"
    r"\s*\{([^{}]*)\}"
)
_INLINE = "a|b|i|u|s|em|strong|span|mark|code|small|big|center|font|tt|p|br|div|h[1-6]"
_NESTED_FONTS = 3
_MARKS = (
    # "10" and its unit are no one word: `10\text{m}`
    (re.compile(r"(?<=\d)(?=\\(?:text\w*|mathrm|mbox)\s*\{(?!\s))"), lambda m: " "),
    (re.compile(r"<su([pb])>(?=[^<>]{0,40}</su\1>)"), lambda m: "^{" if m[1] == "p" else "_{"),
    (re.compile(r"</su[pb]>"), lambda m: "}"),
    (re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE), lambda m: ""),
)
_SPACES = (
    (re.compile(r"\\[$%#&]"), lambda m: m[0][1]),
    (re.compile(r"\{,\}|,\\!"), lambda m: ","),
    (re.compile(r"\\,(?=\d{3}(?!\d))"), lambda m: "\u2009"),
    (re.compile(r"\\[,;:! ]|~|\\q?quad\b|\\(?:display|text)style\b"), lambda m: " "),
    (re.compile(r"\\[()\[\]]"), lambda m: " "),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?=[()\[\]|.])\.?"), lambda m: ""),
)


def without_emphasis(text: str) -> str:
    """`text` without Markdown's stars, backticks and underscores around words."""
    return _STARS.sub("", text)


def as_read(text: str) -> str:
    """`text` without emphasis, fonts and spacing commands: `\\$5\\text{ cm}` becomes "$5 cm"."""
    for mark, plain in _MARKS:
        text = mark.sub(plain, text)
    text = _EMPHASIS.sub("", text)
    for _ in range(_NESTED_FONTS):
        text = _FONT.sub(r"\1", text)
    for mark, plain in _SPACES:
        text = mark.sub(plain, text)
    return text


def boxes(text: str) -> list[tuple[int, Span]]:
    """(offset, span of the content) of every `\\boxed{…}` whose braces match, in order."""
    found: list[tuple[int, Span]] = []
    opened: list[tuple[int, int] | None] = []
    for brace in _BRACE.finditer(text):
        if not brace.group().endswith("}"):
            opened.append(brace.span() if brace[1] else None)
        elif opened and (box := opened.pop()):
            found.append((box[0], (box[1], brace.start())))
    return sorted(found)


def closing_braces(text: str) -> dict[int, int]:
    """Offset of every opening brace -> offset of its closing brace."""
    opened: list[int] = []
    closing: dict[int, int] = {}
    for brace in re.finditer(r"(?<!\\)[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif opened:
            closing[opened.pop()] = brace.start()
    return closing
