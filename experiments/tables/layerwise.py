"""The layer-wise probes of SLRC, section 2.7, over items: rigidity map and information flow.

Layers are 1..L and depth is layer / L. Intervals are percentile bootstraps over items, those
of shares Wilson's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from faithscope.experiments.tables import stats
from faithscope.experiments.tables.outcomes import Record
from faithscope.experiments.tables.stats import NOTHING, Estimate
from faithscope.experiments.tables.tidy import columns, with_interval

BY_DEPTH = (25, 50, 75)
"""Percent of the layers by which items are counted as stable."""
_PAIR = ["model", "task"]


def rigidity_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task and lens: the stable layer over items.

    `stable_layer` and `depth` are means, `median_layer` and `median_depth` medians;
    `stable_by_25`: the share of items whose stable layer is at most at 25 % depth.
    `top_is_option`: the share whose first token begins an answer. `option_*`: the same among
    the answers alone, over the `n_options` items where that could be read.
    """
    made = []
    for key, mine in _groups(records, "rigidity", "lens"):
        layers, found = mine[0]["n_layers"], _stable(mine, "stable_layer")
        among = _stable(mine, "option_stable_layer")
        mean, median = _spread(found, seed, resamples)
        option_mean, _ = _spread(among, seed, resamples)
        told = [r["top_is_option"] for r in mine if r["top_is_option"] is not None]
        row = key | {"n": len(mine), "n_layers": layers}
        row |= columns("stable_layer", mean) | columns("median_layer", median)
        row |= columns("depth", _over(mean, layers))
        row |= columns("median_depth", _over(median, layers))
        for percent in BY_DEPTH:
            by = [100 * int(x) <= percent * layers for x in found]
            row |= columns(f"stable_by_{percent}", stats.share(by))
        row |= columns("top_is_option", stats.share(told)) | {"n_options": len(among)}
        row |= columns("option_layer", option_mean)
        made.append(row | columns("option_depth", _over(option_mean, layers)))
    names = ["stable_layer", "median_layer", "depth", "median_depth"]
    names += [*(f"stable_by_{p}" for p in BY_DEPTH), "top_is_option"]
    ordered = [*_PAIR, "lens", "n", "n_layers", *with_interval(*names), "n_options"]
    ordered += with_interval("option_layer", "option_depth")
    return pd.DataFrame(made, columns=ordered)


def rigidity_by_layer_table(
    records: Iterable[Record], *, seed: int, resamples: int
) -> pd.DataFrame:
    """A row per model, task, lens and layer: the share of items stable from there on.

    `log_prob`: the mean log-probability (nats) that the lens gives there to the token which
    the model itself puts first.
    """
    made = []
    for key, mine in _groups(records, "rigidity", "lens"):
        found, among = _stable(mine, "stable_layer"), _stable(mine, "option_stable_layer")
        said = stats.bootstrapped(
            np.array([r["log_prob"] for r in mine]), _mean, seed=seed, resamples=resamples
        )
        for i, log_prob in enumerate(said):
            layer = i + 1
            row = key | {"layer": layer, "depth": layer / len(said), "n": len(mine)}
            row |= columns("stable", stats.share([bool(x <= layer) for x in found]))
            row |= columns("log_prob", log_prob) | {"n_options": len(among)}
            among_by = stats.share([bool(x <= layer) for x in among])
            made.append(row | columns("option_stable", among_by))
    ordered = [*_PAIR, "lens", "layer", "depth", "n", *with_interval("stable", "log_prob")]
    return pd.DataFrame(made, columns=[*ordered, "n_options", *with_interval("option_stable")])


