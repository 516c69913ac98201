"""The printed tables of the RFEval paper (arXiv 2602.17053), and which numbers of a run stand
beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.tables import OVERALL, Table
from faithscope.experiments.studies.rfeval import printed as paper
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX
from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, TASKS
from faithscope.experiments.studies.rfeval.metrics import benchmark, faithfulness, texts
from faithscope.experiments.studies.rfeval.metrics.reviews import REVIEWS
from faithscope.experiments.studies.rfeval.paper_rows import (
    JUDGE,
    agreement,
    beside_steps,
    by_quartile,
    by_source,
    of_paper,
    overall_agreement,
    shares,
    stance_words,
    token_lengths,
)

MODELS = {
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "R1-Qwen-7B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "R1-Qwen-32B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "R1-Llama-8B": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "R1-Llama-70B": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "MiMo-RL": "XiaomiMiMo/MiMo-7B-RL",
    "MiMo-RL-Zero": "XiaomiMiMo/MiMo-7B-RL-Zero",
    "Magistral-Small": "mistralai/Magistral-Small-2506",
    "LN-Super_v1": "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
}
"""The paper's twelve models -> ours."""
QUOTED = {
    "gpt-5.1-2025-11-13": ("api:openai/gpt-5.1-2025-11-13", "api:openai/gpt-5.1"),
    "claude-sonnet-4-5-20250929": (
        "api:anthropic/claude-sonnet-4-5-20250929",
        "api:anthropic/claude-sonnet-4-5",
    ),
}
"""Models behind APIs (Table 26) -> ours."""
REGIMES = (
    *(f"XiaomiMiMo/MiMo-7B-{variant}" for variant in ("Base", "SFT", "RL-Zero", "RL")),
    *("allenai/Olmo-3-1025-7B", "allenai/Olmo-3-7B-Think-SFT", "allenai/Olmo-3-7B-Think"),
)
"""The models of two families after different post-training (Table 3)."""
R1 = tuple(MODELS[name] for name in MODELS if name.startswith("R1-"))
TASK_NAMES = {short: task for task, short in ABBREVIATIONS.items()}
TASK_NAMES |= {task.replace("_", " ").title(): task for task in TASKS}
TASK_NAMES |= {"Overall": OVERALL, "Total": OVERALL}
SOURCES = {
    "DS-1000": "ds1000",
    "LiveCodeBench (v1–v6)": "livecodebench",
    "GSM8K": "gsm8k",
    "MMLU (College Math)": "mmlu_college_mathematics",
    "MMLU (High School Math)": "mmlu_high_school_mathematics",
    "PrOntoQA": "prontoqa",
    "RuleBert-Union-Rules": "rulebert_union_rules",
    "SCITAB": "scitab",
    "PubMedQA": "pubmedqa",
    "MMLU (Professional Law)": "mmlu_professional_law",
    "PeerRead": "peerread",
}
"""The paper's names of source data sets -> ours (`paper_rows.one_source`)."""
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


def _published(number: int, title: str, **how: Any) -> Published:
    """A table for which the paper's own config is carried out, where `how` says nothing else."""
    hours = {"hours": 1542.0, "hours_from": "Table 12 prints the H100 hours of all twelve models."}
    own = {"config": "paper/rfeval", "unread": PAIRS, "differs": PROMPTS, **hours}
    return Published(f"table{number}", title, **(own | how))


def _shares(
    numbers: tuple[int, int], title: str, table: Table, statistic: str, heads: Mapping[str, str]
) -> Iterator[Published]:
    """Two tables of shares, by model and by task.

    Args:
        heads: our value -> the printed heading.
    """
    columns = {head: Ours("share", rows_with(value=value)) for value, head in heads.items()}
    for number, by in zip(numbers, ("model", "task"), strict=True):
        how = {"of": shares(table, statistic, by), "columns": columns, "keys": {by: by}}
        pools = ("model.name", "report.exclude") if by == "task" else ()
        yield _published(number, f"{title}, by {by}.", n="n_of", pools=pools, **how)


