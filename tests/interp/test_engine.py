"""Exact identities of the engine, on every supported family."""

import pytest
import torch
from families import bushy, gap
from tiny_models import CONFIGS, tiny

from faithscope.interp import flex, prefill
from faithscope.interp.continuation import continue_one_by_one
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model


def skip_without_flex(model: Model, execution: str) -> None:
    """Skip where FlexAttention is not to be had; where a check at load found a fault, fail."""
    reason = flex.reason_against(model.hf, model.device)
    if execution == "flex" and model.device.type != "cpu" and reason is not None:
        pytest.skip(f"no FlexAttention: {reason}")


UNCOMPILED = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.in_time(24)
@UNCOMPILED
@pytest.mark.parametrize("execution", ["packed", "dense", "flex"])
def test_forest_equals_one_by_one(tree_model: Model, execution):
    skip_without_flex(tree_model, execution)
    branches = [Branch(s, ask=(-1, 0)) for s in bushy()]
    packed = tree_model.run(branches, execution=execution)
    loop = tree_model.run(branches, execution="loop")
    assert packed.trie_tokens < loop.trie_tokens == packed.naive_tokens
    for p, q in zip(packed.branches, loop.branches, strict=True):
        assert gap(p.logits, q.logits) < 1e-4
        assert p.logits.argmax(-1).tolist() == q.logits.argmax(-1).tolist()


@pytest.mark.in_time(8)
@UNCOMPILED
@pytest.mark.parametrize("execution", ["packed", "flex"])
def test_small_chunks_and_budgets_change_nothing(tree_model: Model, execution):
    skip_without_flex(tree_model, execution)
    branches = [Branch(s) for s in bushy(1)]
    whole = tree_model.run(branches)
    model = tiny(tree_model.name.removeprefix("tiny:"))
    model.chunk, model.token_budget = 7, 60
    split = model.run(branches, execution=execution)
    # what a pack shares with the one before is not run again
    assert split.trie_tokens == whole.trie_tokens
    for p, q in zip(whole.branches, split.branches, strict=True):
        assert gap(p.logits, q.logits) < 1e-4


def test_runs_cut_into_blocks_of_queries_change_nothing(tree_model: Model, monkeypatch):
    branches = [Branch(s, ask=(-1, 0)) for s in bushy(3)]
    loop = tree_model.run(branches, execution="loop")
    monkeypatch.setattr(prefill, "_BLOCK", 4)
    for p, q in zip(tree_model.run(branches).branches, loop.branches, strict=True):
        assert gap(p.logits, q.logits) < 1e-4


def test_a_pattern_is_the_rows_of_the_asked_positions(tree_model: Model):
    (ids, *_) = bushy(2)
    read = tree_model.run([Branch(ids, ask=(1, len(ids) - 1))], rows=True).branches[0]
    assert gap(read.pattern[:, :, 0, :2], read.rows[0]) == 0
    assert not read.pattern[:, :, 0, 2:].any()
    assert gap(read.pattern[:, :, 1], read.rows[1]) == 0
    with pytest.raises(ValueError, match="rows=True"):
        _ = tree_model.run([Branch(ids)]).branches[0].pattern


def test_attention_rows_are_eager_rows(tree_model: Model):
    sequences = bushy(2)
    packed = tree_model.run([Branch(s) for s in sequences], rows=True)
    name = tree_model.hf.config._attn_implementation
    tree_model.hf.set_attn_implementation("eager")
    try:
        for ids, read in zip(sequences, packed.branches, strict=True):
            with torch.inference_mode():
                out = tree_model.hf(
                    torch.tensor([ids], device=tree_model.device),
                    output_attentions=True,
                    use_cache=False,
                )
            patterns = torch.stack([a[0, :, -1] for a in out.attentions])
            assert gap(read.rows[0], patterns) < 1e-5
    finally:
        tree_model.hf.set_attn_implementation(name)


def test_residuals_and_lens(tree_model: Model):
    ids = bushy(3)[0]
    read = tree_model.run([Branch(ids, ask=(-1, 1))], residuals=True).branches[0]
    assert read.residuals is not None
    assert read.residuals.shape[:2] == (2, tree_model.n_layers + 1)
    assert gap(tree_model.lens(read.residuals[:, -1]), read.logits) < 1e-4
    some = tree_model.lens(read.residuals, options=[3, 250])
    assert gap(some, tree_model.lens(read.residuals)[..., [3, 250]]) < 1e-5


