"""Removal of LaTeX and Markdown around an answer, so that it is parsed as a reader sees it."""

from __future__ import annotations

import re

from faithscope.interventions.sentences import Span

_BRACE = re.compile(r"(\\boxed\s*\{)|(?<!\\)[{}]")
_EMPHASIS = re.compile(r"(?<!\d)\*\*(?=\S)|(?<=\S)\*\*(?!\d)|`+|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_FONT = re.compile(
    r"\\(?:text\w*|math(?:rm|bf|it|sf|tt|normal)|mbox|operatorname|bm|boldsymbol)"
    r"\s*\{([^{}]*)\}"
)
_NESTED_FONTS = 3
_MARKS = (
    (re.compile(r"\\[$%#&]"), lambda m: m[0][1]),
    (re.compile(r"\{,\}|,\\!"), lambda m: ","),
    (re.compile(r"\\,(?=\d{3}(?!\d))"), lambda m: "\u2009"),
    (re.compile(r"\\[,;:! ]|~|\\q?quad\b|\\(?:display|text)style\b"), lambda m: " "),
    (re.compile(r"\\[()\[\]]"), lambda m: " "),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?=[()\[\]|.])\.?"), lambda m: ""),
)


def as_read(text: str) -> str:
    """`text` without emphasis, fonts and spacing commands: `\\$5\\text{ cm}` becomes "$5 cm"."""
    text = _EMPHASIS.sub("", text)
    for _ in range(_NESTED_FONTS):
        text = _FONT.sub(r"\1", text)
    for mark, plain in _MARKS:
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
