"""Graded effects of single steps over items: graded necessity, NLDD, TTS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis import stats
from faithscope.experiments.analysis.measure import Measure, OfItem, calls, listed, value
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    along_reasoning,
    panels,
    share_ticks,
)
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.stats import Estimate
from faithscope.experiments.analysis.tidy import columns, item_means, present, with_interval
from faithscope.experiments.studies.slrc.measures.slice import (
    Frame,
    Slice,
    Table,
    per_step,
)
from faithscope.experiments.studies.slrc.tables.by_place import by_place_table
from faithscope.experiments.studies.slrc.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.studies.slrc.tables.outcomes import of_probe, share_within_floor
from faithscope.probes.causal_effects import STEP_MEASURES

_FLIPPED = ("removed", "corrupted")
MEDIANS = ("nldd", "nldd_own")
"""A lead that was all but a tie is divided by: means of these follow a few items."""


def causal_effects_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items of their steps' means, with bootstrap intervals; see the probe.

    Log-odds are in nats; NLDD is a fraction (1: the whole lead is lost), unbounded on either
    side, so its median over items is here too; all else is in [0, 1]. `n_corruptible` counts
    the steps in which there is something to corrupt, `n_tts` those that have an earlier one
    with it besides, `n_gold` the items with a right answer among their options.
    `…_flips_within_floor`: share of the flips by no more than their item's noise floor.
    """
    found = []
    for (model, task), same in of_probe(records, "causal_effects"):
        row: dict[str, Any] = {"model": model, "task": task, "n": len(same)}
        means = {name: [r[f"mean_{name}"] for r in same] for name in STEP_MEASURES}
        row |= item_means(means, seed=seed, resamples=resamples)
        for name in MEDIANS:
            values = present(r[f"mean_{name}"] for r in same)
            row |= columns(f"{name}_median", _median(values, seed, resamples))
        for kind in _FLIPPED:
            row[f"{kind}_flips_within_floor"] = share_within_floor(same, f"{kind}_")
        row |= mass_columns(same, seed=seed, resamples=resamples)
        row["n_steps"] = sum(r["n_steps"] for r in same)
        row["n_corruptible"] = sum(r["corrupt_excluded"].count(None) for r in same)
        row["n_tts"] = sum(r["tts_excluded"].count(None) for r in same)
        row["n_gold"] = sum(r["lead"] is not None for r in same)
        found.append(row)
    medians = [f"{name}_median" for name in MEDIANS]
    counts = ["n_steps", "n_corruptible", "n_tts", "n_gold"]
    counts += [f"{kind}_flips_within_floor" for kind in _FLIPPED]
    names = ["model", "task", "n", *with_interval(*STEP_MEASURES, *medians), *counts]
    names += MASS_COLUMNS
    return pd.DataFrame(found, columns=names)


def causal_effects_by_step_table(
    records: Iterable[Record], seed: int, resamples: int
) -> pd.DataFrame:
    """As `causal_effects_table`, by the relative place of the step.

    Step i of T stands at (i - 1/2) / T; `position` is the middle of the fifth it falls in. An
    item counts once in a fifth, with the mean of its steps there.
    """
    groups = (
        ({"model": model, "task": task}, same)
        for (model, task), same in of_probe(records, "causal_effects")
    )
    fields = {name: name for name in STEP_MEASURES}
    return by_place_table(groups, ("model", "task"), fields, seed, resamples)


def _median(values: Sequence[float], seed: int, resamples: int) -> Estimate:
    kept = np.array(values, dtype=float)[:, None]
    found = stats.bootstrapped(
        kept, lambda drawn: np.median(drawn, axis=0), seed=seed, resamples=resamples
    )
    return found[0] if found else stats.NOTHING


LINES = {
    "removed_tv": (BLUE, "o", "removed: total variation"),
    "corrupted_tv": (ORANGE, "s", "corrupted, later text frozen: total variation"),
    "tts": (GREEN, "^", "true-thinking score"),
    "tts_intact": (PURPLE, "D", "true-thinking score, own context alone"),
}
"""The effects that are shares of probability; log-odds and NLDD have another scale."""


def effects_by_place(ax: Axes, table: pd.DataFrame) -> Axes:
    """Mean effect of a step by its relative place, of one model and task."""
    for i, (name, (colour, marker, label)) in enumerate(LINES.items()):
        line = table.dropna(subset=[name])
        # a little apart, or lines that say the same would hide each other
        x = line["position"].to_numpy() + 0.015 * (i - 1.5)
        ax.plot(x, line[name], color=colour, marker=marker, ms=3, lw=1.3, label=label)
        low, high = line[f"{name}_low"], line[f"{name}_high"]
        ax.fill_between(x, low, high, color=colour, alpha=0.12, lw=0)
    share_ticks(ax.yaxis)
    ax.set_ylim(-0.03, 1.03)
    return along_reasoning(ax)


