"""Report of circuits: how much of the answer's attribution graph passes each step."""

from __future__ import annotations

from faithscope.experiments.analysis.cells import boots
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import ITEMS_AND_STEPS, item_table
from faithscope.experiments.studies.slrc.measure_report import MeasureReport
from faithscope.experiments.studies.slrc.step_reports import step_frame, step_means

STEPS = (
    Column("through", "through a step", "Share of the paths to the answer that pass a step."),
    Column("tokens", "from its words", "Share of the paths that begin at a step's tokens."),
    Column("errors", "from its errors", "Share that begins at what no feature of a step explains."),
    Column("carried", "carried by it", "Share that comes from before a step and passes it."),
)
CHAIN = (
    Column("chain_through", "through the chain", "Share of the paths that pass the chain."),
    Column("question", "from the prompt", "Share of the paths that begin at the prompt's tokens."),
    Column("past", "past the chain", "Share that begins there and passes no token of the chain."),
    Column("unexplained", meaning="Share of the paths that begin at what no feature explains."),
)
CIRCUITS = item_table(
    "circuits",
    (*ITEMS_AND_STEPS, *boots(step_means(STEPS)), *boots(CHAIN)),
    caption="Paths to the answer in its attribution graph",
)
LISTS = tuple(column.name for column in STEPS)

REPORT = MeasureReport(
    "circuits",
    Section(
        "circuits",
        "Circuits",
        "Features of the model, tokens and unexplained rests make up a graph of what directly adds "
        "to the answer's logit (circuit-tracer). Followed back from the answer, each path ends at "
        "a token or at an unexplained rest. Shares are of all paths: a step that no path passes "
        "added nothing to the answer, other than by where the model looks, which such a graph "
        "does not hold. What speaks for the answer and against it counts alike.",
    ),
    (CIRCUITS,),
    (
        step_frame(
            "circuits",
            "A row per item and step: the paths to the answer that pass it or begin there.",
            *LISTS,
        ),
    ),
    (
        Measure(
            "circuits_through",
            "circuits",
            "internal",
            value("chain_through"),
            # a row of the graph is a backward pass
            lambda records: 2 + records[0]["n_features"],
            steps=listed("through"),
        ),
    ),
    over_steps=False,
    reasons={
        "no_transcoders": "neither circuits.transcoders nor circuits.graphs is set",
        "no_graph_file": "no file in circuits.graphs is about the item's tokens",
        "graph_of_other_tokens": "the graph is about other tokens than the item's",
        "answer_not_in_graph": "the graph is not about the answer's token",
        "graph_of_another_model": "the graph gives the answer another probability than the model",
        "no_effect_on_answer": "nothing in the graph has an effect on the answer",
        "shared_first_token": "answers begin with the same token",
    },
)
