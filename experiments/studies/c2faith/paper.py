"""The printed tables of C2-Faith, and which numbers of a run stand beside them.

The paper has one prompt per task and reads verdicts as the judges write them, so its cells stand
beside the rows of its own forms, read as generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.statistics.stats import FEWEST, wilson
from faithscope.experiments.analysis.tidy import (
    columns,
    groups,
    keep,
    numbers,
    only,
    rows,
    with_interval,
)
from faithscope.experiments.studies.c2faith.benchmark.features import EDIT_TYPES
from faithscope.experiments.studies.c2faith.layouts import ALPHA, FEATURES, TABLE_4
from faithscope.experiments.studies.c2faith.metrics.agreement import FAILURE_OVERLAP, JUDGES
from faithscope.experiments.studies.c2faith.metrics.coverage import COVERAGE, SCORES
from faithscope.experiments.studies.c2faith.metrics.detection import DETECTION, MCNEMAR
from faithscope.experiments.studies.c2faith.metrics.frames import PERTURBED
from faithscope.experiments.studies.c2faith.metrics.localisation import LOCALISATION
from faithscope.experiments.studies.c2faith.metrics.predictors import EDITS, PREDICTORS

Tables = Mapping[str, pd.DataFrame]
NORMAL = 1.959964
"""97.5 % point of the normal distribution."""
ON_STEPS = rows_with(reading="generated", prompt="c2_detection")
ON_CHAINS = rows_with(reading="generated", prompt="c2_localisation")
ON_COVERAGE = rows_with(reading="generated", prompt="c2_coverage", scale="0-4")
LEVELS = {f"{level}%": str(level / 100) for level in (10, 30, 50, 70)}
_DEEPSEEK = (
    "api:together/deepseek-ai/DeepSeek-V3.1",
    "api:openrouter/deepseek/deepseek-chat-v3.1",
    "api:azureai/DeepSeek-V3.1",
)
NAMES = {
    "GPT-4.1": ("api:openai/gpt-4.1", "api:openai/azure/gpt-4.1"),
    "DeepSeek-V3.1": _DEEPSEEK,
    "DS-V3.1": _DEEPSEEK,
    "o4-mini": ("api:openai/o4-mini", "api:openai/azure/o4-mini"),
}
"""The paper's names of judges -> ours, those of configs/paper/c2faith.yaml first, then other
services that have the same model."""
DIFFERS = (
    "The paper speaks of chains of at least five steps, and prints lengths of 8 to 30 steps for "
    "its 450 chains. The config takes, of each problem, the first chain that has at least 8 steps "
    "and reaches an answer, which gives these lengths: our inference.",
    "The paper asked all judges through Azure with the services' default settings; other services "
    "may have others, and services change.",
    "The paper does not name the model that rewrote the steps; in the config it is GPT-4.1.",
)
EXP_1, EXP_2, COVER = "detection", "localisation", "coverage"
TASKS = {
    "Exp 1 detect": (EXP_1, "detection", 0.0),
    "Exp 1 FPR": (EXP_1, "fpr", 0.0),
    "Exp 2 exact match": (EXP_2, "exact", 0.0),
    "Exp 2 FPR": (EXP_2, "fpr", 0.0),
    "Cov. ρ @70%": (COVER, "spearman", 0.7),
    "Cov. bias @10%": (COVER, "bias", 0.1),
}
"""Row of Table 4 -> task, our column, and the level of coverage, if it has one."""


def steps_flagged(tables: Tables) -> pd.DataFrame | None:
    """Table `c2_detection` with the share of broken steps passed, and the interval of the standard
    deviation, which both follow from the detection rate."""
    table = tables.get(DETECTION.name)
    if table is None:
        return None
    low, high = numbers(table["detection_low"]), numbers(table["detection_high"])
    ends = np.sqrt([low * (1 - low), high * (1 - high)])
    # a standard deviation of yes and no is greatest at one half
    greatest = np.where((low <= 0.5) & (high >= 0.5), 0.5, ends.max(axis=0))
    passed = {"passed": 1 - table["detection"], "passed_low": 1 - high, "passed_high": 1 - low}
    return table.assign(**passed, std_low=ends.min(axis=0), std_high=greatest)


def either_way(tables: Tables) -> pd.DataFrame | None:
    """McNemar's tests on broken steps, every two judges in both orders, with whether the first of
    them is significantly better (`better`)."""
    table = tables.get(MCNEMAR.name)
    if table is None:
        return None
    one = keep(table, rows_with(condition=PERTURBED)(table) & table["p"].notna().to_numpy())
    value, low, high = with_interval("difference")
    turned = {value: -one[value], low: -one[high], high: -one[low]}
    both = pd.concat([one, one.assign(judge=one["other"], other=one["judge"], **turned)])
    return both.assign(better=(both[value] > 0) & (both["p_bonferroni"] < ALPHA))


def scored(tables: Tables) -> pd.DataFrame | None:
    """Table `c2_coverage` with a normal 95 % interval of the standard deviation of scores, from the
    shares of all scores."""
    table, shares = tables.get(COVERAGE.name), tables.get(SCORES.name)
    if table is None or shares is None:
        return None
    keys = [*COVERAGE.keys]
    half = {}
    for key, of in groups(shares, keys):
        score, share = numbers(of["score"]), numbers(of["share"])
        squares = (score - (score * share).sum()) ** 2
        variance = (squares * share).sum()
        # of the delta method: Var(s) is (μ₄ − σ⁴) / 4 σ² n
        spread = max(0.0, (squares**2 * share).sum() - variance**2)
        n = float(of["n"].iloc[0])
        error = np.sqrt(spread / (4 * variance * n)) if variance > 0 and n >= FEWEST else np.nan
        half[tuple(key.values())] = NORMAL * error
    ends = np.array([half.get(tuple(row), np.nan) for row in only(table, keys).to_numpy()])
    return table.assign(sd_low=table["sd"] - ends, sd_high=table["sd"] + ends)


def with_intervals_of_shares(tables: Tables) -> pd.DataFrame | None:
    """Table `c2_coverage_scores` with Wilson's 95 % intervals of the shares."""
    table = tables.get(SCORES.name)
    if table is None:
        return None
    known = keep(table, table["share"].notna().to_numpy())
    shares = (wilson(round(r["share"] * r["n"]), int(r["n"])) for r in rows(known))
    return known.assign(
        **pd.DataFrame([columns("share", share) for share in shares], index=known.index)
    )


