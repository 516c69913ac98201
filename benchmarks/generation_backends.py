"""Benchmark of RFEval-like continuations by every available backend, as ratios to transformers'
own.

`python benchmarks/generation_backends.py` writes `benchmarks/results/generation_backends_<machine>
.csv`, a row per way of writing. Each question is asked twice, once as it is and once with fixed
words prefilled as the model's own, as in RFEval; greedy, with RFEval's repetition penalty. No token
ends a continuation, so that all ways write the same number of tokens.

Ways:
    one_by_one    `transformers.generate`, a prompt at a time
    padded        `transformers.generate`, all prompts in one left-padded batch; its repetition
                  penalty takes the padding for words of the prompt
    here          faithscope's packed prefill and lockstep decoding
    vllm_server   vLLM behind its completions API, all prompts in flight at once; compiled, and on a
                  CPU in blocks of 32 tokens

Seconds are wall time, since a server's processes have clocks of their own: run it on a machine that
does nothing else. Ways take turns within a repeat, and each repeat has questions of its own, or
vLLM would find earlier prompts in its cache; a ratio is the median over repeats, with the least and
the greatest. `same_tokens` is the share of continuations with the very ids of `one_by_one`: in
float32 all should agree, in bfloat16 no two ways need to.

vLLM is started from `--vllm PYTHON`, an interpreter of an environment that has it; by default the
one that the tests installed into the cache folder, if any; `--vllm no` leaves it out, `--server
URL` uses a running server. Starting it is not timed; two tokens are written before, so that nothing
is compiled or captured in the measured time.
"""

from __future__ import annotations

import argparse
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch
from tqdm import tqdm
from transformers import GenerationConfig
from vllm_peer import CPU_BLOCK, environment, python_with_vllm

from faithscope import interp, questions
from faithscope.experiments.studies.rfeval.subjects.model_files import penalty_of
from faithscope.experiments.studies.rfeval.subjects.subjects import forced
from faithscope.interp.backends.here import Here
from faithscope.interp.backends.server import connect
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Sampling
from faithscope.interp.model import Model
from faithscope.interp.sources import resolve

Ids = tuple[int, ...]
Way = Callable[[Sequence[Ids], Sampling], list[Ids]]

KEYS = ["model", "dtype", "device", "prompts", "new_tokens", "way"]
R_PRIME = (
    "Let me think about this carefully. The numbers have to be taken one after the other, and the "
    "second one is the one that matters most. If it is left out, the rest does not change the "
    "result any more, so it is enough to look at the first and at the last of them. "
)


def asked(model: Model, task: str, n: int, rounds: int) -> list[list[Ids]]:
    """For each round the prompts of `n` questions, each without and with the prefilled words, in
    pairs.

    Raises:
        UserError: the task has fewer questions.
    """
    found = questions(task, n * rounds)
    if len(found) < n * rounds:
        raise UserError(
            f"task {task!r} has {len(found)} questions, {n} for each of {rounds} repeats are "
            f"{n * rounds}; lower --questions or --repeats"
        )
    made: list[list[Ids]] = [[] for _ in range(rounds)]
    for i, (chosen, question) in enumerate(found):
        text = chosen.cot_prompt(question)
        made[i // n] += [forced(model, text).ids, forced(model, text, R_PRIME).ids]
    return made


def _config(model: Model, sampling: Sampling) -> GenerationConfig:
    size = model.hf.get_input_embeddings().weight.shape[0]  # pyright: ignore
    return GenerationConfig(
        max_new_tokens=sampling.max_new_tokens,
        do_sample=False,
        repetition_penalty=sampling.repetition_penalty,
        pad_token_id=0,
        # an id that no model writes; None would restore the model's own end token
        eos_token_id=size,
    )


def one_by_one(model: Model) -> Way:
    def write(prompts: Sequence[Ids], sampling: Sampling) -> list[Ids]:
        return [padded(model)([prompt], sampling)[0] for prompt in prompts]

    return write


def padded(model: Model) -> Way:
    @torch.inference_mode()
    def write(prompts: Sequence[Ids], sampling: Sampling) -> list[Ids]:
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])
        seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        out = model.hf.generate(  # pyright: ignore
            ids.to(model.device),
            attention_mask=seen.to(model.device),
            generation_config=_config(model, sampling),
        )
        return [tuple(row[width:].tolist()) for row in out]

    return write


def backend(found: interp.backends.Backend) -> Way:
    def write(prompts: Sequence[Ids], sampling: Sampling) -> list[Ids]:
        return [g.ids for g in found.generate(prompts, sampling)]

    return write


