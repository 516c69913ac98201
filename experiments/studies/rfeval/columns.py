"""Columns of RFEval's tables, in words for readers."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column, Columns, by_name, plain
from faithscope.experiments.studies.rfeval.counterfactuals.construction import CRITERIA
from faithscope.experiments.studies.rfeval.pair_columns import OF_PAIRS

COLUMNS = plain(
    {
        "reader": "Who read the stances: a judge, or the model's own log-probs.",
        "framing": "How r′ is given: as the model's own reasoning (prefix) or as an earlier turn "
        "(multi_turn).",
        "n": "Pairs, outputs, items or labels that the row's numbers are of.",
        "accuracy": "Share of right answers, of the pairs that count and whose answer is known.",
        "agreement": "Share of the stances or findings that are the same.",
        "annotator": "The person who labelled; `all` for everyone together.",
        "behaviour": "What the model does with r′: misled, self_correcting, silently_correcting, "
        "incoherent, inert or ornamental.",
        "by": "What pairs are grouped by.",
        "group": "The value of what pairs are grouped by; `overall` pools.",
        "causality": "What r′ changes: both, reasoning, answer or neither.",
        "condition": "Whether outputs are without r′ (baseline), under it (intervened) or both.",
        "context": "Whether words of the context count as the question's (tfidf) or not (none).",
        "contrast": "1 where r′ takes another stance than the model's own reasoning, else 0.",
        "contrast_coverage": "Share of the judged pairs that coverage is of that are in contrast.",
        "decision": "What was labelled: a stance or a flaw.",
        "excluded": "Why the item was left out beforehand; empty of most.",
        "exclusion": "Why the pair does not count; empty where it counts.",
        "family": "What the signal is read off: the trace, attention or the lens.",
        "faithful": "Whose RF is 1: both, judge_only, log_probs_only or neither.",
        "hours": "Hours of generation, of the outputs whose time is known.",
        "in_coverage": "Whether contrast coverage is of the pair.",
        "mean": "Mean over items, of the externality Δ or of the signal.",
        "mean_delta": "Mean externality Δ of the pairs.",
        "mean_steps": "Mean number of steps of a pair, both outputs together.",
        "mean_tokens": "Mean number of tokens generated for an output.",
        "median": "Median of the externality Δ over items.",
        "median_tokens": "Median number of tokens generated for an output.",
        **{f"n_fails_{name}": f"Problems whose r′ fails {name}." for name in CRITERIA},
        "n_positive": "Pairs of the positive kind that have the signal.",
        "n_negative": "Pairs of the negative kind that have the signal.",
        "n_pairs": "Pairs of the group that were looked into.",
        "n_tasks": "Tasks that the correlation is over.",
        "option": "Whose probability it is: that of the option of r′, or of the answer.",
        "overlap": "How two sets of words are compared for Δ.",
        "p": "p-value; of `rf_inside_traces` the mean probability of the option.",
        "part": "The part of the output.",
        "position": "Place in the part, from 0 to 1.",
        "quartile": "Quartile of contrast coverage, 1 is the lowest.",
        "rank": "Place among the signals by the distance of AUROC from one half, from 1.",
        "regime": "How the model was trained after its pretraining.",
        "share": "Share of the pairs that have the value.",
        "signal": "What was read inside the model.",
        "source": "Where the problem is from.",
        "spearman": "Rank correlation of RF and RF step by step over tasks.",
        "statistic": "Which statistic it is.",
        "stratum": "Whether Δ is up to the threshold (low) or above it (high).",
        "threshold": "The externality Δ that parts low from high.",
        "value": "The statistic, or the value that the share is of.",
        "violation": "Which condition of faithfulness fails; empty where none does.",
    }
    | OF_PAIRS
) | by_name(
    [
        Column(
            "n_total",
            "pairs",
            "All pairs of an output without r′ and one under it, before any is left out.",
        ),
        Column("n_problems", "problems", "Problems for which an r′ was to be written."),
        Column(
            "n_removed", "removed", "Problems that validation does not let in, whatever the reason."
        ),
        Column("n_kept", "kept", "Problems whose r′ the validator accepts by every criterion."),
        Column(
            "n_no_reasoning",
            "no r′ that could be read",
            "Problems for which no r′ could be read from what was written.",
        ),
        Column(
            "n_unvalidated",
            "no verdict",
            "Problems with an r′ on which the validator gave no verdict that could be read.",
        ),
        Column("n_attempted", "pairs attempted", "Pairs whose item was not left out beforehand."),
        Column(
            "n_coverage",
            "pairs that coverage is of",
            "Attempted pairs that contrast coverage is of: all, or with paper_compat those with a "
            "usable output.",
        ),
        Column("n_included", "pairs that count", "Complete, judged and in contrast."),
        Column("rf", "RF", "Share of the pairs that count with χ(o) · χ(o′) · κ = 1."),
        Column(
            "rf_per_step",
            "RF, step by step",
            "RF of the pairs judged step by step, χ taken over every step.",
        ),
        Column(
            "rf_included",
            "RF of all pairs that count",
            "RF of whole blocks, of all pairs that count for the same reader.",
        ),
        Column("chi_baseline", "χ(o)", "Share of outputs without r′ that are consistent."),
        Column("chi_intervened", "χ(o′)", "Share of outputs under r′ that are consistent."),
        Column("kappa", "κ", "Share of pairs in which r′ changes reasoning or answer."),
        Column(
            "n_global",
            "left out beforehand",
            "Pairs whose item was left out before any model was asked.",
        ),
        Column(
            "n_unfinished",
            "unfinished",
            "Pairs of which an output is not complete: cut off, failed, or not taken apart.",
        ),
        Column(
            "n_evaluation_error",
            "not judged",
            "Pairs with two complete outputs of which one has no judgement that could be read.",
        ),
        Column(
            "n_non_contrast",
            "not in contrast",
            "Judged pairs in which r′ takes the stance of the model's own reasoning.",
        ),
        Column("n_of", "of", "Pairs that the share is of."),
        Column("value_low", "low", "Lower end of the 95 % interval of the value."),
        Column(
            "n_without_answer",
            "without an answer",
            "Pairs that count whose answer is known neither right nor wrong: in RF, not in "
            "accuracy.",
        ),
        Column("n_cells", "models × tasks", "Pairs of model and task that the number is made of."),
        Column(
            "coverage_min",
            "coverage, least",
            "Least contrast coverage of a pair of model and task in the quartile.",
        ),
        Column(
            "coverage_max",
            "coverage, most",
            "Greatest contrast coverage of a pair of model and task in the quartile.",
        ),
        Column("df", "degrees of freedom", "Pairs of model and task minus what the fit estimates."),
        Column(
            "std",
            "standard deviation",
            "Sample standard deviation of the externality Δ over items.",
        ),
        Column("chi", "χ", "Whether the output is consistent, as the reader reads it."),
        Column("reward", "reward for steps", "Open-R1’s: marks of steps, three are enough for 1."),
        Column("p75", "75th percentile", "75th percentile of the externality Δ over items."),
        Column("p90", "90th percentile", "90th percentile of the externality Δ over items."),
        Column(
            "small_vocabulary",
            "few words",
            "Items of which question or r′ has fewer than five content words.",
        ),
        Column("n_unread", "read by one of them", "Parts that only one of the two reads."),
        Column("cohen_kappa", "Cohen’s κ", "Agreement beyond what chance gives."),
        Column(
            "n_unmatched",
            "without a label of the judge",
            "Labels of people on decisions that the judge has no label of.",
        ),
        Column(
            "n_without_steps",
            "pairs without steps",
            "Pairs to be judged step by step of which an output has no judged steps.",
        ),
        Column(
            "mean_seconds",
            "seconds, mean",
            "Seconds from asking for an output until its end, mean over outputs; those in flight "
            "together overlap.",
        ),
        Column("n_timed", "of known time", "Outputs whose time is known: hours are of them."),
        Column(
            "device_hours",
            "hours of accelerators",
            "Hours of an output times the accelerators that wrote it, summed over outputs.",
        ),
        Column(
            "devices",
            "accelerators",
            "Most accelerators that wrote an output of known time; empty where that is not known.",
        ),
        Column("total_tokens", "tokens in all", "Tokens generated, over all outputs of the row."),
        Column(
            "auroc_within",
            "AUROC within model and task",
            "Pairs of one model and task.",
        ),
        Column(
            "auroc",
            "AUROC over all pairs",
            "How well the signal tells the positive kind from the negative, pairs of all models "
            "and tasks; one half is chance.",
        ),
        Column("p_holm", "p, corrected (Holm)", "Over all signals of a contrast."),
        Column(
            "turn_part",
            "turns",
            "The part in which the lead passes for good from the option of r′ to another, or why "
            "it does not.",
        ),
        Column(
            "n_of_judge_only",
            "count for the judge only",
            "Pairs in the measure by the judge and not by log-probs: in no other number of the "
            "row.",
        ),
        Column(
            "n_of_log_probs_only",
            "count by log-probs only",
            "Pairs in the measure by log-probs and not by the judge: in no other number of the "
            "row.",
        ),
        Column(
            "by_judge",
            "1 by the judge",
            "Share of the pairs in which the measure is 1 by the judge.",
        ),
        Column(
            "by_log_probs",
            "1 by log-probs",
            "Share of the pairs in which the measure is 1 by log-probs.",
        ),
        Column("n_both", "by both", "Pairs in which the measure is 1 by both."),
        Column(
            "n_judge_only",
            "by the judge alone",
            "Pairs in which the measure is 1 by the judge and 0 by log-probs.",
        ),
        Column(
            "n_log_probs_only",
            "by log-probs alone",
            "Pairs in which the measure is 1 by log-probs and 0 by the judge.",
        ),
        Column("n_neither", "by neither", "Pairs in which the measure is 0 by both."),
    ]
)
_KINDS = plain({"contrast": "Which two kinds of pairs the signal is to tell apart."})
_FAMILIES = plain({"family": "The family of models."})
OF_TABLES: dict[str, Columns] = {
    "rf_regimes": _FAMILIES,
    "paper_rf_table3": _FAMILIES,
    "rf_inside_signs": _KINDS,
    "rf_inside_best": _KINDS,
}
"""Columns that hold something else than in the other tables."""
