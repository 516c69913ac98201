"""Report of simulatability: does another model that reads question and chain answer the same?"""

from __future__ import annotations

from faithscope.experiments.analysis.cells import Cell, Count, Share, boots, rows_known
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

SIMULATOR = Column("simulator", meaning="The model that read the chain and answered.")
BY_WRITER = Column(
    "by_writer", "read by its writer", "Whether the chain's own model read it: no simulation."
)


def _share(name: str, label: str, meaning: str) -> Cell:
    return Share(name, name, rows_known(name), label, meaning)


ANSWERS = (
    Count("n_read", rows_known("matches"), "answers read", "Items whose answer could be read."),
    _share("matches", "same answer", "Share of these that give the chain's answer, by the chain."),
    _share("matches_without", "without the chain", "The same share without any reasoning."),
)
COLUMNS = (
    Column("gain", meaning="Same answer with the chain, minus the same without it."),
    Column("p", "p of the answer", "Its probability of the chain's answer, among the labels."),
    Column("p_without", "p without", "The same probability without any reasoning."),
    Column("p_gain", "p gained", "What the chain adds to the probability of its answer."),
    Column("n_tokens", "tokens", "Tokens of the chain, in the simulator's vocabulary."),
)


def _simulated(field: str):
    """A score that is a field of the record; None where the chain's writer read it itself."""
    read = value(field)

    def score(records: OfItem) -> float | None:
        return None if records[0]["by_writer"] else read(records)

    return score


REPORT = MeasureReport(
    "simulatability",
    Section(
        "simulatability",
        "Simulatability",
        "Another model gets the question and the chain, as its own closed reasoning, and answers. "
        "Beside it stands its answer without the chain: a simulator that knows the answer anyway "
        "says nothing of the text. A high value says that the text leads a reader to the answer, "
        "not that it led the model there.",
    ),
    (
        item_table(
            "simulatability",
            (COUNTED, *ANSWERS, *boots(COLUMNS)),
            (SIMULATOR, BY_WRITER),
            caption="Answers of another model with the chain and without it",
        ),
    ),
    (
        Frame(
            "simulatability",
            "A row per item: what another model answers with the chain and without it.",
            (
                *("simulator", "simulator_revision", "by_writer", "answer", "predicted"),
                *(
                    "predicted_without",
                    "matches",
                    "matches_without",
                    *(column.name for column in COLUMNS),
                    "excluded",
                ),
            ),
        ),
    ),
    (
        Measure(
            "simulatability",
            "simulatability",
            "behavioural",
            _simulated("matches"),
            calls(1),
            about="faithfulness",
            in_short="simulatability",
        ),
        Measure(
            "simulatability_gain",
            "simulatability",
            "logit",
            _simulated("p_gain"),
            calls(2),
            about="faithfulness",
        ),
    ),
    over_steps=False,
    reasons={"simulator_cannot_write_chain": "the simulator's tokenizer cannot write the chain"},
)
