"""Steps as a judge is shown them.

Papers print `{context}`, `{cot}` without saying how steps are set out. Here every step begins on a
line of its own. A chain of which an index is asked is numbered from 0, so that the index is
defined: by marks that no step holds, further lines of a step indented, so that numbers and line
breaks of its own are not taken for another step. Others bear no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from faithscope.interp.errors import UserError


def as_lines(steps: Iterable[str]) -> str:
    """One step a line."""
    return "\n".join(steps)


MARKS = ("[Step {}]", "<Step {}>", "{{Step {}}}", "#Step {}#")
"""What steps are numbered by; the first that no step of a chain holds."""


def as_numbered_lines(steps: Sequence[str]) -> str:
    """One step after the other, `[Step 0] …` first, further lines of a step indented.

    Raises:
        UserError: steps hold every mark, so that none would be unambiguous; says which step.
    """
    places: list[int] = []
    for mark in MARKS:
        opening, closing = mark.format("|").split("|")
        own = re.compile(rf"{re.escape(opening)}\s*\d+\s*{re.escape(closing)}", re.I)
        held = next((i for i, step in enumerate(steps) if own.search(step)), None)
        if held is None:
            return "\n".join(
                f"{mark.format(i)} {_INDENT.sub('    ', step)}" for i, step in enumerate(steps)
            )
        places.append(held)
    raise UserError(
        f"step {places[0]} holds {MARKS[0].format('N')!r}, and others every other mark that steps "
        "could be numbered by in localisation; take the chain out of the data, or change the step"
    )


_INDENT = re.compile(r"(?<=\n)(?=[^\n])")
