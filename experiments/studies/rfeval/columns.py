"""Columns of RFEval's tables: those that table specifications declare, and those of the tables with
a row for each pair (stances read, scores, signals inside the model)."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import plain
from faithscope.experiments.analysis.tables import Table, declared
from faithscope.experiments.studies.rfeval.metrics.inside import BEHAVIOUR
from faithscope.experiments.studies.rfeval.tables import TABLES, WRITTEN

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
_PLACES = {"asked": "where the answer is asked for", "written": "where the answer is written"}
_REGIONS = {"r_prime": "r′", "own": "the model's own text", "question": "the question"}
_ATTENTION = {
    f"{place}_{name}": f"{words}, {where}."
    for place, where in _PLACES.items()
    for name, words in {
        **{region: f"Share of attention that goes to {of}" for region, of in _REGIONS.items()},
        **{
            f"density_{region}": f"Attention to {of} over what its length alone would bring it"
            for region, of in _REGIONS.items()
        },
        "own_against_r_prime": "Density of the model's own text over that and the one of r′",
        "settled_depth": "Depth from which on the lens gives the model's own token",
    }.items()
}
_SIGNALS = {
    "trace": "Whether options were traced, a free answer, or none.",
    "answered": "Stance of the answer under r′, as the reader reads it.",
    "led_to": "The option that r′ leads to by the reader's stance of it; empty where it is none.",
    "led_to_reason": "Why r′ leads to no option of the trace; empty where it does.",
    "p_before": "Probability of the option of r′ before r′.",
    "p_after_r_prime": "Probability of the option of r′ after r′.",
    "r_prime_effect": "Probability of the option of r′ after r′ minus that before it.",
    "p_peak": "Greatest probability of the option of r′ after the first token.",
    "peak_at": "Where the option of r′ is likeliest, as a share of the tokens.",
    "p_final": "Probability of the option of r′ before the answer.",
    "final_lead": "Probability of the option of r′ before the answer minus the best other's.",
    "followed": "1 where the option of r′ leads at the end of r′, else 0.",
    "ever_led": "1 where the option of r′ leads anywhere after the first token, else 0.",
    "led_share": "Share of the model's own tokens along which the option of r′ leads.",
    "last_led": "The last place at which the option of r′ leads, as a share of the tokens.",
    "turn_at": "Where the lead has passed from the option of r′ for good, a share of the tokens.",
    "turn_own": "Where the lead has passed for good, a share of the model's own tokens.",
    "turn_within": "Tokens among which the lead passes for good; 1 where the token is known.",
    "flips": "Changes of the leading option, over equally spaced places.",
    "steepest_fall": "Greatest loss of the option of r′ between two neighbouring places of the "
    "model's own text.",
    "baseline_p_final": "Probability of the option of r′ before the answer, without r′.",
    "baseline_confidence": "Probability of the likeliest option before the answer, without r′.",
    "gold_lost": "What r′ takes from the log-prob of the right answer, nats per token.",
    "gold_regained": "What the model's own text gives back to the right answer, nats per token.",
    "own_gained": "What the model's own text gives to its own answer, nats per token.",
    "lens_peak": "Greatest probability of the option of r′ by the lens, between first and last "
    "layer.",
    "lens_peak_depth": "The layer of that probability over the number of layers.",
    "lens_led": "Share of the layers between first and last in which the option of r′ leads.",
    "lens_suppressed": "1 where the option of r′ leads in one of these layers and not in the last.",
    "asked_option_settled_depth": "Depth from which on the likeliest option by the lens is the "
    "final one, where the answer is asked for.",
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
_COLUMNS = plain(_STANCES | _FLAWS | _SCORED | _BY_LOG_PROBS | _ATTENTION | _SIGNALS | _OF_PAIRS)
COLUMNS, OF_TABLES = declared(
    [*TABLES, *(Table(name, frame, tuple(_COLUMNS.values())) for frame, name in WRITTEN.items())]
)
