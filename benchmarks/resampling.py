"""How many draws does the importance of a step take? `resample` against plain sampling.

`python benchmarks/resampling.py` writes `benchmarks/results/resampling_<machine>.csv`. The
importances that the authors of "Thought Branches" published lie in a data set of its own
(`math-rollouts`), of models too large for a CPU, so that the reference is made here: 20 chains of a
planted model of five steps, at the temperature at which it varies, are cut before each step and
after the last, and `generate` of transformers goes on from each cut 100 times, with none of this
package's code between the weights and the text. Splitting the text
and saying what repeats a step is other code, too: the first sentence by a regular expression, and
"the same" is the same numbers in the same order. The importance of a step is then, as in
arXiv 2510.27484, the total variation between the answers of the draws that say something else and
of the draws from after it.

The probe draws 100 times, too; what it would have said of the first 10, 25 and 50 is computed of
the same draws.

Columns:
    draws           draws of the probe at each cut
    n               steps that have both importances
    n_lacking       steps that have one of the reference and none of the probe
    rho             rank correlation of the probe's importance with the reference, over steps
    rho_low, _high  its 95 % interval, by drawing chains
    bias            mean importance of the probe minus that of the reference
    difference      mean absolute difference
    rho_drop        rank correlation of `drop`
    reference_rho   rank correlation of the reference's first half of draws with its second
"""

from __future__ import annotations

import argparse
import platform
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from faithscope import interp
from faithscope.experiments.data.traces import TraceSettings, asking_for, make_traces
from faithscope.experiments.engine.traces.interactive import questions
from faithscope.interp.model import Model
from faithscope.interventions import Trace
from faithscope.probes import resample as probe
from faithscope.probes.framing import Asking
from faithscope.probes.resample import ResampleSettings

DRAWS = (10, 25, 50, 100)
SENTENCE = re.compile(r"\s*(.+?(?:[.!?](?=\s)|\n|$))", re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Found = tuple[str, str | None]
"""First sentence of a continuation, and its answer."""


def reference(model: Model, trace: Trace, asking: Asking, settings: ResampleSettings) -> list[Any]:
    """For each cut its continuations (`Found`)."""
    torch.manual_seed(settings.seed)
    hf: Any = model.hf
    cuts = [s.tokens[0] for s in trace.counted_steps] + [len(trace.reasoning_ids)]
    out = []
    for at in cuts:
        ids = torch.tensor([[*trace.prompt_ids, *trace.reasoning_ids[:at]]])
        written = hf.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=settings.temperature,
            top_p=1.0,
            top_k=0,
            num_return_sequences=settings.samples,
            max_new_tokens=settings.max_new_tokens,
            pad_token_id=model.tokenizer.eos_token_id,
        )
        before = str(model.tokenizer.decode(list(trace.reasoning_ids[:at])))
        out.append([_found(model, before, row[ids.shape[1] :], asking) for row in written])
    return out


def _found(model: Model, before: str, row: torch.Tensor, asking: Asking) -> Found:
    text = str(model.tokenizer.decode(row, skip_special_tokens=True))
    stopped = model.tokenizer.eos_token_id in row.tolist()
    first = SENTENCE.match(text)
    read = asking.parse_reply or asking.parse
    return (first[1] if first else "", read(before + text) if stopped else None)


def importance(step: str, before: Sequence[Found], after: Sequence[Found]) -> tuple[Any, ...]:
    """The answers of draws that say something else, and of those from after the step."""
    numbers = NUMBER.findall(step)
    others = [answer for text, answer in before if NUMBER.findall(text) != numbers]
    return _shares(others), _shares([answer for _, answer in after])


def _shares(answers: Sequence[str | None]) -> dict[str, float]:
    counts = Counter(a for a in answers if a is not None)
    return {a: n / counts.total() for a, n in counts.items()}


def distance(p: dict[str, float], q: dict[str, float]) -> float:
    if not p or not q:
        return np.nan
    return sum(abs(p.get(a, 0) - q.get(a, 0)) for a in {*p, *q}) / 2


