"""Whether a screen finds the steps that matter, against random exact removals in the same time.

`python benchmarks/screens.py --gsm8k test.jsonl --prm800k subset.jsonl` writes
`benchmarks/results/screens_<machine>.csv`, a row per chain, screen and number of steps that the
screen chooses; `--table` prints means over chains with bootstrap intervals instead. Sources are
those of `estimators.py`, and `joined`: a solution of PRM800K behind that of another problem.

Exact removal of all steps, reading the chain alone and the estimates are timed in one process. An
exact removal takes a share of the time of all that is proportional to the tokens that it runs.
The *top* of a chain is the fifth of its steps with the largest exact effect on the answer's
log-odds. `chosen` of the steps are removed exactly after the estimates of all; in the time of both,
`random` steps drawn at random can be removed exactly, or the `last` steps of the chain. `estimates`
is the time of the estimates in mean exact removals. `found`, `found_random`, `found_last` are the
shares of the top among the steps removed, and `regret`, … the share by which the largest effect
among them stays below the largest of all; both are expectations for random steps.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from estimators import ESTIMATORS, EXACT, MODELS, PLANTED, given, gsm8k, later, own, prm800k

from faithscope import interp
from faithscope.experiments.data.planted.plants import path
from faithscope.interp.model import Model
from faithscope.interventions.trace import Trace
from faithscope.probes import Asking
from faithscope.probes.edited import scored
from faithscope.probes.floor import BASELINE
from faithscope.probes.framing import prefix_ids
from faithscope.probes.knockout import KnockoutSettings

SCREENS = ("next step, 15 % mediators", "next step")
PARTS = (0.1, 0.2, 0.4)
"""Shares of a chain's steps that a screen chooses."""
RESAMPLES = 4_000


def joined(file: Path, most: int) -> Iterator[Mapping[str, Any]]:
    """Solutions of 20 steps or more, each behind the solution of another problem."""
    rows = list(prm800k(file, 2 * most, 20))
    for before, row in zip(rows[::2], rows[1::2], strict=False):
        yield {**row, "steps": [*before["steps"], *row["steps"]]}


@dataclass(frozen=True)
class Chain:
    """Exact effects of the steps of one chain, and the time of each exact removal."""

    effects: np.ndarray
    """(N,) absolute effects on the answer's log-odds; infinite where a probability is 0."""
    seconds: np.ndarray
    """(N,) seconds of each exact removal."""

    @property
    def top(self) -> set[int]:
        """Steps with the largest effects."""
        n = math.ceil(len(self.effects) / 5)
        return set(np.argsort(-self.effects, kind="stable")[:n].tolist())

    def found(self, steps: list[int]) -> tuple[float, float]:
        """Share of the top among the steps, and by how much their largest effect falls short of
        the largest of all, as a share of it."""
        return len(self.top & {*steps}) / len(self.top), self._regret(self.effects[steps].max())

    def found_at_random(self, steps: float) -> tuple[float, float]:
        """As `found`, expected of so many steps drawn at random."""
        n = len(self.effects)
        m = min(max(1, math.floor(steps)), n - 1)
        largest = np.sort(self.effects)[::-1]
        regrets = []
        for drawn in (m, m + 1):
            # the j-th largest is the largest drawn if the others lie among the n - j smaller ones
            ways = [math.comb(n - j, drawn - 1) for j in range(1, n + 1)]
            p = np.array(ways) / math.comb(n, drawn)
            regrets.append(float(p @ [self._regret(x) for x in largest]))
        part = min(max(steps, m), n) - m
        return min(steps, n) / n, regrets[0] + part * (regrets[1] - regrets[0])

    def last(self, seconds: float) -> list[int]:
        """The last steps that are removed in so many seconds, one at the least."""
        spent = np.cumsum(self.seconds[::-1])
        n = max(1, int((spent <= seconds).sum()))
        return list(range(len(spent) - n, len(spent)))

    def _regret(self, effect: float) -> float:
        most = self.effects.max()
        return 0.0 if effect == most else float(1 - effect / most)


