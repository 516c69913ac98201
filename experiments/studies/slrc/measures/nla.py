"""Report of natural-language autoencoders: the state at the end of each step, in words."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Kept, boots
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS, N_LAYERS, item_table
from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.experiments.studies.slrc.step_reports import step_frame, step_means

LISTS = {
    "cosines": Column(
        "cosine",
        "cosine",
        "Cosine of the state and the one that is made of its description, mean over steps.",
    ),
    "says_answer": Column(
        "says_answer", "names the answer", "Share of descriptions that have the chain's answer."
    ),
    "early": Column(
        "early",
        "before the text",
        "The same share of the steps by whose end the chain has not named its answer.",
    ),
    "says_other": Column(
        "says_other", "names another", "Share of the other options that a description has: chance."
    ),
    "matches": Column(
        "matches", "has the pattern", "Share of descriptions that have the pattern of the config."
    ),
}
NLA = item_table(
    "nla",
    (
        *ITEMS_AND_STEPS,
        *boots(step_means({column: field for field, column in LISTS.items()})),
        Kept((N_LAYERS, Column("layer", meaning="Layer whose stream is described, from 1."))),
    ),
    alike=("n_layers", "layer"),
    caption="States in words",
)

REPORT = MeasureReport(
    "nla",
    Section(
        "nla",
        "States in words",
        "A second model, trained for it, describes the hidden state at the end of each step (a "
        "natural-language autoencoder). An answer that is described before any step names it "
        "suggests that the model had it before it reasoned to it. A description may also name what "
        "the context makes likely: so read it beside how often another option is named, and beside "
        "the cosine, which says whether the words hold what the state holds.",
    ),
    (NLA,),
    (
        step_frame(
            "nla",
            "A row per item and step: what the state at its end is said to stand for.",
            *("descriptions", *LISTS, "told", "cut"),
        ),
    ),
    over_steps=False,
    reasons={
        "no_verbaliser": "no verbaliser is named in nla.verbaliser",
        "no_residual_stream": "model structure not recognised",
    },
)
