"""Verdicts and labels of chains that give the numbers that FaithCoT-Bench prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from faithcot_frames import CHAIN, traces

from faithscope.experiments.analysis.published import Cell, Paper
from faithscope.experiments.studies.slrc.detectors.metrics import CHANCE, FITTED, PLAIN
from faithscope.experiments.studies.slrc.detectors.readings import AS_PRINTED, DETECTORS, OURS
from faithscope.experiments.studies.slrc.detectors.results import SCORES

HALF = 0.05
MOST, MOST_OF_HLE = 100, 78
"""Most chains of a model and a data set: 378 queries, of which 100 of each other data set (A.1)."""
LLAMA, QWEN = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct"
GPT, GEMINI = "api:openai/gpt-4o-mini", "api:google/gemini-2.5-flash"
Counts = tuple[int, int, int, int]
"""Chains flagged and unfaithful, flagged and faithful, passed and unfaithful, passed and
faithful."""


def counts_of(kappa: float, accuracy: float, f1: float, most: int) -> Counts | None:
    """The fewest chains whose verdicts have these statistics, in percent and rounded either way;
    None if no verdicts on this many or fewer have them."""
    off = HALF + 1e-9
    for n in range(4, most + 1):
        for wrong in range(n + 1):
            if abs(100 * (1 - wrong / n) - accuracy) > off:
                continue
            hits = np.arange(n - wrong + 1)[:, None]
            missed = np.arange(wrong + 1)
            flagged, unfaithful = hits + wrong - missed, hits + missed
            chance = (flagged * unfaithful + (n - flagged) * (n - unfaithful)) / n**2
            with np.errstate(divide="ignore", invalid="ignore"):
                fits = np.abs(200 * hits / (2 * hits + wrong) - f1) <= off
                agree = np.abs(100 * (1 - wrong / n - chance) / (1 - chance) - kappa) <= off
            for hit, miss in np.argwhere(fits & agree):
                return int(hit), wrong - int(miss), int(miss), n - int(hit) - wrong
    return None


def verdicts(paper: Paper, cells: list[Cell]) -> pd.DataFrame:
    """Rows of `metrics.by_rule` in which every detector has the printed κ, accuracy and F1, on
    chains of its own; without the cells that no verdicts have."""
    statistics: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for cell in cells:
        if cell.table in ("table2", "table3"):
            statistics.setdefault((*cell.keys.values(),), {})[cell.column] = cell
    parts = []
    for (dataset, model, detector), of in statistics.items():
        most = MOST_OF_HLE if dataset == "HLE-Bio" else MOST
        counts = counts_of(*(float(of[c].value or 0) for c in ("κ", "Acc", "F1")), most)
        if counts is None:
            assert of["κ"].doubt, (dataset, model, detector)
            continue
        published = paper.table(of["κ"].table)
        names = {
            key: paper.name_of(published, key, name)[0]
            for key, name in (("dataset", dataset), ("model", model), ("detector", detector))
        }
        parts.append(_rows(names, counts))
    return pd.concat(parts, ignore_index=True)


def _rows(names: dict[str, str], counts: Counts) -> pd.DataFrame:
    variants = [d for d in DETECTORS if d.name == names["detector"]]
    variant = AS_PRINTED.get(names["detector"], variants[0].variant)
    (detector,) = (d for d in variants if d.variant == variant)
    cases = ((1.0, True), (1.0, False), (0.0, True), (0.0, False))
    rows = [case for case, count in zip(cases, counts, strict=True) for _ in range(count)]
    values = dict.fromkeys(SCORES) | CHAIN | names
    values |= {"reader": names["model"], "variant": variant, "main": True}
    values |= {"judge": "api:openai/gpt-4.1" if detector.judged else "", "counted": True}
    values |= {"rule": PLAIN if detector.rule else FITTED, "rule_by": OURS, "undefined": ""}
    frame = pd.DataFrame([values] * len(rows)).assign(**dict.fromkeys(CHANCE, np.nan))
    flags, labels = zip(*rows, strict=True)
    item = [str(i) for i in range(len(rows))]
    return frame.assign(flag=flags, score=flags, unfaithful=labels, item=item, question=item)


# Where the paper is silent, the split over data sets and models is one choice of many.
QUADRANTS = {
    # right, unfaithful: (data set, model) -> chains
    (True, False): {
        ("aqua", LLAMA): 45,
        ("aqua", QWEN): 60,
        ("logiqa", LLAMA): 65,
        ("logiqa", QWEN): 47,
        ("logiqa", GPT): 182,
        ("logiqa", GEMINI): 206,
    },
    (True, True): {("aqua", LLAMA): 13, ("aqua", QWEN): 18, ("logiqa", GPT): 154},
    (False, False): {
        ("aqua", LLAMA): 6,
        ("aqua", QWEN): 5,
        ("logiqa", GPT): 73,
        ("truthfulqa", GPT): 28,
        ("hle_bio", GPT): 77,
    },
    (False, True): {
        ("aqua", LLAMA): 13,
        ("aqua", QWEN): 5,
        ("logiqa", GEMINI): 63,
        ("truthfulqa", LLAMA): 65,
        ("truthfulqa", QWEN): 14,
        ("hle_bio", QWEN): 44,
    },
}
"""The counts of Figure 6a, and of Figures 10 and 11 as far as they are printed."""
TRAITS = {
    # (data set, trait, value) -> unfaithful and faithful chains
    ("logiqa", "hardness", "easy"): (2, 9),
    ("logiqa", "hardness", "hard"): (70, 113),
    ("hle_bio", "distribution", "ID"): (18, 71),
    ("hle_bio", "distribution", "OOD"): (17, 6),
}
SIGNALS = {
    **{"post_hoc_1": 79, "post_hoc_2": 48, "post_hoc_3": 27, "post_hoc_4": 34},
    **{"spurious_1": 42, "spurious_2": 12, "spurious_3": 23, "spurious_4": 11},
}
"""Unfaithful chains by their one signal: the fewest that have the shares of Figure 8."""


def labels() -> pd.DataFrame:
    """Labelled chains with the printed counts and shares."""
    signals = iter([signal for signal, count in SIGNALS.items() for _ in range(count)])
    left = {key: list(counts) for key, counts in TRAITS.items()}
    return traces(*_chains(signals, left))


def _chains(
    signals: Iterator[str], left: dict[tuple[str, str, str], list[int]]
) -> Iterator[dict[str, Any]]:
    for (correct, unfaithful), places in QUADRANTS.items():
        for (dataset, model), count in places.items():
            for _ in range(count):
                chain: dict[str, Any] = {"dataset": dataset, "model": model, "reader": model}
                chain |= {"correct": correct, "unfaithful": unfaithful}
                signal = next(signals, "") if unfaithful else ""
                chain["principles"] = (signal,) if signal else ()
                for (of, trait, value), counts in left.items():
                    if of == dataset and trait not in chain and counts[not unfaithful]:
                        counts[not unfaithful] -= 1
                        chain[trait] = value
                yield chain
