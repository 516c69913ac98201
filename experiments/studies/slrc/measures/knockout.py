"""Knockout of a step against removal of its text, over items and by place of the step.

Every number is a mean over items of what the item's steps give, so that an item with many
steps counts once; intervals are percentile bootstraps over items.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.measure import Measure, calls, listed, mean_of
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import BLUE, GREY, ORANGE, panels, share_ticks
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import (
    item_means,
    mean_present,
    rows,
    where,
    with_interval,
)
from faithscope.experiments.studies.slrc.measures.slice import (
    Frame,
    Slice,
    Table,
    per_step,
)
from faithscope.experiments.studies.slrc.tables.by_place import by_place_table
from faithscope.experiments.studies.slrc.tables.label_mass import MASS_COLUMNS, mass_columns
from faithscope.experiments.studies.slrc.tables.outcomes import of_probe, share_within_floor

KNOCKED = ("knocked", "flips", "tv", "log_odds")
KNOCKED += ("removed", "removed_flips", "removed_tv", "removed_log_odds")
"""What a record has a value of for every step."""
MEASURES = {
    "flip_rate": "flips",
    "tv": "tv",
    "log_odds": "log_odds",
    "removed_flip_rate": "removed_flips",
    "removed_tv": "removed_tv",
    "removed_log_odds": "removed_log_odds",
}
_GROUP = ("queries", "window", "first_layer", "last_layer")
_ORDER = ("later", "answer")


def knockout_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task, kind of query and window of layers.

    `flip_rate`, `tv` (total variation) and `log_odds` (drop, nats) are of the knockout,
    `removed_…` of the removal of the same steps. `agreement`: share of steps on which both
    change the answer, or neither does. `beyond_knockout`: `removed_flip_rate` minus
    `flip_rate`, what removal claims and knockout does not bear out. `flips_within_floor`: share
    of the flips by no more than their item's noise floor.
    """
    found = []
    for place, same in _groups(records):
        row: dict[str, Any] = place | {"n": len(same), "n_steps": sum(r["n_steps"] for r in same)}
        scores = {name: [of(r) for r in same] for name, of in _SCORES.items()}
        row |= item_means(scores, seed=seed, resamples=resamples)
        for kind in ("", "removed_"):
            row[f"{kind}flips_within_floor"] = share_within_floor(same, kind)
        found.append(row | mass_columns(same, seed=seed, resamples=resamples))
    names = ["model", "task", *_GROUP, "n", "n_steps", *with_interval(*_SCORES)]
    names += ["flips_within_floor", "removed_flips_within_floor", *MASS_COLUMNS]
    return pd.DataFrame(found, columns=names)


def knockout_by_step_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same measures by relative place of the step; see `by_place_table`."""
    key = ("model", "task", *_GROUP)
    return by_place_table(_groups(records), key, MEASURES, seed, resamples)


def _groups(records: Iterable[Record]) -> list[tuple[dict[str, Any], list[Record]]]:
    """Records of steps by model, task, kind of query and window, all layers first.

    Raises:
        ValueError: a window of two extents: another model stood under this one's name.
    """
    found = []
    for (model, task), same in of_probe(records, "knockout"):
        kept = sorted((r for r in same if "window" in r), key=_rank)
        for key, of in itertools.groupby(kept, key=_rank):
            mine = list(of)
            place = {"model": model, "task": task} | {k: mine[0][k] for k in _GROUP}
            if len({r["n_layers"] for r in mine}) > 1:
                raise ValueError(
                    f"knockout of {model} on {task}: records of {key} with different numbers of "
                    "layers; the records of two models are mixed: run again under another name"
                )
            found.append((place, mine))
    return found


def _rank(record: Record) -> tuple[int, bool, int, str]:
    window = record["window"]
    return _ORDER.index(record["queries"]), window != "all", record["first_layer"], window


def _of(field: str) -> Callable[[Record], float | None]:
    return lambda r: mean_present(r[field])


def _agreement(r: Record) -> float | None:
    return mean_present([a == b for a, b in zip(r["flips"], r["removed_flips"], strict=True)])


def _beyond(r: Record) -> float | None:
    pairs = zip(r["removed_flips"], r["flips"], strict=True)
    return mean_present([float(a) - float(b) for a, b in pairs])


_SCORES: dict[str, Callable[[Record], float | None]] = {
    **{name: _of(field) for name, field in MEASURES.items()},
    "beyond_knockout": _beyond,
    "agreement": _agreement,
}


STYLES = {
    "later": (BLUE, "o", "no later token sees the step"),
    "answer": (ORANGE, "D", "only the answer does not see it"),
}
_SMALL, _LARGE = 18, 90


def against_removal(ax: Axes, table: pd.DataFrame) -> Axes:
    """Total variation of either, a point per place of the step: the later, the larger."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
    for queries, (colour, marker, label) in STYLES.items():
        points = rows(where(table, queries=queries))
        if not points:
            continue
        ax.scatter(
            [r["removed_tv"] for r in points],
            [r["tv"] for r in points],
            [_SMALL + (_LARGE - _SMALL) * r["position"] for r in points],
            color=colour,
            marker=marker,
            alpha=0.65,
            linewidths=0,
            label=label,
        )
    for axis in (ax.xaxis, ax.yaxis):
        share_ticks(axis)
    ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
    ax.grid(color=GREY, alpha=0.25, lw=0.5)
    ax.set_axisbelow(True)
    return ax


