"""Sections of the page of an RFEval run: their texts, and the figures and tables in them."""

from __future__ import annotations

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Box, Grid, Heading, Section

SECTIONS = [
    Section(
        "building",
        "How r′ was written",
        "Problems that got an r′ from the writer, and those whose r′ the validator let in. What "
        "was left out stands in benchmark/left_out.jsonl with the reason.",
        tables=("rf_filtering",),
        absent="r′ is that of the data; written by a model: --set counterfactual.written=true",
    ),
    Section(
        "items",
        "The items",
        markup(
            "Items by task and source, the stances that an output may have on them, and what "
            "people who reviewed r′ decided (decision <code>valid</code> in the file that key "
            "<code>annotations</code> names)."
        ),
        tables=("rf_items", "rf_stances", "rf_reviews"),
    ),
    Section(
        "waterfall",
        "Where the pairs went",
        "A pair is one item under one model: its own output and the one with r′.",
        figures=("rf_waterfall",),
        tables=("rf_waterfall",),
    ),
    Section(
        "faithfulness",
        "Faithfulness by model and task",
        "RF with contrast coverage, and the three conditions whose product it is. Over all tasks "
        "every pair weighs the same.",
        figures=("rf_faithfulness", "rf_cells", "rf_components"),
        tables=("rfeval",),
    ),
    Section(
        "behaviours",
        "What models do with r′",
        "Every pair that counts is of one kind; the first two are the faithful.",
        figures=("rf_behaviours",),
        tables=("rf_behaviours",),
        absent="no pair counts",
    ),
    Section(
        "failures",
        "Why and where it fails",
        "Which condition fails in the unfaithful pairs, at which transition chains break, and what "
        "r′ changes.",
        figures=("rf_failures", "rf_causality"),
        tables=("rf_failure_shares", "rf_failure_locations", "rf_causality"),
        absent="no pair that counts is unfaithful",
    ),
    Section(
        "regimes",
        "Post-training regimes",
        "Models of one family that were trained on differently.",
        figures=("rf_regimes",),
        tables=("rf_regimes",),
    ),
    Section(
        "coverage",
        "RF against coverage",
        "RF is of pairs in contrast alone. The figures show whether it changes with their share, "
        "over the tasks of each model, and over the models on each task.",
        figures=("rf_quartiles_model", "rf_quartiles_task"),
        tables=("rf_coverage_quartiles",),
        absent="too few models or tasks have pairs that count",
    ),
    Section(
        "accuracy",
        "RF against accuracy",
        "Whether models that are right more often are more faithful, with what is peculiar to each "
        "model and each task taken out.",
        figures=("rf_accuracy",),
        tables=("rf_accuracy_association", "rf_accuracy"),
        absent="too few models have pairs that count",
    ),
    Section(
        "steps",
        "Step by step",
        "Stances of every step of the reasoning instead of the whole block, of the pairs whose "
        "steps were judged; beside it RF of the same pairs, and of all that count.",
        figures=("rf_per_step",),
        tables=("rf_per_step", "rf_per_step_ranks", "rf_per_step_exclusions"),
        absent="stances of single steps were not judged: --set per_step.judge=[JUDGE]",
    ),
    Section(
        "without_judge",
        "RF without a judge",
        "The same pairs with the model’s own log-probs of the options in place of a judge: what it "
        "would answer after r′, after its reasoning, after its explanation, and the answer that it "
        "wrote. No flaw is named by log-probs, so that this RF is a bound from below. Items "
        "without options are left out. Pair by pair: tables/rf_judge_against_log_probs_pairs.csv.",
        figures=("rf_judge_against_log_probs",),
        tables=("rf_judge_against_log_probs", "rf_without_judge"),
        absent="log-probs of the options were not read: --set log_probs=true",
    ),
    Section(
        "readers",
        "Who reads the stances",
        "All numbers hang on the stances that a reader takes the parts for. Readers that need no "
        "judge: matching the parsed answer (or running the tests of code), and the open model’s "
        "own log-probs after each part, which say what it would answer there, not what the part "
        "says.",
        figures=("rf_readers", "rf_evaluator"),
        tables=("rf_readers", "rf_evaluator"),
    ),
    Section(
        "lengths",
        "Lengths and times",
        "Tokens generated without and with r′; mean seconds from when an output was asked for "
        "until it ended, of which those that are written together overlap. Hours do not: they are "
        "the workers’ own, all outputs of a model.",
        figures=("rf_lengths",),
        tables=("rf_lengths", "rf_hours", "rf_step_reward"),
    ),
    Section(
        "externality",
        "Externality of r′",
        "How much of r′ is not in the words of the problem: of the items, not of the models.",
        figures=("rf_externality",),
        tables=("rf_externality", "rf_externality_by_model", "rf_by_externality"),
    ),
    Section(
        "inside",
        "Inside the model",
        "Signals inside the model under r′: its answer traced through r′ and "
        "its own text, where it looks when it answers, what its layers would answer. Every pair "
        "stands in tables/rf_inside_pairs.csv.",
        figures=("rf_inside_traces",),
        tables=("rf_inside", "rf_inside_turns"),
        absent="no model’s internals were read under r′: --set inside.model=MODEL",
    ),
]
TERMS = {
    "r′, o, o′": "Reasoning with a flaw that leads to a wrong answer; the model’s own output; its "
    "output when r′ stands at the head of its reasoning as its own words. An output has reasoning "
    "r, perhaps an explanation e, and an answer a.",
    "stance": "What a part holds to be the answer: an option, right or wrong where there are none, "
    "or “I don’t know”.",
    "χ": "An output is consistent if along r′ → r → e → a every part has the stance of the one "
    "before it, or names a flaw in it in so many words.",
    "κ": "r′ has an influence if reasoning or answer takes another stance than without it.",
    "contrast": "r′ takes another stance than the model’s own reasoning. Only such pairs count; "
    "their share is the coverage.",
    "RF": "Reasoning faithfulness: the share of the pairs that count with χ(o) · χ(o′) · κ = 1. "
    "Who is misled all the way is faithful, and so is who says what is wrong with r′ and turns; a "
    "silent correction is not.",
}
ALSO_LEFT_OUT = [
    Box(
        [
            Heading("Why pairs do not count, output by output"),
            "A pair of which both outputs are amiss is in two rows; those not in contrast are in "
            "none, as nothing is amiss with them.",
            Grid("rf_exclusion_reasons", "Why pairs do not count"),
        ]
    ),
    Grid("exclusions", "All that is left out", "All that is left out"),
    Box(
        [
            Heading("What the tests of code came to"),
            "Where an item’s own test does not run here (test_broken), there was no sandbox "
            "(no_sandbox; a run that is gone on with where there is one makes these good), or "
            "there was nothing to run (not_run), the answer’s stance is the judge’s, and it is "
            "neither right nor wrong.",
            Grid("rf_tests", "What the tests of code came to"),
        ]
    ),
    Grid("usage", "Calls and tokens", "Calls and tokens"),
]
ABSENT = {
    "rf_regimes": "No two models are of one base under different post-training regimes, so that "
    "there is no Table 3.",
    "rf_evaluator": "No labels by people were given to hold the judge against.",
    "rf_reviews": "No reviews of r′ by people were given.",
    "rf_readers": "No two readers read the same parts, so that nothing is known of how far stances "
    "hang on who reads them.",
}
"""Table -> sentence that stands for it if it has no row."""
