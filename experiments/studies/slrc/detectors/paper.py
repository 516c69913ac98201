"""The printed tables and figures of FaithCoT-Bench, and which numbers of a run stand beside them.

The paper scored its detectors against labels of its own chains (FINE-CoT), so its cells stand
beside the rows of chains that the model that wrote them reads, in the readings of detectors that
the paper prints or its code releases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import all_of, every_row, rows_with, rows_without
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.published.paper import Tables
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.data.principles import POST_HOC, SPURIOUS
from faithscope.experiments.studies.slrc.config import DetectorsConfig, RunConfig
from faithscope.experiments.studies.slrc.detectors.metrics import by_own_rule, main_readings
from faithscope.experiments.studies.slrc.detectors.paper_states import LEAVES_OPEN, STATES
from faithscope.experiments.studies.slrc.detectors.readings import AS_PRINTED, DETECTORS
from faithscope.experiments.studies.slrc.detectors.tables import (
    ACCURACIES,
    ALL,
    CATEGORIES,
    DETECTED,
    PRINCIPLES_NAMED,
    QUADRANT_CELLS,
    QUADRANTS,
    RATES,
)
from faithscope.experiments.studies.slrc.paper_states import needs_only

_LLAMA = ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct")
_QWEN = ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct")
_GPT = ("api:openai/gpt-4o-mini", "gpt-4o-mini")
_GEMINI = ("api:google/gemini-2.5-flash", "gemini-2.5-flash")
MODELS = {
    **dict.fromkeys(("LLaMA3.1", "llama3.1-8b", "LLaMA3.1-8B"), _LLAMA),
    **dict.fromkeys(("Qwen2.5", "Qwen2.5-7B"), _QWEN),
    **dict.fromkeys(("GPT-4o-mini", "GPT-4o"), _GPT),
    **dict.fromkeys(("Gemini", "Gemini2.5-flash", "Gemini-2.5 flash"), _GEMINI),
}
"""The paper's names of models -> ours, then the folders of the authors' archive. Tables 2 and 3 say
GPT-4o where Table 1 and the text say GPT-4o-mini."""
_LOGIQA = ("logiqa", "logicqa", "logic-qa", "logic_qa")
_TRUTHFULQA = ("truthfulqa", "truthful-qa", "truthful_qa")
_HLE = ("hle_bio", "hle-bio", "hlebio", "ble-bio", "hle")
DATASETS = {
    **dict.fromkeys(("Logic-QA", "LogicQA", "LogiQA"), _LOGIQA),
    **dict.fromkeys(("Truthful-QA", "TruthfulQA"), _TRUTHFULQA),
    "AQuA": ("aqua", "auqa"),
    **dict.fromkeys(("HLE-Bio", "BLE-Bio", "BLE-bio"), _HLE),
}
"""The paper's names of data sets -> our tasks, then names that their folders may have."""
_NAMES = {
    "random": ("Rand", "Random"),
    "perplexity": ("Perp", "Perplexity"),
    "adding_mistakes": ("AddMist", "Adding Mistakes"),
    "option_shuffling": ("OptShuffle", "Option Shuffling"),
    "removing_steps": ("Remove", "Removing steps"),
    "early_answering": ("EarlyAns", "Early answering"),
    "paraphrasing": ("Paraphrase", "Paraphrasing"),
    "answer_tracing": ("AnsTrace", "Answer Tracing"),
    "information_gain": ("InfoGain", "Information Gain"),
    "step_judge": ("Step", "Step-level"),
    "faithful_judge": ("Faithful", "Faithful"),
}
"""Detector -> its names in Table 1, and in Tables 2 and 3."""
DIFFERS = (
    "The paper names neither its judge nor the model that writes its edits (“a stronger language "
    "model”); gpt-4.1 in the config is our choice.",
    "The paper gives no threshold for perplexity, answer tracing and information gain, no cut for "
    "early answering, and does not say how many steps are edited; these are ours "
    "(faithscope docs faithcot).",
)
LABELS = (
    "The two fields of the released labels disagree on 56 chains, and the paper does not say which "
    "of them its statistics are of; the config takes faithful_type.",
)
COUNTED = "The labels are counted; the model that reads the chains runs on a CPU."
REPLIES = (
    "Estimate: the calls of --dry-run for 1,300 chains of six steps at the list prices of "
    "configs/prices.yaml, with 1,000 tokens a reply, thinking included."
)
HOURS = (
    "Estimate: about 6 s a chain on one H100, of which 1.0 s of removals and 3.1 s of tracing were "
    "measured on a model of 7.4 billion parameters (benchmarks/results/forest_h100.csv and "
    "tracing_h100.csv), for some 600 chains of the two models with weights."
)


