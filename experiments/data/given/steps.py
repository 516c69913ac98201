"""Segmentation of a given chain: its own steps, and the text between them cut as usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.interventions import split_conclusion
from faithscope.interventions.scripts import length_in_letters
from faithscope.interventions.segment import MIN_CHARS, Mode, units


class Cutting(Protocol):
    """Settings of segmentation in a section of a config."""

    segmentation: Mode
    min_chars: int
    groups: int | None
    conclusion: Literal["strip", "keep"]


def segments(
    chain: GivenChain, mode: Mode, min_chars: int = MIN_CHARS, groups: int | None = None
) -> Iterator[tuple[int | None, str]]:
    """(index of the given step or None, text) of segments that tile the reasoning.

    White space goes to the step before it, a single blank to the next step, as models write it.

    Args:
        mode: segmentation mode of text in no given step; of all text if there are no given steps.
        min_chars: least length of a thought, as for `segment`.
        groups: most segments of a chain without given steps; given steps are never joined.
    """
    text, starts, at = chain.reasoning, [], 0

    def between(a: int, b: int) -> Iterator[tuple[int, None]]:
        if text[a:b].strip():
            most = groups if chain.steps is None else None
            cut = units(text[a:b], mode, min_chars=min_chars, groups=most)[1]
            yield from ((a + s, None) for s in cut)

    for i, (start, end) in enumerate(chain.steps or ()):
        starts += between(at, start)
        starts.append((start, i))
        at = end
    starts += between(at, len(text))
    begins = [_begin(text, start) for start, _ in starts]
    for n, (_, i) in enumerate(starts):
        a = begins[n] if n else 0
        b = begins[n + 1] if n + 1 < len(begins) else len(text)
        yield i, text[a:b]


def stretches(chain: GivenChain, cut: Cutting, strip: bool) -> list[tuple[str, bool]]:
    """(text, whether it counts as a step) of all stretches of a chain, as a trace of it has them.

    Args:
        strip: whether the final statement of the answer goes to the tail in a chain without steps,
            as for a model that marks no reasoning.
    """
    text = chain.reasoning
    if chain.steps is None and strip and cut.conclusion == "strip":
        text = text[: split_conclusion(text)]
    whole = replace(chain, reasoning=text) if chain.steps is None else chain
    return [
        (part, i is not None or length_in_letters(part) >= cut.min_chars)
        for i, part in segments(whole, cut.segmentation, cut.min_chars, cut.groups)
    ]


def labels_of(
    chain: GivenChain, parts: Sequence[tuple[int | None, str]]
) -> dict[str, tuple[Any, ...]]:
    """Label name -> one label per part of `segments`; None for a part that is no given step."""
    return {
        name: tuple(None if i is None else of_steps[i] for i, _ in parts)
        for name, of_steps in chain.step_labels.items()
    }


def _begin(text: str, start: int) -> int:
    """Offset at which the segment begins whose first visible character is at `start`."""
    while start < len(text) and text[start].isspace():
        start += 1
    lone = start > 1 and text[start - 1] == " " and not text[start - 2].isspace()
    return start - 1 if lone else start
