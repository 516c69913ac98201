"""Measures read inside the model, or by writing there: attention, layers, knockout, patching."""

from __future__ import annotations

from faithscope.experiments.tables.measures.measure import (
    Measure,
    OfItem,
    calls,
    listed,
    mean_of,
    value,
)
from faithscope.experiments.tables.tidy import mean, present


def _shuffled_rows(records: OfItem) -> int | None:
    made = records[0].get("n_shuffles")
    return None if made is None else 1 + made


OF_ATTENTION = (
    Measure(
        "attention_reasoning",
        "attention",
        "internal",
        value("real"),
        calls(1),
        steps=listed("by_step"),
    ),
    Measure("attention_gap", "attention", "internal", value("gap"), _shuffled_rows),
    Measure("attention_gap_drop", "attention", "internal", value("gap_drop"), _shuffled_rows),
)
OF_LAYERS = (
    # Early is rigid; a late peak is integration after the answer was fixed (SLRC, 2.7).
    Measure("rigidity_depth", "rigidity", "internal", value("depth"), calls(1)),
    Measure("rigidity_option_depth", "rigidity", "internal", value("option_depth"), calls(1)),
    Measure(
        "flow_peak_depth",
        "flow",
        "internal",
        value("peak_depth"),
        calls(1),
        higher_is_faithful=False,
    ),
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
    )
    for queries in ("later", "answer")
    for name in ("flips", "tv", "log_odds")
)


def _restored(records: OfItem) -> dict[int, float]:
    """The most that a patch of any layer gives back, in nats; 0 where there was nothing to."""
    (record,) = records
    credit = {}
    for i, (step, why) in enumerate(zip(record["steps"], record["not_patched"], strict=True)):
        here = present(record["moved"][i :: record["n_steps"]])
        if why == "no_effect":
            credit[step] = 0.0
        elif here:
            credit[step] = max(here, key=abs)
    return credit


def _mean_restored(records: OfItem) -> float | None:
    return mean(list(credit.values())) if (credit := _restored(records)) else None


def _patches(records: OfItem) -> int:
    """Both runs of every step, and each layer's patch of those that were patched."""
    (record,) = records
    layers = len(record["layers"])
    return 1 + len(present(record["difference"])) + record["n_patched"] * layers


OF_PATCHING = tuple(
    Measure(
        f"patching_{place}_{site}",
        "patching",
        "internal",
        _mean_restored,
        _patches,
        where={"variant": f"{place}.{site}.denoise"},
        steps=_restored,
    )
    # not the answer's stream: the last layer's gives all of the difference back
    for place, site in (("step", "residual"), ("answer", "attention"))
)
