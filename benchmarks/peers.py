"""Benchmark of the measures of one item against what a user writes with plain transformers, and
with vLLM.

`python benchmarks/peers.py` writes `benchmarks/results/peers_<machine>.csv`. Every way of a measure
is warmed up by two prefixes; then all take turns, in every repeat. `seconds` is processor time, of
`vllm` with that of its processes (wall time on a GPU), the median of the repeats. `ratio` is a
way's seconds over those of `ours` in the same repeat, so above 1 ours is faster: the median, and
`ratio_least` and `ratio_greatest`. A way of plain transformers that takes more than `--once-above`
seconds is timed once (`repeats`).

Measures, of a question of 100 tokens and `T` steps of 25:
    early_answers   the next token after every number of steps
    removal         24 greedy tokens after the whole chain, and after the chain without each step
    slrc            the next token after every arm of SLRC
    tracing         two spellings of each of four numbers, with the number boundary, after every
                    `--every` tokens of a reasoning that calculates; a peer scores the same tails,
                    and the tokens behind them in a second run
    decoding        64 greedy tokens after 32 questions of 100 tokens that share none (`T` is 0)

Ways:
    naive           a forward for every sequence, `generate` for every prefix
    padded          all sequences in one left-padded batch
    depth_first     one cache, cropped back to where the next sequence branches off; greedy tokens
                    in one left-padded batch of copies of it
    trunk_mask      the longest sequence first, then the rest of all others in forwards of up to
                    `MOST` tokens under a 4D mask over its cache; greedy tokens as depth_first
    vllm            `vllm.LLM` as `vllm_peer.py` starts it, all prefixes in one call, each answered
                    by one token with the log-probs of two, or by the tokens that are written. It
                    has no `tracing`: log-probs of given tokens turn the reading of its cache off
    ours            `Model.run` and `Model.ask`

`naive` is timed on three evenly spaced prefixes, and in `tracing` it and `padded` on one of middle
length with all its spellings (`timed_prefixes`); their seconds are scaled by tokens to all
prefixes. `gap` is the largest difference of a logit (of a label's log-prob in `tracing`) from
`naive`, `same` the share of prefixes with the same greedy tokens (of `vllm`, the same likeliest
token). `run_tokens` is the number of prompt tokens that vLLM did not find in its cache, to be held
against `trie_tokens`, which the forest runs.

vLLM is started from `--vllm PYTHON`, by default the one of the tests, if they have installed it.
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd
import psutil
import torch
from depth_first import shared_prefix
from forest import QUESTION, probe_set
from torch import Tensor
from transformers import DynamicCache
from vllm_peer import Vllm, in_process, python_with_vllm

from faithscope import interp
from faithscope.interp.forest import Branch, Forest, id_array
from faithscope.interp.kept import Kept
from faithscope.interp.model import Model
from faithscope.interp.requested_positions import RequestedPositions
from faithscope.interp.scoring import Scoring, scorings

KEYS = ["model", "dtype", "T", "measure", "way"]
MOST, SAMPLED = 2_048, 3
WRITTEN = {"removal": 24, "decoding": 64}
"""Number of tokens that are written after every prefix, by measure."""
UNSHARED = ("depth_first", "trunk_mask")
"""Ways that have nothing to share in `decoding`, which they leave out."""
Layers = list[tuple[Tensor, Tensor]]
"""Per layer, (1, heads, P, D) keys and values of one path."""
Take = Callable[[int, int, Tensor], None]
"""Receives a sequence's index, a position, and the (n, V) logits from this position on."""
Keep = Callable[[int, Layers], None]
Outcome = TypeVar("Outcome")


class Sequences(NamedTuple):
    """Token sequences, and the first position of each whose logits are wanted."""

    ids: list[list[int]]
    starts: list[int]


def scored(model: Model, logits: Tensor, tokens: Sequence[Any]) -> list[Any]:
    """Log-probs of the next tokens that are wanted after each row of (A, V) logits."""
    scores: dict[int, Any] = {}
    Kept(model, logits, range(len(tokens)), dict(enumerate(tokens))).read(scores)
    return [scores[i] for i in range(len(tokens))]


def naive(model: Model, of: Sequences, take: Take) -> None:
    for i, (ids, start) in enumerate(zip(*of, strict=True)):
        tokens = torch.tensor([ids], device=model.device)
        out = model.hf(tokens, use_cache=False, logits_to_keep=len(ids) - start)
        take(i, start, out.logits[0])


