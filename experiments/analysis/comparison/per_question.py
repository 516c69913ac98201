"""One row per question in place of one per sample of it: the scores of its chains, averaged.

A rate over k samples, such as how often a cue is followed, is a property of a question. Measures
are then compared by what they say of a question: the mean score of its chains by one model. A label
is that of most of its chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from faithscope.experiments.analysis.comparison.join import KEY, Joined
from faithscope.experiments.analysis.comparison.scores import COSTS, digest
from faithscope.experiments.analysis.tidy import groups, keep, only
from faithscope.interp.errors import UserError

DIVIDED = "half of the chains have the label"
"""Why a question has no label: as many of its chains have it as not."""
_MEANS = ("n_steps", "n_tokens", "correct", "settled", "cut")
Names = Mapping[tuple[str, ...], tuple[str, ...]]


def per(joined: Joined, unit: Literal["chain", "question"]) -> Joined:
    """The joined scores with a row per unit of comparison (`ComparisonConfig.per`).

    Raises:
        UserError: as `per_question`.
    """
    return joined if unit == "chain" else per_question(joined)


def per_question(joined: Joined) -> Joined:
    """The joined scores with one row for all chains by one model that are samples of a question.

    Chains of questions that were answered once stay as they are. Scores of steps are those of such
    chains alone: the steps of two chains are not the same steps.

    Raises:
        UserError: no chain is a sample of a question.
    """
    traces = joined.traces
    sampled = traces["asked"] != ""
    if not any(sampled):
        raise UserError(
            "per: question: no chain of these runs is one of several samples of a question; set "
            "per to chain, or give runs with generation.samples or chains with a column sample"
        )
    names = _names(keep(traces, sampled))
    by = traces.assign(**_renamed(traces, names)).groupby(list(KEY), sort=True)
    means = pd.DataFrame(by[list(_MEANS)].mean())
    rest = pd.DataFrame(by[[c for c in traces.columns if c not in (*KEY, *_MEANS)]].first())
    of_questions = rest.join(means).reset_index()
    # digests of one chain's ids and text are not those of several
    several = of_questions["asked"] != ""
    of_questions.loc[several, ["ids", "text", "given", "excluded"]] = ""
    single = np.array([key not in names for key in _keys(joined.steps)], dtype=bool)
    return replace(
        joined,
        items=_items(joined.items, names),
        steps=keep(joined.steps, single).reset_index(drop=True),
        traces=only(of_questions, list(traces.columns)),
        features={name: _features(table, names) for name, table in joined.features.items()},
        origins={own: names.get(key, key) for own, key in joined.origins.items()},
    )


def _keys(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return [tuple(map(str, key)) for key in only(frame, KEY).to_numpy(dtype=object).tolist()]


def _names(samples: pd.DataFrame) -> Names:
    """`KEY` of each chain -> `KEY` of its question."""
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for asked, of in groups(samples, ("dataset", "task", "asked", "model")):
        chains = _keys(of)
        place = (*map(str, asked.values()), digest(sorted(k[-1] for k in chains)))
        names |= dict.fromkeys(chains, place)
    return names


def _renamed(frame: pd.DataFrame, names: Names) -> dict[str, list[str]]:
    keys = [names.get(key, key) for key in _keys(frame)]
    return {name: [key[i] for key in keys] for i, name in enumerate(KEY)}


def _items(items: pd.DataFrame, names: Names) -> pd.DataFrame:
    frame = items.assign(**_renamed(items, names))
    by = frame.groupby([*KEY, "measure"], sort=False)
    numbers = ["value", *COSTS]
    # the reason, too, is that of the first chain: it stays where no chain has a value
    rest = [c for c in frame.columns if c not in (*KEY, "measure", *numbers)]
    table = pd.DataFrame(by[rest].first()).join(pd.DataFrame(by[numbers].mean())).reset_index()
    value = table["value"]
    asked = set(names.values())
    label = (table["family"] == "label") & np.array([k in asked for k in _keys(table)])
    divided = label & (value == 0.5)
    most = label & (value > 0) & (value < 1) & ~divided
    missing = table["missing"].where(value.isna(), "").mask(divided, DIVIDED)
    value = value.mask(most, (value > 0.5).astype(float)).mask(divided)
    return only(table.assign(value=value, missing=missing), list(items.columns))


def _features(table: pd.DataFrame, names: Names) -> pd.DataFrame:
    keys = [names.get(tuple(map(str, key)), tuple(key)) for key in table.index]
    index = pd.MultiIndex.from_tuples(keys, names=list(KEY))
    by = table.set_axis(index, axis=0).groupby(level=list(KEY), sort=False)
    return pd.DataFrame(by.mean())
