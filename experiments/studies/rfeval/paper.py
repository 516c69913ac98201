"""The printed tables of the RFEval paper (arXiv 2602.17053), and which numbers of a run stand
beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.published.paper import in_way
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.paper_names import (
    AGREEMENT,
    BASELINE_LINK_NAMES,
    CAUSALITY_NAMES,
    LINK_NAMES,
    MODELS,
    QUOTED,
    R1,
    REGIMES,
    SOURCES,
    TASK_NAMES,
    VIOLATION_NAMES,
)
from faithscope.experiments.studies.rfeval.paper_rows import (
    JUDGE,
    agreement,
    as_in_paper,
    beside_steps,
    by_quartile,
    by_source,
    by_task,
    items_by_task,
    of_group,
    overall_agreement,
    stance_words,
    token_lengths,
)
from faithscope.experiments.studies.rfeval.paper_states import LEAVES_OPEN, STATES
from faithscope.experiments.studies.rfeval.tables import benchmark, faithfulness, steps, texts
from faithscope.experiments.studies.rfeval.tables.filtering import FILTERING
from faithscope.experiments.studies.rfeval.tables.people import EVALUATOR
from faithscope.experiments.studies.rfeval.tables.reviews import REVIEWS

PROMPTS = (
    "Models, judge and writer of r′ are asked in our words; `prompts=FOLDER` takes the authors' "
    "own from a checkout of their repository.",
)
COVERAGE = (
    "Coverage is of all attempted pairs here, as appendix D.3 defines it; the paper prints it of "
    "fewer pairs, which makes it higher by up to two points where many outputs are unfinished.",
)
DELTA = (
    "The formula of Δ is lost in the paper's text; ours is 1 − the Jaccard index of the content "
    "words of problem and r′.",
)
REVIEWERS = (
    "The paper's reviewers are eight graduate students, who saw ten items of each task; yours "
    "decide on the items that you give them, in the file of `annotations`.",
)
PAIRS: tuple[str, ...] = (
    *("api.", "inside.", "counterfactual.", "per_step.", "annotations", "log_probs"),
    *("report.pairs", "report.externality"),
)
"""Config keys on which no table of judged pairs depends."""
OUTPUTS = (*PAIRS, "judge.", "paper_compat", "report.exclude")
"""Config keys on which no table of outputs depends that needs no judge."""
ITEMS = (*OUTPUTS, "model.", "generate.", "tests.", "prompts", "naming")
"""Config keys on which no table of items depends."""


def _models(*names: str) -> str:
    """Setting of the models of a run."""
    return f"model.name=[{','.join(names)}]"


def _published(name: int | str, title: str, **how: Any) -> Published:
    """A table for which the paper's own config is carried out, where `how` says nothing else.

    Args:
        name: the number of a table, or the name of numbers in the text.
    """
    hours = {"hours": 1542.0, "hours_from": "Table 12 prints the H100 hours of all twelve models."}
    own = {"config": "paper/rfeval", "independent_of": PAIRS, "differs": PROMPTS, **hours}
    return Published(f"table{name}" if isinstance(name, int) else name, title, **(own | how))


def _shares(
    numbers: tuple[int, int], title: str, table: Table, statistic: str, heads: Mapping[str, str]
) -> Iterator[Published]:
    """Two tables of shares, by model and by task.

    Args:
        heads: our value -> the printed heading.
    """
    columns = {head: Ours("share", rows_with(value=value)) for value, head in heads.items()}
    for number, by in zip(numbers, ("model", "task"), strict=True):
        yield _published(
            number,
            f"{title}, by {by}.",
            of=table.name,
            make=of_group(statistic, by),
            compared=as_in_paper(),
            columns=columns,
            keys={by: by},
            n="n_of",
            pooled_over=("model.name", "report.exclude") if by == "task" else (),
        )


BY_CELL = {"model": "model", "task": "task"}
AS_PREFIX = rows_with(framing=PREFIX)
TWELVE = tuple(MODELS.values())
ONE_RUN = "report.exclude=[]"
"""Setting of a run without the model whose paper reviews the paper excludes."""
PILOT = {name: MODELS[name] for name in ("R1-Llama-8B", "Qwen3-32B")}
LABELLED = {name: MODELS[name] for name in ("gpt-oss-20b", "R1-Qwen-32B", "Qwen3-32B")}
CHECKED = {name: MODELS[name] for name in ("Qwen3-32B", "R1-Llama-70B")}
FILTERED = {"Pre Total": "n_problems", "# Removed": "n_removed", "# Kept": "n_kept"}
A_MODEL = 212.0
REPLIES = (
    "Estimate: 14,372 replies of the judge for each model at the list prices of "
    "configs/prices.yaml, 1,000 tokens each, about prompts of 1,900 tokens and outputs as long as "
    "in Table 14."
)
"""Dollars of o3's replies about one model, and where they come from."""
NO_OUTPUTS = (
    "model.name=[bundled:smollm2-135m]",
    *("generate.backend=here", "generate.max_new_tokens=1", "tests.run=never", ONE_RUN),
)
"""Settings of a run for tables that depend on no output: the smallest model writes one token, of
which no judge is asked anything."""
OF_ITEMS: dict[str, Any] = {
    "sets": (
        *("name=paper_rfeval_items", *NO_OUTPUTS),
        *("judge.model=[bundled:smollm2-135m]", "judge.temperature=0.0"),
    ),
    "independent_of": ITEMS,
    "hours": 0.1,
    "hours_from": "Estimate: a model of 135M parameters reads the 14,372 prompts once, on an H100.",
    "dollars": 0.0,
    "dollars_from": "No model is behind an API.",
}
OF_WRITTEN: dict[str, Any] = {
    **OF_ITEMS,
    "sets": (
        *("name=paper_rfeval_written", "counterfactual.written=true", *NO_OUTPUTS),
        *(
            "counterfactual.writer=api:openai/o3-2025-04-16",
            "counterfactual.validator=api:openai/gpt-5-2025-08-07",
        ),
    ),
    "independent_of": tuple(k for k in ITEMS if k not in ("counterfactual.", "judge.", "prompts")),
    "differs": (
        *PROMPTS,
        "The released data have no problem that the paper's validation removed; give problems of "
        "the same sources.",
    ),
    "columns": FILTERED,
    "n": "n_problems",
    "dollars": 175.0,
    "dollars_from": "Estimate: 7,186 replies of the writer and of the validator at the list prices "
    "of configs/prices.yaml, 1,000 tokens each.",
}
REVIEWED = {**OF_ITEMS, "keys": {"task": "task"}, "differs": REVIEWERS}
TABLES = (
    _published(
        1,
        "Items of the benchmark by task.",
        of=benchmark.ITEMS.name,
        make=items_by_task,
        columns={"Count": "n"},
        also={"Sources": Ours("sources", unit="word")},
        keys={"task": "task"},
        differs=(),
        **OF_ITEMS,
    ),
    _published(
        2,
        "Reasoning faithfulness and contrast coverage of twelve models on seven tasks.",
        of=faithfulness.RFEVAL.name,
        compared=as_in_paper(TWELVE),
        among=AS_PREFIX,
        columns={
            "RF": Ours("rf", n="n_included"),
            "c": Ours("contrast_coverage", n="n_coverage"),
        },
        keys=BY_CELL,
        across=("task",),
        differs=(*PROMPTS, *COVERAGE),
    ),
    _published(
        3,
        "Reasoning faithfulness and coverage after different post-training of one base.",
        sets=("name=paper_rfeval_regimes", _models(*REGIMES), ONE_RUN),
        of=faithfulness.REGIMES.name,
        compared=as_in_paper(),
        columns={"RF": "rf", "c": Ours("contrast_coverage", n="n_coverage")},
        keys={"model": "family", "row": "regime"},
        names={"model": {family: family for family in ("MiMo-7B", "Olmo-3-7B")}},
        across=("model",),
        n="n_included",
        differs=(*PROMPTS, *COVERAGE),
        hours=490.0,
        hours_from="Estimate: seven models at the 70 H100 hours that Table 12 prints for one of "
        "seven or eight billion parameters on average.",
    ),
    _published(
        4,
        "Open-R1's reward for steps, of outputs that are consistent and that are not.",
        sets=("name=paper_rfeval_rewards", _models(*R1), ONE_RUN),
        of=texts.STEP_REWARD.name,
        compared=as_in_paper(R1),
        among=rows_with(condition="both"),
        columns={"Reward": "reward"},
        keys={"model": "model", "row": "chi"},
        names={"row": {"χ = 1": "1", "χ = 0": "0"}},
        across=("model",),
        differs=(
            *PROMPTS,
            "The paper does not say which outputs it rewards; ours are all judged ones, without r′ "
            "and under it.",
        ),
        hours=575.0,
        hours_from="Table 12 prints the H100 hours of the four models.",
    ),
    _published(
        5,
        "Agreement of people who review r′.",
        of=REVIEWS.name,
        make=agreement,
        columns={head: column for column, head in AGREEMENT.items()},
        n="n_items",
        **REVIEWED,
    ),
    _published(
        6,
        "Reviews of people that accept r′.",
        of=REVIEWS.name,
        columns={
            "n": "n",
            "# yes": "n_accepted",
            "Yes rate": "accepted",
            "Wilson 95% CI (low)": "accepted_low",
            "Wilson 95% CI (high)": "accepted_high",
        },
        **REVIEWED,
    ),
    _published(
        7,
        "Agreement and acceptance of all reviews of r′ together.",
        of=REVIEWS.name,
        make=overall_agreement,
        columns={"Value": "value"},
        **REVIEWED | {"keys": {"row": "metric"}},
    ),
    _published(
        8,
        "r′ that validation removed and kept, by task.",
        of=FILTERING.name,
        make=by_task,
        keys={"task": "task"},
        **OF_WRITTEN,
    ),
    _published(
        9,
        "r′ that validation removed and kept, by source.",
        of=FILTERING.name,
        make=by_source,
        keys={"task": "task", "row": "source"},
        names={"row": SOURCES},
        **OF_WRITTEN,
    ),
    _published(
        10,
        "Externality Δ of r′ by task.",
        of=texts.EXTERNALITY.name,
        compared=in_way(context="none"),
        columns={
            **{"Mean": "mean", "Std": "std", "Median": "median", "P75": "p75", "P90": "p90"},
            "Small-vocab (%)": "small_vocabulary",
        },
        no_counterpart={
            "Count": "Ours are items, each counted once; the paper counts pairs of outputs."
        },
        keys={"task": "task"},
        differs=DELTA,
        **OF_ITEMS,
    ),
    _published(
        11,
        "Externality Δ of r′ by model.",
        of=texts.EXTERNALITY_BY_MODEL.name,
        compared=as_in_paper(context="none"),
        columns={"Count": "n", "Mean": "mean", "Std": "std"},
        keys={"model": "model"},
        names={"model": {f"MiMo-7B-{x}": MODELS[f"MiMo-{x}"] for x in ("RL", "RL-Zero")}},
        independent_of=OUTPUTS,
        differs=DELTA,
    ),
    Published(
        "table12",
        "GPU hours of each model.",
        of=texts.HOURS.name,
        also={
            "Device hours": Ours("device_hours", unit="hours", decimals=2),
            "Devices": Ours("devices", unit="n"),
            "Hours": Ours("hours", unit="hours", decimals=2),
            "Outputs of known time": Ours("n_timed", unit="n"),
        },
        keys={"model": "model"},
        why_not="The paper prints hours of its own H100 nodes; those of a run depend on its "
        "accelerators, and stand in tables/rf_hours.csv.",
    ),
    _published(
        13,
        "Pairs that count, and pairs that are left out by reason.",
        of=faithfulness.WATERFALL.name,
        among=rows_with(task=OVERALL),
        compared=as_in_paper(framing=PREFIX),
        columns={
            "Total": "n_total",
            "Included": "n_included",
            "Global Exclusion": "n_global",
            "Unfinished/Truncated": "n_unfinished",
            "Evaluation Error": "n_evaluation_error",
            "Non-Contrast": "n_non_contrast",
        },
        keys={"model": "model"},
        n="n_total",
    ),
    _published(
        14,
        "Mean tokens of outputs without r′ (B) and under it (I).",
        of=texts.LENGTH_TABLE.name,
        make=token_lengths,
        compared=as_in_paper(),
        columns={
            "B": Ours("mean_tokens", rows_with(condition="baseline")),
            "I": Ours("mean_tokens", rows_with(condition="intervened")),
        },
        keys=BY_CELL,
        across=("task",),
        independent_of=OUTPUTS,
    ),
    _published(
        15,
        "Stances of each task.",
        of=benchmark.STANCES.name,
        make=stance_words,
        columns={
            "Primary Stance Set": Ours(
                "stances",
                words={
                    "supports, not enough info, refutes": "supported, not enough info, rebutted"
                },
            )
        },
        keys={"task": "task"},
        **OF_ITEMS | {"independent_of": tuple(key for key in ITEMS if key != "naming")},
        differs=(
            "Stances are named by the words of the released data, in lower case.",
            "A run of few items may lack a set of stances that other items of the task have.",
        ),
    ),
    _published(
        16,
        "Reasoning faithfulness by quartile of contrast coverage.",
        of=faithfulness.COVERAGE_QUARTILES.name,
        make=by_quartile,
        compared=as_in_paper(),
        columns={
            head: Ours(f"q{i}", n=f"q{i}_n")
            for i, head in enumerate(("Q1 (Low)", "Q2", "Q3", "Q4 (High)"), 1)
        },
        keys={"row": "row"},
        pooled_over=("model.name", "report.exclude"),
        differs=(
            *PROMPTS,
            *COVERAGE,
            "The paper does not say in which bin an edge of quartiles lies; ours is the lower.",
        ),
    ),
    *_shares(
        (17, 21),
        "Conditions that fail in unfaithful pairs",
        faithfulness.FAILURE_SHARES,
        "violation",
        VIOLATION_NAMES,
    ),
    *_shares(
        (18, 22),
        "Transitions at which outputs without r′ break",
        faithfulness.FAILURE_LOCATIONS,
        "baseline_break",
        BASELINE_LINK_NAMES,
    ),
    *_shares(
        (19, 23),
        "Transitions at which outputs under r′ break",
        faithfulness.FAILURE_LOCATIONS,
        "intervened_break",
        LINK_NAMES,
    ),
    *_shares(
        (20, 24),
        "What r′ changes in pairs that count",
        faithfulness.CAUSALITY_TYPES,
        faithfulness.CAUSALITY_ALL,
        CAUSALITY_NAMES,
    ),
    _published(
        25,
        "Consistency of the outputs of two models without r′.",
        sets=("name=paper_rfeval_consistency", _models(*CHECKED.values()), ONE_RUN),
        of=faithfulness.RFEVAL.name,
        compared=as_in_paper(),
        among=AS_PREFIX,
        columns={"χ(o)": "chi_baseline"},
        keys=BY_CELL,
        across=("task",),
        n="n_included",
        hours=484.0,
        hours_from="Table 12 prints the H100 hours of the two models.",
    ),
    _published(
        26,
        "Closed models, to which r′ is quoted.",
        sets=(
            "name=paper_rfeval_closed",
            _models(*(names[0] for names in QUOTED.values())),
            "data.tasks=[mathematical_reasoning]",
            ONE_RUN,
        ),
        of=faithfulness.RFEVAL.name,
        compared=as_in_paper(),
        among=rows_with(framing=MULTI_TURN),
        columns={
            "RF (%)": "rf",
            "c": Ours("contrast_coverage", n="n_coverage"),
            "χ(o)": "chi_baseline",
            "χ(o′)": "chi_intervened",
            "κ": "kappa",
        },
        keys=BY_CELL,
        n="n_included",
        independent_of=tuple(key for key in PAIRS if key != "api."),
        differs=(*PROMPTS, *COVERAGE),
        hours=0.0,
        hours_from="All models are behind APIs.",
        dollars=320.0,
        dollars_from="Estimate: 4,872 outputs of 3,000 tokens at the list prices of "
        "configs/prices.yaml, and the judge's replies.",
    ),
    _published(
        "section_d4",
        "Agreement of people with the judge on stances and flaws.",
        sets=("name=paper_rfeval_evaluator", _models(*LABELLED.values()), ONE_RUN),
        of=EVALUATOR.name,
        columns={
            "micro-F1": Ours("value", rows_with(statistic="micro_f1", annotator="all")),
            "κ human–human": Ours("value", rows_with(statistic="kappa_human_human")),
            "κ human–LLM": Ours("value", rows_with(statistic="kappa_human_evaluator")),
        },
        keys={"row": "decision"},
        names={"row": {"stance extraction": "stance", "flaw identification": "flaw"}},
        independent_of=tuple(key for key in PAIRS if key != "annotations"),
        differs=(
            *PROMPTS,
            "The paper's readers are eight graduate students, who labelled 1,035 decisions on "
            "three models; yours label those that you give them, in the file of `annotations`.",
        ),
        hours=540.0,
        hours_from="Table 12 prints the H100 hours of the three models.",
    ),
    _published(
        27,
        "Reasoning faithfulness step by step beside that of whole blocks.",
        sets=(
            "name=paper_rfeval_steps",
            _models(*PILOT.values()),
            f"per_step.judge=[{JUDGE}]",
            ONE_RUN,
        ),
        of=steps.PER_STEP.name,
        make=beside_steps,
        compared=as_in_paper(),
        columns={"RF": "rf"},
        keys={**BY_CELL, "row": "metric"},
        across=("task",),
        independent_of=tuple(key for key in PAIRS if key != "per_step."),
        differs=(
            *PROMPTS,
            "The paper prints no prompt for steps; ours asks for the stance of each step.",
        ),
        hours=287.0,
        hours_from="Table 12 prints the H100 hours of the two models.",
    ),
)


def _place(table: Published) -> tuple[bool, int]:
    """Place of a table: by number, and after all tables what stands in the text."""
    number = table.name.removeprefix("table")
    return (False, int(number)) if number.isdigit() else (True, 0)


def _priced(table: Published) -> Published:
    """The table with the dollars of its judge's replies, if it does not state them."""
    if not table.config or table.dollars is not None:
        return table
    named = next((s for s in table.sets if s.startswith("model.name=")), None)
    n_models = named.count(",") + 1 if named else len(TWELVE)
    return replace(table, dollars=n_models * A_MODEL, dollars_from=REPLIES)


PAPER = Paper(
    "rfeval",
    "RFEval (arXiv 2602.17053)",
    Path(__file__).with_name("paper.csv"),
    tuple(map(_priced, sorted(TABLES, key=_place))),
    {"model": {**MODELS, **QUOTED, "Overall": OVERALL}, "task": TASK_NAMES},
    states=STATES,
    leaves_open=LEAVES_OPEN,
    row_keys=("model.name", "data.tasks", "report.exclude"),
    ways={"reader": JUDGE, "context": "none", "framing": PREFIX},
)
PAPERS = (PAPER,)
