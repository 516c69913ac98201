"""The checks at load: sound models pass, and every planted fault of ours is caught.

Faults are planted in our own functions, so plain transformers, which the checks compare with, has
none of them. Each is planted in float32 and in bfloat16.
"""

import pytest
import torch
from families import bushy, plain_logits
from tiny_models import NO_TREE, WINDOWED, random_weights, tiny

from faithscope.interp import attention, decoding, execute, prefill, verify
from faithscope.interp.continuation import continue_one_by_one
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.generation import Generation
from faithscope.interp.masks import EVERYTHING
from faithscope.interp.model import Model
from faithscope.interp.reference import Tree

DTYPES = [torch.float32, torch.bfloat16]


def is_run_one_by_one(model: Model, why: str) -> None:
    """The packed forest is off, says why, and what is read instead is right."""
    assert "packed runs differ from plain transformers" in (model.tree_reason or "")
    assert why in (model.tree_reason or "")
    ids = bushy()[0]
    run = model.run([Branch(ids)])
    assert (run.execution, run.reason) == ("loop", model.tree_reason)
    gap = float((plain_logits(model.hf, ids)[-1] - run.branches[0].logits).abs().max())
    assert gap < (1e-4 if model.dtype == "float32" else 0.1)


@pytest.mark.in_time(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3_moe", *list(WINDOWED)[:3], *NO_TREE])
def test_sound_models_pass(family: str, dtype: torch.dtype):
    model = tiny(family, dtype)
    assert model.supports_tree == (family not in NO_TREE)
    assert any("running one by one equals plain transformers" in c for c in model.checks)
    assert model.supports_tree == any("the packed forest equals plain" in c for c in model.checks)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["mistral", "phimoe", "qwen2_moe", "llama4_chunks"])
@pytest.mark.in_time(3)
def test_a_window_that_is_dropped_is_caught(family: str, dtype: torch.dtype, monkeypatch):
    monkeypatch.setattr(attention, "reach_of", lambda *_: EVERYTHING)
    # longer than the trees of a model without limits; only the config names it now
    key = "attention_chunk_size" if family == "llama4_chunks" else "sliding_window"
    is_run_one_by_one(tiny(family, dtype, **{key: 24}), "past 24 tokens: max |Δlogit|")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
def test_a_mask_that_is_lost_is_caught(family: str, dtype: torch.dtype, monkeypatch):
    def causal_alone(self, reach, free=0):
        return self.nodes[None, free:] <= torch.arange(self.start, self.stop)[:, None]

    monkeypatch.setattr(prefill._Together, "mask", causal_alone)
    is_run_one_by_one(tiny(family, dtype), "max |Δlogit|")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_position_off_by_one_is_caught(family: str, dtype: torch.dtype, monkeypatch):
    run = execute.forward

    def shifted(model, read, tokens, positions, keep):
        return run(model, read, tokens, positions + (positions > 11), keep)

    monkeypatch.setattr(execute, "forward", shifted)
    is_run_one_by_one(tiny(family, dtype), "a chain")