def across_tasks(tables: Tables) -> pd.DataFrame | None:
    """Judges across tasks (Table 4), each number with its interval from the table of its task."""
    sources = {
        EXP_1: (DETECTION, ON_STEPS),
        EXP_2: (LOCALISATION, ON_CHAINS),
        COVER: (COVERAGE, ON_COVERAGE),
    }
    if TABLE_4.name not in tables:
        return None
    parts = []
    for name, (task, column, level) in TASKS.items():
        table, among = sources[task]
        of = keep(tables[table.name], among(tables[table.name]))
        if level:
            of = keep(of, np.isclose(numbers(of["level"]), level))
        values = dict(zip(with_interval("value"), with_interval(column), strict=True))
        part = {mine: of[theirs] for mine, theirs in values.items()}
        n = of["n_control" if column == "fpr" else "n"]
        parts.append(pd.DataFrame({"judge": of["judge"], "task": name, **part, "n": n}))
    generated = keep(tables[TABLE_4.name], rows_with(reading="generated")(tables[TABLE_4.name]))
    ranks = generated.drop_duplicates(subset="judge").assign(task="Overall rank")
    rank = ranks["overall_rank"].map("{:.0f}".format).where(ranks["overall_rank"].notna(), None)
    parts.append(only(ranks, ["judge", "task"]).assign(rank=rank))
    return pd.concat(parts, ignore_index=True)


def failures(tables: Tables) -> pd.DataFrame | None:
    """The steps that no judge or one judge alone passes, out of table `c2_failure_overlap`."""
    table = tables.get(FAILURE_OVERLAP.name)
    if table is None:
        return None
    return keep(table, rows_with(among=JUDGES, prompt="c2_detection", n_raters=3)(table))


