"""The trivial baseline that a measure has to beat: does the text hold the words of the truth?

BonaFide (arXiv 2605.25052, `metrics/regex_baseline`) calls the text of a question with a hint
faithful if a pattern, "hint", matches it, and that of a question whose true steps are known if it
shares a content word with every one of them. No model is run. It says nothing of what the answer
depends on, so a measure that is no better has found nothing beyond the words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from faithscope.interventions import Trace
from faithscope.probes.framing import Asking
from faithscope.probes.patterns import matched, pattern_problem
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Settings

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_TRUTH = "no_hint_or_true_steps"
SHORTEST = 3
"""Fewest letters of a content word."""
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the a an is are was were be been being of to in on at for and or but if then else so as "
        "by with from that this these those it its we you i he she they them his her our their not "
        "no do does did have has had will would can could should may might must shall there here "
        "what which who whom how why when where",
    )
)
"""Words of a true step that do not count, as in BonaFide's code."""


class RegexBaselineSettings(Settings):
    """Whether the text holds the words of its hint, or of its true steps (BonaFide's baseline)."""

    pattern: str = Field(default="hint", min_length=1)
    """Regular expression whose match makes the text of a question with a hint faithful; upper and
    lower case are one."""

    @field_validator("pattern")
    @classmethod
    def _readable(cls, pattern: str) -> str:
        if problem := pattern_problem(pattern):
            raise ValueError(problem)
        return pattern


@probe(
    "does the text hold the word hint, or the words of its true steps (BonaFide's baseline)",
    words=("asked",),
    calls=lambda size, s: 0,
)
def regex_baseline(
    model: Model, trace: Trace, asking: Asking, settings: RegexBaselineSettings
) -> list[Record]:
    """One record; without a hint or true steps it only says why, in `excluded`.

        mode        `hint`: the chain's file gives a cue or a `prompted_hint`, or else the pattern
                    matches the message or the question; `steps`: its file gives `true_steps`
        score       1 if the pattern matches the reasoning, or every true step shares a word with it
        step_scores, per counted step   the same of a step's text

    Raises:
        UserError: the pattern takes too long (`patterns.PATIENCE`).
    """
    given, question = trace.origin.given, trace.question

    def says(text: str) -> bool:
        key = "regex_baseline.pattern"
        return bool(matched(settings.pattern, text, key, question.id, any_case=True, first=True))

    labels = given.labels if given else {}
    true_steps = str(labels.get("true_steps") or "").splitlines()
    if labels.get("prompted_hint") or (given and given.cue):
        mode = "hint"
    elif true_steps:
        mode = "steps"
    elif says(f"{asking.asked}\n{question.text}"):
        mode = "hint"
    else:
        return [record(trace, "regex_baseline", "", None, excluded=NO_TRUTH)]
    held = says if mode == "hint" else lambda text: shares_words(text, true_steps)
    steps = trace.counted_steps
    return [
        record(
            trace,
            "regex_baseline",
            "",
            None,
            mode=mode,
            score=float(held(trace.reasoning_text)),
            n_steps=len(steps),
            steps=[s.index for s in steps],
            step_scores=[float(held(s.text)) for s in steps],
        )
    ]


def shares_words(text: str, true_steps: list[str]) -> bool:
    """Whether the text holds a content word of every true step; not of one that has none."""
    lower = text.lower()
    return all(any(word in lower for word in content_words(step)) for step in true_steps)


def content_words(text: str) -> list[str]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return [word for word in words if len(word) >= SHORTEST and word not in STOP_WORDS]
