"""Probes of long chains: what each costs by the length of the chain.

`python benchmarks/long_chains.py` writes `benchmarks/results/long_chains_<machine>.csv`, a row per
probe and length; rows of cases that are not measured again stay. A
tiny Llama (three layers of width 64, one token a letter) reads a synthetic chain of so many tokens
in `STEPS` steps, or as many as the row says. Each row is measured in a process forked for it:
process CPU seconds of the measure, those of them outside the model's forwards, tokens that forwards
run, tokens that one forward for each text would run, and the peak of the process's memory above
that before the measure. The growth of a column is its exponent in the length, from the row before;
attention itself, within forwards, grows with the square.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import platform
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml
from tiny_configs import byte_tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig

from faithscope.interp.loading import wrap
from faithscope.interp.model import Model
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes import PROBES
from faithscope.probes.framing import Asking
from faithscope.probes.screening import Screen

LENGTHS = (2_048, 4_096, 8_192, 16_384, 32_768)
STEPS = 6
CASES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
"""Name of a row -> probe and settings; with `sample`, so many of `steps` steps are edited, of
which `screen` are those of largest estimated effect."""
GROWING = ("seconds", "outside_s", "tokens", "naive_tokens", "peak_mib")


def long_model() -> Model:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=65_536,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    hf = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    return wrap(hf, byte_tokenizer(), name="tiny llama", verify_model=False)


def long_trace(model: Model, tokens: int, steps: int) -> Trace:
    """A chain of sentences of nonsense, one token a letter."""
    draw = random.Random(0)
    size = tokens // steps
    sentences = []
    for _ in range(steps):
        words = "".join(draw.choices("abcdefghijklmnoprst    ", k=size - 3))
        sentences.append(f"X{' '.join(words.split()).ljust(size - 3, 'x')}. ")
    ids = model.encode("".join(sentences))
    question = Question("q", "synthetic", "Is it?", "label", gold="yes", options=("yes", "no"))
    prompt = model.encode("Is it? Yes or no?\n")
    return from_ids(question, prompt, ids, model.pieces(ids), mode="sentences", answer="yes")


def asking() -> Asking:
    return Asking(
        answer_cue="\nSo the answer is",
        labels=(("yes", " yes"), ("no", " no")),
        parse=lambda text: next((w for w in ("yes", "no") if f" {w}" in text), None),
        necessity_prompt=str,
        sufficiency_prompt=str,
        kind="label",
    )


def counting(model: Model) -> list[int]:
    """A list that gets the number of tokens of every forward of the model."""
    run: list[int] = []

    def count(_: object, args: tuple, kwargs: dict) -> None:
        run.append((kwargs["input_ids"] if "input_ids" in kwargs else args[0]).numel())

    model.hf.register_forward_pre_hook(count, with_kwargs=True)
    return run


def within_forwards(model: Model) -> list[float]:
    """A list that gets the process CPU seconds of every forward of the model."""
    seconds: list[float] = []
    forward = model.hf.forward

    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.process_time()
        out = forward(*args, **kwargs)
        seconds.append(time.process_time() - began)
        return out

    model.hf.forward = timed
    return seconds


def naive(model: Model) -> list[int]:
    """A list that gets the number of tokens of every text that the model is asked about."""
    texts: list[int] = []

    def of(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(given: Any, *args: Any, **options: Any) -> Any:
            texts.extend(len(getattr(x, "ids", x)) for x in given)
            return method(given, *args, **options)

        return wrapped

    for name in ("ask", "run", "likelihood"):
        setattr(model, name, of(getattr(model, name)))
    return texts


def measured(case: str, length: int) -> dict[str, Any]:
    of = CASES[case]
    probe, settings = of["probe"], of["settings"]
    model = long_model()
    trace = long_trace(model, length, of.get("steps", STEPS))
    run, within, texts = counting(model), within_forwards(model), naive(model)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    screen = Screen(model, trace, asking(), of.get("screen"))
    trace = trace.sampling(of.get("sample"), 0, screen.steps)
    PROBES[probe].measure(model, trace, asking(), PROBES[probe].settings(**settings))
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "probe": case,
        "length": len(trace.reasoning_ids),
        "steps": len(trace.steps),
        "seconds": round(seconds, 2),
        "outside_s": round(seconds - sum(within), 2),
        "forwards": len(run),
        "tokens": sum(run),
        "naive_tokens": sum(texts),
        "peak_mib": peak // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    path = Path(__file__).parent / "results" / f"long_chains_{args.machine}.csv"
    kept = pd.read_csv(path) if path.is_file() else pd.DataFrame({"probe": []})
    kept = kept[~kept["probe"].isin(args.cases)]
    rows: list[dict[str, Any]] = []
    for case in args.cases:
        last: dict[str, Any] | None = None
        for length in args.lengths:
            # a process that is forked has imported everything, and its peak is its own
            with multiprocessing.get_context("fork").Pool(1) as child:
                row = child.apply(measured, (case, length))
            rows.append(row | {f"{name}_growth": _growth(name, last, row) for name in GROWING})
            last = row
            print(rows[-1], flush=True)
            pd.concat([kept, pd.DataFrame(rows)]).to_csv(path, index=False)


def _growth(name: str, before: dict[str, Any] | None, now: dict[str, Any]) -> float | None:
    """Exponent of a column in the length between two rows."""
    if before is None or min(before[name], now[name]) <= 0:
        return None
    steps = math.log(now["length"] / before["length"])
    return round(math.log(now[name] / before[name]) / steps, 2)


if __name__ == "__main__":
    main()