def rows(model: Model, trace: Trace, asking: Asking, settings: ResampleSettings) -> list[dict]:
    """One row per step: both importances, at every number of draws."""
    draws = settings.samples
    ours, _ = probe.drawn(model, trace, asking, settings)
    theirs = reference(model, trace, asking, settings)
    same = partial(probe.says_the_same, least=settings.same, names=probe.names_of(asking))
    table = []
    for i, step in enumerate(trace.counted_steps):
        row: dict[str, Any] = {"item": trace.question.id, "step": i}
        p, q = importance(step.text, theirs[i], theirs[i + 1])
        row["reference"] = distance(p, q)
        if p and q:
            row["reference_drop"] = q.get(trace.answer, 0) - p.get(trace.answer, 0)
        for half, of in (("first", slice(0, draws // 2)), ("second", slice(draws // 2, draws))):
            row[half] = distance(*importance(step.text, theirs[i][of], theirs[i + 1][of]))
        for n in (k for k in DRAWS if k <= draws):
            args = (ours[i][:n], ours[i + 1][:n], same, trace.unit)
            found = probe._row(step.text, trace.answer, *args)
            row |= {f"importance_{n}": found["importance"], f"drop_{n}": found["drop"]}
        table.append(row)
    return table


def summary(frame: Any, seed: int) -> pd.DataFrame:
    halves = frame.dropna(subset=["first", "second"])
    table = []
    for n in (k for k in DRAWS if f"importance_{k}" in frame):
        name = f"importance_{n}"
        both = frame.dropna(subset=["reference", name]).astype({name: float})
        drops = frame.dropna(subset=["reference_drop", f"drop_{n}"])
        low, high = interval(both, name, seed)
        table.append(
            {
                "draws": n,
                "n": len(both),
                "n_lacking": int((frame["reference"].notna() & frame[name].isna()).sum()),
                "rho": rho(both[name], both["reference"]),
                "rho_low": low,
                "rho_high": high,
                "bias": (both[name] - both["reference"]).mean(),
                "difference": (both[name] - both["reference"]).abs().mean(),
                "rho_drop": rho(drops[f"drop_{n}"].astype(float), drops["reference_drop"]),
                "reference_rho": rho(halves["first"], halves["second"]),
            }
        )
    return pd.DataFrame(table)


def rho(a: Any, b: Any) -> float:
    found: Any = spearmanr(a, b)
    return float(found.statistic)


def interval(frame: Any, name: str, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    of = [g for _, g in frame.groupby("item")]
    values = []
    for _ in range(1000):
        drawn: Any = pd.concat([of[i] for i in rng.integers(len(of), size=len(of))])
        values.append(rho(drawn[name], drawn["reference"]))
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="planted:faithful_5")
    parser.add_argument("--task", default="planted_5")
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--draws", type=int, default=DRAWS[-1])
    parser.add_argument("--tokens", type=int, default=80, help="most of a continuation")
    parser.add_argument("--temperature", type=float, default=2.5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--machine", default=platform.node())
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = interp.load(options.model)
    asked = questions(options.task, options.chains)
    of_item = {question.id: task for task, question in asked}
    settings = ResampleSettings(
        samples=options.draws,
        seed=options.seed,
        max_new_tokens=options.tokens,
        temperature=options.temperature,
    )
    table: list[dict] = []
    for trace in make_traces(model, asked, TraceSettings(max_new_tokens=192)):
        asking = asking_for(model, of_item[trace.question.id], trace)
        table += rows(model, trace, asking, settings)
        print(f"{trace.question.id}: {len(table)} steps", flush=True)
    frame = summary(pd.DataFrame(table), options.seed).round(3)
    print(frame.to_string(index=False))
    path = Path(__file__).parent / "results" / f"resampling_{options.machine}.csv"
    frame.to_csv(path, index=False)


if __name__ == "__main__":
    main()
