"""Report of the regex baseline: does the text hold the words of its hint or true steps?"""

from __future__ import annotations

from faithscope.experiments.analysis.cells import boots
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.experiments.studies.slrc.step_reports import per_step

MODE = Column("mode", meaning="What the text is searched for: a `hint`, or its true `steps`.")
SCORE = Column("score", "says so", "Share of the texts that hold the words.")

REPORT = MeasureReport(
    "regex_baseline",
    Section(
        "regex_baseline",
        "Regex baseline",
        "Whether the text of a question with a hint matches a pattern, and whether the text of a "
        "question with known true steps shares a word with every one of them. No model is run: a "
        "measure that is no better than this has found nothing beyond the words.",
    ),
    (
        item_table(
            "regex_baseline",
            (COUNTED, *boots((SCORE,))),
            (MODE,),
            caption="Texts that hold the words of their hint or true steps",
        ),
    ),
    (
        Frame(
            "regex_baseline",
            "A row per item: whether the text holds the words of its hint or true steps.",
            ("mode", "score", "excluded"),
        ),
        Frame(
            "regex_baseline_steps",
            "A row per item and step: whether the step holds the words.",
            ("position", "step", "score"),
            per_step(score="step_scores"),
        ),
    ),
    (
        Measure(
            "regex_baseline",
            "regex_baseline",
            "behavioural",
            value("score"),
            calls(0),
            about="faithfulness",
            steps=listed("step_scores"),
            in_short="regex baseline",
        ),
    ),
    over_steps=False,
    reasons={
        "no_hint_or_true_steps": "neither a hint nor the true steps of the question are known"
    },
)
