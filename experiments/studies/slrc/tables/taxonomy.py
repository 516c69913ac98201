"""Does reasoning help, and do its steps matter? The four modes (SLRC, sections 2.3 and 4.3).

Two questions cross: is accuracy with reasoning higher than without by at least the gap
threshold, and is necessity at least the necessity threshold? Genuine: both. Scaffolding:
reasoning helps, its steps do not matter. Decorative: neither. Empty: steps matter and
reasoning does not help.

Can faithfulness be prompted into existence (section 2.6)? A task named `sst2:alternative` asks the
questions of `sst2` with another prompt for the reasoning; both are measured over the same items.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis import item_tables as kit
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.statistics import stats
from faithscope.experiments.analysis.statistics.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, distinct, rows, where, with_interval
from faithscope.experiments.engine.traces.sections import DIRECT_PROMPTS
from faithscope.experiments.studies.slrc.sections import TaxonomyConfig
from faithscope.experiments.studies.slrc.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.branches import necessary, step_counts
from faithscope.experiments.studies.slrc.tables.outcomes import ALL_WAYS, WAYS, is_variant
from faithscope.probes.framing import READINGS

CALCULATIONS = ("gsm8k", "sequential_math")
"""Tasks whose answer is a number; all others are of classification."""
CLASSIFICATION = "classification"
MODES = ("genuine", "scaffolding", "decorative", "empty")


def _rank(record: Record) -> tuple[int, str, int]:
    prompt, reading = record["prompt"], record["reading"]
    place = DIRECT_PROMPTS.index(prompt) if prompt in DIRECT_PROMPTS else len(DIRECT_PROMPTS)
    return place, prompt, READINGS.index(reading)


DIRECT = kit.grouped("direct", {"prompt": "prompt", "reading": "reading"}, rank=_rank)
direct_table = kit.item_table(
    DIRECT,
    kit.COUNTED,
    kit.shares(
        {"accuracy": lambda same: [bool(x) for r in same if (x := r["correct"]) is not None]}
    ),
    kit.plain(
        n_unparsed=lambda same: sum(r["unparsed"] for r in same),
        n_cut=lambda same: sum(r.get("cut", False) for r in same),
    ),
)
"""Accuracy without reasoning, for each direct prompt (2.3).

A reply that does not parse is wrong: so the paper counts, whose models answer 0 % of the time.
"""


def taxonomy_table(records: Sequence[Record], analysis: SlrcAnalysis) -> pd.DataFrame:
    """The mode of every model on every task (Table 2).

    Over the items with a right answer that were asked both ways. On both sides an answer that does
    not parse is not right (`n_direct_unparsed`, `n_cot_unparsed`), so accuracy with reasoning can
    be lower here than in `slrc.csv`, which leaves those out.
    """
    settings = analysis.taxonomy
    direct = {
        (key["model"], key["task"], key["reading"]): {r["item"]: r for r in same}
        for key, same in DIRECT.of(records)
        if key["prompt"] == settings.prompt
    }
    modes = []
    for way, same in ALL_WAYS.of(records):
        without = direct.get((way["model"], way["task"], way["reading"]), {})
        pairs = [(r, asked) for r in same if (asked := without.get(r["item"])) is not None]
        pairs = [(r, d) for r, d in pairs if None not in (_right(r), d["correct"])]
        if pairs:
            both = [(bool(_right(r)), bool(d["correct"])) for r, d in pairs]
            removed = necessary([r for r in same if not r.get("excluded")])
            unread = {
                "n_direct_unparsed": sum(d["unparsed"] for _, d in pairs),
                "n_cot_unparsed": sum(bool(r.get("excluded")) for r, _ in pairs),
            }
            row = _row(both, removed, settings)
            modes.append(way | {"prompt": settings.prompt} | row | unread)
    measures = with_interval("direct_accuracy", "cot_accuracy", "gap", "necessity")
    names = [*ALL_WAYS.keys, "prompt", "n", "mode", "settled", *measures]
    names += ["n_direct_unparsed", "n_cot_unparsed"]
    return pd.DataFrame(modes, columns=names)


def _row(
    both: Sequence[tuple[bool, bool]], removed: Sequence[bool], settings: TaxonomyConfig
) -> dict[str, Any]:
    """Of items with reasoning and without, and of steps removed."""
    cot, direct = zip(*both, strict=True)
    necessity, gap = stats.share(removed), stats.paired_difference(cot, direct)
    unsettled = (
        necessity.low < settings.necessity <= necessity.high or gap.low < settings.gap <= gap.high
    )
    return {
        "n": len(cot),
        **columns("direct_accuracy", stats.share(direct)),
        **columns("cot_accuracy", stats.share(cot)),
        **columns("gap", gap),
        **columns("necessity", necessity),
        "mode": mode(necessity.value, gap.value, settings.necessity, settings.gap),
        "settled": bool(removed) and not unsettled,
    }


def threshold_sensitivity_table(taxonomy: pd.DataFrame, analysis: SlrcAnalysis) -> pd.DataFrame:
    """What becomes of the modes of (model, task) pairs under another necessity threshold.

    A task in other words (`sst2:alternative`) is no task of its own, and a pair without a mode is
    no pair: `n` counts those that have one. `n_same`: pairs that keep their mode. `n_as_gap`:
    pairs in which necessity and the gain in accuracy say the same, steps that matter and reasoning
    that helps, or neither: Extended Data Table 3 counts pairs that agree with a reference that it
    does not name, and this one fits its figures. `tasks`: all, or as in that table's first column
    those of classification, where a run has others, too.
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
            as_gap = [now in ("genuine", "decorative") for now in modes]
            counts.append(
                variant
                | {"tasks": tasks, "necessity_threshold": threshold}
                | {"n": len(of), "n_same": sum(same)}
                | columns("agreement", stats.share(same))
                | {"n_as_gap": sum(as_gap)}
                | columns("as_gap", stats.share(as_gap))
                | {f"n_{name}": modes.count(name) for name in MODES}
            )
    names = ["framing", "reading", "tasks", "necessity_threshold", "n", "n_same"]
    names += [*with_interval("agreement"), "n_as_gap", *with_interval("as_gap")]
    return pd.DataFrame(counts, columns=[*names, *(f"n_{name}" for name in MODES)])