def rows(model: Model, trace: Trace, asking: Asking) -> Iterator[dict[str, Any]]:
    """Yields a row for each screen and number of chosen steps."""
    alone = timed(lambda: scored(model, trace, asking, {BASELINE: trace}, KnockoutSettings()))[1]
    (effects, _, _), seconds = timed(partial(ESTIMATORS[EXACT], model, trace, asking))
    size = np.array([math.inf if x is None else abs(x) for x in effects])
    run = np.array(later(prefix_ids(model, asking, trace), trace))
    # in the shortest chains, exact removals take no time that can be told
    chain = Chain(size, max(seconds - alone, 1e-3) * run / run.sum())
    n = len(size)
    about = {"steps": n, "tokens": len(trace.reasoning_ids), "seconds": round(seconds, 2)}
    for screen in SCREENS:
        (estimated, _, _), seconds = timed(partial(ESTIMATORS[screen], model, trace, asking))
        order = np.argsort([-math.inf if x is None else -abs(x) for x in estimated], kind="stable")
        for part in PARTS:
            k = math.ceil(part * n)
            chosen = order[:k].tolist()
            spent = seconds + chain.seconds[chosen].sum()
            random = min(n, max(1, spent / chain.seconds.mean()))
            last = chain.last(spent)
            found = {
                "": chain.found(chosen),
                "_random": chain.found_at_random(random),
                "_last": chain.found(last),
            }
            yield {
                **about,
                "screen": screen,
                "part": part,
                "estimates": seconds / chain.seconds.mean(),
                "chosen": k,
                "random": random,
                "last": len(last),
                **{f"found{of}": share for of, (share, _) in found.items()},
                **{f"regret{of}": regret for of, (_, regret) in found.items()},
            }


def timed(do: Callable[[], Any]) -> tuple[Any, float]:
    """What `do` returns, and its processor seconds."""
    began = time.process_time()
    return do(), time.process_time() - began


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over chains by source, screen and share of the steps that it chooses, and the
    differences from random steps with 95 % bootstrap intervals over chains."""
    rows = rows.copy()
    for name in ("found", "regret"):
        for other in ("random", "last"):
            rows[f"{name}_over_{other}"] = rows[name] - rows[f"{name}_{other}"]
    out, by = [], ["model", "data", "screen", "part"]
    for key, of in rows.groupby(by, sort=False):
        draws = np.random.default_rng(0).integers(len(of), size=(RESAMPLES, len(of)))
        row: dict[Any, Any] = dict(zip(by, cast(tuple[Any, ...], key), strict=True))
        row |= {"chains": len(of), "all_steps": of["steps"].sum()}
        numbers = of.drop(columns=[*by, "chain"])
        for name in numbers:
            values = of[name].to_numpy(float)
            row[name] = values.mean()
            if "_over_" in name:
                means = values[draws].mean(1)
                row[f"{name}_low"], row[f"{name}_high"] = np.quantile(means, [0.025, 0.975])
        out.append(row)
    return pd.DataFrame(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's test.jsonl")
    parser.add_argument("--prm800k", type=Path, help="rows with problem and steps")
    parser.add_argument("--models", nargs="*", default=MODELS[:1])
    parser.add_argument("--planted", nargs="*", default=PLANTED)
    parser.add_argument("--chains", type=int, default=12, help="of each source")
    parser.add_argument(
        "--steps", type=int, nargs=2, default=(24, 99), help="fewest and most of PRM800K's chains"
    )
    parser.add_argument("--joined", type=int, default=0, help="chains of two solutions")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--table", action="store_true", help="print the means of the file's rows")
    args = parser.parse_args()
    file = Path(__file__).parent / "results" / f"screens_{args.machine}.csv"
    kept = pd.read_csv(file) if file.exists() else pd.DataFrame()
    if args.table:
        print(table(kept).round(2).to_string(index=False))
        return

    def measured(name: str, data: str, model: Model, chains: Iterator[Any]) -> None:
        for i, (trace, asking) in enumerate(chains):
            if len(kept) and kept.query("model == @name and data == @data and chain == @i").size:
                continue
            new = [
                {"model": name, "data": data, "chain": i} | r for r in rows(model, trace, asking)
            ]
            # after each chain: what is measured outlives a stop, and other sources may be measured
            # beside this one
            before = pd.read_csv(file) if file.exists() else pd.DataFrame()
            pd.concat([before, pd.DataFrame(new).round(4)]).to_csv(file, index=False)
            print(json.dumps(new[0]), flush=True)

    for name in args.planted:
        model = interp.load(str(path(name.removeprefix("planted:"))))
        measured(name, "planted", model, own(name, model, args.chains))
    for name in args.models:
        model = interp.load(name, dtype="float32")
        if args.gsm8k:
            measured(name, "gsm8k", model, given(model, gsm8k(args.gsm8k, args.chains, 5)))
        if args.prm800k:
            least, most = args.steps
            fitting = (
                row for row in prm800k(args.prm800k, 10**6, least - 1) if len(row["steps"]) <= most
            )
            chains = given(model, islice(fitting, args.chains))
            measured(name, f"prm800k, {least} to {most} steps", model, chains)
            if args.joined:
                measured(name, "joined", model, given(model, joined(args.prm800k, args.joined)))


if __name__ == "__main__":
    main()
