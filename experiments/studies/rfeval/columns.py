"""Columns of RFEval's tables: those that table specifications declare, and those of the tables with
a row for each pair (stances read, scores, signals inside the model)."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import plain
from faithscope.experiments.analysis.tables import Table, declared
from faithscope.experiments.studies.rfeval.tables.every_table import TABLES, WRITTEN
from faithscope.experiments.studies.rfeval.tables.inside import BASELINE, BEHAVIOUR
from faithscope.probes.prefilled_reasoning import SIGNALS

_PARTS = {"r": "reasoning", "e": "explanation", "a": "answer"}
_OUTPUTS = {"baseline": "the output without r′", "intervened": "the output under r′"}
_STANCES = {
    f"{output}_{part}": f"Stance of the {words} in {of}, as the reader reads it."
    for output, of in _OUTPUTS.items()
    for part, words in _PARTS.items()
}
_STANCES["intervened_r_prime"] = "Stance of r′, as the reader reads it."
_FLAWS = {
    f"{output}_flaw_{link}": f"Whether the {later} in {of} names a flaw in the {before}."
    for output, of in _OUTPUTS.items()
    for link, before, later in (
        ("re", "reasoning", "explanation"),
        ("ea", "explanation", "answer"),
        ("ra", "reasoning", "answer"),
    )
}
_FLAWS["intervened_flaw_pr"] = "Whether the reasoning under r′ names a flaw in r′."
_SCORED = {
    name: meaning
    for output, of in _OUTPUTS.items()
    for name, meaning in {
        f"{output}_outcome": f"How {of} could be taken apart; complete where it could.",
        f"{output}_judged": f"What came of judging {of}; empty where that was not asked.",
        f"{output}_a_said": f"Stance of the answer in {of} by the reader, where tests decide.",
        f"{output}_right": f"Whether the answer in {of} is right; empty where nobody knows.",
        f"{output}_chi": f"χ, 1 where {of} is consistent, else 0; empty where not judged.",
        f"{output}_break": f"The transition at which {of} breaks; empty where it is consistent.",
        **{
            f"{output}_effective_{part}": f"Stance that the chain of {of} has carried to its "
            f"{words}; ⊥ after a break."
            for part, words in _PARTS.items()
        },
    }.items()
}
_BY_LOG_PROBS = {
    f"{name}_log_probs": f"{words} by the model's own log-probs."
    for name, words in (
        ("exclusion", "Why the pair does not count"),
        ("contrast", "Whether r′ is in contrast"),
        ("chi_baseline", "χ of the output without r′"),
        ("chi_intervened", "χ of the output under r′"),
        ("kappa", "κ"),
        ("rf", "RF"),
    )
}
_SIGNALS = {
    "trace": "Whether options were traced, a free answer, or none.",
    "answered": "Stance of the answer under r′, as the reader reads it.",
    "led_to": "The option that r′ leads to by the reader's stance of it; empty where it is none.",
    "led_to_reason": "Why r′ leads to no option of the trace; empty where it does.",
    "turn_part": "The part in which the lead passes for good, or why it does not.",
    **SIGNALS,
    **BASELINE,
}
_OF_PAIRS = {
    "excluded": "Why the item was left out beforehand; empty for most items.",
    "exclusion": "Why the pair does not count; empty where it counts.",
    "in_coverage": "Whether the pair counts towards contrast coverage.",
    "contrast": "1 where r′ takes another stance than the model's own reasoning, else 0.",
    "violation": "Which condition of faithfulness fails; empty where none does.",
    "causality": "What r′ changes: both, reasoning, answer or neither.",
    "behaviour": BEHAVIOUR.meaning,
    "kappa": "1 where r′ changes reasoning or answer, else 0.",
    "rf": "1 where χ(o) · χ(o′) · κ = 1, else 0.",
    "faithful": "Which reader finds RF = 1: both, judge_only, log_probs_only or neither.",
}
_COLUMNS = plain(_STANCES | _FLAWS | _SCORED | _BY_LOG_PROBS | _SIGNALS | _OF_PAIRS)
COLUMNS, OF_TABLES = declared(
    [*TABLES, *(Table(name, frame, tuple(_COLUMNS.values())) for frame, name in WRITTEN.items())]
)