@pytest.mark.in_time(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoding_at_the_wrong_positions_is_caught(dtype: torch.dtype, monkeypatch):
    monkeypatch.setattr(
        decoding.Decode, "positions", property(lambda self: self.at - self._pad[:, 0] + 1)
    )
    is_run_one_by_one(tiny("llama", dtype), "decoding in lockstep")


@pytest.mark.in_time(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoding_that_sees_the_padding_is_caught(dtype: torch.dtype, monkeypatch):
    def everything(self, module, query):
        return None

    monkeypatch.setattr(decoding.Decode, "_mask", everything)
    is_run_one_by_one(tiny("llama", dtype), "decoding in lockstep")


@pytest.mark.in_time(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_branch_that_forgets_its_ancestors_is_caught(dtype: torch.dtype, monkeypatch):
    join = prefill._join

    def last_alone(x, run):
        joined = join(x, run).clone()
        joined[:, :, : max(0, run.depth - 2)] = 0
        return joined

    monkeypatch.setattr(prefill, "_join", last_alone)
    is_run_one_by_one(tiny("llama", dtype), "max |Δlogit|")


@pytest.mark.in_time(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_rows_that_are_wrong_are_caught(dtype: torch.dtype, monkeypatch):
    row = prefill.Prefill._row
    monkeypatch.setattr(prefill.Prefill, "_row", lambda self, *a: row(self, *a).roll(1, dims=-1))
    is_run_one_by_one(tiny("llama", dtype), "attention rows")


def test_rounding_of_large_biases_of_queries_and_keys_is_no_fault():
    # as in the first layer of Qwen2.5: products of thousands that nearly cancel in the softmax
    model = tiny("qwen2")
    attention = model.structure.layers[0].self_attn
    size = attention.head_dim
    for part in (attention.q_proj, attention.k_proj):
        part.bias.data.view(-1, size)[:, size // 2 - 1] = 30
    assert [verify._rows_fault(Tree.of(model, seed)) for seed in range(3)] == [None] * 3


def test_packed_runs_that_end_with_an_error_are_given_up(monkeypatch):
    def broken(self, module, part, *rest):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(prefill.Prefill, "_together", broken)
    is_run_one_by_one(tiny("llama"), "RuntimeError: shapes do not match")


@torch.inference_mode()
def without_positions(model, prefix, n, *, choose=None, stop=None, end_ids=None) -> Generation:
    """One token after another, positions left to the model."""
    tokens, past, written = torch.tensor([list(prefix)]), None, []
    while len(written) < n:
        out = model.hf(input_ids=tokens, past_key_values=past, use_cache=True)
        past = out.past_key_values
        written.append(int(choose(out.logits[:, -1].float())))
        tokens = torch.tensor([[written[-1]]])
    return Generation(tuple(written), "length")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["bamba", "minimax"])
@pytest.mark.in_time(2)
def test_a_loop_without_positions_is_refused(family: str, dtype: torch.dtype, monkeypatch):
    monkeypatch.setattr(verify, "continue_one_by_one", without_positions)
    layers = {
        "bamba": {"attn_layer_indices": [1, 2, 3]},
        "minimax": {"layer_types": ["linear_attention"] + ["full_attention"] * 3},
    }[family]
    with pytest.raises(UserError, match=r"run one by one in .*continuing a prompt: max"):
        tiny(family, dtype, num_hidden_layers=4, **layers)


@pytest.mark.in_time(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_loop_that_reads_wrongly_is_refused(dtype: torch.dtype, monkeypatch):
    one_by_one = execute.one_by_one

    def moved(model, sequences, ask, on_logits, *rest, **options):
        one_by_one(
            model, sequences, ask, lambda i, x: on_logits(i, x.roll(1, 0) + 0.5), *rest, **options
        )

    monkeypatch.setattr(execute, "one_by_one", moved)
    with pytest.raises(UserError, match="differs from"):
        tiny("bamba", dtype)


def test_limits_that_cost_too_much_are_not_reached_and_named(monkeypatch):
    monkeypatch.setattr(verify, "AFFORDABLE", {"cpu": 0})
    checks = tiny("mistral").checks
    assert "not checked past attention to the last 8 tokens: too long for the checks at load" in (
        checks
    )


def test_scaled_positions_are_checked_one_by_one():
    rope = {
        "rope_type": "dynamic",
        "rope_theta": 10000.0,
        "factor": 2.0,
        "original_max_position_embeddings": 32,
    }
    model = tiny("llama", rope_parameters=rope, max_position_embeddings=64)
    assert any("one by one equals plain transformers, also past 32" in c for c in model.checks)


def test_what_was_checked_is_what_is_then_run():
    model = tiny("bamba")
    chosen: list[int] = []

    def choose(logits: torch.Tensor) -> torch.Tensor:
        chosen.append(int(logits.argmax(-1)))
        return logits.argmax(-1)

    written = continue_one_by_one(model, [5, 6, 7], 6, choose=choose)
    assert list(written.ids) == chosen
    assert random_weights("bamba").training is False
