"""Benchmark of a label probe, compared with one plain forward of each of its chains.

`python benchmarks/label_probe.py` writes `benchmarks/results/label_probe_<machine>.csv`. Chains of
random sentences are read once by `linear_probe`, which stores states of all layers at six places;
then a label is fitted at every place and layer, with its shuffles, intervals, lengths and
directions. Seconds are process CPU time; `ratio` is reading and fitting over a plain forward of
each chain, and `fit_ratio` fitting alone, as when a label is named later.

`--null` writes `label_probe_null.csv` instead: how often a label without any relation to the states
is called readable, and how often its interval leaves chance out.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

import faithscope
from faithscope import interp
from faithscope.experiments.analysis.statistics.classifiers import Classifying
from faithscope.experiments.analysis.statistics.label_probes import (
    corrected,
    labelled,
    read,
    shuffles,
)
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.stored_records import place_of
from faithscope.experiments.analysis.tables import make_tables
from faithscope.experiments.studies.slrc.label_probes.tables import label_probe_table
from faithscope.experiments.studies.slrc.label_probes.values import Lengths, RunLabels
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.sources import Sources
from faithscope.probes.linear_probe import LinearProbeSettings

WORDS = [
    *("the", "a", "river", "stone", "count", "adds", "takes", "seven", "nine", "apples", "so"),
    *("then", "left", "makes", "of", "two", "is"),
]
RESULTS = Path(__file__).parent / "results"


def rows(n: int, steps: int) -> list[dict[str, Any]]:
    draw = random.Random(0)

    def sentence() -> str:
        return " ".join(draw.choices(WORDS, k=18)).capitalize() + "."

    return [
        {
            "id": str(i),
            "question": f"{sentence()} {sentence()} How many?",
            "reasoning": " ".join(sentence() for _ in range(steps)),
            "answer": str(draw.randrange(40)),
        }
        for i in range(n)
    ]


def speed(name: str, chains: int, steps: int, machine: str) -> pd.DataFrame:
    model = interp.load(name, verify_model=False)
    traces = faithscope.given_traces(model, rows(chains, steps))
    settings = LinearProbeSettings(layers=None, labels=("label",))
    seconds = dict.fromkeys(("forward", "read", "fit"), 0.0)
    records, stored, n_tokens = [], [], 0
    for trace in tqdm(traces, disable=None):
        ids = torch.tensor([[*trace.prompt_ids, *trace.reasoning_ids]])
        n_tokens += ids.numel()
        for what in ("forward", "read"):
            began = time.process_time()
            if what == "forward":
                with torch.inference_mode():
                    model.hf(ids, use_cache=False, logits_to_keep=1)
            else:
                (record,) = faithscope.measure(model, trace, "linear_probe", layers=None)
                stored.append((place_of(record), record.pop("arrays")))
                records.append(record)
            seconds[what] += time.process_time() - began
    draw = random.Random(1)
    values = {at: draw.random() < 0.5 for at, _ in stored}
    labels = RunLabels(
        {"label": lambda: values},
        lengths={
            at: Lengths(len(t.reasoning_ids), {s.index: 1 for s in t.counted_steps})
            for (at, _), t in zip(stored, traces, strict=True)
        },
    )
    analysis = SlrcAnalysis(
        arrays=lambda probe: sorted(stored, key=lambda s: s[0]),
        settings=lambda probe: settings,
        labels=lambda: labels,
        directions={},
    )
    began = time.process_time()
    made = make_tables([label_probe_table("linear_probe")], Sources(records), analysis)
    seconds["fit"] = time.process_time() - began
    cells = len(made["label_probe"])
    return pd.DataFrame(
        [
            {
                "model": name,
                "chains": chains,
                "tokens": round(
                    np.mean([len(t.prompt_ids) + len(t.reasoning_ids) for t in traces])
                ),
                "places_and_layers": cells,
                **{f"{what}_seconds": round(s, 1) for what, s in seconds.items()},
                "ratio": round((seconds["read"] + seconds["fit"]) / seconds["forward"], 2),
                "fit_ratio": round(seconds["fit"] / seconds["forward"], 2),
                "machine": machine,
            }
        ]
    )


def null(worlds: int) -> pd.DataFrame:
    """Labels that are drawn, on states that are drawn, in groups of one and of four."""
    found = []
    for kind in ("class", "number"):
        for n, width, of_group in ((60, 64, 1), (120, 16, 1), (120, 64, 4)):
            readable = outside = 0
            inflation = []
            for world in tqdm(range(worlds), desc=f"{kind} {n} {width} {of_group}", disable=None):
                rng = np.random.default_rng(world)
                places = rng.normal(size=(4, n, width))
                y = np.repeat(rng.normal(size=n // of_group), of_group)
                groups = [str(i // of_group) for i in range(n)]
                values = [bool(x > 0) for x in y] if kind == "class" else y.tolist()
                how = Classifying(seed=world)
                of = labelled(values, groups, how)
                if of.reason:
                    continue
                drawn = shuffles(of, world, 199)
                reads = [read(x, of, how, Bootstrap(world, 200), drawn) for x in places]
                readable += any(p < 0.05 for p in corrected(reads))
                chance = 0.5 if kind == "class" else 0.0
                outside += not reads[0].score.low <= chance <= reads[0].score.high
                inflation += [r.area.inflation for r in reads if r.area is not None]
            found.append(
                {
                    "label": kind,
                    "rows": n,
                    "width": width,
                    "rows_of_a_question": of_group,
                    "worlds": worlds,
                    "readable_somewhere": round(readable / worlds, 3),
                    "interval_without_chance": round(outside / worlds, 3),
                    "variance_over_plain": round(float(np.mean(inflation)), 2) if inflation else "",
                }
            )
    return pd.DataFrame(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--worlds", type=int, default=200)
    args = parser.parse_args()
    if args.null:
        table, name = null(args.worlds), "label_probe_null"
    else:
        table = speed(args.model, args.chains, args.steps, args.machine)
        name = f"label_probe_{args.machine}"
    print(table.to_string(index=False))
    table.to_csv(RESULTS / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
