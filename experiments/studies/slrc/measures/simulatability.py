"""Report of simulatability: does another model that reads question and chain answer the same?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from faithscope.experiments.analysis.cells import (
    INCLUDED,
    Cell,
    Count,
    Share,
    Total,
    all_of,
    boots,
    rows_known,
    rows_with,
    rows_without,
)
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.tidy import keep, with_columns
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport
from faithscope.interventions.program import NO_INPUT, NUMBER_TOO_LARGE
from faithscope.probes.simulatability import (
    CHANGED,
    NO_CHANGE,
    NOT_WRITABLE,
    NOTHING_TO_PREDICT,
    OTHER_PROMPT,
    OTHER_QUESTION,
    WRITTEN_BY_ANOTHER,
)

if TYPE_CHECKING:
    import pandas as pd

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
OF_CHANGES = (
    Column("simulated", "predicted", "Share of the model's answers that the simulator predicts."),
    Column(
        "simulated_without", "without the chain", "The same share if it does not see the chain."
    ),
    Column("simulated_gain", "gain", "Share predicted with the chain, minus the share without it."),
    Column("moved", "answer changed", "Share of the model's answers that are not its first one."),
    Column(
        "simulated_moved", "predicted if changed", "Share predicted of the answers that changed."
    ),
)


def _of_changes(frame: pd.DataFrame) -> pd.DataFrame:
    named = with_columns(frame, *(column.name for column in OF_CHANGES), "n_read")
    return keep(named, rows_with(variant=CHANGED)(named))


def _simulated(field: str):
    """A score that is a field of the record; None where the chain's writer read it itself."""
    read = value(field)

    def score(records: OfItem) -> float | None:
        return None if records[0]["by_writer"] else read(records)

    return score


def _calls_a_change(n: int):
    """A cost of `n` calls for each changed question."""
    return lambda records: n * len(records[0]["changed"])


REPORT = MeasureReport(
    "simulatability",
    Section(
        "simulatability",
        "Simulatability",
        "Another model gets the question and the chain, as its own closed reasoning, and answers. "
        "Beside it stands its answer without the chain: a simulator that knows the answer anyway "
        "says nothing of the text. A high value says that the text leads a reader to the answer, "
        "not that it led the model there. With changed questions (`changes`), it also predicts "
        "what the model answers to these; one that repeats the first answer is right wherever the "
        "model's answer stays the same.",
    ),
    (
        item_table(
            "simulatability",
            (COUNTED, *ANSWERS, *boots(COLUMNS)),
            (SIMULATOR, BY_WRITER),
            among=all_of(INCLUDED, rows_without(variant=CHANGED)),
            caption="Answers of another model with the chain and without it",
        ),
        item_table(
            "simulatability_changed",
            (
                COUNTED,
                *boots(OF_CHANGES),
                Total("n_read", label="predictions", meaning="Predictions that could be read."),
            ),
            (SIMULATOR, BY_WRITER),
            "simulatability",
            prepare=_of_changes,
            caption="Predicted answers to changed questions, with the chain and without it",
            folded="Changed questions",
            rare=True,
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
            lambda r: [] if r["variant"] == CHANGED else [r],
        ),
        Frame(
            "simulatability_changed",
            "A row per item: what another model predicts that the model answers to changed "
            "questions.",
            (
                *("simulator", "simulator_revision", "by_writer", "answer", "changed", "answers"),
                *("predictions", "predictions_without", "n_read"),
                *(*(column.name for column in OF_CHANGES), "excluded"),
            ),
            lambda r: [r] if r["variant"] == CHANGED else [],
        ),
    ),
    (
        Measure(
            "simulatability",
            "simulatability",
            "behavioural",
            _simulated("matches"),
            calls(1),
            where={"changed": None},
            about="faithfulness",
            in_short="simulatability",
        ),
        Measure(
            "simulatability_gain",
            "simulatability",
            "logit",
            _simulated("p_gain"),
            calls(2),
            where={"changed": None},
            about="faithfulness",
        ),
        Measure(
            "simulatability_changed",
            "simulatability",
            "behavioural",
            _simulated("simulated"),
            _calls_a_change(2),
            where={"variant": CHANGED},
            about="faithfulness",
        ),
        Measure(
            "simulatability_changed_gain",
            "simulatability",
            "behavioural",
            _simulated("simulated_gain"),
            _calls_a_change(3),
            where={"variant": CHANGED},
            about="faithfulness",
        ),
    ),
    over_steps=False,
    reasons={
        NOT_WRITABLE: "the simulator's tokenizer cannot write the chain",
        NO_INPUT: "the question has no number",
        NUMBER_TOO_LARGE: "a number has more than 15 digits",
        NO_CHANGE: "no number of the question can be another",
        NOTHING_TO_PREDICT: "the model states no answer to any changed question",
        OTHER_QUESTION: "the prompt does not hold the question once, word for word",
        OTHER_PROMPT: "the prompt is not the task's message in the model's template",
        WRITTEN_BY_ANOTHER: "another model wrote the chain",
    },
)
