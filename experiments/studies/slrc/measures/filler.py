"""Filler tokens in a step's place against removal of its text, over items and by place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from faithscope.experiments.analysis.measure import Measure, OfItem, by_step
from faithscope.experiments.analysis.page import Section
from faithscope.experiments.analysis.picture import Picture, legend_above
from faithscope.experiments.analysis.plots import (
    BLUE,
    GREEN,
    ORANGE,
    along_reasoning,
    panels,
    share_ticks,
)
from faithscope.experiments.analysis.records import Record
from faithscope.experiments.analysis.tidy import (
    item_means,
    mean,
    mean_present,
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

KINDS = ("", "prefix_", "removed_")
OF_STEPS = {
    f"{kind}{name}": f"{kind}{field}"
    for kind in KINDS
    for name, field in (("flip_rate", "flips"), ("tv", "tv"), ("log_odds", "log_odds"))
}
"""Column -> the record's list of it, a value per step."""
OF_WHOLE = {"whole_flip_rate": "whole_flips", "whole_tv": "whole_tv"}
OF_WHOLE |= {"whole_log_odds": "whole_log_odds"}
LINES = {
    "tv": (BLUE, "o", "this step filled"),
    "removed_tv": (ORANGE, "s", "this step removed"),
    "prefix_tv": (GREEN, "^", "all steps up to it filled"),
}


def filler_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """Means over items, by filler, with bootstrap intervals; see `probes.filler`.

    `flip_rate`, `tv` (total variation) and `log_odds` (drop, nats) are of a step filled,
    `prefix_…` of all up to its end, `removed_…` of its removal, means over an item's steps first;
    `whole_…` of the whole reasoning. `beyond_filler`: `removed_flip_rate` minus `flip_rate`, what
    removal claims and filler does not bear out. `flips_within_floor`: share of the flips by no
    more than their item's noise floor.
    """
    found = []
    for place, same in _groups(records):
        row: dict[str, Any] = place | {"n": len(same), "n_steps": sum(r["n_steps"] for r in same)}
        scores = {name: [of(r) for r in same] for name, of in _SCORES.items()}
        row |= item_means(scores, seed=seed, resamples=resamples)
        row["flips_within_floor"] = share_within_floor(same, "")
        row["removed_flips_within_floor"] = share_within_floor(same, "removed_")
        found.append(row | mass_columns(same, seed=seed, resamples=resamples))
    names = ["model", "task", "filler", "n", "n_steps", *with_interval(*_SCORES)]
    names += ["flips_within_floor", "removed_flips_within_floor", *MASS_COLUMNS]
    return pd.DataFrame(found, columns=names)


def filler_by_step_table(records: Iterable[Record], seed: int, resamples: int) -> pd.DataFrame:
    """The same by relative place of the step; see `by_place_table`."""
    key = ("model", "task", "filler")
    return by_place_table(_groups(records), key, OF_STEPS, seed, resamples)


def _groups(records: Iterable[Record]) -> list[tuple[dict[str, Any], list[Record]]]:
    """By model, task and filler, in the order in which they were asked."""
    found = []
    for (model, task), same in of_probe(records, "filler"):
        for name in dict.fromkeys(r["variant"] for r in same):
            mine = [r for r in same if r["variant"] == name]
            found.append(({"model": model, "task": task, "filler": name}, mine))
    return found


def _of(field: str) -> Callable[[Record], float | None]:
    return lambda r: mean_present(r[field])


def _whole(field: str) -> Callable[[Record], float | None]:
    return lambda r: None if r[field] is None else float(r[field])


_SCORES: dict[str, Callable[[Record], float | None]] = {
    **{name: _of(field) for name, field in OF_STEPS.items()},
    **{name: _whole(field) for name, field in OF_WHOLE.items()},
    "beyond_filler": lambda r: mean(r["removed_flips"]) - mean(r["flips"]),
}


