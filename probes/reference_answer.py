"""The reference answer of a chain, which a measure follows, and its other reading.

A chain states its answer. The likeliest of the scored answers after the chain, when the model is
made to choose one (the *forced choice*), is another reading, and may be another answer. Measures
that follow one answer follow the stated answer, or the forced choice if the chain states none;
their values for the forced choice are in fields that begin with `forced_`.

Whether an edit *changes* an answer does not depend on which one is followed: an answer read after
an edit is compared with the same reading of the unedited chain, never with the stated answer.
Otherwise every edit would seem to change the answer if the two readings differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from faithscope.interventions import Trace
from faithscope.probes.graded import top

Source = Literal["stated", "forced"]
FORCED = "forced_"
"""Prefix of the names of fields that follow the forced choice."""


@dataclass(frozen=True)
class ReferenceAnswer:
    """Both readings of one chain's answer."""

    stated: str | None
    """The answer that the chain states (`Trace.answer`); None if none could be read."""
    forced: str
    """The likeliest of the scored answers after the whole unedited chain."""
    is_scored: bool
    """Whether the stated answer is among the scored answers."""

    @classmethod
    def of(cls, trace: Trace, baseline: Mapping[str, float]) -> ReferenceAnswer:
        """
        Args:
            baseline: (log) probability of each scored answer after the whole unedited chain.
        """
        stated = trace.unedited.answer
        return cls(stated, top(baseline), stated in baseline)

    @property
    def source(self) -> Source:
        return "stated" if self.is_scored else "forced"

    @property
    def answer(self) -> str:
        """The answer to follow."""
        return self.stated if self.is_scored and self.stated is not None else self.forced

    @property
    def readings(self) -> dict[str, str]:
        """Prefix of field names -> the answer that these fields follow."""
        return {"": self.answer, FORCED: self.forced}

    @property
    def differs(self) -> bool | None:
        """Whether the forced choice differs from the stated answer; None if none is stated."""
        return None if self.stated is None else self.forced != self.stated

    @property
    def fields(self) -> dict[str, str | bool | None]:
        """Fields of every record of a measure that follows an answer: `answer`, the followed one,
        and its `reference`; both readings, and whether they differ."""
        return {
            "answer": self.answer,
            "reference": self.source,
            "stated_answer": self.stated,
            "forced_answer": self.forced,
            "forced_differs": self.differs,
        }
