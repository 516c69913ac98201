"""The four modes of reasoning by two questions: does it help, and do its steps matter? (SLRC, 2.3
and 4.3)

The questions are whether accuracy with reasoning exceeds that without by at least the gap
threshold, and whether necessity reaches the necessity threshold. Genuine: both. Scaffolding:
reasoning helps, its steps do not matter. Decorative: neither. Empty: steps matter, and reasoning
does not help.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.cells import INCLUDED, Share, Total, rows_known
from faithscope.experiments.analysis.columns import SHARED, Column, with_intervals
from faithscope.experiments.analysis.record_frames import COUNTED, item_table
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.resampling import paired_difference
from faithscope.experiments.analysis.tables import computed_table
from faithscope.experiments.analysis.tidy import (
    columns,
    count,
    distinct,
    groups,
    in_order,
    keep,
    rows,
    where,
    with_columns,
    with_interval,
)
from faithscope.experiments.engine.traces.sections import DIRECT_PROMPTS
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.branch_frame import KEYS, NECESSITY, known_of
from faithscope.experiments.studies.slrc.tables.models import N_DIRECT_UNPARSED
from faithscope.experiments.studies.slrc.tables.outcomes import FRAMING, is_variant
from faithscope.probes.framing import FRAMINGS, READINGS

CALCULATIONS = ("gsm8k", "sequential_math")
"""Tasks with a number as the answer; all others are classification."""
CLASSIFICATION = "classification"
MODES = {
    "genuine": "reasoning helps and steps matter",
    "scaffolding": "reasoning helps and steps do not matter",
    "decorative": "reasoning does not help and steps do not matter",
    "empty": "reasoning does not help and steps matter",
}


def _by_prompt(records: pd.DataFrame) -> pd.DataFrame:
    direct = with_columns(records, "prompt", "reading", "cut")
    own = sorted(set(direct["prompt"].dropna()) - set(DIRECT_PROMPTS))
    return in_order(direct, prompt=(*DIRECT_PROMPTS, *own), reading=READINGS)


DIRECT_ACCURACY = item_table(
    "direct",
    (
        COUNTED,
        Share(
            "accuracy",
            "correct",
            rows_known("correct"),
            meaning="Items whose answer is right, of those with a known one.",
        ),
        Total(
            "n_unparsed",
            "unparsed",
            label="unparsed",
            meaning="Replies that no answer could be read from.",
        ),
        Total("n_cut", "cut", label="cut off", meaning="Replies that reached the limit of tokens."),
    ),
    keys=("prompt", "reading"),
    prepare=_by_prompt,
    caption="Accuracy of direct answers",
    folded="Answers without reasoning, by prompt",
)
"""Accuracy without reasoning, for each direct prompt (2.3).

A reply that does not parse is wrong: so the paper counts, whose models answer 0 % of the time.
"""


def _with_and_without(
    slrc: pd.DataFrame, direct: pd.DataFrame, branches: pd.DataFrame
) -> pd.DataFrame:
    """Records of SLRC, excluded ones included, and of direct answers, and the removals of known
    outcome, told by the column `part`. In `right`, an answer that does not parse is not right."""
    slrc = with_columns(slrc, "gold", "correct")
    direct = with_columns(direct, "prompt", "correct", "unparsed")
    unparsed = (slrc["excluded"] == "baseline_unparsed") & slrc["gold"].notna()
    right = slrc["correct"].where(INCLUDED(slrc)).astype(object).where(~unparsed, False)
    removed = keep(branches, known_of("remove")(branches))
    parts = {
        "with": in_order(slrc.assign(right=right), framing=FRAMINGS, reading=READINGS),
        "without": keep(direct, INCLUDED(direct)).assign(right=lambda d: d["correct"]),
        "removed": removed,
    }
    whole = pd.concat([of.assign(part=part) for part, of in parts.items()], ignore_index=True)
    return whole.astype({"right": float, "item": str})


def _modes(whole: pd.DataFrame, how: SlrcAnalysis) -> Iterator[dict[str, Any]]:
    settings, place = how.taxonomy, ["model", "task", "reading", "item"]
    direct = where(whole, part="without", prompt=settings.prompt)[[*place, "right", "unparsed"]]
    both = where(whole, part="with").merge(direct, on=place, suffixes=("", "_direct"))
    both = both.dropna(subset=["right", "right_direct"])
    for way, of in groups(both, KEYS):
        removed = where(whole, part="removed", **way)
        necessity = stats.clustered_share(
            (removed["flip"].to_numpy() == 1).astype(float),
            pd.factorize(how.units(removed))[0],
            removed["weight"].to_numpy(dtype=float),
        )
        unread = {
            "n_direct_unparsed": count(of["unparsed_direct"] == True),  # noqa: E712
            "n_cot_unparsed": count(of["excluded"].notna()),
        }
        yield way | {"prompt": settings.prompt} | _row(of, necessity, how) | unread


TAXONOMY = computed_table(
    "taxonomy",
    (
        *(SHARED["model"], SHARED["task"], FRAMING, SHARED["reading"], SHARED["prompt"]),
        *COUNTED.columns,
        Column(
            "mode",
            meaning="Genuine, scaffolding, decorative or empty; no text where necessity or "
            "gap was not measured.",
        ),
        Column("settled", meaning="Neither interval, of gap or necessity, holds its threshold."),
        *with_intervals(
            Column("direct_accuracy", "accuracy, direct", "Accuracy without reasoning."),
            Column(
                "cot_accuracy", "accuracy, reasoned", "Accuracy of the same items with reasoning."
            ),
            Column("gap", meaning="What reasoning adds to accuracy."),
        ),
        *NECESSITY.columns,
        N_DIRECT_UNPARSED,
        Column(
            "n_cot_unparsed",
            "unparsed with reasoning",
            "Items whose answer with reasoning could not be read: they count as not right.",
        ),
    ),
    ("slrc", "direct", "branches"),
    _modes,
    prepare=_with_and_without,
    caption="Mode of each model on each task",
)
"""The mode of every model on every task (Table 2).

