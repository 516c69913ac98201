"""What the SLRC paper (arXiv 2603.22816) states of its settings, and what it leaves open."""

from __future__ import annotations

from faithscope.experiments.analysis.published import Stated
from faithscope.probes import PROBES

OF_WEIGHTS = ("table4", "section2_7", "section2_7_steps")
"""Printed tables of models whose weights are at hand."""
OF_RESPONSES = (
    *("table1", "table2", "table3", "table5", "section2", "section2_6", "section3_2"),
    *("ed2", "ed3", "ed4", "ed5", "ed6"),
)
"""Printed tables of models behind APIs, whose whole responses are cut into steps."""
EVERY_STEP = "necessity and sufficiency probes for every step"
STATES = (
    Stated("api.temperature", "4.6"),
    Stated("steps.segmentation", "4.1", "responses are segmented into sentences"),
    Stated("steps.min_chars", "4.1", "sentences shorter than 15 characters are filtered"),
    Stated("steps.groups", "4.1", EVERY_STEP),
    Stated("steps.sample", "4.1", EVERY_STEP),
    Stated("steps.screen", "4.1", EVERY_STEP),
    Stated("traces.path", "4.1", "the models write the reasoning that is measured"),
    Stated("steps.conclusion", "4.1", "the whole response is segmented", tables=OF_RESPONSES),
    Stated("slrc.shuffles", "4.1"),
    Stated("direct.readings", "4.3", "accuracy of the answers to a direct prompt"),
    Stated("taxonomy.necessity", "Extended Data Table 3"),
    Stated("taxonomy.prompt", "2.3"),
    Stated("model.quantize", "4.5", tables=OF_WEIGHTS),
    Stated("attention.shuffles", "4.5", "one version with its sentences shuffled"),
    Stated("rigidity.tuned_lens", "2.7", "the logit lens"),
    Stated("updates", "3.3", "50 training steps"),
    Stated("model.quantize", "3.3", "LoRA, without quantization", tables=("table6",)),
)
LEAVES_OPEN = (
    *("steps.conclusion", "generation.temperature", "attention.top_heads"),
    *("slrc.regenerate_tokens", "traces.", "labels."),
    *("taxonomy.gap", "taxonomy.sensitivity", "taxonomy.robustness"),
    *("sampling.", "adapter.", "optimizer.", "rewards.", "bound.", "measure"),
)


def needs_only(*probes: str) -> tuple[str, ...]:
    """The config keys that a table made by these probes does not depend on."""
    others = tuple(f"{probe}." for probe in PROBES if probe not in probes)
    return others if "direct" in probes else (*others, "taxonomy.")
