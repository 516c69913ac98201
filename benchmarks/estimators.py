"""Estimates of what removal of a step does, held against exact removal: agreement and cost.

`python benchmarks/estimators.py --gsm8k test.jsonl --prm800k subset.jsonl` writes
`benchmarks/results/estimators_<machine>.csv`, a row per model, source of chains and estimator.
Sources are gold solutions of GSM8K, long solutions of PRM800K (both as their authors' files have
them; without a path they are left out), and the planted series, whose models write their own
chains. Exact removal reads the text without the step again; its graded effect is the drop of the
answer's log-odds in the scored reading.

`spearman` is the rank correlation with it over all steps of all chains, with a bootstrap interval
over chains; `within` its mean over chains of four steps or more; `top` the share of the fifth of
each chain's steps with the largest exact effects that are in the estimate's fifth; `slope` that of
a least-squares line of exact on estimated drops through zero (1 is calibrated, below 1 the estimate
is too large).
`flips` of the likeliest answer under exact removal, how many of them the estimator has (`found`)
and how many more it has (`false`). `anew` is the share of the later tokens that are computed anew,
`tokens` and `seconds` are those of all forwards as shares of exact removal's, its one reading of
the whole chain included. Rows of other models and sources stay in the file.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from long_chains import counting
from scipy.stats import spearmanr

from faithscope import interp
from faithscope.experiments.data.given.encode import given_trace
from faithscope.experiments.data.given.question_of_chain import question_of_chain
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.planted.plants import path
from faithscope.experiments.data.tasks import TASKS, LoadSettings
from faithscope.experiments.data.traces import TraceSettings, asking_for, exclusion, make_traces
from faithscope.experiments.engine.traces.config import fits
from faithscope.interp.model import Model
from faithscope.interventions.trace import Trace
from faithscope.probes import PROBES, Asking
from faithscope.probes.attention import AttentionSettings
from faithscope.probes.edited import removals, scored
from faithscope.probes.filler import FILLERS, filled, tokens_of
from faithscope.probes.framing import prefix_ids
from faithscope.probes.knockout import KnockoutSettings, cut_of
from faithscope.probes.screening import Anew, estimates
from faithscope.probes.tracing import TracingSettings

MODELS = ("bundled:smollm2-135m", "bundled:qwen2.5-coder-0.5b")
PLANTED = ("planted:faithful_5", "planted:mixture_50", "planted:hint_5", "planted:select")
RESAMPLES = 1000
Effects = tuple[list[float | None], list[bool] | None, list[int]]
"""Per step: the estimated drop of the log-odds (or another number to rank steps by), whether the
likeliest answer is another (None if the estimator has none), and the later tokens run anew."""


def gsm8k(file: Path, most: int, least: int) -> Iterator[Mapping[str, Any]]:
    """Gold solutions of `least` or more lines, each line a step."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in _drawn(rows, most, lambda row: len(row["answer"].splitlines()) > least):
        *lines, last = re.sub(r"<<.*?>>", "", row["answer"]).splitlines()
        answer = last.removeprefix("####").strip()
        yield {"question": row["question"], "steps": lines, "gold": answer, "answer": answer}


