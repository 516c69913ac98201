"""Columns of the tables of judges on given chains, in words for readers."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column, Columns, by_name

COLUMNS = by_name(
    [
        Column("form", "prompt", "The prompt that the judge was asked with."),
        Column("model", "written by", "The model that wrote the chains."),
        Column("dataset", "data set", "The data set that the questions are from."),
        Column(
            "n",
            "chains or steps",
            "Chains, or steps of `judge_steps`, that were asked of; of `judge_agreement` those "
            "with a verdict and a label.",
        ),
        Column("n_without_verdict", "without a verdict", "Replies that are not of the form."),
        Column(
            "n_without_label",
            "without a label",
            "Chains or steps without a label of this name that says yes or no.",
        ),
        Column("n_cut", "cut", "Chains cut off at the token limit: left out, or kept if so set."),
        Column("n_uncertain", "uncertain", "Class 2 of the faithful judge; in no rate."),
        Column("flagged", meaning="Share of which the judge says that something is wrong."),
        Column("mean_score", "mean score", "Higher is worse, whatever the prompt; 0 to 1."),
        Column("step", meaning="Its place, from 0."),
        Column("level", meaning="Whether chains or steps are compared."),
        Column("label", meaning="The label that judges are held against."),
        Column(
            "labelled_wrong",
            "wrong by the label",
            "Share of the labelled chains or steps that the label calls wrong, those without a "
            "verdict too.",
        ),
        Column("accuracy", meaning="Share on which flag and label agree; intervals draw chains."),
        Column("kappa", "Cohen’s κ", "Collapses where nearly all labels are one and the same."),
        Column("ac2", "Gwet’s AC2", "Agreement beyond chance that does not collapse so."),
        Column("saturated", meaning="Whether nearly all labels are one: read AC2, not κ."),
        Column(
            "auroc",
            "AUROC",
            "Wrong against sound, by the score; .5 is chance. None of "
            "the steps of a prompt that asks for one of them.",
        ),
        Column(
            "n_wrong",
            "chains with a wrong step",
            "Chains with a verdict of which the labels call some step wrong.",
        ),
        Column(
            "n_sound",
            "chains without",
            "Chains with a verdict of which the labels call no step wrong.",
        ),
        Column("n_left_out", "left out", "No verdict, or labels that leave the first step open."),
        Column("exact", meaning="Of chains with a wrong step: the first one is named."),
        Column("none_named", "none named", "Of chains without one: none is named."),
        Column("f1", "F1", "Harmonic mean of the two, as ProcessBench has it."),
        Column("reason", meaning="Why there is no verdict; total and included are the ends."),
    ]
)
OF_TABLES: dict[str, Columns] = {}
