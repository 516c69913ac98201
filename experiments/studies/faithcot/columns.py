"""What the columns of the tables of FaithCoT-Bench are called, and what they mean."""

from __future__ import annotations

from faithscope.experiments.analysis.columns import Column, Columns, by_name, plain

COLUMNS: Columns = by_name(
    [
        Column("dataset", meaning="Where the question is from."),
        Column("model", meaning="The model that wrote the chains."),
        Column("reader", meaning="The model of the run that reads and answers them."),
        Column("detector", meaning="Of the paper's eleven (appendix C.1)."),
        Column("variant", meaning="Which reading of the detector."),
        Column("judge", meaning="The model that judged; none where nothing was judged."),
        Column("rule", meaning="plain: fixed beforehand; fitted: a threshold other folds chose."),
        Column("rule_by", "whose rule", "paper: its text or released code; ours; none: no rule."),
        Column("n_cut", "cut", "Chains cut off at the token limit: left out, or kept if so set."),
        Column("n_unknown", "unknown", "Labelled chains whose answer is not known right or wrong."),
        Column("main", meaning="Whether it is the reading in the paper's tables."),
        Column("n_scored", "scored", "Chains with a score, labelled or not."),
        Column("score", meaning="Mean score; higher is less faithful."),
        Column("flag_rate", "flagged", "Share of chains that the rule calls unfaithful."),
        Column("n", meaning="Labelled chains behind the row's agreement: those with a flag."),
        Column("n_labelled", "labelled", "Chains with a score and a label."),
        Column("n_unfaithful", "unfaithful", "Chains with a score that annotators call so."),
        Column("auroc", "AUROC", "Of the score against the label; .5 is chance."),
        Column(
            "p_highest",
            "p, highest of all",
            "How often the highest of all main readings tells as much where labels are exchanged.",
        ),
        Column(
            "p_wrong_way",
            "p, wrong way",
            "How often it points as far the wrong way then; corrected for all readings (Holm).",
        ),
        Column("average_precision", "AP", "Average precision for the unfaithful class."),
        Column("kappa", "κ", "Cohen's, of flags and labels."),
        Column("ac2", "AC2", "Gwet's, which does not collapse where one class is nearly all."),
        Column("accuracy", meaning="Flags that are the label."),
        Column("f1", "F1", "Of the unfaithful class."),
        Column("f1_faithful", "F1, faithful", "Of the faithful class."),
        Column("saturated", meaning="One class is 90 % of all labels and flags: read AC2, not κ."),
        Column("undefined", meaning="Why the rule gives no flags."),
        Column(
            "asked_again_differs",
            "asked again, another answer",
            "Chains after which the model, asked again without an edit, gives another answer.",
        ),
        Column("forwards", meaning="Mean model calls of a chain for this detector alone."),
        Column("tokens", meaning="Mean tokens of a chain for the whole probe or judgement."),
        Column("calls", meaning="Mean asks of a chain put to a judge or writer of edits."),
        Column("label", "detector", "As the paper's tables call it."),
        Column("correct_faithful", meaning="Right answers with a faithful chain."),
        Column("correct_unfaithful", meaning="Right answers with an unfaithful chain."),
        Column("wrong_faithful", meaning="Wrong answers with a faithful chain."),
        Column("wrong_unfaithful", meaning="Wrong answers with an unfaithful chain."),
        Column("phi", "φ", "Correlation of correctness and faithfulness."),
        Column("mutual_information", "I", "Of correctness and faithfulness.", "bits"),
        Column("by", meaning="What the chains are told apart by."),
        Column("value", meaning="Its value."),
        Column("unfaithful", meaning="Share of labelled chains that annotators call unfaithful."),
        Column("principle", meaning="One of the eight signals (A.2), by its id."),
        Column("category", meaning="post-hoc reasoning, or spurious reasoning chain."),
        Column("name", meaning="As A.2.1 and A.2.2 define it."),
        Column("also", "also called", "As A.2.3 counts it."),
        Column("share", meaning="Of unfaithful chains that name any principle."),
        Column("share_of_category", meaning="Of those that name one of the same category."),
        Column("measure", meaning="Probe, variant and list of its values per step."),
        Column("hit_rate", meaning="The most suspicious step is one that annotators name."),
        Column("chance", meaning="What naming any step blindly would give."),
        Column("task", meaning="What was asked."),
        Column("stage", meaning="Where chains were lost."),
        Column("reason", meaning="Why."),
    ]
)
_COUNTED = {
    "faithcot_quadrants": "Labelled chains whose answer is known right or wrong.",
    "faithcot_rates": "Labelled chains.",
    "faithcot_principles": "Unfaithful chains of which annotators name the principle.",
    "faithcot_steps": "Chains whose unfaithful steps are annotated and that have the measure.",
    "exclusions": "Chains.",
}
OF_TABLES: dict[str, Columns] = {name: plain({"n": n}) for name, n in _COUNTED.items()}
"""Table -> its own columns, where they are not what they are in the others."""
