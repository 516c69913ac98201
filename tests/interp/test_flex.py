"""FlexAttention over a trie: its blocks, and the compiled kernel."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from families import bushy
from tiny_models import tiny
from torch._dynamo.utils import counters
from torch._inductor.runtime.cache_dir_utils import default_cache_dir
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from faithscope.interp import flex, flex_checks, verify
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch, Forest
from faithscope.interp.masks import EVERYTHING, Reach, ancestor_mask, without
from faithscope.interp.prefill import cuts_of
from faithscope.interp.reference import Tree


def sequences(seed: int, steps: int, length: int) -> list[list[int]]:
    """A chain of steps, and the chain without each of them."""
    draw = np.random.default_rng(seed)
    made = [draw.integers(0, 200, length).tolist() for _ in range(steps)]
    chains = [made, *(made[:i] + made[i + 1 :] for i in range(steps))]
    return [[token for step in chain for token in step] for chain in chains]


def listed(counts: torch.Tensor | None, indices: torch.Tensor | None, row: int) -> list[int]:
    assert counts is not None
    assert indices is not None
    return indices[0, 0, row, : int(counts[0, 0, row])].tolist()


@pytest.mark.parametrize("reach", [EVERYTHING, Reach(window=70), Reach(chunk=90)], ids=str)
@pytest.mark.parametrize("start", [0, 100, 512])
def test_blocks_are_those_of_the_mask(reach: Reach, start: int):
    forest = Forest.of(sequences(start, 6, 40))
    stop = len(forest) - 3
    end, depth = torch.from_numpy(forest.end), torch.from_numpy(forest.depth)
    mask = ancestor_mask(end, depth, start, stop, reach)
    made = flex.block_mask(forest, start, stop, reach, torch.device("cpu"))
    q, k = torch.arange(stop - start)[:, None], torch.arange(stop)[None]
    zero = torch.zeros((), dtype=torch.long)
    assert torch.equal(made.mask_mod(zero, zero, q, k), mask)
    for row in range(-(-(stop - start) // flex.SIZE)):
        of_row = mask[row * flex.SIZE : (row + 1) * flex.SIZE]
        blocks = of_row.split(flex.SIZE, dim=1)
        partial = listed(made.kv_num_blocks, made.kv_indices, row)
        full = listed(made.full_kv_num_blocks, made.full_kv_indices, row)
        assert all(blocks[i].all() for i in full)
        assert {i for i, block in enumerate(blocks) if block.any()} <= {*partial, *full}
        if reach == EVERYTHING:
            assert all(blocks[i].any() for i in partial)


CUTS = (
    Knockout((90, None), (10, 60)),
    Knockout((45, 170), (30, 44), heads=(1,)),
    Knockout((200, None), (0, 300)),
)


@pytest.mark.parametrize("reach", [EVERYTHING, Reach(window=70)], ids=str)
@pytest.mark.parametrize("start", [0, 300])
@pytest.mark.parametrize("edits", [CUTS, CUTS[:1]], ids=["of single heads", "of all heads"])
def test_blocks_without_knockouts_are_those_of_the_mask(
    reach: Reach, start: int, edits: tuple[Knockout, ...]
):
    chains = sequences(5, 6, 40)
    under = [edits[: i % (len(edits) + 1)] for i in range(len(chains))]
    forest = Forest.of(chains, under)
    stop, heads = len(forest) - 3, 3
    end, depth = torch.from_numpy(forest.end), torch.from_numpy(forest.depth)
    cuts, own = cuts_of(forest, np.arange(start, stop)), torch.arange(start, stop)
    free = ancestor_mask(end, depth, start, stop, reach)
    mask = without(free, cuts, depth[:stop], own, heads)[0].expand(heads, -1, -1)
    assert not torch.equal(mask[1], free)
    made = flex.block_mask(forest, start, stop, reach, torch.device("cpu"), cuts, heads)
    h, q, k = torch.arange(heads)[:, None, None], (own - start)[:, None], torch.arange(stop)[None]
    assert torch.equal(made.mask_mod(torch.zeros((), dtype=torch.long), h, q, k), mask)
    for row in range(-(-(stop - start) // flex.SIZE)):
        blocks = mask[:, row * flex.SIZE : (row + 1) * flex.SIZE].split(flex.SIZE, dim=2)
        partial = listed(made.kv_num_blocks, made.kv_indices, row)
        full = listed(made.full_kv_num_blocks, made.full_kv_indices, row)
        assert all(blocks[i].all() for i in full)
        assert {i for i, block in enumerate(blocks) if block.any()} <= {*partial, *full}


@pytest.mark.slow
@pytest.mark.in_time(1)
@pytest.mark.parametrize("reach", [EVERYTHING, Reach(window=70)], ids=str)
def test_other_packs_and_knockouts_compile_nothing_anew(reach: Reach):
    torch._dynamo.reset()
    counters.clear()
    # the kernel itself is compiled on CUDA devices alone; this counts for how many graphs it is
    run = torch.compile(flex_attention, dynamic=True, backend="eager", fullgraph=True)
    for seed, (steps, edits) in enumerate([(6, CUTS), (7, CUTS[:1]), (5, CUTS[1:]), (9, CUTS)]):
        chains = sequences(seed, steps, 61 - 3 * seed)
        forest = Forest.of(chains, [edits[: i % (len(edits) + 1)] for i in range(len(chains))])
        n = len(forest)
        cuts = cuts_of(forest, np.arange(n))
        blocks = flex.block_mask(forest, 0, n, reach, torch.device("cpu"), cuts, heads=4)
        draw = torch.Generator().manual_seed(seed)
        query, key, value = (torch.randn(1, heads, n, 32, generator=draw) for heads in (4, 2, 2))
        with torch.inference_mode():
            out = run(query, key, value, block_mask=blocks, enable_gqa=True)
        end, depth = torch.from_numpy(forest.end), torch.from_numpy(forest.depth)
        mask = without(ancestor_mask(end, depth, 0, n, reach), cuts, depth, torch.arange(n), 4)
        whole = scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
        assert torch.allclose(out, whole, atol=1e-5)
        assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.in_time(1)
@pytest.mark.parametrize("limit", [8, None])
def test_a_kernel_that_ignores_knockouts_is_found_at_load(monkeypatch, limit: int | None):
    tree = Tree.of(tiny("mistral"), 0, limit)
    tree.model.chunk = 260
    assert verify._flex_fault(tree) is None
    assert verify._flex_cut_fault(tree) is None
    monkeypatch.setattr(flex._Hidden, "less", lambda self, rule, *_: rule)
    assert "max |Δlogit|" in str(verify._flex_cut_fault(tree))


def _from_block(number: int, wrong: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
    """The kernel with outputs that are a tenth too small from a block of queries on, where the
    number of queries and keys is `wrong`."""

    def kernel(query: torch.Tensor, key: torch.Tensor, *others: Any, **options: Any) -> Any:
        out = flex_attention(query, key, *others, **options)
        whole = out[0] if isinstance(out, tuple) else out
        if wrong(query.shape[2], key.shape[2]):
            whole[:, :, (number - 1) * flex.SIZE :] *= 0.9
        return out

    return kernel


BROKEN = {
    "from the 4th block on": (_from_block(4), 513, "block 4 of 4"),
    "from the 9th block on": (_from_block(9), 1_153, "block 9 of 9"),
    "fewer queries than keys": (
        _from_block(1, lambda q, k: q < k),
        257,
        "given 239 queries and 256",
    ),
    "full blocks alone": (_from_block(3, lambda q, _: q % 128 == 0), 513, "384 queries and 384"),
    "one query in a block": (_from_block(3, lambda q, _: q % 128 == 1), 513, "257 queries and 257"),
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.in_time(1)
@pytest.mark.takes("FlexAttention's kernel is traced at its first sizes")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_kernel_that_is_wrong_at_some_size_is_found_at_load(monkeypatch, broken: str):
    kernel, chunk, said = BROKEN[broken]
    tree = Tree.of(tiny("llama"), 0)
    tree.model.chunk = chunk
    monkeypatch.setattr(flex, "flex_attention", kernel)
    assert said in str(verify._flex_fault(tree))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", ["mistral", "gemma2", "gpt_oss", "deepseek_v3"])
def test_a_sound_kernel_is_sound_at_every_size(family: str, dtype: torch.dtype):
    model = tiny(family)
    model.hf.to(dtype=dtype)  # pyright: ignore
    model.chunk = 386
    assert flex_checks.fault(model) is None
    assert flex_checks.fault(model, [Knockout((200, None), (90, 150), heads=(1,))]) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compiled on CUDA devices alone")
@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2", "gpt_oss"])
def test_the_compiled_kernel_equals_one_by_one(family: str):
    torch._dynamo.reset()
    model = tiny(family)
    assert (model.flex_reason, model.flex_cut_reason) == (None, None)
    sets = [bushy(), *(sequences(i, 3 + i, 25 + 7 * i) for i in range(4))]
    compiled = []
    for of_set in sets:
        branches = [Branch(tuple(s)) for s in of_set]
        pack = model.run(branches, execution="flex")
        loop = model.run(branches, execution="loop")
        for p, q in zip(pack.branches, loop.branches, strict=True):
            assert float((p.logits - q.logits).abs().max()) < 1e-4
        compiled.append(counters["stats"]["unique_graphs"])
    # other shapes, masks and windows are no other kernels
    assert compiled[-1] == compiled[-2] == compiled[-3]


def test_compiled_kernels_are_kept_where_later_processes_and_nodes_find_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))
    # what importing PyTorch's compiler sets
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", default_cache_dir())
    flex.compiled.__wrapped__()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache" / "kernels")
    assert (tmp_path / "cache" / "kernels").is_dir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "stated"))
    assert flex.kernel_cache() == str(tmp_path / "stated")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    (tmp_path / "file").touch()
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "file"))
    assert flex.kernel_cache() == default_cache_dir()


@pytest.mark.slow
def test_what_the_checks_at_load_compile_serves_every_later_pack(monkeypatch):
    torch._dynamo.reset()
    counters.clear()
    run = torch.compile(flex_attention, dynamic=True, backend="eager", fullgraph=True)
    monkeypatch.setattr(flex, "flex_attention", run)
    tree = Tree.of(tiny("llama", max_position_embeddings=2_048), 0)
    tree.model.chunk = 516
    assert verify._flex_fault(tree) is None
    compiled = counters["stats"]["unique_graphs"]
    # a pack in one forward, one in several, and one whose last forward has few nodes
    for seed, (steps, length) in enumerate([(3, 40), (5, 60), (2, 260)]):
        branches = [Branch(tuple(s)) for s in sequences(seed, steps, length)]
        tree.model.run(branches, execution="flex")
        assert counters["stats"]["unique_graphs"] == compiled
