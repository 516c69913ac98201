"""Columns of RFEval's tables, in words for readers."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column, Columns, by_name

COLUMNS = by_name(
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
OF_TABLES: dict[str, Columns] = {}
"""Columns that hold something else than in the other tables: none."""