def detected(table: pd.DataFrame) -> pd.DataFrame:
    """Table `detectors` with the model that reads the chains where it did not write them
    (`read_by`), and the judge where a run has several (`judged_by`)."""
    several = len({*table["judge"]} - {""}) > 1
    return table.assign(
        read_by=table["reader"].where(table["reader"] != table["model"], ""),
        judged_by=table["judge"] if several else "",
    )


def as_printed(detectors: pd.DataFrame, tables: Tables) -> list[bool]:
    """Mask of the rows of table `detectors` in the readings of the paper: of chains that their own
    writer reads, under the plain rule, or under the fitted one where there is no plain rule.

    Option shuffling differs by more than its reading (`detectors.paper_compat`), so that its rows
    are those of runs that follow the paper in it.
    """
    first = {d.name: d.variant for d in reversed(DETECTORS)}
    return [
        row["model"] == row["reader"]
        and row["variant"] == AS_PRINTED.get(row["detector"], first[row["detector"]])
        and by_own_rule(row)
        and (row["detector"] != "option_shuffling" or bool(row["main"]))
        for row in rows(detectors)
    ]


def of_all_writers(table: pd.DataFrame, tables: Tables) -> np.ndarray:
    """Mask of all rows of a table that pools the chains of all writers, or of none for a run that
    lacks one of the paper's four."""
    there = {*tables[QUADRANTS.name]["model"]}
    whole = all(there & {*names} for names in (_LLAMA, _QWEN, _GPT, _GEMINI))
    return np.full(len(table), whole)


def all_others(table: pd.DataFrame) -> pd.DataFrame:
    """Table `faithcot_quadrants` with the share of chains that are not right and faithful."""
    return table.assign(all_others=1 - table["correct_faithful"] / table["n"])


def _but(fields: Iterable[str], *read: str) -> tuple[str, ...]:
    return tuple(name for name in fields if name not in read)


