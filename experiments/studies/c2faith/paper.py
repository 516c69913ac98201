"""The printed tables of C2-Faith, and which numbers of a run stand beside them.

The paper has one prompt per task and reads verdicts as the judges write them, so its cells stand
beside the rows of its own forms, read as generated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from faithscope.experiments.analysis.cells import rows_with
from faithscope.experiments.analysis.published import Ours, Paper, Published
from faithscope.experiments.analysis.published.paper import in_way
from faithscope.experiments.studies.c2faith.benchmark.features import EDIT_TYPES
from faithscope.experiments.studies.c2faith.paper_rows import (
    across_tasks,
    either_way,
    may_be_better,
    scored,
    steps_flagged,
    with_intervals_of_shares,
)
from faithscope.experiments.studies.c2faith.paper_states import LEAVES_OPEN, STATES
from faithscope.experiments.studies.c2faith.tables.agreement import FAILURE_OVERLAP, JUDGES
from faithscope.experiments.studies.c2faith.tables.coverage import SCORES
from faithscope.experiments.studies.c2faith.tables.detection import DETECTION, MCNEMAR
from faithscope.experiments.studies.c2faith.tables.localisation import LOCALISATION
from faithscope.experiments.studies.c2faith.tables.predictors import EDITS, PREDICTORS

ON_STEPS = in_way(reading="generated", prompt="c2_detection")
ON_CHAINS = in_way(reading="generated", prompt="c2_localisation")
ON_COVERAGE = in_way(reading="generated", prompt="c2_coverage", scale="0-4")
FORMS = ("c2_detection", "c2_localisation", "c2_coverage")
CI = ("95% CI, lower", "95% CI, upper")
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
FEATURES = {
    "Math symbol density": "math_symbol_density",
    "Edit similarity": "edit_similarity",
    "Relative position": "relative_position",
    "Word count (negated)": "n_words",
    "Chain length": "n_steps",
    "Character count (negated)": "n_chars",
}
"""The paper's name of a feature -> ours."""
DIFFERS = (
    "The paper speaks of chains of at least five steps, and prints lengths of 8 to 30 steps for "
    "its 450 chains. The config takes, of each problem, the first chain that has at least 8 steps "
    "and reaches an answer, which gives these lengths: our inference.",
    "The paper asked all judges through Azure with the services' default settings; other services "
    "may have others, and services change.",
    "The paper does not name the model that rewrote the steps; in the config it is GPT-4.1.",
)
REPLIES = (
    "Estimate: the calls of --dry-run for 450 chains at the list prices of configs/prices.yaml, "
    "with 1,000 tokens a reply, thinking included."
)
NO_COVERAGE = ("reference", "perturb.levels")
"""Config keys that only coverage depends on."""
REWRITTEN = ("perturb.acausal", "perturb.writer", "perturb.temperature", "perturb.draws")
"""Config keys that coverage does not depend on."""
TABLES = (
    Published(
        "table1",
        "Binary detection of replaced steps, and false alarms on steps as they were.",
        config="paper/c2faith",
        of=DETECTION.name,
        make=steps_flagged,
        columns={
            "Detect": "detection",
            "FPR": Ours("fpr", n="n_control"),
            "Std.": "std",
            "Detect−FPR": "net",
            "false acceptance": "passed",
        },
        no_counterpart=dict.fromkeys(
            CI, "The interval of our detection rate stands beside that rate."
        ),
        also=dict(zip(CI, map(Ours, ("detection_low", "detection_high")), strict=True)),
        keys={"judge": "judge"},
        compared=ON_STEPS,
        independent_of=NO_COVERAGE,
    ),
    Published(
        "table1_tests",
        "Which judges detect significantly more replaced steps than others (McNemar's test).",
        config="paper/c2faith",
        of=MCNEMAR.name,
        make=either_way,
        columns={
            "difference": "difference",
            "significantly better": Ours(
                "better", words={"True": "yes", "False": "no"}, allowed=may_be_better
            ),
        },
        no_counterpart={
            "p": "A p-value has no interval, and depends on the number of steps; whether it is "
            "below the paper's level is compared."
        },
        also={"p": Ours("p")},
        keys={"judge": "judge", "row": "other"},
        names={"row": NAMES},
        compared=ON_STEPS,
        # Bonferroni's correction counts the pairs of the panel
        pooled_over=("judge.model",),
        independent_of=NO_COVERAGE,
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
        also={"index against final score": Ours("contradicts", unit="%", decimals=1)},
        keys={"judge": "judge"},
        compared=ON_CHAINS,
        independent_of=NO_COVERAGE,
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
        also={
            "p of ρ": Ours("spearman_p", decimals=3),
            "ρ with share kept": Ours("spearman_kept", decimals=3),
            "p of ρ with share kept": Ours("spearman_kept_p", decimals=3),
        },
        keys={"judge": "judge", "row": "level"},
        names={"row": LEVELS},
        compared=ON_COVERAGE,
        independent_of=REWRITTEN,
    ),
    Published(
        "table3_scores",
        "How often DeepSeek-V3.1 gives the highest coverage score.",
        config="paper/c2faith",
        of=SCORES.name,
        make=with_intervals_of_shares,
        columns={"share of the highest score": Ours("share", among=rows_with(score=4))},
        keys={"judge": "judge", "row": "level"},
        names={"row": LEVELS},
        compared=ON_COVERAGE,
        independent_of=REWRITTEN,
    ),
    Published(
        "table4",
        "The judges across tasks.",
        config="paper/c2faith",
        of=across_tasks,
        compared=in_way(reading="generated", prompt=FORMS),
        columns={
            "value": "value",
            # of three ranks in six numbers of one sample no interval is known
            "rank": Ours(
                "rank", words={"1": "1st", "2": "2nd", "3": "3rd"}, allowed=lambda row: ()
            ),
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
        names={"row": FEATURES},
        compared=ON_STEPS,
        independent_of=NO_COVERAGE,
    ),
    Published(
        "table6",
        "Detection by o4-mini by type of edit.",
        config="paper/c2faith",
        of=EDITS.name,
        columns={"N": "n", "Acc.%": "detection"},
        keys={"judge": "judge", "row": "edit_type"},
        names={"row": {kind.replace("_", " ").capitalize(): kind for kind in EDIT_TYPES}},
        compared=ON_STEPS,
        independent_of=NO_COVERAGE,
    ),
    Published(
        "figure6",
        "Replaced steps that no judge passes, and that one judge alone passes.",
        config="paper/c2faith",
        of=FAILURE_OVERLAP.name,
        among=rows_with(among=JUDGES),
        columns={
            "share": Ours("share", among=rows_with(n_missed_by=0)),
            "n": Ours("n_items", among=rows_with(n_missed_by=1)),
        },
        keys={"judge": "missed_by", "row": ""},
        compared=in_way(reading="generated", prompt="c2_detection", n_raters=3),
        pooled_over=("judge.model",),
        independent_of=NO_COVERAGE,
    ),
)
PAPER = Paper(
    "c2faith",
    "C2-Faith (arXiv 2603.05167)",
    Path(__file__).with_name("paper.csv"),
    tuple(
        replace(
            table,
            differs=DIFFERS,
            hours=0.0,
            hours_from="All models are behind APIs.",
            dollars=82.0,
            dollars_from=REPLIES,
        )
        for table in TABLES
    ),
    {"judge": NAMES},
    states=STATES,
    leaves_open=LEAVES_OPEN,
    row_keys=("judge.model", "judge.readings", "forms", "perturb.levels"),
    independent_of=("internals.", "injection.", "perturb.rules"),
    ways={"reading": "generated", "prompt": FORMS, "scale": "0-4"},
)
PAPERS = (PAPER,)
