"""Reasons why nothing was measured of an item, in words, and the config keys that would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faithscope.interventions import LEAST_STEPS
from faithscope.interventions.scripts import length_in_letters

FEW_STEPS = f"fewer_than_{LEAST_STEPS}_steps"
EMPTY_CHAIN = "empty_chain"
LOW_MASS, CHAIN_CUT = "low_label_mass", "cut_at_the_limit"
"""Reasons by which tables leave out a record that holds a value: nearly all of the probability is
on tokens that are no label; the token limit cut the chain that was judged."""
WORDS = {
    "failed": "failed with an error",
    "not_run": "not reached",
    "beyond_limit": "beyond the limit of the probe",
    FEW_STEPS: f"fewer than {LEAST_STEPS} steps",
    "empty_generation": "nothing generated",
    EMPTY_CHAIN: "the file gives no text of the reasoning",
    "reasoning_unclosed": "reasoning never ended",
    "no_thinking_shown": "the model's thinking is not shown",
    "reply_declined": "no answer: refused, filtered, too long, or cut off before it",
    "refused": "the model declined",
    "filtered": "the provider's filter stopped it",
    "overflow": "the prompt is longer than the model reads",
    "truncated": "the reply was cut off at the token limit",
    "unparsed": "the reply does not fit the form",
    "answer_unparsed": "no answer found",
    "baseline_unparsed": "no answer to the unedited reasoning",
    "fewer_than_2_labels": "fewer than 2 answers to score",
    LOW_MASS: "the scored answers have too little probability",
    CHAIN_CUT: "a token limit cut the chain off",
    "answer_kind_unknown": "the kind of its answers is not known",
    "written_by_another": "another model wrote the chain",
    "writer_not_here": "written by a model that is not in this run",
    "no_room": "no room in the model's positions",
    "nothing_asked": "there is nothing in it to ask about",
    "no_options": "the chain has no options",
    "no_prompt": "the chain has no prompt",
    "no_answer": "the chain states no answer",
    "no_gold": "the chain has no right answer",
    "no_cue": "the chain has no cue",
    "no_cue_target": "the chain has no target of its cue",
    "no_choice": "its answers are free, and log-probs are of listed ones",
}
"""Reason -> its meaning. Reasons of a single measure are defined beside that measure."""
REMEDIES = {
    "answer_kind_unknown": "traces.kind=number (or choice or label, with options in the file; "
    "answers in free text: faithscope docs data)",
    "written_by_another": "traces.writers={WRITER: MODEL}, or a column model that names the model",
    "prompt_not_rendered_again": "a prompt that is the user's message alone",
    "reasoning_unclosed": "generation.max_new_tokens=N, a larger one",
    "empty_generation": "generation.max_new_tokens=N, a larger one",
    "truncated": "judge.max_tokens=N, a larger one",
    CHAIN_CUT: "report.cut=kept",
    "failed": "the same command again, which tries failed items anew",
}
"""Reason -> config setting that would avoid it."""


def in_words(reason: str) -> str:
    """A reason in words; for a reason of a single measure, its name with blanks for underscores."""
    return WORDS.get(reason, reason.replace("_", " "))


def min_chars_that_helps(chains: Iterable[Sequence[str]], now: int) -> str:
    """The setting of `steps.min_chars` under which more of `chains` have two steps.

    Args:
        chains: the texts of the stretches of each chain that has too few steps.
        now: the current value of the setting.

    Returns:
        e.g. `steps.min_chars=5`; empty if no smaller number helps.
    """
    lengths = [sorted(map(length_in_letters, chain), reverse=True) for chain in chains]
    second = [of[1] for of in lengths if len(of) > 1 and 0 < of[1] < now]
    return f"steps.min_chars={min(second)}" if second else ""