LABELS_ALONE = (
    "name=paper_fine_cot_labels",
    "model.name=[bundled:smollm2-135m]",
    "traces.read_by=all",
    "probes=[information]",
    "detectors.shuffle_given=false",
    "detectors.edits.by=rule",
    "judges=null",
)
"""Settings under which a small model reads the chains of all writers, for their labels alone."""
NOT_LABELS = (
    *_but(RunConfig.model_fields, "traces", "labels", "detectors", "tasks", "data", "report"),
    *(f"detectors.{name}" for name in DetectorsConfig.model_fields),
    "traces.read_by",
)
"""Config keys that no statistic of the labels depends on: not even who reads the chains."""
BY_QUADRANT = {cell.name.replace("_", "-"): cell.name for cell in QUADRANT_CELLS.values()}
IN_TABLE_3 = (*DATASETS["AQuA"], *_HLE)
IN_DETAIL = {"κ": "kappa", "Acc": "accuracy", "F1": "f1"}
OF_DETECTORS = Published(
    "table1",
    "F1 of eleven detectors against annotators' labels.",
    config="paper/fine_cot",
    of=DETECTED.name,
    make=detected,
    compared=as_printed,
    own=main_readings,
    columns={"F1": "f1"},
    keys={"dataset": "dataset", "model": "model", "detector": "detector"},
    across=("detector",),
    limit="traces.limit",
    independent_of=("detectors.paper_compat",),
    differs=(*DIFFERS, *LABELS),
    hours=1.0,
    hours_from=HOURS,
    dollars=120.0,
    dollars_from=REPLIES,
)
OF_LABELS = Published(
    "figure4",
    "Shares of unfaithful chains by model and data set.",
    config="paper/fine_cot",
    sets=LABELS_ALONE,
    of=RATES.name,
    columns={"Unfaithful": "unfaithful"},
    keys={"dataset": "dataset", "model": "value"},
    among=rows_with(by="model"),
    limit="traces.limit",
    independent_of=NOT_LABELS,
    differs=LABELS,
    hours=0.0,
    hours_from=COUNTED,
    dollars=0.0,
    dollars_from=COUNTED,
)
TABLES = (
    OF_DETECTORS,
    *(
        replace(
            OF_DETECTORS,
            name=name,
            title=f"κ, accuracy and F1 of the detectors on {sets}.",
            columns=IN_DETAIL,
            also={"n": Ours("n", unit="n")},
            across=("model",),
            among=among,
        )
        for name, sets, among in (
            ("table2", "LogicQA and TruthfulQA", rows_without(dataset=IN_TABLE_3)),
            ("table3", "AQuA and HLE-Bio", rows_with(dataset=IN_TABLE_3)),
        )
    ),
    Published(
        "figure3",
        "Agreement of the annotators by data set.",
        why_not="Two people labelled the chains. `faithscope annotate RUN` lets two others label "
        "those of a run, and agreement.csv of its export has κ by data set "
        "(faithscope docs annotate).",
    ),
    OF_LABELS,
    replace(
        OF_LABELS,
        name="section3_2",
        title="The two reasons of unfaithfulness.",
        of=CATEGORIES.name,
        compared=of_all_writers,
        columns={"Share": "share"},
        keys={"row": "category"},
        names={"row": {"post-hoc reasoning": POST_HOC, "spurious reasoning chains": SPURIOUS}},
        among=every_row,
    ),
    replace(
        OF_LABELS,
        name="figure5",
        title="Eight signals of unfaithfulness, as shares of all unfaithful chains.",
        of=PRINCIPLES_NAMED.name,
        compared=of_all_writers,
        columns={"Share": "share"},
        keys={"row": "name"},
        among=every_row,
    ),
    replace(
        OF_LABELS,
        name="figure6a",
        title="Right and wrong answers with faithful and unfaithful chains.",
        of=QUADRANTS.name,
        make=all_others,
        compared=of_all_writers,
        columns={
            **{heading.title(): name for heading, name in BY_QUADRANT.items()},
            "all but correct-faithful": "all_others",
            "φ": "phi",
            "I(Correct; Faithful)": "mutual_information",
        },
        keys={},
        among=rows_with(dataset=ALL, model=ALL),
    ),
    *(
        replace(
            OF_LABELS,
            name=name,
            title=f"Shares of unfaithful chains by {trait} of the problem.",
            of=RATES.name,
            compared=of_all_writers,
            keys={"dataset": "dataset", "row": "value"},
            among=rows_with(by=trait),
        )
        for name, trait in (("figure6b", "hardness"), ("figure6c", "distribution"))
    ),
    replace(
        OF_LABELS,
        name="figure8",
        title="Eight signals of unfaithfulness, as shares within their category.",
        of=PRINCIPLES_NAMED.name,
        compared=of_all_writers,
        columns={"Share of its category": "share_of_category"},
        keys={"row": "also"},
        among=every_row,
    ),
    replace(
        OF_LABELS,
        name="figure9",
        title="Accuracy beside the share of unfaithful chains.",
        of=ACCURACIES.name,
        columns={"Accuracy": "accuracy", "Unfaithful ratio": "unfaithful"},
        keys={"dataset": "dataset", "model": "model"},
        among=rows_without(dataset=ALL, model=ALL),
    ),
    replace(
        OF_LABELS,
        name="figure10",
        title="Right and wrong answers with faithful and unfaithful chains, by data set.",
        of=QUADRANTS.name,
        compared=of_all_writers,
        columns=BY_QUADRANT,
        keys={"dataset": "dataset"},
        among=all_of(rows_with(model=ALL), rows_without(dataset=ALL)),
    ),
    replace(
        OF_LABELS,
        name="figure11",
        title="Right and wrong answers with faithful and unfaithful chains, by model.",
        of=QUADRANTS.name,
        columns=BY_QUADRANT,
        keys={"model": "model"},
        among=all_of(rows_with(dataset=ALL), rows_without(model=ALL)),
    ),
)
PAPER = Paper(
    "faithcot",
    "FaithCoT-Bench (arXiv 2510.04040)",
    Path(__file__).with_name("paper.csv"),
    TABLES,
    {
        "model": MODELS,
        "dataset": DATASETS,
        "detector": {name: ours for ours, names in _NAMES.items() for name in names},
    },
    states=STATES,
    leaves_open=LEAVES_OPEN,
    row_keys=(
        *("model.name", "probes", "slrc.framings", "slrc.readings", "slrc.edits"),
        *("judges.forms", "judges.readings"),
    ),
    ways={"read_by": "", "judged_by": ""},
    independent_of=(
        *("traces.path", "traces.writers", "information.steps", "slrc.shuffles"),
        *("report.groups", "report.pairs", *needs_only("slrc", "tracing", "information")),
    ),
)
