"""Benchmark of what is said: how often each kind of sentence is false of worlds of known truth.

`python benchmarks/conclusions.py` plays simulated worlds through the functions that the product
makes its sentences and verdicts with: whole comparisons (`comparison_worlds.py`), and intervals,
verdicts of studies and of `reproduce` (`verdict_worlds.py`). It writes a row per kind of sentence
into `docs/conclusions.md`, and a row per kind and world into
`benchmarks/results/conclusions_<machine>.csv`. No model is run.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import comparison_worlds
import numpy as np
import pandas as pd
import verdict_worlds
from comparison_worlds import CLAIMS, WORLDS, World, held, said, said_together
from verdict_worlds import Played, counted

from faithscope.experiments.analysis.comparison.conclusions import Sentence
from faithscope.experiments.analysis.textual import to_markdown

QUESTIONS, MODELS = (10, 20, 30), (1, 3)
TOGETHER = ("parts of the truth", "one true measure", "noise, 8 measures", "ties", "ceiling")
"""Worlds whose first four measures are combined."""
DOCS = Path(__file__).parents[1] / "docs/conclusions.md"
MARKS = "<!-- worlds -->", "<!-- end of worlds -->"


def played(i: int) -> Iterator[Played]:
    """The i-th world: of its kind in turn, in turn of one model and of three, with 10 to 30
    questions."""
    kind = list(WORLDS)[i % len(WORLDS)]
    turn = i // len(WORLDS)
    shape = MODELS[turn // 3 % 2], QUESTIONS[turn % 3]
    world = WORLDS[kind](np.random.default_rng([turn, *kind.encode()]), shape)
    sentences = said(world, shape[0] == 1, i)
    for claim in CLAIMS:
        if claim != "gain":
            yield _of_claim(world, sentences, claim, kind)


def played_together(i: int) -> Played:
    """The i-th world in which few measures of one model are combined."""
    kind = TOGETHER[i % len(TOGETHER)]
    world = WORLDS[kind](np.random.default_rng([i, *kind.encode()]), (1, 36))
    world.measures = dict(list(world.measures.items())[:4])
    return _of_claim(world, said_together(world, i), "gain", kind)


def _of_claim(world: World, sentences: list[Sentence], claim: str, kind: str) -> Played:
    of = held(world, sentences, claim)
    missed = None if claim not in world.says else not of.right
    return Played(f"compare: {claim}", kind, of.false, missed)


def by_kind(played: list[Played]) -> pd.DataFrame:
    """A row per kind of sentence: its rates over all worlds, and the world in which it was false
    most often."""
    table, parts = counted(played, ["kind"]), counted(played)
    worst = parts.sort_values("false", ascending=False, kind="stable").drop_duplicates("kind")
    of_kind = worst.set_index("kind").loc[table["kind"]]
    words = [
        f"{row['world']}: {row['false']:.2f} of {row['worlds']}" if row["false"] else ""
        for row in of_kind.to_dict("records")
    ]
    return table.assign(**{"falsest world": words})


def write_into(path: Path, table: str) -> None:
    """Replaces the table between the two marks of a page."""
    before, _, rest = path.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    path.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, default=408, help="number of comparisons")
    parser.add_argument("--rounds", type=int, default=100, help="of about four worlds of verdicts")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    comparison_worlds.quick()
    rows: list[Played] = []
    for i in range(args.rounds):
        rows += verdict_worlds.worlds(np.random.default_rng(i))
    print(counted(rows, ["kind"]).to_string(index=False), flush=True)
    began = time.monotonic()
    for i in range(args.worlds):
        rows += (of_world := [*played(i), played_together(i)])
        false = [of.kind for of in of_world if of.false]
        about = f"{of_world[0].world}, {of_world[-1].world}: {false}"
        print(f"{time.monotonic() - began:6.0f} s  {i + 1}/{args.worlds} {about}", flush=True)
    path = Path(__file__).parent / "results" / f"conclusions_{args.machine}.csv"
    counted(rows).to_csv(path, index=False)
    write_into(DOCS, to_markdown(by_kind(rows).astype(str).replace("nan", "")))


if __name__ == "__main__":
    main()
