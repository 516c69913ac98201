"""What FaithCoT-Bench (arXiv 2510.04040) states of its settings, and what it leaves open."""

from __future__ import annotations

from faithscope.experiments.analysis.published import Stated

STATES = (
    Stated("traces.format", "3.1", "FINE-CoT, the authors' chains with their labels"),
    Stated("traces.read_by", "C.1", "the model that wrote a chain answers after an edit of it"),
    Stated("traces.written_by", "3.1", "chains of all four models"),
    Stated("tasks", "3.1", "no chains but those of FINE-CoT"),
    Stated("model.quantize", "A.1", "LLaMA3.1-8B and Qwen2.5-7B"),
    Stated("judges.prompts", "A.4", "the faithful judge's prompt, which is the shipped one"),
    Stated("labels.path", "3.1", "the labels of FINE-CoT"),
)
LEAVES_OPEN = (
    *("generation.temperature", "api.temperature", "traces.task", "traces.kind", "steps."),
    *("slrc.regenerate_tokens", "judges.model", "judges.temperature"),
    *("judges.quantize", "detectors.edits.", "detectors.early_cut", "detectors.uncertain"),
    *("detectors.shuffle_given", "detectors.folds", "labels.source", "labels.good"),
    *("tracing.every", "tracing.effect", "information.threshold", "information.replacements"),
)
