"""The measures of SLRC per model, task, framing and reading; agreement between them; steps.

Every share is pooled over the counted steps (or shuffles, or items) of a group, with its
Wilson interval. `task` is the dataset of the records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.records import Record, has_tokens
from faithscope.experiments.analysis.tidy import columns, mean, present, with_interval
from faithscope.experiments.studies.slrc.tables import capacity
from faithscope.experiments.studies.slrc.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.studies.slrc.tables.outcomes import (
    EDITS,
    GROUP,
    flips,
    groups,
    margins,
    measured,
    within_floor,
)
from faithscope.probes.framing import FRAMINGS, READINGS

_PAIRS = [
    *((f"generated~scored in {f}", (f, "generated"), (f, "scored")) for f in FRAMINGS),
    *((f"prefix~reprompt in {r}", ("prefix", r), ("reprompt", r)) for r in READINGS),
]


def slrc_table(
    records: Iterable[Record], *, seed: int = 0, resamples: int = stats.RESAMPLES
) -> pd.DataFrame:
    """Necessity, sufficiency, order sensitivity, SLRC per group (SLRC paper, §4.1-4.2).

    `flips_within_floor`: of the `n_flips` of these three whose margin is known, the share decided
    by no more than their item's noise floor (`probes.floor`); `noise_floor` is the median of the
    items', in nats, `n_packs` the most packs that one item's arms fell into.
    """
    rows = [
        dict(zip(GROUP, key, strict=True)) | _slrc_row(of_group, seed, resamples)
        for key, of_group in groups(records)
    ]
    measures = with_interval("accuracy", "necessity", "sufficiency", "order_sensitivity", "slrc")
    rest = ["redundancy_bound", "n_steps", "mean_steps", "n_unparsed", "execution"]
    rest += ["n_packs", "noise_floor", "n_flips", "flips_within_floor"]
    return pd.DataFrame(rows, columns=[*GROUP, "n", *measures, *rest, *MASS_COLUMNS])


def agreement_table(records: Iterable[Record]) -> pd.DataFrame:
    """Do the two readings, and the two framings, say the same?

    Compared over the same item and branch: whether the answer changed, or for the edit
    `baseline` the answer to the unedited reasoning itself.
    """
    rows = []
    of_pair = itertools.groupby(measured(records), key=lambda r: (r["model"], r["task"]))
    for (model, task), both in of_pair:
        by_variant: dict[tuple[str, str], dict[str, Record]] = {}
        for r in both:
            by_variant.setdefault((r["framing"], r["reading"]), {})[r["item"]] = r
        for edit, (between, one, other) in itertools.product(("baseline", *EDITS), _PAIRS):
            left, right = by_variant.get(one, {}), by_variant.get(other, {})
            pairs = [
                pair
                for item in left
                if item in right
                for pair in _comparable(left[item], right[item], edit)
            ]
            if pairs:
                a, b = zip(*pairs, strict=True)
                said = {"n": len(a), "agreement": stats.agreement(a, b), "kappa": stats.kappa(a, b)}
                rows.append({"model": model, "task": task, "edit": edit, "between": between} | said)
    return pd.DataFrame(
        rows, columns=["model", "task", "edit", "between", "n", "agreement", "kappa"]
    )


def steps_table(records: Iterable[Record]) -> pd.DataFrame:
    """Counted steps per trace, and the share of traces with two or more.

    SLRC paper, Extended Data Tables 4 (output rigidity) and 6 (steps per model). `n` counts
    all traces; the statistics are over those with a counted step.
    """
    traces = sorted(
        (r for r in records if r["probe"] == "trace"),
        key=lambda r: (r["model"], r["task"], str(r["item"])),
    )
    rows = []
    for (model, task), same in itertools.groupby(traces, key=lambda r: (r["model"], r["task"])):
        rows.append({"model": model, "task": task} | _steps_row(list(same)))
    counts = ["mean_steps", "sd_steps", "median_steps", "min_steps", "max_steps"]
    lengths = ["mean_step_tokens", "mean_step_chars", "mean_reasoning_tokens"]
    return pd.DataFrame(
        rows,
        columns=["model", "task", "n", *with_interval("multi_step"), "n_steps", *counts, *lengths],
    )


def _slrc_row(same: list[Record], seed: int, resamples: int) -> dict[str, Any]:
    removed = [present(flips(r, "remove")) for r in same]
    returned = [[not flip for flip in present(flips(r, "keep_only"))] for r in same]
    accuracy = stats.share([r["correct"] for r in same if r.get("correct") is not None])
    necessity = stats.share([flip for of_item in removed for flip in of_item])
    sufficiency = stats.share([back for of_item in returned for back in of_item])
    order = stats.share([flip for r in same for flip in present(flips(r, "shuffle"))])
    slrc = capacity.slrc(necessity.value, sufficiency.value)
    low, high = capacity.slrc_interval(
        np.array([sum(of_item) for of_item in removed]),
        np.array([len(of_item) for of_item in removed]),
        np.array([sum(of_item) for of_item in returned]),
        np.array([len(of_item) for of_item in returned]),
        seed=seed,
        resamples=resamples,
    )
    n_steps = sum(r["n_steps"] for r in same)
    close = [
        x
        for r in same
        for edit in ("remove", "keep_only", "shuffle")
        for x in within_floor(r, flips(r, edit), margins(r, edit))
    ]
    floors = present(r.get("noise_floor") for r in same)
    return {
        "n": len(same),
        **columns("accuracy", accuracy),
        **columns("necessity", necessity),
        **columns("sufficiency", sufficiency),
        **columns("order_sensitivity", order),
        **columns("slrc", stats.Estimate(slrc, low, high, len(same))),
        "redundancy_bound": capacity.redundancy(necessity.value),
        "n_steps": n_steps,
        "mean_steps": n_steps / len(same),
        "n_unparsed": sum(r.get("n_unparsed") or 0 for r in same),
        "execution": "+".join(sorted({str(r["execution"]) for r in same})),
        "n_packs": max(present(r.get("n_packs") for r in same), default=math.nan),
        "noise_floor": float(np.median(floors)) if floors else math.nan,
        "n_flips": len(close),
        "flips_within_floor": mean(close),
        **mass_columns(same, seed=seed, resamples=resamples),
    }


def _comparable(left: Record, right: Record, edit: str) -> list[tuple[Any, Any]]:
    if edit == "baseline":
        return [(left["baseline"], right["baseline"])]
    pairs = zip(flips(left, edit), flips(right, edit), strict=False)
    return [(a, b) for a, b in pairs if a is not None and b is not None]


def _steps_row(traces: list[Record]) -> dict[str, Any]:
    counted = [[s for s in r["steps"] if s["counted"]] for r in traces]
    numbers = np.array([len(of_trace) for of_trace in counted if of_trace], dtype=float)
    every = [step for of_trace in counted for step in of_trace]
    some = len(numbers) > 0
    return {
        "n": len(traces),
        **columns("multi_step", stats.share([len(of_trace) >= 2 for of_trace in counted])),
        "n_steps": len(every),
        "mean_steps": numbers.mean() if some else math.nan,
        "sd_steps": numbers.std(ddof=1) if len(numbers) > 1 else math.nan,
        "median_steps": float(np.median(numbers)) if some else math.nan,
        "min_steps": float(numbers.min()) if some else math.nan,
        "max_steps": float(numbers.max()) if some else math.nan,
        "mean_step_tokens": mean(
            [
                s["tokens"][1] - s["tokens"][0]
                for r, of_trace in zip(traces, counted, strict=True)
                for s in of_trace
                if has_tokens(r)
            ]
        ),
        "mean_step_chars": mean([s["chars"][1] - s["chars"][0] for s in every]),
        "mean_reasoning_tokens": mean([len(r["reasoning_ids"]) for r in traces if has_tokens(r)]),
    }