def measure(
    ways: dict[str, Way], rounds: Sequence[Sequence[Ids]], sampling: Sampling
) -> pd.DataFrame:
    """A row of times per way; ratios are to the first way.

    Args:
        rounds: the prompts of each repeat.
    """
    base = next(iter(ways))
    warm = Sampling((), 2, repetition_penalty=sampling.repetition_penalty)
    for way in ways.values():
        way([tuple(range(1, 17))], warm)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    said: dict[str, list[Ids]] = {name: [] for name in ways}
    for prompts in tqdm(rounds, disable=None):
        for name, way in ways.items():
            began = time.perf_counter()
            said[name] += way(prompts, sampling)
            seconds[name].append(time.perf_counter() - began)
    rows = []
    for name, took in seconds.items():
        ratios = [b / s for b, s in zip(seconds[base], took, strict=True)]
        same = [a == b for a, b in zip(said[name], said[base], strict=True)]
        rows.append(
            {
                "prompts": len(rounds[0]),
                "prompt_tokens": round(statistics.fmean(sum(map(len, r)) for r in rounds)),
                "new_tokens": sampling.max_new_tokens,
                "repetition_penalty": sampling.repetition_penalty,
                "way": name,
                "seconds": round(statistics.median(took), 3),
                f"ratio_to_{base}": round(statistics.median(ratios), 3),
                "ratio_least": round(min(ratios), 3),
                "ratio_greatest": round(max(ratios), 3),
                "same_tokens": round(statistics.fmean(same), 4),
                "repeats": len(rounds),
            }
        )
    return pd.DataFrame(rows)


@contextmanager
def serving(python: Path, model: Model, room: int) -> Iterator[str]:
    """The address of a vLLM server of the model's weights, once it is up, until the block ends.

    Raises:
        UserError: the server ended before it was up.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(resolve(model.name).location), "--dtype", model.dtype]
    command += ["--served-model-name", model.name, "--max-model-len", str(room)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    if model.device.type == "cpu":
        command += ["--block-size", str(CPU_BLOCK)]
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, env=environment(python, model), stdout=log, stderr=log)
        try:
            while not _is_up(f"http://127.0.0.1:{port}/health"):
                if server.poll() is not None:
                    raise UserError(f"vLLM's server ended with code {server.returncode}")
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        except UserError as error:
            log.seek(0)
            raise UserError(f"{error}; vLLM said:\n{log.read()[-2000:]}") from error
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _is_up(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError:
        return False
    return True


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--task", default="sequential_math")
    parser.add_argument("--questions", type=int, default=8, help="each is asked twice")
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip", default="", help="ways to leave out, comma-separated")
    parser.add_argument("--vllm", default="auto", help="auto, no, or an interpreter that has it")
    parser.add_argument("--server", help="URL of a vLLM server that runs")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args(given)
    args.skip = {name for name in args.skip.split(",") if name}
    if unknown := args.skip - {"padded", "here", "vllm_server"}:
        parser.error(
            f"--skip {sorted(unknown)[0]}: can leave out padded, here and vllm_server; one_by_one "
            "is what they are held against"
        )
    for name in ("questions", "new_tokens", "repeats"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} {getattr(args, name)}: must be at least 1")
    return args


def main(given: Sequence[str] | None = None) -> None:
    args = arguments(given)
    python = python_with_vllm(args.vllm) if args.server is None else None
    model = interp.load(args.model, dtype=args.dtype)
    rounds = asked(model, args.task, args.questions, args.repeats)
    penalty = penalty_of(args.model, model.hf.config.model_type)
    sampling = Sampling((), args.new_tokens, repetition_penalty=penalty)
    ways: dict[str, Way] = {
        "one_by_one": one_by_one(model),
        "padded": padded(model),
        "here": backend(Here(model)),
    }
    ways = {name: way for name, way in ways.items() if name not in args.skip}
    with ExitStack() as stack:
        url = args.server
        if "vllm_server" not in args.skip and python is not None:
            room = max(len(prompt) for prompts in rounds for prompt in prompts) + args.new_tokens
            url = stack.enter_context(serving(python, model, room))
        if url is not None and "vllm_server" not in args.skip:
            where = str(resolve(args.model).location)
            ways["vllm_server"] = backend(connect(args.model, [url], location=where))
        else:
            print("without vllm_server: no environment or server of it", file=sys.stderr)
        table = measure(ways, rounds, sampling)
    for at, (name, value) in enumerate(
        {"model": args.model, "dtype": model.dtype, "device": model.device.type}.items()
    ):
        table.insert(at, name, value)
    table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    out = args.out / f"generation_backends_{args.machine}.csv"
    out.parent.mkdir(exist_ok=True, parents=True)
    if out.is_file():
        table = pd.concat([pd.read_csv(out), table]).drop_duplicates(KEYS, keep="last")
    table.to_csv(out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
