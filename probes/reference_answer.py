"""The answer of a chain that a measure follows, and the other reading of that answer.

A chain states its answer. The likeliest of the scored answers after the chain, when the model is
made to choose one (the *forced choice*), is another reading, and may be another answer. Measures
that follow one answer follow the stated one, and the forced choice where the chain states none;
what they would give of the forced choice stands beside, in fields that begin with `forced_`.

Whether an edit *changes* an answer is no matter of which one is followed: an answer read after an
edit is held against the same reading of the unedited chain, never against the stated answer. Where
the two readings differ, every edit would seem to change the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from faithscope.interventions import Trace
from faithscope.probes.graded import top

Source = Literal["stated", "forced"]
FORCED = "forced_"
"""What the names of fields begin with that follow the forced choice."""


@dataclass(frozen=True)
class ReferenceAnswer:
    """Both readings of one chain's answer."""

    stated: str | None
    """What the chain says (`Trace.answer`); None where no answer was read in it."""
    forced: str
    """The likeliest of the scored answers after the whole unedited chain."""
    is_scored: bool
    """Whether the stated answer is among the scored ones."""

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
        """What field names begin with -> the answer that such fields follow."""
        return {"": self.answer, FORCED: self.forced}

    @property
    def differs(self) -> bool | None:
        """Whether the forced choice is another answer than the stated one; None without one."""
        return None if self.stated is None else self.forced != self.stated

    @property
    def fields(self) -> dict[str, str | bool | None]:
        """What every record of a measure says that follows an answer: `answer`, the one followed,
        and its `reference`; both readings, and whether they differ."""
        return {
            "answer": self.answer,
            "reference": self.source,
            "stated_answer": self.stated,
            "forced_answer": self.forced,
            "forced_differs": self.differs,
        }
