"""Layout of steps in judge prompts.

Papers print `{context}` and `{cot}` without saying how steps are laid out. Here every step begins
on a line of its own. Steps are numbered, from 0, only where the judge must name the index of one.
The number is then in a mark that no step contains, and further lines of a step are indented, so
that numbers and line breaks inside a step are not taken for another step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from faithscope.interp.errors import UserError


def as_lines(steps: Iterable[str]) -> str:
    """The steps as text, each beginning on a line of its own, without numbers."""
    return "\n".join(steps)


MARKS = ("[Step {}]", "<Step {}>", "{{Step {}}}", "#Step {}#")
"""Forms of the number of a step; the first is used that no step of the chain contains."""


def as_numbered_lines(steps: Sequence[str]) -> str:
    """The steps as text, numbered `[Step 0] …`, with further lines of a step indented.

    Raises:
        UserError: every mark in `MARKS` occurs in some step, so none would be unambiguous; names a
            step.
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