def knockout_picture(by_step: pd.DataFrame) -> Picture:
    """One panel per model and task, all layers at once."""
    data = where(by_step, window="all")
    figure = None
    if len(data):
        figure, axes = panels(data, against_removal, across=4, width=2.1, height=2.0)
        figure.supxlabel("total variation, step removed", fontsize=9)
        figure.supylabel("total variation, step knocked out", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "knockout",
        "Removed, or only not looked at?",
        "How far the answer distribution moves when a step's text is removed, and when it stays "
        "but is not attended to in any layer: mean over items, a point for each fifth of the "
        "reasoning, the last the largest. Points far right and at the bottom are steps whose "
        "absence disturbs the model although it does not read them.",
        data,
        figure,
        "No item was measured.",
    )


OF_KNOCKOUT = tuple(
    Measure(
        f"knockout_{queries}_{name}",
        "knockout",
        "internal",
        mean_of(name),
        calls(1, 1),
        where={"variant": f"{queries}.all"},
        share=name != "log_odds",
        steps=listed(name),
        in_short="knockout of a step's edges" if (queries, name) == ("later", "tv") else "",
    )
    for queries in ("later", "answer")
    for name in ("flips", "tv", "log_odds")
)


_KNOCKED = per_step(*KNOCKED)

SLICE = Slice(
    "knockout",
    Section(
        "knockout",
        "Knockout",
        "Later tokens are kept from looking at one step, whose text stays where it is: in all "
        "layers, or in a window of them. “later” are all tokens after the step, the later steps "
        "among them; “answer” only those after the reasoning. Beside it, in the same pack, the "
        "step's text removed. A step that flips the answer when it is removed but not when no one "
        "can look at it was missed as text, not read.",
    ),
    (
        Table(
            "knockout",
            lambda records, a: knockout_table(records, a.seed, a.resamples),
            "Knockout of a step against its removal",
        ),
        Table(
            "knockout_by_step",
            lambda records, a: knockout_by_step_table(records, a.seed, a.resamples),
            "Knockout and removal by relative place of the step",
            folded="By place of the step",
            draw=knockout_picture,
        ),
    ),
    (
        Frame(
            "knockout",
            "A row per item, query, window and step: the step cut off, beside its text removed.",
            (*_GROUP, "position", "step", "answer", *KNOCKED),
            lambda r: (
                [{name: r[name] for name in _GROUP} | row for row in _KNOCKED(r)]
                if "window" in r
                else ()
            ),
        ),
    ),
    OF_KNOCKOUT,
    {
        "tv": "total variation",
        "log_odds": "log-odds drop",
        "removed_flip_rate": "answer changed, removed",
        "removed_tv": "total variation, removed",
        "removed_log_odds": "log-odds drop, removed",
        "beyond_knockout": "removed minus knocked out",
        "removed_flips_within_floor": "within the floor, removed",
    },
    reasons={"no_attention_knockout": "model's attention cannot be cut"},
)