BY_CELL = {"model": "model", "task": "task"}
AS_PREFIX = rows_with(framing=PREFIX)
TWELVE = tuple(MODELS.values())
ONE_RUN = "report.exclude=[]"
"""Setting of a run without the model whose paper reviews the paper excludes."""
PILOT = {name: MODELS[name] for name in ("R1-Llama-8B", "Qwen3-32B")}
CHECKED = {name: MODELS[name] for name in ("Qwen3-32B", "R1-Llama-70B")}
FILTERED = {head: column for column, head in paper.FILTERED.items()}
FEWEST_HOURS = (_models(MODELS["R1-Llama-8B"]), ONE_RUN)
"""Settings of a run for tables that do not depend on the models: the one of fewest hours."""
OF_ITEMS: dict[str, Any] = {
    "sets": ("name=paper_rfeval_items", *FEWEST_HOURS),
    "unread": ITEMS,
    "hours": 43.0,
    "hours_from": "Table 12 prints the H100 hours of R1-Llama-8B; the table is the same for all "
    "models.",
}
OF_WRITTEN: dict[str, Any] = {
    **OF_ITEMS,
    "sets": (
        *("name=paper_rfeval_written", "counterfactual.written=true", *FEWEST_HOURS),
        *("counterfactual.writer=api:openai/o3", "counterfactual.validator=api:openai/gpt-5"),
    ),
    "unread": tuple(k for k in ITEMS if k not in ("counterfactual.", "judge.", "prompts")),
    "differs": (
        *PROMPTS,
        "The released data have no problem that the paper's validation removed; give problems of "
        "the same sources.",
    ),
    "columns": FILTERED,
    "n": "n_problems",
}
REVIEWED = {**OF_ITEMS, "keys": {"task": "task"}, "differs": REVIEWERS}
TABLES = (
    _published(
        1,
        "Items of the benchmark by task.",
        of=benchmark.ITEMS.name,
        among=rows_with(source=OVERALL),
        columns={"Count": "n"},
        keys={"task": "task"},
        differs=(),
        **OF_ITEMS,
    ),
    _published(
        2,
        "Reasoning faithfulness and contrast coverage of twelve models on seven tasks.",
        of=of_paper(faithfulness.RFEVAL, TWELVE),
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
        of=of_paper(faithfulness.REGIMES, task=OVERALL),
        columns={"RF": "rf", "c": Ours("contrast_coverage", n="n_coverage")},
        keys={"model": "family", "row": "regime"},
        names={"model": {family: family for family in ("MiMo-7B", "Olmo-3-7B")}},
        across=("model",),
        n="n_included",
        differs=(*PROMPTS, *COVERAGE),
        hours=None,
        hours_from="",
    ),
    _published(
        4,
        "Open-R1's reward for steps, of outputs that are consistent and that are not.",
        sets=("name=paper_rfeval_rewards", _models(*R1), ONE_RUN),
        of=of_paper(texts.STEP_REWARD, R1, task=OVERALL),
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
        of=agreement,
        columns={head: column for column, head in paper.AGREEMENT.items()},
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
        of=overall_agreement,
        columns={"Value": "value"},
        **REVIEWED | {"keys": {"row": "metric"}},
    ),
    _published(
        8,
        "r′ that validation removed and kept, by task.",
        of="paper_rf_table8",
        keys={"task": "task"},
        **OF_WRITTEN,
    ),
    _published(
        9,
        "r′ that validation removed and kept, by source.",
        of=by_source,
        keys={"task": "task", "row": "source"},
        names={"row": SOURCES},
        **OF_WRITTEN,
    ),
    _published(
        10,
        "Externality Δ of r′ by task.",
        of=texts.EXTERNALITY.name,
        among=rows_with(context="none"),
        columns={
            **{"Mean": "mean", "Std": "std", "Median": "median", "P75": "p75", "P90": "p90"},
            "Small-vocab (%)": "small_vocabulary",
        },
        without={"Count": "Ours are items, each counted once; the paper counts pairs of outputs."},
        keys={"task": "task"},
        differs=DELTA,
        **OF_ITEMS,
    ),
    _published(
        11,
        "Externality Δ of r′ by model.",
        of=of_paper(texts.EXTERNALITY_BY_MODEL, task=OVERALL),
        among=rows_with(context="none"),
        columns={"Count": "n", "Mean": "mean", "Std": "std"},
        keys={"model": "model"},
        names={"model": {f"MiMo-7B-{x}": MODELS[f"MiMo-{x}"] for x in ("RL", "RL-Zero")}},
        unread=OUTPUTS,
        differs=DELTA,
    ),
    Published(
        "table12",
        "GPU hours of each model.",
        why_not="The paper prints hours of its own H100 nodes; those of a run depend on its "
        "accelerators, and stand in tables/rf_hours.csv.",
    ),
    _published(
        13,
        "Pairs that count, and pairs that are left out by reason.",
        of=of_paper(faithfulness.WATERFALL),
        among=rows_with(task=OVERALL, framing=PREFIX),
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
        of=token_lengths,
        columns={
            "B": Ours("mean_tokens", rows_with(condition="baseline")),
            "I": Ours("mean_tokens", rows_with(condition="intervened")),
        },
        keys=BY_CELL,
        across=("task",),
        unread=OUTPUTS,
    ),
    _published(
        15,
        "Stances of each task.",
        of=stance_words,
        columns={
            "Primary Stance Set": Ours(
                "stances",
                words={
                    "supports, not enough info, refutes": "supported, not enough info, rebutted"
                },
            )
        },
        keys={"task": "task"},
        **OF_ITEMS | {"unread": tuple(key for key in ITEMS if key != "naming")},
        differs=(
            "Stances are named by the words of the released data, in lower case.",
            "A run of few items may lack a set of stances that other items of the task have.",
        ),
    ),
    _published(
        16,
        "Reasoning faithfulness by quartile of contrast coverage.",
        of=by_quartile,
        columns={
            head: Ours(f"q{i}", n=f"q{i}_n")
            for i, head in enumerate(("Q1 (Low)", "Q2", "Q3", "Q4 (High)"), 1)
        },
        keys={"row": "row"},
        pools=("model.name", "report.exclude"),
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
        paper.VIOLATION_NAMES,
    ),
    *_shares(
        (18, 22),
        "Transitions at which outputs without r′ break",
        faithfulness.FAILURE_LOCATIONS,
        "baseline_break",
        paper.BASELINE_LINK_NAMES,
    ),
    *_shares(
        (19, 23),
        "Transitions at which outputs under r′ break",
        faithfulness.FAILURE_LOCATIONS,
        "intervened_break",
        paper.LINK_NAMES,
    ),
    *_shares(
        (20, 24),
        "What r′ changes in pairs that count",
        faithfulness.CAUSALITY_TYPES,
        faithfulness.CAUSALITY_ALL,
        paper.CAUSALITY_NAMES,
    ),
    _published(
        25,
        "Consistency of the outputs of two models without r′.",
        sets=("name=paper_rfeval_consistency", _models(*CHECKED.values()), ONE_RUN),
        of=of_paper(faithfulness.RFEVAL),
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
        of=of_paper(faithfulness.RFEVAL),
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
        unread=tuple(key for key in PAIRS if key != "api."),
        differs=(*PROMPTS, *COVERAGE),
        hours=None,
        hours_from="",
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
        of=beside_steps,
        columns={"RF": "rf"},
        keys={**BY_CELL, "row": "metric"},
        across=("task",),
        unread=tuple(key for key in PAIRS if key != "per_step."),
        differs=(
            *PROMPTS,
            "The paper prints no prompt for steps; ours asks for the stance of each step.",
        ),
        hours=287.0,
        hours_from="Table 12 prints the H100 hours of the two models.",
    ),
)
PAPER = Paper(
    "rfeval",
    "RFEval (arXiv 2602.17053)",
    Path(__file__).with_name("paper.csv"),
    tuple(sorted(TABLES, key=lambda table: int(table.name.removeprefix("table")))),
    {"model": {**MODELS, **QUOTED, "Overall": OVERALL}, "task": TASK_NAMES},
    apart=("model.name", "data.tasks", "report.exclude"),
)