def left_padded(model: Model, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(B, width) token ids, and the mask of those that are no padding."""
    width = max(map(len, sequences))
    ids = torch.tensor([[0] * (width - len(s)) + list(s) for s in sequences])
    seen = torch.tensor([[0] * (width - len(s)) + [1] * len(s) for s in sequences])
    return ids.to(model.device), seen.to(model.device)


def padded(model: Model, of: Sequences, take: Take) -> None:
    ids, seen = left_padded(model, of.ids)
    wanted = [len(own) - start for own, start in zip(*of, strict=True)]
    logits = model.hf(
        ids,
        attention_mask=seen,
        position_ids=(seen.cumsum(-1) - 1).clamp(min=0),
        use_cache=False,
        logits_to_keep=max(wanted),
    ).logits
    for i, (n, of_row) in enumerate(zip(wanted, logits, strict=True)):
        take(i, of.starts[i], of_row[-n:])


def depth_first(model: Model, of: Sequences, take: Take, keep: Keep | None = None) -> None:
    cache, before = DynamicCache(config=model.hf.config), []
    for i in sorted(range(len(of.ids)), key=lambda i: of.ids[i]):
        ids = of.ids[i]
        kept = min(shared_prefix(before, ids), len(ids) - 1)
        if kept < len(before):
            cache.crop(kept - len(before))
        rest, first = torch.tensor([ids[kept:]], device=model.device), max(kept, of.starts[i])
        out = model.hf(rest, past_key_values=cache, logits_to_keep=len(ids) - first)
        take(i, first, out.logits[0])
        if keep:
            keep(i, [(x.keys.clone(), x.values.clone()) for x in cache.layers])  # pyright: ignore
        before = ids


def trunk_mask(model: Model, of: Sequences, take: Take, keep: Keep | None = None) -> None:
    trunk, cache = max(of.ids, key=len), DynamicCache(config=model.hf.config)
    size, shared = len(trunk), [shared_prefix(trunk, ids) for ids in of.ids]
    order = sorted(range(len(of.ids)), key=lambda i: of.ids[i])
    on_trunk = [(i, p) for i in order for p in range(of.starts[i], shared[i])]
    asked = torch.tensor(sorted({p for _, p in on_trunk}) or [size - 1])
    tokens = torch.tensor([trunk], device=model.device)
    logits = model.hf(tokens, past_key_values=cache, logits_to_keep=asked).logits[0]
    for i, p in on_trunk:
        take(i, p, logits[asked == p])
    while order:
        nodes: dict[tuple[int, int], int] = {}
        depths, rows, paths = [], [], {}
        while order and (not paths or len(nodes) + len(of.ids[order[0]]) - shared[order[0]] < MOST):
            i, above, path = order[0], -shared[order.pop(0)] - 1, []
            for p in range(shared[i], len(of.ids[i])):
                node = nodes.setdefault((above, of.ids[i][p]), len(nodes))
                if node == len(rows):
                    rows.append(rows[above] if above >= 0 else range(shared[i]))
                    rows[node] = [*rows[node], size + node]
                    depths.append(p)
                path.append(node)
                above = node
            paths[i] = path
        wanted = sorted({n for i in paths for n in paths[i][max(0, of.starts[i] - shared[i]) :]})
        if nodes:
            seen = torch.zeros(len(nodes), size + len(nodes), dtype=torch.bool)
            for node, row in enumerate(rows):
                seen[node, torch.tensor(row)] = True
            logits = model.hf(
                torch.tensor([[token for _, token in nodes]], device=model.device),
                attention_mask=seen[None, None].to(model.device),
                position_ids=torch.tensor([depths], device=model.device),
                past_key_values=cache,
                logits_to_keep=torch.tensor(wanted),
            ).logits[0]
        at = {node: k for k, node in enumerate(wanted)}
        for i, path in paths.items():
            first = max(of.starts[i], shared[i])
            if first < len(of.ids[i]):
                take(i, first, logits[[at[n] for n in path[first - shared[i] :]]])
            if keep:
                own = torch.tensor([*range(shared[i]), *(size + n for n in path)])
                keep(i, [(x.keys[:, :, own], x.values[:, :, own]) for x in cache.layers])  # pyright: ignore
        if nodes:
            cache.crop(-len(nodes))


RUNS: dict[str, Callable[..., None]] = {
    "naive": naive,
    "padded": padded,
    "depth_first": depth_first,
    "trunk_mask": trunk_mask,
}


def next_tokens(model: Model, way: str, prefixes: list[list[int]]) -> Tensor:
    """(B, V) logits after every prefix."""
    if way == "ours":
        return torch.stack(
            [b.logits[0] for b in model.run([Branch(tuple(p)) for p in prefixes]).branches]
        )
    rows: dict[int, Tensor] = {}
    RUNS[way](
        model,
        Sequences(prefixes, [len(p) - 1 for p in prefixes]),
        lambda i, _, logits: rows.update({i: logits[-1].float()}),
    )
    return torch.stack([rows[i] for i in range(len(prefixes))])


def continued(model: Model, way: str, prefixes: list[list[int]], tokens: int) -> list[list[int]]:
    """Greedy tokens after every prefix."""
    ends = {"max_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
    if way == "ours":
        asked = model.ask(prefixes, max_new_tokens=tokens)
        return [list(a.generated.ids) for a in asked if a.generated is not None]
    if way == "naive":
        of = (torch.tensor([p], device=model.device) for p in prefixes)
        outs = [model.hf.generate(x, **ends)[0, x.shape[1] :] for x in of]  # pyright: ignore
        return [out.tolist() for out in outs]
    if way == "padded":
        ids, seen = left_padded(model, prefixes)
        return model.hf.generate(ids, attention_mask=seen, **ends)[:, ids.shape[1] :].tolist()  # pyright: ignore
    layers: dict[int, Layers] = {}
    first: dict[int, int] = {}
    RUNS[way](
        model,
        Sequences(prefixes, [len(p) - 1 for p in prefixes]),
        lambda i, _, logits: first.update({i: int(logits[-1].argmax())}),
        lambda i, own: layers.update({i: own}),
    )
    lengths = torch.tensor([len(p) for p in prefixes], device=model.device)
    width, cache = int(lengths.max()), DynamicCache(config=model.hf.config)
    for layer in range(model.n_layers):
        both = [
            torch.cat(
                [
                    torch.nn.functional.pad(layers[i][layer][k], (0, 0, width - len(p), 0))
                    for i, p in enumerate(prefixes)
                ]
            )
            for k in (0, 1)
        ]
        cache.update(both[0], both[1], layer)
    layers.clear()
    written = torch.tensor([[first[i]] for i in range(len(prefixes))], device=model.device)
    seen = torch.arange(width, device=model.device) >= width - lengths[:, None]
    for _ in range(tokens - 1):
        seen = torch.cat([seen, torch.ones_like(seen[:, :1])], dim=1)
        logits = model.hf(
            written[:, -1:],
            attention_mask=seen.long(),
            position_ids=lengths[:, None] + written.shape[1] - 1,
            past_key_values=cache,
        ).logits
        written = torch.cat([written, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    return written.tolist()


def labelled(model: Model, way: str, prefixes: list[list[int]], labels: list[list[int]]) -> Tensor:
    """(prefixes, labels) log-probs with the number boundary."""
    if way == "ours":
        asked = model.ask(prefixes, [labels] * len(prefixes), boundary="number")
        return torch.tensor([a.log_probs for a in asked])
    (scoring,) = scorings(model, [labels], model.number_ends)
    return _by_peer(model, RUNS[way], prefixes, scoring)


def _by_peer(
    model: Model, run: Callable[..., None], prefixes: list[list[int]], scoring: Scoring
) -> Tensor:
    n = len(prefixes)
    asked = RequestedPositions.of(prefixes, [scoring] * n, [()] * n, [0] * n)
    sequences = [id_array(ids).tolist() for ids in asked.sequences]
    nodes: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = []
    for ids in sequences:
        path = [-1]
        for token in ids:
            path.append(nodes.setdefault((path[-1], token), len(nodes)))
        paths.append(path[1:])
    wanted, scores, after = asked.queries(paths), {}, {}

    def take(i: int, first: int, logits: Tensor) -> None:
        of_rows = paths[i][first : first + len(logits)]
        here = [(k, node) for k, node in enumerate(of_rows) if node in wanted]
        read = scored(model, logits[[k for k, _ in here]], [wanted[node] for _, node in here])
        scores.update(zip([node for _, node in here], read, strict=True))

    run(model, Sequences(sequences, [start - 1 for start in asked.starts]), take)
    beyond = asked.beyond(scores, paths)
    further = [[*sequences[x.sequence][: x.length], key.token] for key, x in beyond.items()]
    keys, sets = list(beyond), [x.sets for x in beyond.values()]

    def take_last(i: int, _: int, logits: Tensor) -> None:
        (after[keys[i]],) = scored(model, logits[-1:], [sets[i]])

    if further:
        run(model, Sequences(further, [len(ids) - 1 for ids in further]), take_last)
    answers = asked.answers(scores, after, paths, [None] * n, [([], [])] * n, {})
    return torch.tensor([a.log_probs for a in answers])


def calculation(model: Model, n_steps: int, every: int) -> tuple[list[list[int]], list[list[int]]]:
    """Prefixes of a reasoning that adds numbers, cut after every few tokens, and labels."""
    total, text = 17, "Start with the 17 apples that are in the basket before anyone comes."
    for step in range(n_steps):
        more = 3 + 7 * step % 11
        text += (
            f" Then somebody brings {more} apples, so there are {total} + {more} = {total + more}."
        )
        total += more
    question = model.encode("How many apples are in the basket in the end? Add them up. " * 7)[:100]
    reasoning = model.encode(text)[: 25 * n_steps]
    cue = model.encode("\nThe answer is")
    numbers = (total, total - 3, 17, 120)
    labels = [model.encode(mark + str(x)) for x in numbers for mark in (" ", " $")]
    cuts = range(0, len(reasoning) + 1, every)
    return [[*question, *reasoning[:i], *cue] for i in cuts], [list(x) for x in labels]


def seconds_of(model: Model, way: str, work: Callable[[], Outcome]) -> tuple[float, Outcome]:
    """Seconds (see above), and what `work` returned."""

    def clock() -> float:
        if model.device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        # an idle vLLM takes time, too, which is none of another way's
        others = psutil.Process().children(recursive=True) if way == "vllm" else []
        times = [p.cpu_times() for p in others]
        return time.process_time() + sum(t.user + t.system for t in times)

    start = clock()
    out = work()
    return clock() - start, out


def measures(
    model: Model, n_steps: int, every: int
) -> dict[str, tuple[list[list[int]], Callable[[str, list[list[int]]], Tensor | list[list[int]]]]]:
    """Name -> the prefixes of a measure, and what a way makes of them."""
    vocabulary, draw = min(model.hf.config.vocab_size, 40_000), random.Random(1)
    sets = probe_set(n_steps, vocabulary)
    cut, labels = calculation(model, n_steps, every)
    apart = [[draw.randrange(100, vocabulary) for _ in range(QUESTION)] for _ in range(32)]
    return {
        "early_answers": (sets["early_answers"], lambda way, p: next_tokens(model, way, p)),
        "removal": (
            sets["necessity"],
            lambda way, p: continued(model, way, p, WRITTEN["removal"]),
        ),
        "slrc": (sets["full"], lambda way, p: next_tokens(model, way, p)),
        "tracing": (cut, lambda way, p: labelled(model, way, p, labels)),
        "decoding": (apart, lambda way, p: continued(model, way, p, WRITTEN["decoding"])),
    }


def some(name: str, way: str, prefixes: list[list[int]]) -> list[int]:
    """Indices of the prefixes that a way is timed on."""
    n = len(prefixes)
    if name == "tracing" and way in ("naive", "padded"):
        return [sorted(range(n), key=lambda i: len(prefixes[i]))[n // 2]]
    if way == "naive":
        return sorted({int((k + 0.5) * n / SAMPLED) for k in range(SAMPLED)})
    return list(range(n))


@torch.inference_mode()
def measure(
    model: Model,
    vllm: Vllm | None,
    n_steps: int,
    name: str,
    ways: Sequence[str],
    *,
    repeats: int = 3,
    once_above: float = 30,
    every: int = 5,
) -> pd.DataFrame:
    """A row per way.

    Raises:
        RuntimeError: a text ended before its tokens, so that ways wrote different numbers of them.
    """
    prefixes, work = measures(model, n_steps, every)[name]
    run_tokens: dict[str, int] = {}

    def made(way: str, own: list[list[int]]) -> Tensor | list[list[int]]:
        if way != "vllm":
            return work(way, own)
        assert vllm is not None
        tokens = WRITTEN.get(name)
        out, run_tokens[way] = vllm.write(own, tokens or 1, None if tokens else 2)
        return out

    ways = [way for way in ways if way != "vllm" or (vllm and name != "tracing")]
    ways = [way for way in ways if name != "decoding" or way not in UNSHARED]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    outs: dict[str, Tensor | list[list[int]]] = {}
    for way in ways:
        made(way, prefixes[:2])
    for repeat in range(repeats):
        for way in ways:
            own = [prefixes[i] for i in some(name, way, prefixes)]
            scale = sum(map(len, prefixes)) / sum(map(len, own))
            if repeat and way in RUNS and seconds[way][0] > once_above * scale:
                continue
            took, outs[way] = seconds_of(model, way, lambda way=way, own=own: made(way, own))
            seconds[way].append(took * scale)
            print(f"T={n_steps} {name} {way}: {took:.2f} s", flush=True)
    rows, reference = [], dict(zip(some(name, "naive", prefixes), outs["naive"], strict=True))
    for way in ways:
        timed_on = some(name, way, prefixes)
        of_way = dict(zip(timed_on, outs[way], strict=True))
        both = [(of_way[i], reference[i]) for i in reference if i in of_way]
        ratios = [a / b for a, b in zip(seconds[way], seconds["ours"], strict=False)]
        row = {"T": n_steps, "measure": name, "prefixes": len(prefixes)}
        row |= {"trie_tokens": len(Forest.of(prefixes)), "way": way}
        row |= {"timed_prefixes": len(timed_on), "repeats": len(ratios)}
        row |= {"seconds": round(statistics.median(seconds[way]), 3)}
        row |= {"ratio": round(statistics.median(ratios), 3)}
        row |= {"ratio_least": round(min(ratios), 3), "ratio_greatest": round(max(ratios), 3)}
        if way == "vllm":
            row |= {"run_tokens": run_tokens[way], "version": vllm.version if vllm else None}
        if tokens := WRITTEN.get(name):
            if ended := [i for i, out in of_way.items() if len(out) != tokens]:
                raise RuntimeError(
                    f"{name}, {way}: the text after prefix {ended[0]} has "
                    f"{len(of_way[ended[0]])} tokens instead of {tokens}"
                )
            row |= {"same": sum(a == b for a, b in both) / len(both)}  # pyright: ignore
        elif way == "vllm":
            row |= {"same": sum(a == [int(b.argmax())] for a, b in both) / len(both)}  # pyright: ignore
        else:
            row |= {"gap": max((float((a - b).abs().max()) for a, b in both), default=None)}  # pyright: ignore
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="bundled:smollm2-135m")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--steps", default="10,20,40")
    parser.add_argument("--measures", default="early_answers,removal,slrc,tracing,decoding")
    parser.add_argument("--ways", default="naive,padded,depth_first,trunk_mask,vllm,ours")
    parser.add_argument("--every", type=int, default=5, help="tokens between cuts of `tracing`")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--once-above", type=float, default=30, metavar="SECONDS")
    parser.add_argument("--machine", default=platform.node() or "machine")
    parser.add_argument("--vllm", default="auto", help="auto, no, or an interpreter that has it")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    ways, depths = args.ways.split(","), [int(n) for n in args.steps.split(",")]
    if missing := {"naive", "ours"} - set(ways):
        parser.error(f"--ways needs {' and '.join(sorted(missing))}: what others are held against")
    names = args.measures.split(",")
    model = interp.load(args.model, dtype=args.dtype, verify_model=False)
    _ = model.number_ends
    out = args.out / f"peers_{args.machine}.csv"
    python = python_with_vllm(args.vllm) if "vllm" in ways else None
    work = [(n, name) for n in depths for name in names if name != "decoding"]
    work += [(0, name) for name in names if name == "decoding"]
    with ExitStack() as stack:
        vllm = None
        if python is not None:
            room = 400 + max(WRITTEN.values()) + 2 * 25 * max(depths)
            vllm = stack.enter_context(in_process(python, model, room))
        for n_steps, name in work:
            table = measure(
                model,
                vllm,
                n_steps,
                name,
                ways,
                repeats=args.repeats,
                once_above=args.once_above,
                every=args.every,
            )
            table.insert(0, "model", args.model)
            table.insert(1, "dtype", model.dtype)
            table["run"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
            if out.is_file():
                table = pd.concat([pd.read_csv(out), table]).drop_duplicates(KEYS, keep="last")
            table.to_csv(out, index=False)


if __name__ == "__main__":
    main()
