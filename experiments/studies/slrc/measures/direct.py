"""Report of answers without reasoning, by prompt."""

from __future__ import annotations

from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

_DIRECT = ("prompt", "reading", "gold", "answer", "correct", "reply", "cut", "label_mass")
_DIRECT += ("excluded",)

REPORT = MeasureReport(
    "direct",
    frames=(
        Frame(
            "direct",
            "A row per item, direct prompt and reading: the answer without reasoning.",
            _DIRECT,
        ),
    ),
    reasons={"no_direct_prompts": "task without direct prompts"},
)
