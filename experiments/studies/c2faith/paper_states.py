"""What the C2-Faith paper (arXiv 2603.05167) states of its settings, and what it leaves open."""

from __future__ import annotations

from faithscope.experiments.analysis.published import Stated

STATES = (
    Stated("data.least", "4.1", "at least five steps; the 450 chains have 8 to 30", also=(5,)),
    Stated("perturb.acausal", "3.1", "an LLM rewrites the step"),
    Stated("perturb.temperature", "4.2"),
    Stated("perturb.seen", "3.1", "the preceding step"),
    Stated("perturb.low", "3", "the middle region begins at 30 % of the steps"),
    Stated("perturb.high", "3", "the middle region ends at 90 % of the steps"),
    Stated("judge.temperature", "4.2", "the default API parameters"),
    Stated("judge.top_p", "4.2", "the default API parameters"),
    Stated("judge.reasoning_effort", "4.2", "the default API parameters"),
    Stated("judge.reasoning_tokens", "4.2", "the default API parameters"),
    Stated("judge.quantize", "4.2", "models behind the Azure OpenAI API"),
    Stated("reference", "F", "GPT-4.1 gives the reference scores"),
    Stated("prompts", "F", "the prompts that the paper prints, which are the shipped ones"),
)
LEAVES_OPEN = (
    *("data.splits", "data.answered", "data.one_per_problem", "data.benchmark"),
    *("perturb.writer", "perturb.draws"),
)