def prm800k(file: Path, most: int, least: int) -> Iterator[Mapping[str, Any]]:
    """A model's solutions of `least` or more steps that end in a number."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    def answer(row: Mapping[str, Any]) -> str | None:
        return canonical_number(row["steps"][-1].partition("# Answer")[2].strip())

    for row in _drawn(rows, most, lambda r: len(r["steps"]) > least and answer(r) is not None):
        steps = [step for step in row["steps"][:-1] if step.strip()]
        stated = {"gold": answer(row), "answer": answer(row)}
        yield {"question": row["problem"], "steps": steps, **stated}


def _drawn(rows: list[Any], most: int, fits: Callable[[Any], bool]) -> list[Any]:
    fitting = [row for row in rows if fits(row)]
    return random.Random(0).sample(fitting, min(most, len(fitting)))


def given(model: Model, rows: Iterator[Mapping[str, Any]]) -> Iterator[tuple[Trace, Asking]]:
    chains = read_chains([{**row, "steps": [f"{s}\n" for s in row["steps"]]} for row in rows])
    for chain in chains.chains:
        asked = question_of_chain(chain, chains.file, chains.format, "gsm8k")
        trace = given_trace(model, asked, TraceSettings())
        yield trace, asking_for(model, asked.task, trace)


def own(name: str, model: Model, most: int) -> Iterator[tuple[Trace, Asking]]:
    """Chains that a planted model writes itself, on questions of its own kind."""
    task = next(task for known, task in TASKS.items() if "planted" in known and fits(name, known))
    questions = list(task.load(LoadSettings(limit=most, seed=0)))
    for trace in make_traces(model, [(task, q) for q in questions], TraceSettings()):
        if exclusion(trace) is None:
            yield trace, asking_for(model, task, trace)


def recomputed(model: Model, trace: Trace, asking: Asking, *, anew: Anew) -> Effects:
    of = estimates(model, trace, asking, anew)
    return of.log_odds, [o.flips for o in of.outcomes], of.tokens


def edited(model: Model, trace: Trace, asking: Asking, *, kind: str) -> Effects:
    """Removal, knockout or filler of each step, each asked with the unedited chain."""
    runs: dict[Any, Any] = removals(trace)
    ids, steps = prefix_ids(model, asking, trace), trace.counted_steps
    for i, step in enumerate(steps):
        if kind == "knockout":
            runs["removed", i] = (ids, (cut_of(trace, i, "later"),))
        elif kind == "filler":
            runs["removed", i] = filled(model, trace, _dots(model), *step.tokens)
    pack = scored(model, trace, asking, runs, KnockoutSettings())
    outcomes = [pack.outcomes["removed", i] for i in range(len(steps))]
    return [o.log_odds for o in outcomes], [o.flips for o in outcomes], later(ids, trace)


def _dots(model: Model) -> tuple[int, ...]:
    return next(ids for text in FILLERS.values() if (ids := tokens_of(model, text)))


def later(ids: tuple[int, ...], trace: Trace) -> list[int]:
    start = len(trace.prompt_ids)
    return [len(ids) - start - step.tokens[1] for step in trace.counted_steps]


def attention(model: Model, trace: Trace, asking: Asking) -> Effects:
    (record,) = PROBES["attention"].measure(model, trace, asking, AttentionSettings(shuffles=1))
    return record["by_step"], None, [0] * len(trace.counted_steps)


def tracing(model: Model, trace: Trace, asking: Asking) -> Effects:
    """The rise of the answer's log-odds over each step."""
    (record,) = PROBES["tracing"].measure(model, trace, asking, TracingSettings(every=10**6))
    after = np.clip(np.array([record["p_before"], *record["p_steps"]]), 1e-6, 1 - 1e-6)
    rise = np.diff(np.log(after / (1 - after))).tolist()
    return rise, None, [0] * len(trace.counted_steps)


EXACT = "exact removal"
ESTIMATORS: dict[str, Callable[[Model, Trace, Asking], Effects]] = {
    EXACT: partial(edited, kind="removed"),
    "nothing anew": partial(recomputed, anew=Anew(0, 0.0)),
    "next step": partial(recomputed, anew=Anew(1, 0.0)),
    "next two steps": partial(recomputed, anew=Anew(2, 0.0)),
    "15 % mediators": partial(recomputed, anew=Anew(0, 0.15)),
    "next step, 5 % mediators": partial(recomputed, anew=Anew(1, 0.05)),
    "next step, 15 % mediators": partial(recomputed, anew=Anew(1, 0.15)),
    "attention to the step": attention,
    "tracing": tracing,
    "filler": partial(edited, kind="filler"),
    "knockout": partial(edited, kind="knockout"),
}


@dataclass
class Chain:
    """What one estimator says of one chain, and its cost."""

    effects: list[float | None]
    flips: list[bool] | None
    anew: int
    tokens: int
    seconds: float