def mode(necessity: float, gap: float, necessity_threshold: float, gap_threshold: float) -> str:
    """One of `MODES`; empty text where either was not measured. At a threshold is above it."""
    if math.isnan(necessity) or math.isnan(gap):
        return ""
    if gap >= gap_threshold:
        return "genuine" if necessity >= necessity_threshold else "scaffolding"
    return "empty" if necessity >= necessity_threshold else "decorative"


def _right(record: Record) -> bool | None:
    """Whether the answer with reasoning is right; None where that cannot be said."""
    if record.get("excluded"):
        unparsed = record["excluded"] == "baseline_unparsed"
        return False if unparsed and record.get("gold") is not None else None
    return record["correct"]


MEASURES = ("necessity", "sufficiency", "accuracy", "steps")
_NAMES = ("model", "task", "variant", "framing", "reading", "measure", "n", "standard", "changed")


def prompt_interventions_table(records: Sequence[Record], analysis: SlrcAnalysis) -> pd.DataFrame:
    """Every measure under the task's own prompt and under a variant's, and the difference.

    Over the `n` items measured under both. The interval of the difference is a percentile
    bootstrap over these items. `beyond_threshold`: whether necessity moved by at least the
    paper's robustness threshold, `yes` or `no`; empty for the other measures.
    """
    ways = {tuple(way.values()): (way, same) for way, same in WAYS.of(records)}
    differences: list[dict[str, Any]] = []
    for way, changed in ways.values():
        base, colon, variant = way["task"].partition(":")
        _, standard = ways.get(tuple((way | {"task": base}).values()), (way, []))
        before, after = (
            dict(zip((r["item"] for r in same), _counts(same), strict=True))
            for same in (standard, changed)
        )
        both = [item for item in before if colon and item in after]
        if not both:
            continue
        counts = np.array([before[item] + after[item] for item in both])
        rng = np.random.default_rng(analysis.seed)
        draws = _shares(stats.resampled_totals(counts, rng, analysis.resamples))
        values = _shares(counts.sum(axis=0, keepdims=True))[0]
        for name, (one, other), of_draws in zip(
            MEASURES, values, draws.swapaxes(0, 1), strict=True
        ):
            bounds = stats.percentiles(of_draws[:, 1] - of_draws[:, 0])
            difference = Estimate(other - one, *bounds, len(both))
            beyond = "yes" if abs(difference.value) >= analysis.taxonomy.robustness else "no"
            differences.append(
                way
                | {"task": base, "variant": variant, "measure": name, "n": len(both)}
                | {"standard": one, "changed": other}
                | columns("difference", difference)
                | {"beyond_threshold": beyond if name == "necessity" else ""}
            )
    names = [*_NAMES, *with_interval("difference"), "beyond_threshold"]
    return pd.DataFrame(differences, columns=names)


def _counts(same: Sequence[Record]) -> list[list[int]]:
    """Of each record, of each of `MEASURES`, what is counted, and of how many."""
    return [
        [*steps, bool(right := r.get("correct")), right is not None, r["n_steps"], 1]
        for r, steps in zip(same, step_counts(same).tolist(), strict=True)
    ]


def _shares(totals: np.ndarray) -> np.ndarray:
    """(draws, measures, 2): each measure under either prompt."""
    shares = stats.over(totals[:, 0::2], totals[:, 1::2])
    return shares.reshape(len(totals), 2, len(MEASURES)).swapaxes(1, 2)
