"""A reasoning cut into steps as the per-step variant does (RFEval, appendix G.3)."""

from __future__ import annotations

import re

_BREAK = re.compile(
    r"\n[ \t]*\n"  # a blank line
    r"|\n(?=[ \t]*(?:\d{1,3}[.)]|\(\d{1,3}\)|step\s+\d{1,3}\b|[-*•])[ \t:.])",
    re.I,
)


def split_steps(reasoning: str) -> tuple[str, ...]:
    """The steps in order: paragraphs, and the points of lists within them; none of nothing.

    The paper says "newline sequences (e.g., \\n\\n) and enumerated list patterns".
    """
    return tuple(part.strip() for part in _BREAK.split(reasoning) if part.strip())