@dataclass
class Source:
    """All estimators on the chains of one source, read by one model."""

    later: int = 0
    chains: dict[str, list[Chain]] = field(default_factory=dict)

    def add(
        self, model: Model, trace: Trace, asking: Asking, run: list[int], names: list[str]
    ) -> None:
        for name, estimator in ESTIMATORS.items():
            if name not in (EXACT, *names):
                continue
            run.clear()
            began = time.process_time()
            effects, flips, anew = estimator(model, trace, asking)
            seconds = time.process_time() - began
            of = Chain(effects, flips, sum(anew), sum(run), seconds)
            self.chains.setdefault(name, []).append(of)
        self.later += sum(later(prefix_ids(model, asking, trace), trace))

    def rows(self) -> Iterator[dict[str, Any]]:
        exact = self.chains[EXACT]
        for name, chains in self.chains.items():
            pairs = [
                _finite(of_exact.effects, of.effects)
                for of_exact, of in zip(exact, chains, strict=True)
            ]
            x, y = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
            logit = name != "attention to the step"
            yield {
                "estimator": name,
                "chains": len(exact),
                "steps": len(x),
                "spearman": _rank(x, y),
                **dict(zip(("low", "high"), _interval(pairs), strict=True)),
                "top": _top(pairs),
                "within": _mean([_rank(*pair) for pair in pairs if len(pair[0]) > 3]),
                "slope": float(x @ y / (y @ y)) if logit and (y @ y) > 0 else math.nan,
                **_flips(exact, chains),
                "anew": sum(of.anew for of in chains) / self.later,
                "tokens": sum(of.tokens for of in chains) / sum(of.tokens for of in exact),
                "seconds": sum(of.seconds for of in chains) / sum(of.seconds for of in exact),
            }


def _finite(x: list[float | None], y: list[float | None]) -> tuple[np.ndarray, np.ndarray]:
    known = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    return np.array([a for a, _ in known]), np.array([b for _, b in known])


def _rank(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(spearmanr(x, y).statistic)  # pyright: ignore


def _interval(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """The middle 95 % of the rank correlation over chains drawn with replacement."""
    rng, values = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        drawn = [pairs[i] for i in rng.integers(len(pairs), size=len(pairs))]
        values.append(_rank(*(np.concatenate([pair[k] for pair in drawn]) for k in (0, 1))))
    return np.nanquantile(values, [0.025, 0.975]).tolist()


def _top(pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Share found of the fifth of each chain's steps that has the largest exact effects."""
    found = of_all = 0
    for exact, estimated in pairs:
        n = math.ceil(len(exact) / 5)
        first = [
            set(np.argsort(-np.abs(x), kind="stable")[:n].tolist()) for x in (exact, estimated)
        ]
        found, of_all = found + len(first[0] & first[1]), of_all + n
    return found / of_all if of_all else math.nan


def _mean(values: list[float]) -> float:
    known = [x for x in values if not math.isnan(x)]
    return float(np.mean(known)) if known else math.nan


def _flips(exact: list[Chain], chains: list[Chain]) -> dict[str, int | None]:
    pairs = [
        pair
        for of_exact, of in zip(exact, chains, strict=True)
        for pair in zip(of_exact.flips or (), of.flips or (), strict=False)
    ]
    known = bool(pairs)
    return {
        "flips": sum(sum(of.flips or ()) for of in exact),
        "found": sum(a and b for a, b in pairs) if known else None,
        "false": sum(b and not a for a, b in pairs) if known else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gsm8k", type=Path, help="GSM8K's test.jsonl")
    parser.add_argument("--prm800k", type=Path, help="rows with problem and steps")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--planted", nargs="*", default=PLANTED)
    parser.add_argument(
        "--chains", type=int, default=12, help="of GSM8K, and of each planted model"
    )
    parser.add_argument("--estimators", nargs="*", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--long", type=int, default=4, help="chains of PRM800K")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    file = Path(__file__).parent / "results" / f"estimators_{args.machine}.csv"
    rows: list[Any] = pd.read_csv(file).to_dict("records") if file.exists() else []

    def measured(name: str, data: str, model: Model, chains: Iterator[Any]) -> None:
        source, run = Source(), counting(model)
        for trace, asking in chains:
            source.add(model, trace, asking, run, args.estimators)
            print(name, data, len(source.chains[EXACT]), flush=True)
            # after each chain: what is measured outlives a stop
            rows[:] = [row for row in rows if (row["model"], row["data"]) != (name, data)]
            rows.extend({"model": name, "data": data, **row} for row in source.rows())
            pd.DataFrame(rows).round(3).to_csv(file, index=False)

    for name in args.planted:
        model = interp.load(str(path(name.removeprefix("planted:"))))
        measured(name, "planted", model, own(name, model, args.chains))
    for name in args.models:
        model = interp.load(name, dtype="float32")
        if args.gsm8k:
            measured(name, "gsm8k", model, given(model, gsm8k(args.gsm8k, args.chains, 5)))
        if args.prm800k:
            measured(name, "prm800k", model, given(model, prm800k(args.prm800k, args.long, 24)))
    print(pd.DataFrame(rows).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