Over the items with a right answer that were asked both ways. On both sides an answer that does not
parse is not right (`n_direct_unparsed`, `n_cot_unparsed`), so accuracy with reasoning can be lower
here than in `slrc.csv`, which leaves those out.
"""


def _row(both: pd.DataFrame, necessity: stats.Estimate, how: SlrcAnalysis) -> dict[str, Any]:
    """Numbers and mode of one row, from answers with and without reasoning and from removed
    steps."""
    settings, units = how.taxonomy, how.units(both)
    cot, direct = ((both[name] == 1).tolist() for name in ("right", "right_direct"))
    gap = paired_difference(both, "right", "right_direct", how)
    unsettled = (
        necessity.low < settings.necessity <= necessity.high or gap.low < settings.gap <= gap.high
    )
    return {
        "n": len(cot),
        **columns("direct_accuracy", stats.share(direct, units)),
        **columns("cot_accuracy", stats.share(cot, units)),
        **columns("gap", gap),
        **columns("necessity", necessity),
        "mode": mode(necessity.value, gap.value, settings.necessity, settings.gap),
        "settled": bool(necessity.n) and not unsettled,
    }


def threshold_sensitivity_table(taxonomy: pd.DataFrame, analysis: SlrcAnalysis) -> pd.DataFrame:
    """Counts of (model, task) pairs that keep their mode under another necessity threshold.

    `n` counts pairs with a mode, without prompt variants (`sst2:alternative`). `n_same` counts
    pairs that keep their mode. `n_consistent` counts pairs in which necessity and the gain in
    accuracy agree: steps matter and reasoning helps, or neither. (Extended Data Table 3 counts
    agreement with a reference that it does not name; this one fits its numbers.) `tasks` is
    `all`, or classification tasks only, as in that table's first column, if a run has other
    tasks, too.
    """
    settings, counts = analysis.taxonomy, []
    for variant in distinct(taxonomy, "framing", "reading"):
        pairs = [r for r in rows(where(taxonomy, **variant)) if not is_variant(r["task"])]
        pairs = [r for r in pairs if r["mode"]]
        labelled = [r for r in pairs if r["task"] not in CALCULATIONS]
        groups = {"all": pairs} | (
            {CLASSIFICATION: labelled} if 0 < len(labelled) < len(pairs) else {}
        )
        for (tasks, of), threshold in itertools.product(groups.items(), settings.sensitivity):
            modes = [mode(r["necessity"], r["gap"], threshold, settings.gap) for r in of]
            same = [now == r["mode"] for now, r in zip(modes, of, strict=True)]
            consistent = [now in ("genuine", "decorative") for now in modes]
            counts.append(
                variant
                | {"tasks": tasks, "necessity_threshold": threshold}
                | {"n": len(of), "n_same": sum(same)}
                | columns("agreement", stats.share(same))
                | {"n_consistent": sum(consistent)}
                | columns("consistent", stats.share(consistent))
                | {f"n_{name}": modes.count(name) for name in MODES}
            )
    names = ["framing", "reading", "tasks", "necessity_threshold", "n", "n_same"]
    names += [*with_interval("agreement"), "n_consistent", *with_interval("consistent")]
    return pd.DataFrame(counts, columns=[*names, *(f"n_{name}" for name in MODES)])


THRESHOLD_SENSITIVITY = computed_table(
    "threshold_sensitivity",
    (
        *(FRAMING, SHARED["reading"]),
        Column("tasks", meaning="All, or those of classification alone."),
        Column(
            "necessity_threshold", meaning="The necessity from which on steps count as mattering."
        ),
        Column(
            "n",
            "models × tasks",
            "Pairs of model and task that have a mode: both necessity and gap were measured.",
        ),
        Column(
            "n_same",
            "same mode",
            "Pairs of model and task that have the same mode under this threshold as under "
            "the run's own.",
        ),
        Column(
            "agreement",
            meaning="Share of the pairs of model and task that keep their mode.",
            interval=True,
        ),
        Column(
            "n_consistent",
            "necessity and gain agree",
            "Pairs in which steps matter and reasoning helps, or neither.",
        ),
        Column(
            "consistent",
            "share, necessity and gain agree",
            "Share of these pairs in which steps matter and reasoning helps, or neither.",
            interval=True,
        ),
        *(
            Column(f"n_{mode}", mode, f"Pairs of model and task of this mode: {words}.")
            for mode, words in MODES.items()
        ),
    ),
    "taxonomy",
    lambda taxonomy, how: rows(threshold_sensitivity_table(taxonomy, how)),
    caption="Pairs that keep their mode under another threshold",
    folded="Under other necessity thresholds",
)


def mode(necessity: float, gap: float, necessity_threshold: float, gap_threshold: float) -> str:
    """Mode of a model on a task, one of `MODES`; empty if necessity or gap is missing. A value
    equal to a threshold counts as above it."""
    if math.isnan(necessity) or math.isnan(gap):
        return ""
    if gap >= gap_threshold:
        return "genuine" if necessity >= necessity_threshold else "scaffolding"
    return "empty" if necessity >= necessity_threshold else "decorative"
