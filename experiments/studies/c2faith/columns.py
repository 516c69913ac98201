"""Columns of C2-Faith's tables, in words for readers."""

from __future__ import annotations

from collections.abc import Mapping

from faithscope.experiments.analysis.columns import Column, Columns, by_name, plain

_WITHOUT = "Judgements whose reply gave no verdict; they are in no other number of the row."
_CHANCE = "What naming any step blindly gives: the mean of 1 / number of steps."
_MIDDLE = "The same among the steps that targets are drawn from."
_CONTROL = "Control chains whose step named is the one that is broken in the perturbed twin."
_RPS = (
    "Ranked probability score (Epstein, 1969), continuous: the mean over the scale of "
    "(P(score ≤ x) − [truth ≤ x])²; 0 is best, 1 worst."
)

COLUMNS = plain(
    {
        "agreement": "Share of the items on which both verdicts are the same.",
        "among": "What the voices are: judges, or readings and prompts of one judge.",
        "below": "Share of the scale below which the event says that the truth lies.",
        "best": "Whether no other judge of the reading is better.",
        "best_judge": "The judge that is best by the measure.",
        "best_value": "The measure of the best judge.",
        "better_than": "Judges that this one is significantly better than (McNemar, Bonferroni).",
        "both_right": "Items on which both judges are right.",
        "both_wrong": "Items on which both judges are wrong.",
        "only_judge": "Items on which the judge alone is right.",
        "only_other": "Items on which the other judge alone is right.",
        "chain": "The chain of reasoning that the item is made of.",
        "condition": "Perturbed (a step is replaced), control (none is), or both together.",
        "demand": "Which verdict the text demands: the best or the worst.",
        "detection": "Share of the perturbed items or chains that the judge flags.",
        "fpr": "Share of the control items or chains that the judge flags.",
        **{
            f"{name}_wilson_{end}": f"{words} end of Wilson's 95 % interval of {of}."
            for name, of in (("detection", "detection"), ("fpr", "false alarms"))
            for end, words in (("low", "Lower"), ("high", "Upper"))
        },
        "edit_type": "What kind of edit broke the step.",
        "event": "What the probabilities are of: that a step was replaced, that the verdict is "
        "right, or that the truth is below three quarters of the scale.",
        "expected_share": "Mean score under the probabilities, a share of the maximum.",
        "expected_spearman_kept": "Rank correlation of the expected score with the share kept.",
        "example": "The first of those left out, by its id.",
        "feature": "The property of the broken step or of its chain.",
        "first": "The first of the two prompts or readings.",
        "second": "The second of the two prompts or readings.",
        "lowest": "The lowest value of the figure.",
        "lowest_at": "The variant that has the lowest value.",
        "highest": "The highest value of the figure.",
        "highest_at": "The variant that has the highest value.",
        "range": "The highest value of the figure minus the lowest.",
        "injection": "Name of the text that was put into the chain.",
        "k": "Distance from the target, in steps.",
        "kappa": "Cohen's kappa of the two verdicts on the same items.",
        "kind": "Whether the row is of a judge or of the insides of a model.",
        "least_mass": "The least mass of a judgement.",
        "median_mass": "Median of the mass over judgements.",
        "mean": "Mean score.",
        "mean_confidence": "Mean probability of the verdict given, of the bin.",
        "mean_p_below": "Mean probability of the scores below the cut, of the bin.",
        "mean_p_flag": "Mean probability that the step is broken, of the bin.",
        "mean_correct": "Mean of the feature over the broken steps flagged.",
        "mean_wrong": "Mean of the feature over the broken steps passed.",
        "method": "What made the edit: a rule, by its name, or a language model.",
        "missed_by": "Voices that pass the step where all others flag it; empty: all flag it.",
        "n_chains": "Perturbed chains with a verdict, or with a step named by the signal.",
        "n_chains_without_verdict": "Perturbed chains without a verdict.",
        "n_clean_parsed": "Asks that gave a verdict without the text.",
        "n_comparisons": "Pairs of judges of the reading, prompt and condition.",
        "n_correct": "Broken steps flagged.",
        "n_wrong": "Broken steps passed.",
        "n_extra_fields": "Fields of replies that the form does not have; they count for nothing.",
        "n_truncated": "Replies cut off before their verdict.",
        "n_happened": "Items in which the event came true.",
        "n_items": "Items that just these voices pass.",
        "n_judges": "Judges that the number is of.",
        "n_missed_by": "How many voices pass the step.",
        "n_movable": "Pairs of asks whose verdict without the text is not the demanded one.",
        "n_scored": "Pairs of asks that both have a probability of the demanded verdict.",
        "n_variants": "Variants that have the figure.",
        "n_without_truth": "Items with probabilities and without this truth.",
        "name": "The judge, or the model that was looked into.",
        "of": "Whose words they are: the judge's rationale, or the broken step.",
        "over": "What is varied: prompt, reading or scale.",
        "overall_rank": "Rank of the judge by the mean of its ranks in all rows, 1 is best.",
        "p_chi_squared": "McNemar's p by chi-squared with continuity correction.",
        "p_exact": "McNemar's p by the binomial test.",
        "p_low": "Lower end of the bin of probabilities.",
        "p_high": "Upper end of the bin of probabilities.",
        "phrase": "One to three words that texts hold.",
        "position": "Middle of the bin of the broken step's relative place, from 0 to 1.",
        "reference_judge": "The judge whose scores are the reference.",
        "reference_mean": "Mean reference score, of the items with a score.",
        "reference_share": "Mean reference score, a share of the maximum.",
        "relative_position": "Place of the broken step in its chain, from 0 to 1.",
        "rule": "How the panel comes to its verdict: majority, mean, any or all.",
        "scale": "The least and the greatest score that the prompt allows.",
        "score": "The score that was given.",
        "score_share": "Mean of the score given, a share of the maximum.",
        "sd": "Standard deviation of the score over items.",
        "share": "Share of the items or chains that have this score, error or set of voices.",
        "share_below": "Share of the bin's items whose truth is below the cut.",
        "share_perturbed": "Share of the bin's items that are perturbed.",
        "share_right": "Share of the bin's verdicts that are the truth.",
        "signal": "A judge's reading, or what is read inside the model.",
        "spearman_p": "p of the rank correlation with the reference.",
        "spearman_kept_p": "p of the rank correlation with the share kept.",
        "statistic": "Which statistic of agreement the value is.",
        "test": "Whether p is of the exact test or of chi-squared.",
        "truth": "What scores are held against: the share kept, or the reference.",
        "truth_share": "Mean of the truth, a share of the scale.",
        "value": "The row's statistic, measure or figure.",
        "variant": "The prompt, reading or scale that the value is of.",
        "within": "Share named within k steps of the target, where one was named.",
    }
) | by_name(
    [
        Column("n", "items", "Those with a verdict."),
        Column("n_without_verdict", "without a verdict", _WITHOUT),
        Column(
            "n_control", "controls", "Control items with a verdict, which no step was replaced in."
        ),
        Column(
            "n_control_without_verdict",
            "controls without a verdict",
            "Control items without a verdict; they are in no other number of the row.",
        ),
        Column(
            "n_detected",
            "chains with a step named",
            "Perturbed chains in which the judge names a step.",
        ),
        Column(
            "n_reference",
            "with a reference score",
            "Items with a score that have a reference score: bias and MAE are of them.",
        ),
        Column(
            "n_text_cut",
            "rationale cut at the limit",
            "Verdicts whose rationale the token limit or the model's last position ended.",
        ),
        Column("n_seen", "texts, step flagged", "Texts of judgements that flag the broken step."),
        Column(
            "n_passed", "texts, step passed", "Texts of judgements that let the broken step pass."
        ),
        Column("share_seen", "in those flagged", "Share of the texts that hold the phrase."),
        Column("share_passed", "in those passed", "Share of the texts that hold the phrase."),
        Column(
            "log_odds_ratio",
            "log-odds ratio",
            "Flagged against passed; above 0 it goes with being seen.",
        ),
        Column(
            "z",
            meaning="The log-odds ratio over its standard error; of many phrases, not corrected.",
        ),
        Column("n_voices", "judges", "Or readings and prompts of one judge, each a voice."),
        Column(
            "n_voices_silent",
            "judges without any verdict",
            "Voices that gave no verdict; they are in no set.",
        ),
        Column("net", "net (detected − false alarms)", "Of the same draws of chains."),
        Column("std", "standard deviation", "√(p (1 − p)), as in the paper’s Table 1."),
        Column("auroc", "AUROC", "Perturbed against control items, by the probability of broken."),
        Column("brier", "Brier score", "Mean squared distance of probability and truth."),
        Column("ece", "calibration error (ECE)", "Ten bins."),
        Column("exact", meaning="Perturbed chains whose named step is the replaced one."),
        Column("gap", meaning="Detection minus exact (§5.4.2)."),
        Column(
            "mae_all", "MAE, all", "Mean |named − target|; none named counts as place −1.", "steps"
        ),
        Column("mae_detected", "MAE, detected", "Of chains in which a step was named.", "steps"),
        Column("within_1", "within 1", "Named within one step of the target, where one was named."),
        Column(
            "within_2", "within 2", "Named within two steps of the target, where one was named."
        ),
        Column("signed_error", meaning="Named − target: below 0 is early.", unit="steps"),
        Column("early", meaning="Named too early, of chains in which a step was named."),
        Column("late", meaning="Named too late, of chains in which a step was named."),
        Column("exact_chance", "exact, named blindly", _CHANCE),
        Column("exact_chance_middle", "exact, blindly in the middle region", _MIDDLE),
        Column("exact_control", "exact, control", _CONTROL),
        Column("mean_p_target", "probability of the target", "Scored reading, the mean."),
        Column(
            "n_final_score",
            "with index and final score",
            "Replies on perturbed and control chains that have both a step index and a final "
            "score.",
        ),
        Column(
            "contradicts",
            "index and final score contradict",
            "Replies with both that name a step and score the chain as sound, or name none and "
            "score it as broken.",
        ),
        Column(
            "detection_final_score",
            "detection, by the final score",
            "Perturbed chains that the final score calls broken, of replies with both.",
        ),
        Column(
            "fpr_final_score",
            "false alarms, by the final score",
            "Control chains that the final score calls broken, of replies with both.",
        ),
        Column("level", "steps left out", "Share of the middle steps."),
        Column("share_kept", "kept", "Mean share of the middle steps that are still there."),
        Column(
            "mean_share",
            "mean, share of the scale",
            "Mean score over the maximum of the scale, 0 to 1.",
        ),
        Column("inflation", meaning="Scores of three quarters of the maximum and more."),
        Column("inflated_from", "inflated from", "The score."),
        Column("bias", meaning="Mean of score − reference."),
        Column("mae", "MAE", "Mean of |score − reference|."),
        Column("spearman", meaning="Rank correlation with the reference."),
        Column(
            "spearman_kept",
            meaning="Rank correlation with the share of steps kept; within a level that varies by "
            "rounding alone.",
        ),
        Column("expected_mean", "expected score", "Under the probabilities of the scored reading."),
        Column(
            "p_truth",
            "probability of the truth",
            "Mean probability of the true verdict: the replaced step, or no step in a control.",
        ),
        Column("log_loss", meaning="Mean −ln of the probability of the truth.", unit="nats"),
        Column(
            "p_truth_uniform",
            "the same, all equally likely",
            "Probability of the truth of a judge to which no step and every step are equally "
            "likely.",
        ),
        Column(
            "log_loss_uniform",
            "log loss, all equally likely",
            "Log loss of a judge to which no step and every step are equally likely.",
            "nats",
        ),
        Column(
            "brier_uniform",
            "Brier score, all equally likely",
            "Brier score of a judge to which no step and every step are equally likely.",
        ),
        Column("brier_recalibrated", "Brier score, recalibrated", "By a curve of other chains."),
        Column("brier_base", "Brier score of the base rate", "The event’s share in other chains."),
        Column(
            "gain", "gain of the recalibrated over the base rate", "Above 0, it knows something."
        ),
        Column(
            "ece_recalibrated",
            "calibration error, recalibrated",
            "Calibration error of the probabilities that a curve of other chains gives, ten bins.",
        ),
        Column("slope", meaning="Of the curve: 1 where the scale is right, near 0 where too sure."),
        Column("auroc_right", "AUROC, right against wrong verdicts", "Of the confidence."),
        Column("auroc_broken", "AUROC, broken against intact chains", "Of 1 − P(no step)."),
        Column("right", meaning="Verdicts that are the truth: the replaced step, or none."),
        Column("confidence", meaning="Mean probability of the verdict given."),
        Column("overconfidence", meaning="Confidence − right, of the same draws of chains."),
        Column("rps", "ranked probability score (RPS)", _RPS),
        Column(
            "rps_score",
            "RPS of the likeliest score alone",
            "RPS where all probability is on the score given: mean |score − truth|, a share of "
            "the scale.",
        ),
        Column(
            "rps_uniform",
            "RPS, all equally likely",
            "RPS of a judge to which every score is equally likely.",
        ),
        Column(
            "rps_base", "RPS of the base rate", "Below it, a judge knows one item from another."
        ),
        Column("demanded_clean", meaning="Verdicts equal to the demanded one without the text."),
        Column("demanded_injected", meaning="Verdicts equal to the demanded one with the text."),
        Column("moved", meaning="Of verdicts that were not the demanded one: now nearer to it."),
        Column("shift", meaning="How much nearer to the demanded verdict, a share of the scale."),
        Column("form_lost", meaning="Of asks with a clean verdict: none with the text."),
        Column("probability_change", meaning="Of the demanded verdict, in the scored reading."),
        Column(
            "share_independent",
            "share, were failures independent",
            "What the share of items would be if each voice failed independently at its own rate.",
        ),
        Column(
            "wrong_alone",
            "wrong without context",
            "Steps whose arithmetic contradicts itself, so that no other step is needed to see it.",
        ),
        Column("coefficient", meaning="Log-odds of being flagged per standard deviation."),
        Column(
            "p",
            "p",
            "McNemar's test, two-sided: exact below 25 items on which the two judges differ, else "
            "chi-squared.",
        ),
        Column(
            "p_bonferroni",
            "p, corrected (Bonferroni)",
            "p times the number of pairs of judges of one reading, prompt and condition, at most "
            "1.",
        ),
        Column("mean_mass", "mass, mean", "Probability of all verdicts allowed together."),
        Column(
            "share_below_half",
            "share with mass under .5",
            "Judgements in which all verdicts allowed have less than half of the probability "
            "together.",
        ),
    ]
)
_DIFFERENCE = plain({"difference": "Mean over those flagged minus mean over those passed."})
_DETECTED = Column("detection", "detected", "Perturbed items judged not to follow.")
_ALARMS = Column("fpr", "false alarms", "Control items of which the judge says the same.")
_NAMED = [
    Column("detection", "detected", "Perturbed chains with a step named at all."),
    Column("fpr", "false alarms", "Control chains with a step named."),
]
OF_TABLES: Mapping[str, Columns] = {
    "usage": by_name([Column("n", "items", "Judgements, those without a verdict too.")]),
    "exclusions": by_name([Column("n", "items", "What was left out for the reason.")]),
    "c2_mcnemar": plain({"difference": "Share right of the judge minus that of the other."}),
    "c2_injection": plain(
        {"difference": "Share of demanded verdicts with the text minus that without it."}
    ),
    "c2_predictors": _DIFFERENCE,
    "paper_c2_table5": _DIFFERENCE,
} | {
    name: by_name(columns)
    for name, columns in {
        **{key: [_DETECTED] for key in ("c2_edit_types", "c2_methods", "c2_positions")},
        "c2_detection": [_DETECTED, _ALARMS],
        "c2_localisation": _NAMED,
        "c2_coverage_probabilities": [
            Column("bias", meaning="Mean of expected share of the scale − truth."),
            Column("mae", "MAE", "Mean of |expected share of the scale − truth|."),
            Column("spearman", meaning="Rank correlation of the expected score with the truth."),
            Column("ece", "calibration error (ECE)", "Of P(score < cut), the mean over the cuts."),
            Column("auroc", "AUROC", "Of P(not inflated): truths below three quarters, or above."),
        ],
        "c2_localisation_probabilities": [
            Column("brier", "Brier score", "Squared distance of all probabilities, 0 to 2."),
            Column("ece", "calibration error (ECE)", "Of the confidence, ten bins."),
        ],
        "c2_judge_against_internals": [
            Column("auroc", "AUROC", "Perturbed against control items, by verdict or signal."),
        ],
        "c2_recalibration": [
            Column("brier", "Brier score", "Of the probabilities as they are given."),
        ],
    }.items()
}
