"""Does reasoning help, and do its steps matter? The four modes (SLRC, sections 2.3 and 4.3).

Two questions cross: is accuracy with reasoning higher than without by at least the gap
threshold, and is necessity at least the necessity threshold? Genuine: both. Scaffolding:
reasoning helps, its steps do not matter. Decorative: neither. Empty: steps matter and
reasoning does not help.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import columns, distinct, rows, where, with_interval
from faithscope.experiments.studies.slrc.tables.outcomes import (
    GROUP,
    flips,
    is_variant,
    measured,
    slrc_groups,
)
from faithscope.experiments.studies.slrc.taxonomy_config import DIRECT_PROMPTS, TaxonomyConfig
from faithscope.probes.framing import READINGS

MODES = ("genuine", "scaffolding", "decorative", "empty")


def direct_records(records: Iterable[Record]) -> list[Record]:
    """The records of direct answers that hold one, in an order that no history changes."""
    kept = [r for r in records if r["probe"] == "direct" and not r.get("excluded")]
    return sorted(kept, key=lambda r: (*_group(r), str(r["item"])))


def direct_table(records: Iterable[Record]) -> pd.DataFrame:
    """Accuracy without reasoning, for each direct prompt (2.3).

    A reply that does not parse is wrong: so the paper counts, whose models answer 0 % of the
    time. `n_cut` counts replies that reached the token limit.
    """
    found = []
    for _, group in itertools.groupby(direct_records(records), key=_group):
        same = list(group)
        first = same[0]
        right = [bool(r["correct"]) for r in same if r["correct"] is not None]
        found.append(
            {"model": first["model"], "task": first["task"]}
            | {"prompt": first["prompt"], "reading": first["reading"], "n": len(same)}
            | columns("accuracy", stats.share(right))
            | {"n_unparsed": sum(r["unparsed"] for r in same)}
            | {"n_cut": sum(r.get("cut", False) for r in same)}
        )
    names = ["model", "task", "prompt", "reading", "n", *with_interval("accuracy")]
    return pd.DataFrame(found, columns=[*names, "n_unparsed", "n_cut"])


def taxonomy_table(
    records: Sequence[Record], settings: TaxonomyConfig | None = None
) -> pd.DataFrame:
    """The mode of every model on every task (Table 2).

    Accuracies and their gap are over the same `n` items: those with a right answer that were
    asked both ways. On both sides an answer that does not parse is wrong, so accuracy with
    reasoning can be lower here than in `slrc.csv`, which leaves those out. The gap has
    Newcombe's paired interval. `settled`: neither interval, of gap or necessity, holds its
    threshold.
    """
    settings = settings or TaxonomyConfig()
    direct: dict[tuple[str, ...], dict[str, bool]] = {}
    for r in direct_records(records):
        if r["prompt"] == settings.prompt and r["correct"] is not None:
            key = (r["model"], r["task"], r["reading"])
            direct.setdefault(key, {})[r["item"]] = bool(r["correct"])
    found = []
    for key, group in slrc_groups(records):
        model, task, _, reading = key
        without = direct.get((model, task, reading), {})
        cot = {r["item"]: right for r in group if (right := _right(r)) is not None}
        both = [item for item in cot if item in without]
        if both:
            row = _taxonomy_row(group, [cot[i] for i in both], [without[i] for i in both], settings)
            found.append(dict(zip(GROUP, key, strict=True)) | {"prompt": settings.prompt} | row)
    measures = with_interval("direct_accuracy", "cot_accuracy", "gap", "necessity")
    return pd.DataFrame(found, columns=[*GROUP, "prompt", "n", "mode", "settled", *measures])


def threshold_sensitivity_table(
    taxonomy: pd.DataFrame, settings: TaxonomyConfig | None = None
) -> pd.DataFrame:
    """How many (model, task) pairs keep their mode under another necessity threshold.

    A task in other words (`sst2:alternative`) is no task of its own.

    Extended Data Table 3 counts pairs that a reference agrees with and does not name the
    reference: here it is the mode at the default threshold.
    """
    settings = settings or TaxonomyConfig()
    found = []
    for variant in distinct(taxonomy, "framing", "reading"):
        mine = [r for r in rows(where(taxonomy, **variant)) if not is_variant(r["task"])]
        for threshold in settings.sensitivity:
            modes = [mode(r["necessity"], r["gap"], threshold, settings.gap) for r in mine]
            kept = [now == r["mode"] for now, r in zip(modes, mine, strict=True)]
            found.append(
                variant
                | {"necessity_threshold": threshold, "n": len(mine), "n_same": sum(kept)}
                | columns("agreement", stats.share(kept))
                | {f"n_{name}": modes.count(name) for name in MODES}
            )
    names = ["framing", "reading", "necessity_threshold", "n", "n_same"]
    return pd.DataFrame(
        found, columns=[*names, *with_interval("agreement"), *(f"n_{name}" for name in MODES)]
    )


def mode(necessity: float, gap: float, necessity_threshold: float, gap_threshold: float) -> str:
    """One of `MODES`; empty text where either was not measured. At a threshold is above it."""
    if math.isnan(necessity) or math.isnan(gap):
        return ""
    if gap >= gap_threshold:
        return "genuine" if necessity >= necessity_threshold else "scaffolding"
    return "empty" if necessity >= necessity_threshold else "decorative"


def _taxonomy_row(
    group: Sequence[Record], cot: list[bool], direct: list[bool], settings: TaxonomyConfig
) -> dict[str, Any]:
    removed = [f for r in measured(group) for f in flips(r, "remove") if f is not None]
    necessity = stats.share(removed)
    gap = stats.paired_difference(cot, direct)
    settled = bool(removed) and not (
        necessity.low < settings.necessity <= necessity.high or gap.low < settings.gap <= gap.high
    )
    return {
        "n": len(cot),
        **columns("direct_accuracy", stats.share(direct)),
        **columns("cot_accuracy", stats.share(cot)),
        **columns("gap", gap),
        **columns("necessity", necessity),
        "mode": mode(necessity.value, gap.value, settings.necessity, settings.gap),
        "settled": settled,
    }


def _right(record: Record) -> bool | None:
    """Whether the answer with reasoning is right; None where that cannot be said."""
    if record.get("excluded"):
        unparsed = record["excluded"] == "baseline_unparsed"
        return False if unparsed and record.get("gold") is not None else None
    return record["correct"]


def _group(record: Record) -> tuple[Any, ...]:
    prompt, reading = record["prompt"], record["reading"]
    place = DIRECT_PROMPTS.index(prompt) if prompt in DIRECT_PROMPTS else len(DIRECT_PROMPTS)
    return record["model"], record["task"], place, prompt, READINGS.index(reading)
