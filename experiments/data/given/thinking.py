"""Think tags in a reply that was kept as one text."""

from __future__ import annotations

import re

_TAGS = re.compile(
    r"\A\s*<(think|thinking|reasoning)>(?P<inside>.*?)(?:</\1>(?P<after>.*))?\Z", re.DOTALL
)
_CLOSER_ALONE = re.compile(r"\A(?P<inside>.*?)</think>(?P<after>.*)\Z", re.DOTALL)
"""Of a template that puts the opener into the prompt."""


def apart(text: str) -> tuple[str | None, str]:
    """(what stands in think tags, what follows them); None and the whole text without tags.

    Thinking without an end is all thinking.
    """
    found = _TAGS.match(text) or _CLOSER_ALONE.match(text)
    if found is None:
        return None, text
    return found["inside"], found["after"] or ""
