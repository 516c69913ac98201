"""Report of injected reasoning: how often an answer goes where text goes that the model did not
write."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.cells import Boot, Share, rows_known
from faithscope.experiments.analysis.columns import Column
from faithscope.experiments.analysis.measure import Measure, OfItem
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.tidy import mean_present, numbers, with_columns
from faithscope.experiments.studies.slrc.measure_report import Frame, MeasureReport

PLACE = Column("place", meaning="Where the text r′ stands in the chain: start, middle, end.")
_FIELDS = ("place", "step", "source", "target", "own", "gold", "control", "control_stated")
_FIELDS += ("answer", "stated", "followed", "followed_control", "changed", "p_target")
_FIELDS += ("p_target_control", "n_r_prime", "cut", "excluded")


def _prepared(frame: pd.DataFrame) -> pd.DataFrame:
    frame = with_columns(frame, *_FIELDS)
    moved = numbers(frame["p_target"]) - numbers(frame["p_target_control"])
    return frame.assign(moved=moved)


def _changed(records: OfItem) -> float | None:
    return mean_present([None if r["changed"] is None else float(r["changed"]) for r in records])


def _share(name: str, label: str, meaning: str) -> Share:
    return Share(name, name, rows_known(name), label, meaning)


REPORT = MeasureReport(
    "injection",
    Section(
        "injection",
        "Injection",
        "Reasoning r′ that the model did not write is put into its chain, and the model writes on "
        "(RFEval, section 2). Its answer is compared with the control, in which it writes on from "
        "the same place without r′. Going along with r′ shows that the answer depends on what "
        "stands in the reasoning, right or wrong; it does not show that the model's own text "
        "describes how it answers.",
    ),
    (
        item_table(
            "injection",
            (
                COUNTED,
                _share("changed", "changed", "Items whose answer is not that of the control."),
                _share("followed", "followed r′", "Items whose answer is the one r′ leads to."),
                _share(
                    "followed_control",
                    "control, the same answer",
                    "Items whose answer without r′ is the one that r′ leads to: chance.",
                ),
                Boot(
                    "moved",
                    "moved",
                    among=rows_known("moved"),
                    label="moved towards r′",
                    meaning="Share of the answer that r′ leads to among the scored answers, after "
                    "r′ and what the model writes, minus that of the control.",
                ),
            ),
            keys=(PLACE,),
            prepare=_prepared,
            caption="Answers after injected reasoning, and without it",
        ),
    ),
    (
        Frame(
            "injection",
            "A row per item and place of r′: the answer after it, and that of the control.",
            _FIELDS,
        ),
    ),
    (
        Measure(
            "injection_changed",
            "injection",
            "behavioural",
            _changed,
            len,
            in_short="injection: the answer changes",
        ),
    ),
    over_steps=False,
    reasons={
        "no_counterfactual": "no text r′ of its own, and none is made (injection.text)",
        "not_writable": "the tokenizer has no ids for r′",
        "injected_answer_unparsed": "no answer could be read with r′, or without it",
    },
)
