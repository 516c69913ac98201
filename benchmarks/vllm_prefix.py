"""Peer of the forest: vLLM with prefix caching, over its completions API.

`python benchmarks/vllm_prefix.py` writes `benchmarks/results/vllm_prefix_<machine>.csv`, a row per
set of probes and way. Every probe of an item goes to the server as token ids, all in flight at
once, and is answered by one token with the log-probs of the likeliest: `max_tokens=1`, `logprobs`.
The server caches keys and values by blocks of tokens, and runs only the part of a probe that no
earlier probe began with (`--enable-prefix-caching`). `prompt_logprobs` would give more and must not
be asked for: it turns the reading of that cache off.

Ways: `naive` and `forest` as in `forest.py`, here; `vllm_prefix`. Seconds are wall time, since a
server has a clock of its own: run it on a machine that does nothing else. Every repeat has probes
of its own, or vLLM would find those of the last one in its cache. `same_argmax`: whether the first
token is that of `naive` for every probe.

vLLM is started from `--vllm PYTHON` (by default the one of the tests, if they have installed it),
or runs already: `--server URL`, started with `--enable-prefix-caching`.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import openai
import pandas as pd
from forest import METHODS, probe_set
from generation_backends import python_with_vllm, serving
from tqdm import tqdm

from faithscope import interp
from faithscope.interp.backends.server import connect
from faithscope.interp.model import Model
from faithscope.interp.sources import resolve

Way = Callable[[list[list[int]]], list[int]]
"""A function from probes to the likeliest token after each."""
KEYS = ["model", "dtype", "T", "probes", "way"]
LOGPROBS = 5


def vllm_prefix(url: str, name: str) -> Way:
    """The likeliest token after every probe, by a vLLM server that gives ids back."""
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=600)

    def likeliest(ids: Sequence[int]) -> int:
        reply = client.completions.create(
            model=name,
            prompt=list(ids),
            max_tokens=1,
            temperature=0,
            logprobs=LOGPROBS,
            extra_body={"return_token_ids": True, "ignore_eos": True},
        )
        (choice,) = reply.choices
        (token,) = choice.token_ids  # pyright: ignore
        if choice.logprobs is None or not choice.logprobs.top_logprobs:
            raise RuntimeError(f"{url}: gave no log-probs")
        return int(token)

    def ask(sequences: list[list[int]]) -> list[int]:
        with ThreadPoolExecutor(len(sequences)) as pool:
            return list(pool.map(likeliest, sequences))

    return ask


def here(model: Model, method: str) -> Way:
    return lambda sequences: METHODS[method](model, sequences).argmax(-1).tolist()


def measure(ways: dict[str, Way], model: Model, depths: list[int], repeats: int) -> pd.DataFrame:
    rows = []
    vocabulary = min(model.hf.config.vocab_size, 40_000)
    for depth in depths:
        for probes in probe_set(depth, vocabulary):
            rounds = [probe_set(depth, vocabulary, seed=seed)[probes] for seed in range(repeats)]
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            same: dict[str, bool] = dict.fromkeys(ways, True)
            for sequences in tqdm(rounds, desc=f"T={depth} {probes}", disable=None):
                tokens = {}
                for name, ask in ways.items():
                    began = time.perf_counter()
                    tokens[name] = ask(sequences)
                    seconds[name].append(time.perf_counter() - began)
                    same[name] &= tokens[name] == tokens["naive"]
            for name, of_way in seconds.items():
                pairs = zip(seconds["naive"], of_way, strict=True)
                row = {"T": depth, "probes": probes, "n_probes": len(rounds[0]), "way": name}
                row |= {"seconds": round(statistics.median(of_way), 3)}
                ratio = statistics.median(naive / own for naive, own in pairs)
                row |= {"ratio_to_naive": round(ratio, 3), "same_argmax": same[name]}
                rows.append(row | {"repeats": repeats})
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--steps", default="5,10,20")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vllm", default="auto", help="auto, or an interpreter that has it")
    parser.add_argument("--server", help="URL of a vLLM server that runs with prefix caching")
    parser.add_argument("--machine", default=platform.node() or "machine")
    args = parser.parse_args()
    python = python_with_vllm(args.vllm) if args.server is None else None
    if args.server is None and python is None:
        parser.error(
            "no environment has vLLM: name its interpreter (--vllm) or a server (--server)"
        )
    model = interp.load(args.model, dtype=args.dtype)
    depths = [int(t) for t in args.steps.split(",")]
    with ExitStack() as stack:
        url = str(args.server)
        if python is not None:
            # the longest probe, and the token that is asked for
            vocabulary = min(model.hf.config.vocab_size, 40_000)
            longest = max(map(len, probe_set(max(depths), vocabulary)["full"]))
            url = stack.enter_context(
                serving(python, model, longest + 1, ["--enable-prefix-caching"])
            )
        # waits until the server answers, and checks that it serves this model and gives ids back
        connect(args.model, [url], location=str(resolve(args.model).location), wait_s=600)
        name = openai.OpenAI(base_url=url, api_key="none").models.list().data[0].id
        ways = {
            "naive": here(model, "naive"),
            "forest": here(model, "forest"),
            "vllm_prefix": vllm_prefix(url, name),
        }
        table = measure(ways, model, depths, args.repeats)
    table.insert(0, "model", args.model)
    table.insert(1, "dtype", model.dtype)
    table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    out = Path(__file__).parent / "results" / f"vllm_prefix_{args.machine}.csv"
    if out.is_file():
        table = pd.concat([pd.read_csv(out), table]).drop_duplicates(KEYS, keep="last")
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
