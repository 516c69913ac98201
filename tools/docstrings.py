"""Conversion of docstrings to Markdown, for the pages of measures and of the Python interface."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")
INDENT = "    "


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown.

    Lists of arguments and exceptions become lists, indented blocks become blocks of plain text, and
    everything else stays as it is written.
    """
    text = "\n".join(_lines(inspect.cleandoc(docstring or "").splitlines())).strip()
    return re.sub(r"\n{3,}", "\n\n", text)


def _lines(lines: Sequence[str]) -> Iterator[str]:
    i = 0
    while i < len(lines):
        line = lines[i]
        end = _end_of_block(lines, i + 1)
        if line in SECTIONS:
            yield from ("", f"**{line.removesuffix(':')}**", "")
            yield from _entries(lines[i + 1 : end])
            yield ""
            i = end
        elif line.startswith(INDENT):
            end = _end_of_block(lines, i)
            shortest = min(len(x) - len(x.lstrip()) for x in lines[i:end] if x.strip())
            yield from ("", "```text", *(x[shortest:] for x in lines[i:end]), "```", "")
            i = end
        else:
            yield _plain(line)
            i += 1


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Index after the last of the indented lines from `start` on, blank lines within included."""
    end = start
    for i in range(start, len(lines)):
        if lines[i].startswith(INDENT):
            end = i + 1
        elif lines[i].strip():
            break
    return end


def _entries(lines: Sequence[str]) -> Iterator[str]:
    """Entries `name: text` of a section as a list; other text as a paragraph."""
    for line in lines:
        text = line.removeprefix(INDENT)
        named = re.match(r"(\*{0,2}[\w., ]+?): (.*)", text)
        if named:
            yield f"- `{named[1]}`: {_plain(named[2])}"
        elif text.startswith(INDENT):
            yield f"  {_plain(text.strip())}"
        else:
            yield _plain(text)


def _plain(line: str) -> str:
    """A line whose signs outside code mean themselves in Markdown."""
    # code and words between asterisks stay as they are
    parts = re.split(r"(`[^`]*`|\*{1,2}\w[^*]*\*{1,2})", line)
    return "".join(
        part if i % 2 else re.sub(r"(?<!\\)([<*\[])", r"\\\1", re.sub(r"_(?=\W|$)", r"\\_", part))
        for i, part in enumerate(parts)
    )
