"""Comparisons made of numbers: as many traces and measures as wanted, of known disagreement, and
runs of the values that a test gives."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.comparison.join import Joined, join
from faithscope.experiments.analysis.comparison.scores import (
    PLACE,
    Scores,
    frames,
    item_row,
    label_row,
    trace_row,
)
from faithscope.experiments.analysis.explorer.data import Explored
from faithscope.experiments.analysis.html import HtmlTable
from faithscope.experiments.analysis.item_view import Curve, Drawn, HeatMap, Item, ItemView
from faithscope.experiments.analysis.page import Fold, Grid, Verbatim
from faithscope.experiments.analysis.statistics.resampling import Bootstrap

HOW = Bootstrap(0, 200)
NOTHING = {
    "trust": pd.DataFrame(columns=["label", "told"]),
    "families": pd.DataFrame(columns=["family", "other_family", "spearman"]),
    "agreement": pd.DataFrame(
        {k: pd.Series(dtype=bool) for k in ("discovered", "reversed", "one_probe")}
    ).assign(p=math.nan, within=math.nan, tested_as=""),
}
"""Tables of which the page says nothing."""
FAMILIES = ("behavioural", "internal", "judged", "logit")


def places(n: int) -> list[dict[str, str]]:
    """Traces by two models of each question."""
    return [
        dict(
            zip(
                PLACE,
                ("set", ("one", "two")[i // 2 % 2], f"q{i // 2:04}", f"m{i % 2}"),
                strict=True,
            )
        )
        for i in range(n)
    ]


def truth(n: int) -> np.ndarray:
    """How faithful each trace is, from 0 to 1, in an order that its number does not tell."""
    return (np.random.default_rng(7).permutation(n) + 0.5) / n


def planted(n: int) -> tuple[list[int], list[int]]:
    """Twenty traces that the judges say the contrary of, and twenty of which the internal measures
    do; none of them is near the middle."""
    clear = [i for i, faithful in enumerate(truth(n)) if abs(faithful - 0.5) > 0.2]
    return clear[:20], clear[20:40]


def scores(n: int, n_measures: int, words: str, steps: int, hole: float) -> Scores:
    lied, turned = planted(n)
    rng, faithful, at = np.random.default_rng(0), truth(n), places(n)
    items: list[dict[str, Any]] = []
    credits: list[dict[str, Any]] = []
    for m in range(n_measures):
        family = FAMILIES[m % len(FAMILIES)]
        name, higher = f"{family} {m}{words}", m % 3 != 2
        value = faithful + rng.normal(scale=0.01 + 0.1 * (m >= len(FAMILIES)), size=n)
        contrary = {"judged": lied, "internal": turned}.get(family, [])
        value[contrary] = 1 - value[contrary]
        gone = rng.random(n) < hole * (m % 2)
        for i, place in enumerate(at):
            of = None if gone[i] else float(value[i] if higher else -value[i])
            about = {**place, "judge": None, "probe": "made", "variant": "", "seed": 0}
            items.append(item_row(about, name, family, of, higher_is_faithful=higher))
            if m < 8:
                credits += [
                    place
                    | {"measure": name, "family": family, "step": s, "value": float(rng.normal())}
                    | {"higher_is_faithful": True}
                    for s in range(steps)
                ]
    items += [
        label_row(place, f"faithful{words}", float(f > 0.5))
        for place, f in zip(at, faithful, strict=True)
    ]
    traces = [
        trace_row(
            place,
            question=f"{place['item']}{words}",
            reasoning=f"{i}",
            n_steps=steps,
            n_tokens=20 * steps,
            correct=i % 3 > 0,
            settled=(i % 11) / 10,
        )
        for i, place in enumerate(at)
    ]
    return frames(items, traces, credits)


def items(n: int, words: str, steps: int, layers: int) -> Iterator[Item]:
    def view(i: int) -> ItemView:
        text = [
            f" Step {s} of {i}{words} says that so and so is {s * i}, hence on."
            for s in range(steps)
        ]
        table = HtmlTable([f"head{words}", "b"], [False, False], [])
        said = Fold(
            f"judge{words}",
            [Verbatim(f"The judge wrote of {i}{words}: sound."), Grid(table, f"c{words}")],
        )
        about = (f"Question {i // 2}{words}", f"A{words}", f"B{words}")
        return ItemView(f"trace {i}", *about, below=[said], chain=text)

    def drawn(i: int) -> list[Drawn]:
        rng = np.random.default_rng(i)
        x = list(range(0, 20 * steps, 10))
        curve = Curve(
            f"Tracing{words}",
            "tokens",
            f"p{words}",
            x,
            {f"A{words}": rng.random(len(x)).tolist()},
            [f"{words}{k}" for k in x],
        )
        names = [str(k) for k in range(layers)], [str(k + 1) for k in range(steps)]
        heat = HeatMap(
            f"Attention{words}",
            "layer",
            f"step{words}",
            *names,
            rng.random((layers, steps)).tolist(),
        )
        return [curve, heat]

    for i, place in enumerate(places(n)):
        yield Item(partial(view, i), (), partial(dict, place), partial(drawn, i))


def comparison(
    n: int = 120,
    n_measures: int = 8,
    words: str = "",
    steps: int = 4,
    layers: int = 3,
    hole: float = 0.1,
) -> Explored:
    """A comparison of `n` traces; `words` stand in every text that a run could have written."""
    joined = join({f"run{words}": scores(n, n_measures, words, steps, hole)}, None, "text")
    told = {f"run{words}": items(n, words, steps, layers)}
    return Explored(f"made{words}", f"{n} traces{words}.", joined, told)


def run_of(
    values: Mapping[str, tuple[str, Any]],
    *,
    models: Any = ("m",),
    text: str = "",
    label: Any = None,
    rule: float | None = None,
    missing: str = "",
) -> Scores:
    """A run that measured every item: measure -> family and a value per trace, models in turn."""
    n = len(next(iter(values.values()))[1]) // len(models)
    places = [
        {"dataset": "d", "task": "t", "item": f"i{i}", "model": m} for m in models for i in range(n)
    ]
    items = [
        item_row(
            *(place, name, family, value),  # type: ignore[arg-type]
            higher_is_faithful=True,
            forwards=cost,
            rule=rule,
            missing=missing,
        )
        for cost, (name, (family, of)) in enumerate(values.items(), start=1)
        for place, value in zip(places, of, strict=True)
    ]
    if label is not None:
        items += [label_row(p, "faithful", x) for p, x in zip(places, label, strict=True)]
    traces = [
        trace_row(
            place,
            question=f"q{place['item']}",
            reasoning=f"{text}{place['model']}",
            n_steps=3,
            n_tokens=10 + i % 7,
        )
        for i, place in enumerate(places)
    ]
    return frames(items, traces)


def joined_of(values: Mapping[str, tuple[str, Any]], **how: Any) -> Joined:
    return join({"a": run_of(values, **how)}, None, "text")


def records_of(page: str) -> list[dict[str, Any]]:
    """The records that stand in a page, unpacked."""
    chunks: Iterator[str] = (m[1] for m in re.finditer(r'id="records-\d+">([^<]*)<', page))
    unpacked: Sequence[list[dict[str, Any]]]
    unpacked = [json.loads(gzip.decompress(base64.b64decode(chunk))) for chunk in chunks]
    return [record for chunk in unpacked for record in chunk]
