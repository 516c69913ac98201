"""Data of the page `explore.html`: all scores of all traces at once, and what the items of the runs
tell of a trace when a reader opens it."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.colours import FAMILY, FAMILY_NAMES
from faithscope.experiments.analysis.comparison.agreement import DECIMALS, clusters_of
from faithscope.experiments.analysis.comparison.disagreements import KINDS, sides
from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.html import shown
from faithscope.experiments.analysis.item_view import Curve, Item
from faithscope.experiments.analysis.page import fragments
from faithscope.experiments.analysis.statistics.agreement import FEWEST
from faithscope.experiments.analysis.tidy import only, values_of

ENDS = re.compile(r" \(([^()]+)\)$")
"""Text in brackets at the end of a measure's name, such as the judge."""
DIGITS = 4
"""Significant digits of the numbers in curves, heat maps and credits of one trace."""
GREAT = 0.95
"""Quantile of a measure's absolute credits, over all steps, that is drawn in full colour."""
FACETS = ("dataset", "task", "model")


@dataclass(frozen=True)
class Explored:
    """A comparison with all that its page shows."""

    name: str
    lead: str
    joined: Joined
    sources: Mapping[str, Iterable[Item]]
    """Run -> its items, which tell of its traces what scores do not."""

    def __len__(self) -> int:
        return len(self.joined.index)

    @cached_property
    def overview(self) -> dict[str, Any]:
        """All scores of all traces, and the fields that traces are filtered by; lists run over
        traces."""
        joined = self.joined
        traces = joined.traces
        names = _order(joined)
        values = joined.wide().round(DECIMALS)
        return {
            "measures": [
                {"name": self.names[n], "family": _family(f), "higher": bool(h)}
                for n, f, h in _about(joined.measures.loc[names])
            ],
            "labels": [{"name": _text(n)} for n, _, _ in _about(joined.labels)],
            "values": [_numbers(values[name]) for name in names],
            "label_values": [_numbers(values[name]) for name in joined.labels.index],
            "reasons": self._reasons(names),
            "credit_scale": self._scales,
            **{name: _coded(traces[name].astype(str)) for name in (*FACETS, "question")},
            "item": [_text(str(item)) for item in traces["item"]],
            "trace": [str(trace)[:6] for trace in traces["trace"]],
            **{
                name: _numbers(traces[name].astype(float).round(DECIMALS))
                for name in ("correct", "n_steps", "settled")
            },
            "excluded": _coded(traces["excluded"].astype(str)),
            "sides": {name: _numbers(of) for name, of in sides(joined).items()},
            "kinds": [asdict(kind) for kind in KINDS],
        }

    @cached_property
    def shared(self) -> str:
        """The text in brackets that ends all names of measures with brackets, such as the only
        judge; empty if these texts differ, or if without them two names would be equal."""
        measures = {*self.joined.measures.index, *self.joined.steps["measure"]}
        ends = {name: m[1] for name in map(str, measures) if (m := ENDS.search(name))}
        bare = {ENDS.sub("", name) for name in map(str, measures)}
        one = len(set(ends.values())) == 1 and len(ends) > 1 and len(bare) == len(measures)
        return next(iter(ends.values())) if one else ""

    @cached_property
    def names(self) -> dict[str, str]:
        """Measure -> its name on the page, without the bracketed text `shared`."""
        measures = {*self.joined.measures.index, *self.joined.steps["measure"]}
        short = {n: ENDS.sub("", n) if self.shared else n for n in map(str, measures)}
        return {name: _text(of) for name, of in short.items()}

    def detail(self, at: int) -> dict[str, Any]:
        """Everything that the items of the runs tell of one trace."""
        items = self._items.get(at, ())
        views = [item.view() for _, item in items]
        cards = [
            [view.card(), *(card for part in item.parts for card in part.cards())]
            for view, (_, item) in zip(views, items, strict=True)
        ]
        answers = (v.answer for v in views if v.answer is not None)
        golds = (v.gold for v in views if v.gold is not None)
        return {
            "question": next((_text(v.question) for v in views if v.question), ""),
            "answer": next(map(_text, answers), None),
            "gold": next(map(_text, golds), None),
            "steps": [_text(s) for s in max((v.step_texts for v in views), key=len, default=())],
            "credits": self._credits.get(at, []),
            "drawn": [_drawn(one) for _, item in items for one in item.drawn()],
            "told": [
                {"source": _text(source), "html": html}
                for (source, _), html in zip(items, fragments(cards), strict=True)
            ],
        }

    @cached_property
    def _at(self) -> dict[tuple[str, ...], int]:
        """Key of a trace -> its index in the overview."""
        return {key: i for i, key in enumerate(self.joined.index)}

    @cached_property
    def _items(self) -> dict[int, list[tuple[str, Item]]]:
        """Index of a trace -> (run, item) of each run that has items of it."""
        of_trace = defaultdict(list)
        for source, items in self.sources.items():
            for item in items:
                place = tuple(map(str, item.place().values())) if item.place else ()
                if (key := self.joined.origins.get((source, place))) is not None:
                    of_trace[self._at[key]].append((source, item))
        return of_trace

    @cached_property
    def _credits(self) -> dict[int, list[dict[str, Any]]]:
        """Index of a trace -> a row per measure or label with credits of its steps; None for a step
        without credit."""
        steps = self.joined.steps
        by_row: dict[tuple[int, str], dict[int, float]] = defaultdict(dict)
        about = {
            str(name): {
                "measure": self.names[str(name)],
                "family": _family(family),
                "higher": bool(higher),
            }
            for name, family, higher in zip(
                *values_of(steps, "measure", "family", "higher_is_faithful"), strict=True
            )
        }
        keys = zip(*values_of(steps.astype(dict.fromkeys(KEY, str)), *KEY), strict=True)
        of_steps = zip(keys, *values_of(steps, "measure", "step", "value"), strict=True)
        for key, name, step, value in of_steps:
            by_row[self._at[key], str(name)][int(step)] = value
        credits = defaultdict(list)
        for (trace, name), by_step in by_row.items():
            values = _all_rounded([by_step.get(i) for i in range(max(by_step) + 1)])
            credits[trace].append(about[name] | {"values": values})
        return credits

    @property
    def _scales(self) -> dict[str, float]:
        """Measure -> the credit drawn in full colour. One scale for all traces lets a trace whose
        steps have no effect look so."""
        sizes: dict[str, list[float]] = defaultdict(list)
        for name, value in zip(*values_of(self.joined.steps, "measure", "value"), strict=True):
            if not math.isnan(value):
                sizes[self.names[str(name)]].append(abs(value))
        return {k: float(np.quantile(of, GREAT)) or max(of) for k, of in sizes.items()}

    def _reasons(self, names: Sequence[str]) -> dict[str, Any]:
        """Reasons why scores are missing: `words`, and `of`, for each measure and trace, an index
        into them (0 = none)."""
        codes = {"": 0}
        of = [[codes.setdefault(r, len(codes)) for r in self.joined.reasons[n]] for n in names]
        return {"words": [_text(word) for word in codes], "of": of}


