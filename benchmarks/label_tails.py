"""How much of the tokens of answer labels could be left out because they are too unlikely.

`python benchmarks/label_tails.py` writes `benchmarks/results/label_tails.csv`, a row per trace. The
labels of a trace's task, with the tokens that the number boundary reads, are scored after eight
evenly spaced cuts of its reasoning. A node of these tails would be left out if the probability of
the text that it ends, after the cue, were below a bound. Nothing is timed: the shares hold on any
machine.

Columns:
    labels, tails, nodes   labels, sequences that are run for them, and their nodes after each cut
    other_nodes            nodes of all cuts and cues, without the tails
    mass_1e-N              share of the tails' nodes whose text has at least 1e-N of the
                           probability of all labels together: what a bound on shares runs
    answer_1e-N            the same against the labels of the node's own answer: what a bound on
                           log-odds and NLDD runs
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from faithscope import interp
from faithscope.experiments.config.load import load_config
from faithscope.experiments.data.tasks import LoadSettings, Task, get_task
from faithscope.experiments.data.traces import asking_for, exclusion, make_traces
from faithscope.experiments.engine.traces.work import trace_settings
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.model import Model
from faithscope.interp.scoring import scorings
from faithscope.interventions.trace import Trace
from faithscope.probes.framing import label_ids

CUTS, BOUNDS = 8, (4, 5, 6)


def shares(model: Model, task: Task, trace: Trace) -> dict[str, Any]:
    asking = asking_for(model, task, trace)
    labels = [tuple(ids) for ids in label_ids(model, asking, "prefix")]
    after = (*asking.closer_ids, *model.encode(asking.answer_cue))
    ids = trace.reasoning_ids
    ends = [round(i * len(ids) / (CUTS - 1)) for i in range(CUTS)]
    prefixes = [(*trace.prompt_ids, *ids[:end], *after) for end in ends]
    boundary = model.number_ends if asking.kind == "number" else None
    (scoring,) = scorings(model, [labels], boundary)
    nodes = sorted({tail[:k] for tail in scoring.tails for k in range(1, len(tail) + 1)})
    at = {node: i for i, node in enumerate(nodes)}
    names = [name for name, _ in asking.labels]
    kept: dict[str, list[float]] = {}
    for prefix in prefixes:
        asked = [
            Branch((*prefix, *tail), ask=tuple(range(len(prefix) - 1, len(prefix) + len(tail))))
            for tail in scoring.tails
        ]
        following = {}
        for tail, read in zip(scoring.tails, model.run(asked).branches, strict=True):
            for k, row in enumerate(read.logits.log_softmax(-1)):
                following[tail[:k]] = row

        def probability(text: tuple[int, ...], following: Any = following) -> float:
            steps = (float(following[text[:k]][token]) for k, token in enumerate(text))
            return float(np.exp(sum(steps)))

        of_labels = np.array([probability(label) for label in labels])
        of_nodes = np.array([probability(node) for node in nodes])
        against = np.full(len(nodes), np.inf)
        for label, name in zip(labels, names, strict=True):
            of_answer = of_labels[[other == name for other in names]].sum()
            through = [at[label[:k]] for k in range(1, len(label) + 1) if label[:k] in at]
            against[through] = np.minimum(against[through], of_answer)
        for n in BOUNDS:
            kept.setdefault(f"mass_1e-{n}", []).append(
                (of_nodes >= 10.0**-n * of_labels.sum()).mean()
            )
            # a node behind a separator belongs to no label, and is counted as run
            run = (of_nodes >= 10.0**-n * against) | np.isinf(against)
            kept.setdefault(f"answer_1e-{n}", []).append(run.mean())
    row = {"labels": len(labels), "tails": len(scoring.tails), "nodes": len(nodes)}
    row |= {"other_nodes": len(Forest.of(prefixes))}
    return row | {name: round(float(np.mean(x)), 3) for name, x in kept.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--tasks", default="sequential_math,single_cue,conflicting_cue,sentiment")
    parser.add_argument("--path", action="append", default=[], help="TASK=FILE of its questions")
    parser.add_argument("--items", type=int, default=4)
    parser.add_argument("--new-tokens", type=int, default=128)
    args = parser.parse_args()
    model, paths = interp.load(args.model), dict(x.split("=", 1) for x in args.path)
    rows = []
    for name in args.tasks.split(","):
        settings = [f"tasks=[{name}]", f"generation.max_new_tokens={args.new_tokens}"]
        config = load_config(Path("configs/mechanistic.yaml"), settings, RunConfig)
        task, path = get_task(name), paths.get(name)
        asked = LoadSettings(limit=args.items, seed=config.seed, path=Path(path) if path else None)
        questions = [(task, question) for question in task.load(asked)]
        for item, trace in enumerate(make_traces(model, questions, trace_settings(config))):
            if exclusion(trace) is None:
                about = {"model": args.model, "task": name, "item": item}
                rows.append(about | shares(model, task, trace))
                print(rows[-1], flush=True)
    out = Path(__file__).parent / "results" / "label_tails.csv"
    pd.DataFrame(rows).to_csv(out, index=False)


if __name__ == "__main__":
    main()
