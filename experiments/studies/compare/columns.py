"""Columns of the tables of a comparison."""

from faithscope.experiments.analysis.columns import Column, by_name, plain

_RANK = "Mean rank of the trace by {}, among those of its model and task, from 0 to 1."
COLUMNS = plain(
    {
        "source": "The run that it is from.",
        "study": "What kind of run it is.",
        "run": "Folder of the run.",
        "n": "Traces that the row is of.",
        "n_pairs": "Pairs of measures of the two families.",
        "other_family": "The family of the other measure.",
        "label": "The label that measures are held against.",
        "by": "What the setting is one of: all traces, models and tasks, or lengths.",
        "setting": "Which traces the row is of.",
        "mean": "Mean score over traces as measured, whatever way it points.",
        "chance": "What blind choice among the steps gives.",
        "calibration": "Where the probability is from: as given, or Platt's curve of other "
        "questions.",
        "cost": "Which cost the row is of.",
        "value": "The cost, mean of a trace.",
        "classifier": "What was fitted to all measures together.",
        "trained_on": "What the classifier was fitted to.",
        "tested_on": "What the classifier was tested on: all, or one task or model.",
        "families": "Families of the measures that the classifier was given.",
        "added": "The family whose gain over the others is given.",
        "verdict": "Gain, loss or none, by the interval of the gain and by p.",
        "kind": "The way in which two sides part.",
        "faithful_by": "The side that calls the trace faithful.",
        "unfaithful_by": "The side that calls the trace unfaithful.",
        "rank": "Place of the trace in its kind by the gap, from 1.",
        "trace": "Digest of what has to be the same for scores to stand in one row.",
        "judges": _RANK.format("the judges"),
        "behaviour": _RANK.format("the measures of answers and their probabilities"),
        "internals": _RANK.format("the measures of the model's insides"),
        "n_steps": "Steps of the trace that edits may touch.",
        "n_tokens": "Tokens of the reasoning.",
        "correct": "Whether the model's answer is right; empty where nobody knows.",
        "trait": "The property of traces that is compared.",
    }
) | by_name(
    [
        Column("higher_is_faithful", "higher is faithful", "Which way the measure points, said "
               "before any data."),
        Column("cut", "cut", "What makes a verdict of a score: its own rule, else its median."),
        Column("other_cut", "cut of the other", "What makes a verdict of the other measure's "
               "score: its own rule, else its median."),
        Column("called_faithful", "called faithful", "Share of the traces beyond the cut."),
        Column("n_items", "items", "Traces that the row is of."),
        Column("n_measures", "measures", "Measures of the run, or those that the classifier was "
               "given."),
        Column("n_unfinished", "unfinished", "Items that the run has still to do."),
        Column("n_failed", "failed", "Units of work that failed."),
        Column("config", "config", "Digest of the run's config but for its name and place."),
        Column("plan", "plan", "Digest of the run's items, weights and versions."),
        Column("n_common", "names in common", "Traces of the same data set, task, item and model."),
        Column("n_same_ids", "same token ids", "Of the names in common, traces with the same token "
               "ids of prompt and reasoning."),
        Column("n_same_text", "same text, other ids", "Of the names in common, traces with the "
               "same reasoning as text, but other token ids or none."),
        Column("n_same_question", "same question only", "Of the names in common, traces of the "
               "same question with another reasoning."),
        Column("n_nothing_same", "another question", "Of the names in common, traces of different "
               "questions."),
        Column("n_joined", "joined", "Those whose scores stand in one row, as the config asks."),
        Column("spearman", "rho", "Spearman's rank correlation."),
        Column("within", "rho within", "Of ranks inside each model and task in which both vary."),
        Column("n_within", "models and tasks in which both vary", "Pairs of model and task in "
               "which both measures vary on the traces that have both."),
        Column("across", "rho across", "Of the means of models and tasks; from three of them on."),
        Column("n_settings", "models and tasks", "Pairs of model and task in the comparison: rho "
               "across is of their means."),
        Column("p", "p", "Of rho within, against measures that are independent inside each model "
               "and task; by exchanging questions."),
        Column("q", "q", "p corrected for the number of pairs (Benjamini and Hochberg)."),
        Column("discovered", "beyond chance", "q of rho within is at most the rate of false "
               "discoveries."),
        Column("one_probe", "one probe", "Both are numbers of one probe, or of one form put to one "
               "judge."),
        Column("reversed", "reversed", "rho within is beyond chance, and rho has the opposite sign "
               "with an interval that does not hold 0."),
        Column("kappa", "κ", "Cohen's kappa of the two verdicts."),
        Column("ac2", "AC2", "Gwet's AC2, which does not fall where nearly all say the same."),
        Column("phi", "φ", "Matthews' correlation of the two verdicts."),
        Column("n_discovered", "beyond chance", "Pairs."),
        Column("n_one_probe", "of these of one probe", "Pairs."),
        Column("n_reversed", "reversed", "Pairs."),
        Column("same_top", "same step on top", "Of the items with one top step each, those in "
               "which it is the same step."),
        Column("n_tops", "items with one top step each", "Items in which either measure credits "
               "one step more than all others."),
        Column("hit", "labelled step named", "Share of the items in which the labelled step is the "
               "one that the measure names; of k equal ones, 1 / k."),
        Column("n_unfaithful", "spoken against", "Traces that the label speaks against."),
        Column("n_missing", "without a score", "Traces with the label that the measure has no "
               "score of."),
        Column("n_rarer", "of the rarer kind", "Traces with a score, in models and tasks that have "
               "both kinds."),
        Column("auroc", "AUROC", "How well the score tells the traces that the label speaks "
               "against from others of the same model and task; one half is chance."),
        Column("pooled", "AUROC, pooled", "From all other traces, of whatever model and task."),
        Column("p_highest", "p of the highest", "How often the highest of all measures is as far "
               "out when labels are exchanged between questions, times the number of labels."),
        Column("p_wrong_way", "p of the wrong way", "How often the measure points so far the wrong "
               "way when labels are exchanged; corrected for measures and labels (Holm)."),
        Column("told", "beyond chance", "p of the highest is at most .05, and AUROC is above one "
               "half whatever its gaps hide."),
        Column("wrong_way", "wrong way", "p of the wrong way is at most .05, and AUROC is below "
               "one half whatever its gaps hide."),
        Column("least_low", "AUROC from, gaps against it", "The lower bound if every trace without "
               "a score went against the measure."),
        Column("most_high", "AUROC to, gaps for it", "The upper bound if every such trace went for "
               "it."),
        Column("average_precision", "average precision", "Of the traces spoken against."),
        Column("g_mean_squared", "g-mean²", "Sensitivity × specificity, cut on other questions."),
        Column("bias", "bias", "Share called spoken against minus the share that is."),
        Column("brier", "Brier", "Mean squared distance of the probability from what is."),
        Column("calibration_error", "calibration error", "Expected calibration error, ten bins."),
        Column("audit_precision", "audit: precision", "At the threshold that keeps .9 elsewhere."),
        Column("audit_recall", "audit: recall", "Share of the traces spoken against that are "
               "called so at the same threshold."),
        Column("screen_recall", "screening: recall", "At the threshold that keeps .9 elsewhere."),
        Column("screen_precision", "screening: precision", "Share of the traces called spoken "
               "against that are so, at the same threshold."),
        Column("behind", "behind the best", "AUROC of the best minus this one's; of a monitor "
               "the best monitor's."),
        Column("as_good", "as good", "Behind by less than report.as_good beyond doubt (corrected "
               "by Holm); empty where nothing is called the best."),
        Column("forwards", "model calls", "Of a trace, for this measure alone, mean."),
        Column("tokens", "tokens", "Of a trace, for the whole probe or judgement, mean."),
        Column("seconds", "seconds", "Of a trace, for the whole probe or judgement, mean.", "s"),
        Column("dollars", "dollars", "Of a trace, paid to an API, mean.", "$"),
        Column("on_front", "on the front", "No cheaper measure has as high an AUROC, and none of "
               "the same cost a higher one."),
        Column("single", "best single", "Chosen where the classifier was fitted, by fold."),
        Column("single_auroc", "AUROC, single", "AUROC of the best single measure on the same "
               "traces, within models and tasks."),
        Column("gain", "gain", "AUROC minus that without; see the table."),
        Column("p_low", "p from", "Lower end of the bin of probabilities."),
        Column("p_high", "p to", "Upper end of the bin of probabilities."),
        Column("mean_p_unfaithful", "mean p", "That the label speaks against a trace."),
        Column("share_unfaithful", "share spoken against", "Share of the bin's traces that the "
               "label speaks against."),
        Column("share", "share", "Of the traces that both sides have a say on."),
        Column("expected", "by chance", "Traces that would part if the sides were independent."),
        Column("beyond", "beyond chance", "Traces minus those by chance; the interval is for four "
               "kinds at once."),
        Column("gap", "gap", "Rank by one side minus rank by the other, as a share."),
        Column("mean_others", "mean, others", "Mean of the trait over all other traces that both "
               "sides have a say on."),
        Column("difference", "difference", "Mean of the kind minus mean of the others."),
        Column("settled", "settled", "Share of the steps after which the answer stands."),
    ]
)  # fmt: skip
OF_TABLES = {
    "parting_traits": plain({"mean": "Mean of the trait over the traces of the kind."}),
    "joins": by_name(
        [
            Column("n_source", "traces", "Traces of the first of the two runs."),
            Column("n_other", "traces of the other", "Traces of the second of the two runs."),
        ],
    ),
    "trust": by_name([Column("n", "traces", "Traces that have the label and a score.")]),
    "step_against": by_name(
        [
            Column("n", "steps", "Labelled steps that have a score."),
            Column("n_items", "traces", "Traces that the labelled steps with a score are of."),
            Column(
                "n_missing", "without a score", "Labelled steps that the measure has no score of."
            ),
            Column("n_unfaithful", "spoken against", "Steps that the label speaks against."),
            Column(
                "auroc",
                "AUROC",
                "How well the score tells the steps that the label speaks "
                "against, which are those with the least credit, from others of the same model and "
                "task; one half is chance.",
            ),
            Column("average_precision", "average precision", "Of the steps spoken against."),
            Column("forwards", "model calls", "Of a trace, for all its steps, mean."),
        ]
    ),
    "step_agreement": by_name(
        [Column("spearman", "rho", "Mean over items of the rank correlation of their steps.")]
    ),
}
"""Of its tables, where the name does not say all."""