def _order(joined: Joined) -> list[str]:
    """Names of measures by family, in each by clusters of agreement; those without correlations
    come last."""
    names = list(joined.measures.index)
    ranked = only(joined.oriented, names).round(DECIMALS)
    rho = ranked.corr("spearman", min_periods=FEWEST).to_numpy(copy=True)
    known = np.flatnonzero((~np.isnan(rho)).sum(axis=0) > 1).tolist()
    order = [known[i] for i in clusters_of(rho[np.ix_(known, known)])]
    clustered = [names[i] for i in (*order, *sorted(set(range(len(names))) - set(order)))]
    families = joined.measures["family"]
    return sorted(clustered, key=lambda name: [*FAMILY, families[name]].index(families[name]))


def _family(name: str) -> str:
    """The name that readers are given of a family of measures."""
    return FAMILY_NAMES.get(name, name)


def _about(measures: pd.DataFrame) -> Iterable[tuple[str, str, bool]]:
    columns = (measures.index, measures["family"], measures["higher_is_faithful"])
    return zip(*columns, strict=True)


def _coded(column: Any) -> dict[str, Any]:
    codes, names = pd.factorize(column, sort=True)
    return {"names": [_text(name) for name in names], "of": codes.tolist()}


def _numbers(column: Any) -> list[float | None]:
    return [None if math.isnan(x) else x for x in column.astype(float).tolist()]


def _rounded(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(f"{x:.{DIGITS}g}")


def _all_rounded(values: Sequence[float | None]) -> list[float | None]:
    """`_rounded` of each value; one call of a formatter for all is twice as fast."""
    if None in values:
        return list(map(_rounded, values))
    texts = (f"%.{DIGITS}g " * len(values) % tuple(values)).split()
    numbers = list(map(float, texts))
    return [*numbers] if all(map(math.isfinite, numbers)) else list(map(_rounded, values))


def _text(text: str) -> str:
    """A text with its control and reordering characters made visible; the page escapes it."""
    return str(shown(text))


def _drawn(one: Any) -> dict[str, Any]:
    about = {f.name: _text(v) for f in fields(one) if isinstance(v := getattr(one, f.name), str)}
    if isinstance(one, Curve):
        lines = [{"name": _text(name), "y": _all_rounded(y)} for name, y in one.lines.items()]
        return about | {"x": list(one.x), "lines": lines, "words": [_text(w) for w in one.words]}
    values = list(map(_all_rounded, one.values))
    names = {k: [_text(name) for name in getattr(one, k)] for k in ("rows", "columns")}
    return about | names | {"values": values}


def to_json(value: Any) -> str:
    """JSON that is safe inside an HTML element; NaN and infinity raise `ValueError`."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