def causal_effects_picture(by_step: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(by_step):
        figure, axes = panels(by_step, effects_by_place, across=3, width=2.8, height=2.1)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
        figure.supylabel("probability moved", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "causal_effects",
        "How far does a step move the answer?",
        "Probability that an edit of one step moves, by the relative place of the step, mean "
        "over items with 95 % bootstrap intervals. Total variation is read after the whole "
        "reasoning, the true-thinking score right after the step; a step that is read there "
        "may be overruled by what follows. The first step has no context to perturb, hence no "
        "true-thinking score but the half in its own context.",
        by_step,
        figure,
        "No item was measured.",
    )


def _asked(field: str, each: int, fixed: int = 1) -> Callable[[OfItem], int]:
    """So many texts for every step that a list has a value of, beside the reasoning as written."""
    return lambda records: fixed + each * len(present(records[0][field]))


_IN_SHORT = {
    "graded_necessity": "graded necessity: log-odds lost by removal",
    "nldd": "NLDD",
    "tts": "TTS",
}


def _of_effects(name: str, forwards: Any, **more: Any) -> Measure:
    score, steps = value(f"mean_{name}"), listed(name)
    words = _IN_SHORT.get(name, "")
    return Measure(
        name, "causal_effects", "logit", score, forwards, steps=steps, in_short=words, **more
    )


OF_CAUSAL_EFFECTS = (
    # These two are the removals of SLRC's scored reading, for runs that do not ask SLRC.
    _of_effects("graded_necessity", calls(1, 1)),
    _of_effects("removed_tv", calls(1, 1), share=True),
    *(
        _of_effects(name, _asked(name, 1))
        for name in ("nldd", "nldd_own", "nldd_truncated", "nldd_own_truncated")
    ),
    _of_effects("tts", _asked("tts", 4, fixed=0), share=True),
    _of_effects("tts_intact", _asked("tts_intact", 2, fixed=0), share=True),
    _of_effects("tts_perturbed", _asked("tts_perturbed", 2, fixed=0), share=True),
)


_OF_A_STEP = ("corruption_rule", *STEP_MEASURES, "corrupt_excluded", "tts_excluded")

SLICE = Slice(
    "causal_effects",
    Section(
        "effects",
        "Step by step, by degrees",
        "What an edit of one step takes from the answer, where SLRC only asks whether the answer "
        "changed. Graded necessity is the log-odds (nats) that removing the step costs. NLDD is "
        "the share of an answer’s lead over its best rival that is lost when the step is "
        "corrupted and later text stays: of the right answer, and of the model’s own; 1 is a tie, "
        "more is a lead for the rival, and “truncated” lets the reasoning end with the corrupted "
        "step. The true-thinking score (TTS) asks right after the step, in its own and in a "
        "corrupted context.",
    ),
    (
        Table(
            "causal_effects",
            lambda records, a: causal_effects_table(records, a.seed, a.resamples),
            "Graded effects of the steps, mean over items",
        ),
        Table(
            "causal_effects_by_step",
            lambda records, a: causal_effects_by_step_table(records, a.seed, a.resamples),
            "Graded effects by place of the step",
            folded="By place in the reasoning",
            draw=causal_effects_picture,
        ),
    ),
    (
        Frame(
            "causal_effects",
            "A row per item and step: graded necessity, NLDD, TTS, and why one of them is not.",
            ("position", "step", "answer", *_OF_A_STEP),
            per_step(*_OF_A_STEP),
        ),
    ),
    OF_CAUSAL_EFFECTS,
    {
        "graded_necessity": "graded necessity (nats)",
        "removed_tv": "total variation, removed",
        "removed_flips": "answer changed, removed",
        "corrupted_log_odds": "log-odds drop, corrupted",
        "corrupted_tv": "total variation, corrupted",
        "corrupted_flips": "answer changed, corrupted",
        "nldd": "NLDD, right answer",
        "nldd_own": "NLDD, own answer",
        "nldd_truncated": "NLDD, right answer, truncated",
        "nldd_own_truncated": "NLDD, own answer, truncated",
        "nldd_median": "NLDD, right answer, median",
        "nldd_own_median": "NLDD, own answer, median",
        "tts": "TTS",
        "tts_intact": "TTS, own context",
        "tts_perturbed": "TTS, perturbed context",
        "n_corruptible": "steps that can be corrupted",
        "n_tts": "steps with TTS",
        "n_gold": "items with a right answer",
        "removed_flips_within_floor": "within the floor, removed",
        "corrupted_flips_within_floor": "within the floor, corrupted",
    },
)
