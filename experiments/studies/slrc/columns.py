"""Columns of the tables, and reasons why items are left out, in words for readers."""

from faithscope.experiments.analysis.columns import Column, by_name, plain
from faithscope.experiments.engine.tallies.reasons import WORDS
from faithscope.experiments.studies.slrc.measures import SLICES

_MODES = {
    "genuine": "reasoning helps and steps matter",
    "scaffolding": "reasoning helps and steps do not matter",
    "decorative": "reasoning does not help and steps do not matter",
    "empty": "reasoning does not help and steps matter",
}
COLUMNS = plain(
    {
        "parameters": "Number of parameters, as counted in the weights or as the config says.",
        "active_parameters": "Parameters that are active for one token.",
        "agreement": "Share of the pairs of outcomes that are the same.",
        "beyond_threshold": "Whether necessity moves by taxonomy.robustness or more; empty for "
        "other measures.",
        "caution": "Why the correlation says little; empty where nothing speaks against it.",
        "difference": "The measure under the other prompt minus that under the task's own.",
        "error_detection": "Chains with an error put in that the model says are wrong: share "
        "within a task, mean over tasks.",
        "label_mass_n": "Items that the mean label mass is of.",
        "left_out": "Whether the record counts nowhere because its label mass is too low.",
        "method": "Whether it is Pearson's or Spearman's coefficient.",
        "mode": "Genuine, scaffolding, decorative or empty; no text where necessity or gap was not "
        "measured.",
        "necessity_threshold": "The necessity from which on steps count as mattering.",
        "r": "The correlation coefficient over models.",
        "score": "Mean score over items as measured, whatever way it points.",
        "steps_matter": "Tasks in which necessity is so high that steps count as mattering.",
        "step": "Place of the step among those that edits may touch, from 1.",
        "x": "The first of the two scores.",
        "y": "The second of the two scores.",
    }
) | by_name(
    [
        Column("n", "items", "Items that the row is of."),
        Column("accuracy", meaning="Items whose answer is right, of those with a known one."),
        Column(
            "accuracy_written",
            "accuracy, as written",
            "Items of which the answer that the model itself wrote is right, of those where it "
            "can be read.",
        ),
        Column(
            "asked_again_differs",
            "asked again, another answer",
            "Items that answer otherwise than they state when asked again after their unedited "
            "reasoning: in the generated reading the greedy answer, in the scored one the forced "
            "choice. Edits are held against what they answer then.",
        ),
        Column("necessity", meaning="Steps whose removal changes the answer (§4.1)."),
        Column("sufficiency", meaning="Steps that alone lead to the same answer (§4.1)."),
        Column("order_sensitivity", meaning="Shuffles of the steps that change the answer (§4.1)."),
        Column("slrc", "SLRC", "Necessity × (1 − sufficiency), of these aggregates (§4.2)."),
        Column("redundancy_bound", "routes implied", "1 / necessity (§3.3)."),
        Column("n_steps", "steps", "Steps that the row is of, over all its items."),
        Column("mean_steps", "steps per item", "Mean number of steps of an item."),
        Column("n_unparsed", "unparsed", "Replies that no answer could be read from."),
        Column(
            "n_unparsed_written",
            "unparsed, as written",
            "Items with a right answer in whose own reply no answer could be read: in no accuracy.",
        ),
        Column(
            "n_direct_unparsed",
            "unparsed without reasoning",
            "Items whose answer without reasoning could not be read: they count as not right.",
        ),
        Column(
            "n_cot_unparsed",
            "unparsed with reasoning",
            "Items whose answer with reasoning could not be read: they count as not right.",
        ),
        Column("n_packs", "packs", "The most that one item's arms fell into."),
        Column("noise_floor", unit="nats", meaning="Median over items; see `probes.floor`."),
        Column("n_flips", "flips", "Those whose margin is known."),
        Column(
            "flips_within_floor", meaning="Share of the flips decided by no more than the floor."
        ),
        Column(
            "within_floor",
            "verdicts within the floor",
            "Share of the verdicts decided by no more than the noise floor.",
        ),
        Column(
            "forced_differs",
            "forced choice, another answer",
            "Items whose likeliest answer after the whole reasoning is another than they state.",
        ),
        Column("n_stated", "items that state an answer", "Items whose answer could be read."),
        Column(
            "forced_log_odds",
            "log-odds drop, forced choice",
            "What the likeliest answer of the unedited reasoning loses by the edit.",
            "nats",
        ),
        Column("label_mass", meaning="Of the model's probability, what all its labels have."),
        Column("n_items", "items", "Items that the row is of."),
        Column("n_edits", "edits", "Edited branches that the row is of."),
        Column("flip_rate", "answer changed", "Share of the edits after which it is another."),
        Column("n_no_room", "edits without room", "No positions left to write on from the step."),
        Column("total_variation", meaning="How far the distribution over the answers moves."),
        Column("log_odds_drop", "log-odds drop", "What the answer loses by the edit.", "nats"),
        Column(
            "beyond_control", meaning="Writing on from a corruption minus from the step itself."
        ),
        Column("tv", "total variation", "How far the distribution over the answers moves."),
        Column("log_odds", "log-odds drop", "What the answer loses by the edit.", "nats"),
        Column(
            "removed_flip_rate",
            "answer changed, removed",
            "Share of the removed steps after which the answer is another.",
        ),
        Column(
            "removed_tv",
            "total variation, removed",
            "How far the distribution over the answers moves where a step is removed.",
        ),
        Column(
            "removed_log_odds",
            "log-odds drop, removed",
            "What the answer loses where a step is removed.",
            "nats",
        ),
        Column(
            "removed_forced_log_odds",
            "log-odds drop, removed, forced choice",
            "What the likeliest answer of the unedited reasoning loses where a step is removed.",
            "nats",
        ),
        Column(
            "removed_flips_within_floor",
            "within the floor, removed",
            "Share of the flips by removal decided by no more than the noise floor.",
        ),
        Column(
            "corrupted_flips_within_floor",
            "within the floor, corrupted",
            "Share of the flips by corruption decided by no more than the noise floor.",
        ),
        Column("multi_step", "two or more steps", "Share of the items with two steps or more."),
        Column("cut", "cut off", "Share of the chains that the limit of tokens ended."),
        Column("repeating", meaning="Share of the chains that say their own steps again."),
        Column("without_end", "came to no end", "Share of the chains that were cut or repeat."),
        Column("sd_steps", "s.d.", "Standard deviation of the number of steps over items."),
        Column("median_steps", "median", "Median number of steps of an item."),
        Column("min_steps", "min", "Least number of steps of an item."),
        Column("max_steps", "max", "Greatest number of steps of an item."),
        Column("mean_step_tokens", "tokens per step", "Mean number of tokens of a step."),
        Column("mean_step_chars", "characters per step", "Mean number of characters of a step."),
        Column(
            "mean_reasoning_tokens",
            "tokens of reasoning",
            "Mean number of tokens of an item's reasoning.",
        ),
        Column(
            "between",
            "compared",
            "The two ways of measuring that are compared: two readings in one framing, or two "
            "framings in one reading.",
        ),
        Column("kappa", meaning="Cohen's: agreement beyond what chance gives."),
        Column("n_cut", "cut off", "Replies that reached the limit of tokens."),
        Column("direct_accuracy", "accuracy, direct", "Without reasoning."),
        Column("cot_accuracy", "accuracy, reasoned", "Of the same items, with reasoning."),
        Column("gap", meaning="What reasoning adds to accuracy."),
        Column("settled", meaning="Neither interval, of gap or necessity, holds its threshold."),
        Column(
            "n_same",
            "same mode",
            "Pairs of model and task that have the same mode under this threshold as under the "
            "run's own; one without a mode keeps that.",
        ),
        Column(
            "n_as_gap", "necessity as the gain", "Steps matter and reasoning helps, or neither."
        ),
        Column(
            "as_gap",
            "share, necessity as the gain",
            "Of the pairs of model and task that have a mode, those in which steps matter and "
            "reasoning helps, or neither.",
        ),
        *(
            Column(f"n_{mode}", mode, f"Pairs of model and task of this mode: {words}.")
            for mode, words in _MODES.items()
        ),
        Column(
            "sycophancy",
            "agrees with a wrong one",
            "Chains with a wrong answer put in to which the model says yes: share within a task, "
            "mean over tasks.",
        ),
        Column(
            "unit",
            "unit of removal",
            "What a step is: sentence, item, paragraph, or as it was given.",
        ),
        Column(
            "framing",
            meaning="Whether the edited reasoning stands where the model wrote it (prefix) or "
            "is quoted in a new prompt (reprompt).",
        ),
        Column(
            "reading",
            meaning="Whether the answer is written and parsed (generated) or read off the "
            "log-probs of its labels (scored).",
        ),
        Column(
            "edit", meaning="What was done to the reasoning: a step removed, kept alone, and so on."
        ),
        Column("moe", meaning="Whether only a part of the parameters is active for a token."),
        Column(
            "execution",
            meaning="How branches were run: packed in one forward, or one by one in a loop.",
        ),
        Column("n_tasks", "tasks", "Number of tasks that the row is of."),
        Column(
            "n_sycophancy_tasks",
            "tasks (sycophancy)",
            "Tasks in which the model said yes or no to a wrong answer; sycophancy is a mean over "
            "them.",
        ),
        Column(
            "n_error_tasks",
            "tasks (errors)",
            "Tasks in which the model said yes or no to an injected error; error detection and "
            "false alarms are means over them.",
        ),
        Column(
            "n_direct_tasks",
            "tasks (direct)",
            "Tasks with answers without reasoning and known right answers; direct accuracy is a "
            "mean over them.",
        ),
        Column("tasks", meaning="Those with an SLRC."),
        Column("open", "weights at hand", "Else it was asked over an API."),
        Column(
            "false_alarm",
            "false alarms",
            "Unmodified chains that the model says are wrong: share within a task, mean over "
            "tasks.",
        ),
        Column("youden", "Youden's index", "Error detection minus false alarms."),
        Column("ris", "RIS", "Reasoning Integrity Score: SLRC × (1 − sycophancy) (§3.1)."),
        Column(
            "r_without_one_least",
            "least, without one model",
            "Least correlation that is left where one model is left out.",
        ),
        Column(
            "r_without_one_most",
            "most, without one model",
            "Greatest correlation that is left where one model is left out.",
        ),
        Column("p_value", "p", "Of one pair, not corrected for their number."),
        Column("p_permutation", "p, permuted", "Of the models' scores dealt out anew."),
        Column("standard", meaning="Under the task's own prompt."),
        Column("changed", meaning="Under the other prompt."),
        Column("spearman", meaning="Rank correlation over the items that both have a score of."),
        Column("kendall", meaning="Tau-b over the same; scores that agree to 3 decimals tie."),
        Column("step_spearman", "spearman of steps", "Within an item, mean over items."),
        Column("n_ranked", "items (steps)", "In which neither says the same of all steps."),
        Column("same_highest", "same highest step", "Share of the items in which both have one."),
        Column(
            "n_highest",
            "items (highest step)",
            "Items of two steps or more in which each of the two measures has one step alone with "
            "the highest score.",
        ),
        Column("n_layers", "layers", "Number of layers of the model."),
        Column("depth", meaning="The layer over the number of layers."),
        Column("position", meaning="Relative place in the reasoning, 0 to 1."),
        Column(
            "about",
            meaning="Reliance: how much the answer depends on the text. Faithfulness: whether the "
            "text describes what the answer depends on.",
        ),
        Column("higher_is_faithful", meaning="The direction that theory gives the measure."),
        Column("auroc", "AUROC", "Items of `faithful` against those of `decorative`."),
        Column("auroc_confound", "AUROC, confound", "Against those of `hint_no_deletions`."),
        Column("auroc_hint", "AUROC, hint", "Against those of `hint`."),
        Column(
            "auroc_silent_step",
            "AUROC, silent step",
            "Against those of `silent_step`; one half is expected of a measure of reliance.",
        ),
        Column(
            "auroc_false_source",
            "AUROC, false source",
            "Against those of `false_source`; one half is expected of a measure of reliance.",
        ),
        Column(
            "auroc_2_steps",
            "AUROC, 2 steps",
            "Items of `faithful_2` against those of `hint_2`, whose chains have 2 steps.",
        ),
        Column(
            "auroc_5_steps",
            "AUROC, 5 steps",
            "Items of `faithful_5` against those of `hint_5`, whose chains have 5 steps.",
        ),
        Column("spearman_p", "Spearman with p", "Over the items of the mixtures."),
        Column("step_hit_rate", "step hit rate", "The step credited most is the one it reads."),
        Column("step_chance", "by chance", "What blind choice among the steps gives."),
        Column("calibration_mae", "distance from p", "Mean over p, of measures that are shares."),
        Column("forwards", "calls", "Mean model calls of an item for this measure alone."),
    ]
)
_ASKED_AGAIN = Column(
    "accuracy",
    "accuracy, asked again",
    "Items whose answer is right when it is asked for once more after the unedited reasoning: what "
    "edits are held against.",
)
OF_TABLES = {
    "slrc": by_name([_ASKED_AGAIN]),
    "models": by_name([_ASKED_AGAIN]),
    "agreement": by_name(
        [
            Column(
                "n",
                "pairs",
                "Pairs of outcomes of the two ways, of one branch each; of `baseline`, of one "
                "item.",
            )
        ]
    ),
    "prompt_interventions": plain({"variant": "The other prompt, by its name."}),
    "threshold_sensitivity": plain(
        {"agreement": "Share of the pairs of model and task that keep their mode."}
    )
    | by_name(
        [
            Column(
                "n",
                "models × tasks",
                "Pairs of model and task that have a mode: both necessity and gap were measured.",
            )
        ]
    ),
    "model_correlations": by_name([Column("n", "models", "Models that have both scores.")]),
    **{table.name: by_name(s.columns) for s in SLICES.values() for table in s.tables},
}
"""Columns that hold something else than in the other tables."""
REASONS = {
    "total": "all items",
    "included": "measured",
    **WORDS,
    **{reason: words for s in SLICES.values() for reason, words in s.reasons.items()},
}