def test_labels_and_answers_equal_one_by_one(tree_model: Model):
    prefixes = bushy(4, n=5)
    prefixes.append(prefixes[0])
    labels = [[[1, 2], [1, 3, 4], [9]]] * len(prefixes)
    packed = tree_model.ask(prefixes, labels, 6)
    loop = tree_model.ask(prefixes, labels, 6, execution="loop")
    for p, q in zip(packed, loop, strict=True):
        assert p.log_probs == pytest.approx(q.log_probs, abs=1e-3)
        assert p.label_lengths == (2, 3, 1)
        assert p.generated == q.generated
    assert packed[0] == packed[-1]


def test_a_label_counts_every_token(llama: Model):
    prefix, label = [5, 6, 7], [8, 9]
    (answered,) = llama.ask([prefix], [[label]])
    logits = llama.run([Branch((5, 6, 7, 8), ask=(2, 3))], execution="loop").branches[0].logits
    log_probs = logits.log_softmax(-1)
    assert answered.log_probs[0] == pytest.approx(
        float(log_probs[0, 8] + log_probs[1, 9]), abs=1e-4
    )


@pytest.mark.in_time(1)
def test_a_batch_generates_what_each_prompt_would_alone(tree_model: Model):
    prompts = [s[:n] for s, n in zip(bushy(5, n=4), (3, 9, 20, 1), strict=True)]
    together = tree_model.generate(prompts, 70)
    for prompt, generation in zip(prompts, together, strict=True):
        assert generation == continue_one_by_one(tree_model, prompt, 70)
        assert generation.finish == "length"


def test_end_tokens_end_a_sequence_and_are_not_kept(llama: Model):
    model = tiny("llama")
    free = model.generate([[5, 6, 7], [9, 10]], 20)
    end = free[0].ids[4]
    model.end_ids = frozenset({end})
    for before, after in zip(free, model.generate([[5, 6, 7], [9, 10]], 20), strict=True):
        cut = before.ids.index(end) if end in before.ids else None
        assert after.ids == before.ids[:cut]
        assert after.finish == ("length" if cut is None else "stop")


def test_sampling_does_not_depend_on_the_batch(llama: Model):
    prompts = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    together = llama.generate(prompts, 12, temperature=1.0, seed=3)
    assert together == llama.generate(prompts, 12, temperature=1.0, seed=3)
    assert together != llama.generate(prompts, 12, temperature=1.0, seed=4)
    assert together[0] == llama.generate(prompts[:1], 12, temperature=1.0, seed=3)[0]
    own = llama.generate(prompts, 12, temperature=1.0, seed=[5, 6, 7])
    assert own[::-1] == llama.generate(prompts[::-1], 12, temperature=1.0, seed=[7, 6, 5])
    with pytest.raises(ValueError, match="3 prompts but 2 seeds"):
        llama.generate(prompts, 12, temperature=1.0, seed=[5, 6])


def test_stop_ends_a_continuation(llama: Model):
    seen: list[str] = []

    def stop(text: str) -> bool:
        seen.append(text)
        return len(text) >= 3

    (answered,) = llama.ask([[1, 2, 3]], None, 30, stop=stop)
    assert answered.generated is not None
    assert answered.generated.finish == "stop"
    assert len(seen) == len(answered.generated.ids)


def test_models_without_a_tree_take_the_loop_and_say_so(loop_model: Model):
    assert not loop_model.supports_tree
    run = loop_model.run([Branch((1, 2, 3)), Branch((1, 2, 4))])
    assert run.execution == "loop"
    assert run.reason == loop_model.tree_reason
    answered = loop_model.ask([[1, 2, 3]], [[[4], [5, 6]]], 3)
    assert len(answered[0].log_probs) == 2
    with pytest.raises(UserError, match="execution 'packed' is not possible"):
        loop_model.run([Branch((1, 2, 3))], execution="packed")


def test_length_dependent_rope_takes_the_loop_only_when_long():
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    model = tiny("llama", rope_parameters=rope, max_position_embeddings=64)
    assert model.run([Branch(tuple(range(60)))]).execution == "packed"
    model.hf.config.max_position_embeddings = 128
    model.hf.config.rope_parameters["original_max_position_embeddings"] = 64
    run = model.run([Branch(tuple(range(70)))])
    assert run.execution == "loop"
    assert "dynamic RoPE" in (run.reason or "")


def test_a_sequence_over_the_positions_is_refused(llama: Model):
    with pytest.raises(UserError, match=r"600 tokens does not fit its 512 positions"):
        llama.run([Branch(tuple([1] * 600))])


def test_every_supported_family_verifies():
    for family in CONFIGS:
        checks = tiny(family).checks
        assert any("packed forest equals" in c for c in checks)