NO_COVERAGE = ("reference", "perturb.levels")
"""Config keys that only coverage depends on."""
REWRITTEN = ("perturb.acausal", "perturb.writer", "perturb.temperature", "perturb.draws")
"""Config keys that coverage does not depend on."""
TABLES = (
    Published(
        "table1",
        "Binary detection of replaced steps, and false alarms on steps as they were.",
        config="paper/c2faith",
        of=steps_flagged,
        columns={
            "Detect": "detection",
            "FPR": Ours("fpr", n="n_control"),
            "Std.": "std",
            "Detect−FPR": "net",
            "false acceptance": "passed",
        },
        without=dict.fromkeys(
            ("95% CI, lower", "95% CI, upper"),
            "The interval of our detection rate stands beside that rate.",
        ),
        keys={"judge": "judge"},
        among=ON_STEPS,
        unread=NO_COVERAGE,
    ),
    Published(
        "table1_tests",
        "Which judges detect significantly more replaced steps than others (McNemar's test).",
        config="paper/c2faith",
        of=either_way,
        columns={
            "difference": "difference",
            "significantly better": Ours("better", words={"True": "yes", "False": "no"}),
        },
        without={
            "p": "A p-value has no interval, and depends on the number of steps; whether it is "
            "below the paper's level is compared."
        },
        keys={"judge": "judge", "row": "other"},
        names={"row": NAMES},
        among=ON_STEPS,
        # Bonferroni's correction counts the pairs of the panel
        pools=("judge.model",),
        unread=NO_COVERAGE,
    ),
    Published(
        "table2",
        "Localisation of the replaced step in the whole chain.",
        config="paper/c2faith",
        of=LOCALISATION.name,
        columns={
            "Exact": "exact",
            "Det.": "detection",
            "FPR": Ours("fpr", n="n_control"),
            "MAE_all": "mae_all",
            "MAE_det": Ours("mae_detected", n="n_detected"),
            "W@1": Ours("within_1", n="n_detected"),
            "W@2": Ours("within_2", n="n_detected"),
            "Det−FPR": "net",
            "detection-localization gap": "gap",
            "mean signed error": Ours("signed_error", n="n_detected"),
        },
        keys={"judge": "judge"},
        among=ON_CHAINS,
        unread=NO_COVERAGE,
    ),
    Published(
        "table3",
        "Coverage scores by judge and share of middle steps left out.",
        config="paper/c2faith",
        of=scored,
        columns={
            "Mean": "mean",
            "σ": "sd",
            "GT Mean": "reference_mean",
            "Bias": "bias",
            "MAE": "mae",
            "Infl.%": "inflation",
            "ρ": "spearman",
        },
        keys={"judge": "judge", "row": "level"},
        names={"row": LEVELS},
        among=ON_COVERAGE,
        unread=REWRITTEN,
    ),
    Published(
        "table3_scores",
        "How often DeepSeek-V3.1 gives the highest coverage score.",
        config="paper/c2faith",
        of=with_intervals_of_shares,
        columns={"share of the highest score": Ours("share", among=rows_with(score=4))},
        keys={"judge": "judge", "row": "level"},
        names={"row": LEVELS},
        among=ON_COVERAGE,
        unread=REWRITTEN,
    ),
    Published(
        "table4",
        "The judges across tasks.",
        config="paper/c2faith",
        of=across_tasks,
        columns={
            "value": "value",
            "rank": Ours("rank", words={"1": "1st", "2": "2nd", "3": "3rd"}),
        },
        keys={"judge": "judge", "row": "task"},
        across=("judge",),
    ),
    Published(
        "table5",
        "Features of the replaced steps that o4-mini flags, and of those that it passes.",
        config="paper/c2faith",
        of=PREDICTORS.name,
        columns={
            "Correct": Ours("mean_correct", n="n_correct"),
            "Wrong": Ours("mean_wrong", n="n_wrong"),
            "Δ": Ours("difference", n="n_correct"),
        },
        keys={"judge": "judge", "row": "feature"},
        names={"row": {title: feature for feature, (title, _) in FEATURES.items()}},
        among=ON_STEPS,
        unread=NO_COVERAGE,
    ),
    Published(
        "table6",
        "Detection by o4-mini by type of edit.",
        config="paper/c2faith",
        of=EDITS.name,
        columns={"N": "n", "Acc.%": "detection"},
        keys={"judge": "judge", "row": "edit_type"},
        names={"row": {kind.replace("_", " ").capitalize(): kind for kind in EDIT_TYPES}},
        among=ON_STEPS,
        unread=NO_COVERAGE,
    ),
    Published(
        "figure6",
        "Replaced steps that no judge passes, and that one judge alone passes.",
        config="paper/c2faith",
        of=failures,
        columns={
            "share": Ours("share", among=rows_with(n_missed_by=0)),
            "n": Ours("n_items", among=rows_with(n_missed_by=1)),
        },
        keys={"judge": "missed_by", "row": ""},
        among=ON_STEPS,
        pools=("judge.model",),
        unread=NO_COVERAGE,
    ),
)
PAPER = Paper(
    "c2faith",
    "C2-Faith (arXiv 2603.05167)",
    Path(__file__).with_name("paper.csv"),
    tuple(
        replace(table, differs=DIFFERS, hours=0.0, hours_from="All models are behind APIs.")
        for table in TABLES
    ),
    {"judge": NAMES},
    apart=("judge.model", "judge.readings", "forms", "perturb.levels"),
    unread=("internals.", "injection.", "perturb.rules"),
)
