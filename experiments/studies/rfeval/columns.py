"""Columns of RFEval's tables, in words for readers."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column, Columns, by_name

COLUMNS = by_name(
    [
        Column("n_total", "pairs"),
        Column("n_problems", "problems"),
        Column("n_removed", "removed"),
        Column("n_kept", "kept"),
        Column("n_no_reasoning", "no r′ that could be read"),
        Column("n_unvalidated", "no verdict"),
        Column("n_attempted", "pairs attempted"),
        Column("n_coverage", "pairs that coverage is of"),
        Column("n_included", "pairs that count", "Complete, judged and in contrast."),
        Column("rf", "RF", "Share of the pairs that count with χ(o) · χ(o′) · κ = 1."),
        Column("rf_per_step", "RF, step by step"),
        Column("rf_included", "RF of all pairs that count"),
        Column("chi_baseline", "χ(o)", "Share of outputs without r′ that are consistent."),
        Column("chi_intervened", "χ(o′)", "Share of outputs under r′ that are consistent."),
        Column("kappa", "κ", "Share of pairs in which r′ changes reasoning or answer."),
        Column("n_global", "left out beforehand"),
        Column("n_unfinished", "unfinished"),
        Column("n_evaluation_error", "not judged"),
        Column("n_non_contrast", "not in contrast"),
        Column("n_of", "of"),
        Column("value_low", "low"),
        Column("n_without_answer", "without an answer"),
        Column("n_cells", "models × tasks"),
        Column("coverage_min", "coverage, least"),
        Column("coverage_max", "coverage, most"),
        Column("df", "degrees of freedom"),
        Column("std", "standard deviation"),
        Column("chi", "χ", "Whether the output is consistent, as the reader reads it."),
        Column("reward", "reward for steps", "Open-R1’s: marks of steps, three are enough for 1."),
        Column("p75", "75th percentile"),
        Column("p90", "90th percentile"),
        Column("small_vocabulary", "few words"),
        Column("n_unread", "read by one of them", "Parts that only one of the two reads."),
        Column("cohen_kappa", "Cohen’s κ", "Agreement beyond what chance gives."),
        Column("n_unmatched", "without a label of the judge"),
        Column("n_without_steps", "pairs without steps"),
        Column("mean_seconds", "seconds, mean"),
        Column("n_timed", "of known time"),
        Column("device_hours", "hours of accelerators"),
        Column("devices", "accelerators"),
        Column("total_tokens", "tokens in all"),
        Column(
            "auroc_within",
            "AUROC within model and task",
            "Pairs of one model and task.",
        ),
        Column("auroc", "AUROC over all pairs"),
        Column("p_holm", "p, corrected (Holm)", "Over all signals of a contrast."),
        Column("turn_part", "turns"),
        Column("n_of_judge_only", "count for the judge only"),
        Column("n_of_log_probs_only", "count by log-probs only"),
        Column("by_judge", "1 by the judge"),
        Column("by_log_probs", "1 by log-probs"),
        Column("n_both", "by both"),
        Column("n_judge_only", "by the judge alone"),
        Column("n_log_probs_only", "by log-probs alone"),
        Column("n_neither", "by neither"),
    ]
)
OF_TABLES: dict[str, Columns] = {}
"""Columns that hold something else than in the other tables: none."""