def by_place(ax: Axes, table: pd.DataFrame) -> Axes:
    """Total variation by place of the step, of one model and task: mean of its fillers."""
    places = sorted(set(table["position"]))
    for name, (colour, marker, label) in LINES.items():
        line = [mean(where(table, position=x)[name].tolist()) for x in places]
        ax.plot(places, line, color=colour, marker=marker, ms=3, lw=1.3, label=label)
    share_ticks(ax.yaxis)
    ax.set_ylim(-0.03, 1.03)
    return along_reasoning(ax)


def filler_picture(by_step: pd.DataFrame) -> Picture:
    """One panel per model and task."""
    figure = None
    if len(by_step):
        figure, axes = panels(by_step, by_place, across=3, width=2.8, height=2.1)
        figure.supxlabel("place of the step in the reasoning", fontsize=9)
        figure.supylabel("probability moved", fontsize=9)
        legend_above(figure, axes[0, 0])
    return Picture(
        "filler",
        "Missed for what it says, or for its place?",
        "How far the answer distribution moves when a step's tokens are replaced by as many that "
        "say nothing, when its text is removed, and when all steps up to it are replaced: total "
        "variation, mean over items and fillers. Where removal lies above filler, the hole in the "
        "text moved the answer; where filler lies above removal, the filler may have.",
        by_step,
        figure,
        "No item was measured.",
    )


def _over_fillers(score: Callable[[Record], float | None]) -> Callable[[OfItem], float | None]:
    return lambda records: mean_present([score(r) for r in records])


def _credit(field: str) -> Callable[[OfItem], dict[int, float]]:
    """Of each step, the mean over fillers."""

    def read(records: OfItem) -> dict[int, float]:
        each = [by_step(r, r[field]) for r in records]
        return {
            s: mean([c[s] for c in each if s in c])
            for s in dict.fromkeys(k for c in each for k in c)
        }

    return read


def _calls(records: OfItem) -> int:
    return 1 + len(records) * records[0]["n_steps"]


_FILLED = ("filled", "flips", "tv", "log_odds", "prefix", "prefix_flips", "prefix_tv")
_FILLED += ("prefix_log_odds", "removed", "removed_flips", "removed_tv", "removed_log_odds")
_ROWS = per_step(*_FILLED)
SLICE = Slice(
    "filler",
    Section(
        "filler",
        "Filler tokens",
        "A step's tokens are replaced by as many that say nothing, and so are all steps up to it "
        "and the whole reasoning: no hole in the text, and every other token where it was. Beside "
        "it, in the same pack, the step's text removed. A step that flips the answer when it is "
        "removed but not when it is filled was missed as text, not for what it says.",
    ),
    (
        Table(
            "filler",
            lambda records, a: filler_table(records, a.seed, a.resamples),
            "Filler tokens in a step's place against its removal",
        ),
        Table(
            "filler_by_step",
            lambda records, a: filler_by_step_table(records, a.seed, a.resamples),
            "Filler and removal by relative place of the step",
            folded="By place of the step",
            draw=filler_picture,
        ),
    ),
    (
        Frame(
            "filler",
            "A row per item, filler and step: the step filled, all up to it filled, it removed.",
            ("filler", "position", "step", "answer", *_FILLED),
            lambda r: [{"filler": r["variant"]} | row for row in _ROWS(r)],
        ),
    ),
    (
        *(
            Measure(
                f"filler_{name}",
                "filler",
                "logit",
                _over_fillers(_of(name)),
                _calls,
                share=name != "log_odds",
                steps=_credit(name),
                in_short="filler tokens in a step's place" if name == "tv" else "",
            )
            for name in ("flips", "tv", "log_odds")
        ),
        Measure(
            "filler_whole_tv",
            "filler",
            "logit",
            _over_fillers(_whole("whole_tv")),
            lambda records: 1 + len(records),
            share=True,
        ),
    ),
    {
        "prefix_flip_rate": "answer changed, filled up to it",
        "prefix_tv": "total variation, filled up to it",
        "prefix_log_odds": "log-odds drop, filled up to it",
        "whole_flip_rate": "answer changed, all filled",
        "whole_tv": "total variation, all filled",
        "whole_log_odds": "log-odds drop, all filled",
        "beyond_filler": "removed minus filled",
    },
    reasons={"filler_not_writable": "the tokenizer cannot write the filler"},
)