def flow_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model and task: where the cosine of reasoning and answer token peaks.

    `peak_*` are those of the mean curve over items, as the paper's one number per model
    seems to be; `item_peak_*` the means of the items' own peaks. The interval of a peak's
    layer is that of the drawn curves' peaks.
    """
    made = []
    for key, mine in _groups(records, "flow"):
        boot = partial(stats.bootstrapped, seed=seed, resamples=resamples)
        layers = mine[0]["n_layers"]
        layer, value = boot(np.array([r["cosine"] for r in mine]), _peak)
        own = np.array([[r["peak_layer"], r["peak_value"]] for r in mine], dtype=float)
        own_layer, own_value = boot(own, _mean)
        row = key | {"n": len(mine), "n_layers": layers}
        row |= columns("peak_layer", layer) | columns("peak_depth", _over(layer, layers))
        row |= columns("peak_value", value) | columns("item_peak_layer", own_layer)
        row |= columns("item_peak_depth", _over(own_layer, layers))
        made.append(row | columns("item_peak_value", own_value))
    names = [f"{whose}peak_{what}" for whose in ("", "item_") for what in _PEAK]
    return pd.DataFrame(made, columns=[*_PAIR, "n", "n_layers", *with_interval(*names)])


_PEAK = ("layer", "depth", "value")


def flow_by_layer_table(records: Iterable[Record], *, seed: int, resamples: int) -> pd.DataFrame:
    """A row per model, task and layer: mean cosine over items.

    `cosine` is of the reasoning's mean state, `token_cosine` the mean over its tokens' own.
    """
    made = []
    for key, mine in _groups(records, "flow"):
        boot = partial(stats.bootstrapped, seed=seed, resamples=resamples)
        whole = boot(np.array([r["cosine"] for r in mine]), _mean)
        tokens = boot(np.array([r["token_cosine"] for r in mine]), _mean)
        for i, (one, other) in enumerate(zip(whole, tokens, strict=True)):
            row = key | {"layer": i + 1, "depth": (i + 1) / len(whole), "n": len(mine)}
            made.append(row | columns("cosine", one) | columns("token_cosine", other))
    ordered = [*_PAIR, "layer", "depth", "n", *with_interval("cosine", "token_cosine")]
    return pd.DataFrame(made, columns=ordered)


def _groups(
    records: Iterable[Record], probe: str, *further: str
) -> list[tuple[dict[str, Any], list[Record]]]:
    """The records of a probe by model, task and what else is named, in order of names.

    Raises:
        ValueError: a model with two numbers of layers: another stood under its name.
    """
    found: dict[tuple[str, ...], list[Record]] = {}
    for r in records:
        if r["probe"] == probe and not r.get("excluded"):
            key = (r["model"], r["dataset"], *(r[name] for name in further))
            found.setdefault(key, []).append(r)
    for key, mine in found.items():
        depths = {r["n_layers"] for r in mine}
        if len(depths) > 1:
            raise ValueError(
                f"{probe} of {key[0]} on {key[1]}: records of {sorted(depths)} layers; the records "
                "of two models are mixed: run again under another name"
            )
    names = [*_PAIR, *further]
    return [(dict(zip(names, key, strict=True)), found[key]) for key in sorted(found)]


def _stable(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([r[name] for r in records if r[name] is not None], dtype=float)


def _spread(values: np.ndarray, seed: int, resamples: int) -> tuple[Estimate, Estimate]:
    """Mean and median."""
    if not len(values):
        return NOTHING, NOTHING

    def both(x: np.ndarray) -> np.ndarray:
        return np.array([x.mean(), np.median(x)])

    mean, median = stats.bootstrapped(values[:, None], both, seed=seed, resamples=resamples)
    return mean, median


def _mean(values: np.ndarray) -> np.ndarray:
    return values.mean(0)


def _peak(curves: np.ndarray) -> np.ndarray:
    """Layer (from 1) and height of the mean curve's peak."""
    curve = curves.mean(0)
    return np.array([1 + curve.argmax(), curve.max()])


def _over(estimate: Estimate, layers: int) -> Estimate:
    """A layer as a depth."""
    return Estimate(
        estimate.value / layers, estimate.low / layers, estimate.high / layers, estimate.n
    )
