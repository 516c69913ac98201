"""A model spread over devices, or offloaded to CPU or disk, by accelerate, equals one on a
single device; see `emulated_devices`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import accelerate
import emulated_devices
import pytest
import torch
from tiny_models import tiny
from torch import Tensor
from transformers.masking_utils import chunked_causal_mask_function

from faithscope.interp.edits import SITES, Knockout, Patch
from faithscope.interp.forest import Branch
from faithscope.interp.loading import wrap
from faithscope.interp.masks import Reach, reach_of
from faithscope.interp.model import Model
from faithscope.interp.placement import is_offloaded
from faithscope.interp.tuned_lens import TunedLens

FAMILIES = ["llama", "qwen3", "gemma3", "gpt2", "qwen3_moe", "gpt_oss"]
PLACEMENTS = ["two devices", "cpu offload", "disk offload", "mixed"]


@pytest.fixture(scope="module", autouse=True)
def devices() -> None:
    emulated_devices.require()


def test_a_chunk_is_read_from_a_mask_function_whose_padding_is_on_another_device():
    padding = torch.zeros(1, dtype=torch.long, device="emulated:1")
    assert reach_of(chunked_causal_mask_function(4, padding), 4, "emulated:1") == Reach(chunk=4)


def parts_of(hf: Any) -> tuple[str, list[str], list[str], str]:
    """Names of the embedding, of the layers, of what else the decoder holds, of the head."""
    names = {id(m): name for name, m in hf.named_modules()}
    layers = next(
        m
        for m in hf.modules()
        if isinstance(m, torch.nn.ModuleList) and len(m) == hf.config.num_hidden_layers
    )
    embedding, head = hf.get_input_embeddings(), hf.get_output_embeddings()
    rest = [
        names[id(m)]
        for m in hf.base_model.children()
        if m is not embedding and m is not layers and m.state_dict() | dict(m.named_buffers())
    ]
    return names[id(embedding)], [names[id(m)] for m in layers], rest, names[id(head)]


def placed(hf: Any, placement: str, folder: Path) -> Any:
    embedding, (first, second, third), rest, head = parts_of(hf)
    tied = hf.config.tie_word_embeddings
    skip = hf._skip_keys_device_placement
    if placement == "cpu offload":
        return accelerate.cpu_offload(hf, execution_device=torch.device("emulated:1"))
    if placement == "disk offload":
        return accelerate.disk_offload(hf, str(folder), torch.device("emulated:1"))
    at: dict[str, int | str] = {}
    if placement == "two devices":
        at = {embedding: 0, first: 0, second: 0, third: 1, **dict.fromkeys(rest, 1)}
        at[head] = 0 if tied else 1
    else:
        at = {embedding: "cpu", first: 2, second: "disk", third: 1, **dict.fromkeys(rest, "cpu")}
        at[head] = "cpu" if tied else "disk"
    return accelerate.dispatch_model(hf, at, offload_dir=str(folder), skip_keys=skip)


def model_on(placement: str, family: str, folder: Path) -> Model:
    small = tiny(family)
    return wrap(placed(small.hf, placement, folder), small.tokenizer, name=small.name)


def everything(model: Model) -> dict[str, Any]:
    """All that a `Model` offers, on the CPU."""
    trunk = tuple(range(40, 70))
    patch = Patch("residual", 1, (4, 9), torch.ones(2, model.hf.config.hidden_size))
    cut = Knockout(queries=(12, None), keys=(2, 9), heads=(0, 2))
    branches = [
        Branch(trunk, ask=(-1, 3)),
        Branch((*trunk[:20], 7, 8, 9), ask=(-1,)),
        Branch(trunk, ask=(-1, 5), edits=(patch,)),
        Branch(trunk, ask=(-1,), edits=(cut,)),
    ]
    # what a CPU has not is no check there
    of_accelerators = ("FlexAttention off", "steps of decoding are started anew")
    checks = [line for line in model.checks if not line.startswith(of_accelerators)]
    out: dict[str, Any] = {"checks": len(checks)}
    for execution in ("packed", "dense", "loop"):
        run = model.run(branches, rows=True, residuals=True, sites=SITES, execution=execution)
        for i, read in enumerate(run.branches):
            out[f"{execution} {i}"] = [read.logits, read.residuals, *read.rows]
            out[f"{execution} {i} sites"] = [read.outputs[s] for s in SITES]
    plain = model.run(branches[:3], residuals=True, sites=SITES, execution="loop").branches
    out["loop alone"] = [(r.logits, r.residuals, *r.outputs.values()) for r in plain]
    streams = plain[0].residuals
    out["lens"] = model.lens(streams)
    out["lens of options"] = model.lens(streams, [3, 200, 4])
    eye = torch.eye(streams.shape[-1]) / 4
    tuned = TunedLens((eye,) * model.n_layers, (None,) * model.n_layers)
    out["tuned lens"] = model.lens(tuned.translate(streams[0]))
    # a patch of what another branch read
    values = plain[1].outputs["mlp"][:, 1]
    again = Branch(trunk, edits=(Patch("mlp", 1, (8,), values),))
    out["patched by a read"] = model.run([again]).branches[0].logits
    labels = [[[1, 2], [1, 3, 4], [9]]] * 2
    for execution in ("packed", "loop"):
        answers = model.ask([trunk, trunk[:11]], labels, 6, boundary="digit", execution=execution)
        out[f"ask {execution}"] = [(a.log_probs, a.generated) for a in answers]
    edited = model.ask([trunk, trunk], [labels[0]] * 2, 5, edits=[(cut,), (patch,)])
    out["ask edited"] = [(a.log_probs, a.generated) for a in edited]
    for execution in ("packed", "loop"):
        found = model.likelihood([trunk, (*trunk[:9], 3)], [0, 4], execution=execution)
        out[f"likelihood {execution}"] = [
            (*map(torch.from_numpy, (s.log_probs, s.entropies)),) for s in found.sequences
        ]
    prompts = [trunk, trunk[:7], trunk[:20]]
    out["greedy"] = [g.ids for g in model.generate(prompts, [8, 3, 12])]
    out["sampled"] = [
        g.ids
        for g in model.generate(
            prompts, 6, temperature=0.8, top_p=0.9, repetition_penalty=1.2, seed=[1, 2, 3]
        )
    ]
    return out


def gap(a: Any, b: Any) -> float:
    """The largest difference between two results of the same form; words must be the same."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        return max((gap(a[k], b[k]) for k in a), default=0.0)
    if isinstance(a, list | tuple) and not hasattr(a, "_fields"):
        assert len(a) == len(b)
        return max((gap(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    if isinstance(a, Tensor):
        assert a.shape == b.shape
        a, b = a.cpu(), b.cpu()
        assert torch.equal(a.isnan(), b.isnan())
        return float((a - b).nan_to_num().abs().max()) if a.numel() else 0.0
    if isinstance(a, float):
        return abs(a - b)
    assert a == b
    return 0.0


@cache
def alone(family: str) -> dict[str, Any]:
    small = tiny(family)
    hf = small.hf.to(torch.device("emulated:0"))  # pyright: ignore
    return everything(wrap(hf, small.tokenizer, name=small.name))


@cache
def on_the_cpu(family: str) -> dict[str, Any]:
    return everything(tiny(family))


@pytest.mark.slow
@pytest.mark.in_time(3)
@pytest.mark.parametrize(
    ("placement", "family"),
    [
        pytest.param(p, f, marks=() if p == "two devices" or f == "gpt_oss" else pytest.mark.slow)
        for p in PLACEMENTS
        for f in FAMILIES
    ],
)
def test_a_spread_model_equals_one_on_a_single_device(placement, family, tmp_path):
    model = model_on(placement, family, tmp_path)
    spread = everything(model)
    # the whole unembedding is read where it is offloaded, a few of its rows where it is not
    close = {"lens of options": 1e-5} if is_offloaded(model.hf) else {}
    for name, value in alone(family).items():
        assert gap(value, spread[name]) <= close.get(name, 0), name
    for name, value in on_the_cpu(family).items():
        assert gap(value, spread[name]) < 1e-4, name
