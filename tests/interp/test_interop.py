"""The adapters to TransformerLens and nnsight give the same numbers as ours, and leave our model
as it was.

Tolerance, float32: 1e-5 for logits and residual streams (of size about 10), 1e-6 for attention.
Ours run packed under sdpa, theirs one by one: the orders of summation differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate import dispatch_model
from nnsight.intervention.backends.remote import RemoteBackend
from tiny_models import CONFIGS, NO_TREE, tiny
from torch import Tensor, nn

from faithscope.interp import Branch, Knockout, Model, Patch, Read, Steer, UserError
from faithscope.interp.edits import SITES, Edit, Site
from faithscope.interp.interop import twin

FAMILIES = ["llama", "qwen3", "gpt2"]
WITHOUT_AN_ADAPTER = {"minimax", "doge"}
"""Families that TransformerLens 4.3 does not know."""
IDS = tuple(range(40, 64))
OTHER = (*IDS[:9], 200, *IDS[10:])
CLOSE = {"atol": 1e-5, "rtol": 0.0}
LAYER, AT = 1, 9


@pytest.fixture(params=FAMILIES, scope="module")
def model(request: pytest.FixtureRequest) -> Model:
    return tiny(request.param)


def ours(model: Model, ids: tuple[int, ...] = IDS, **options: Any) -> Read:
    every = tuple(range(len(ids)))
    wanted = {"residuals": True, "rows": model.supports_tree} | options
    return model.run([Branch(ids, ask=every)], **wanted).branches[0]


def batch(ids: tuple[int, ...] = IDS) -> Tensor:
    return torch.tensor([ids])


def layers_of(door: Any) -> Any:
    return door.transformer.h if hasattr(door, "transformer") else door.model.layers


def attention_of(layer: Any) -> Any:
    return layer.attn if hasattr(layer, "attn") else layer.self_attn


def norm_of(door: Any) -> Any:
    return door.transformer.ln_f if hasattr(door, "transformer") else door.model.norm


def patch(model: Model, site: Site) -> Patch:
    """What a site of one layer puts out in another text, to stand in ours."""
    read = ours(model, OTHER, sites=() if site == "residual" else (site,))
    assert read.residuals is not None
    if site == "residual":
        return Patch(site, LAYER, (AT,), read.residuals[[AT], LAYER + 1])
    return Patch(site, LAYER, (AT,), read.outputs[site][[AT], LAYER])


def edited(model: Model, edit: Edit) -> Tensor:
    """Our logits under an edit that does something."""
    branch = Branch(IDS, ask=tuple(range(len(IDS))), edits=(edit,))
    logits = model.run([branch]).branches[0].logits
    assert (logits - ours(model).logits).abs().max() > 0.01
    return logits


def test_transformer_lens_reads_what_we_read(model: Model) -> None:
    here = ours(model)
    door = model.to_transformer_lens()
    with torch.inference_mode():
        logits, cache = door.run_with_cache(batch())
        torch.testing.assert_close(logits[0], here.logits, **CLOSE)
        assert here.residuals is not None
        torch.testing.assert_close(
            cache["blocks.0.hook_resid_pre"][0], here.residuals[:, 0], **CLOSE
        )
        for layer in range(model.n_layers):
            stream = cache[f"blocks.{layer}.hook_resid_post"]
            torch.testing.assert_close(stream[0], here.residuals[:, layer + 1], **CLOSE)
            theirs = door.unembed(door.ln_final(stream))[0]
            lens = model.lens(here.residuals[:, layer + 1])
            torch.testing.assert_close(theirs, lens, **CLOSE)
            pattern = cache[f"blocks.{layer}.attn.hook_pattern"][0]
            for at, rows in enumerate(here.rows):
                seen = pattern[:, at, : at + 1]
                torch.testing.assert_close(seen, rows[layer], atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("site", SITES)
def test_transformer_lens_patches_as_we_do(model: Model, site: Site) -> None:
    edit = patch(model, site)
    names = {"residual": "hook_resid_post", "attention": "hook_attn_out", "mlp": "hook_mlp_out"}

    def write(stream: Tensor, hook: Any) -> Tensor:
        stream[:, AT] = edit.values[0]
        return stream

    door = model.to_transformer_lens()
    with torch.inference_mode():
        theirs = door.run_with_hooks(batch(), fwd_hooks=[(f"blocks.{LAYER}.{names[site]}", write)])
    torch.testing.assert_close(theirs[0], edited(model, edit), **CLOSE)


def test_transformer_lens_has_our_places_under_the_names_that_we_give(model: Model) -> None:
    here = ours(model, sites=("attention", "mlp"))
    assert here.residuals is not None
    with torch.inference_mode():
        _, cache = model.to_transformer_lens().run_with_cache(batch())
    assert len(model.hook_names()) == 4 * model.n_layers
    for name, (site, layer) in model.hook_names().items():
        own = here.residuals[:, layer + 1] if site == "residual" else here.outputs[site][:, layer]
        torch.testing.assert_close(cache[name][0], own, **CLOSE)


@pytest.mark.in_time(4)
@pytest.mark.parametrize("ablate", [False, True])
@pytest.mark.parametrize(
    "hook", ["hook_resid_pre", "hook_resid_post", "hook_attn_out", "hook_mlp_out"]
)
def test_transformer_lens_steers_as_we_do(model: Model, hook: str, ablate: bool) -> None:
    name = f"blocks.{LAYER}.{hook}"
    x = torch.randn(64, generator=torch.Generator().manual_seed(1))
    edit = Steer(name, None, x, None if ablate else 2.5, (AT, None), ablate=ablate)

    def write(stream: Tensor, hook: Any) -> Tensor:
        of = stream[:, AT:]
        stream[:, AT:] = of - (of @ x)[..., None] * x / (x @ x) if ablate else of + 2.5 * x
        return stream

    door = model.to_transformer_lens()
    with torch.inference_mode():
        theirs = door.run_with_hooks(batch(), fwd_hooks=[(name, write)])
    torch.testing.assert_close(theirs[0], edited(model, edit), **CLOSE)


def test_transformer_lens_cuts_edges_as_we_do(model: Model) -> None:
    edit = Knockout(queries=(AT + 4, None), keys=(AT, AT + 3), layers=(LAYER,), heads=(0, 2))

    def write(scores: Tensor, hook: Any) -> Tensor:
        scores[:, [0, 2], AT + 4 :, AT : AT + 3] = -torch.inf
        return scores

    door = model.to_transformer_lens()
    with torch.inference_mode():
        theirs = door.run_with_hooks(
            batch(), fwd_hooks=[(f"blocks.{LAYER}.attn.hook_attn_scores", write)]
        )
    torch.testing.assert_close(theirs[0], edited(model, edit), **CLOSE)


def test_nnsight_reads_what_we_read(model: Model) -> None:
    here = ours(model)
    assert here.residuals is not None
    door = model.to_nnsight(attention="eager")
    streams, patterns, lenses = [], [], []
    with door.trace(batch()):
        for layer in layers_of(door):
            patterns.append(attention_of(layer).output[1].save())
            stream = layer.output.save()
            streams.append(stream)
            lenses.append(door.lm_head(norm_of(door)(stream)).save())
        logits = door.lm_head.output.save()
    torch.testing.assert_close(logits[0], here.logits, **CLOSE)
    for layer, (stream, pattern, lens) in enumerate(zip(streams, patterns, lenses, strict=True)):
        torch.testing.assert_close(stream[0], here.residuals[:, layer + 1], **CLOSE)
        torch.testing.assert_close(lens[0], model.lens(here.residuals[:, layer + 1]), **CLOSE)
        for at, rows in enumerate(here.rows):
            seen = pattern[0, :, at, : at + 1]
            torch.testing.assert_close(seen, rows[layer], atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("site", SITES)
def test_nnsight_patches_as_we_do(model: Model, site: Site) -> None:
    edit = patch(model, site)
    door = model.to_nnsight()
    layer = layers_of(door)[LAYER]
    with door.trace(batch()):
        if site == "residual":
            layer.output[:, AT] = edit.values[0]
        elif site == "attention":
            attention_of(layer).output[0][:, AT] = edit.values[0]
        else:
            layer.mlp.output[:, AT] = edit.values[0]
        theirs = door.lm_head.output.save()
    torch.testing.assert_close(theirs[0], edited(model, edit), **CLOSE)


def test_what_is_done_behind_a_door_stays_there(model: Model) -> None:
    before = ours(model)
    config, special = model.hf.config.to_dict(), model.tokenizer.special_tokens_map
    lens, sight = model.to_transformer_lens(), model.to_nnsight(attention="eager")
    lens.enable_compatibility_mode()
    lens.original_model.to(torch.float64)
    sight._module.half()
    with sight.edit(inplace=True):
        layers_of(sight)[0].output[:] = 0
    assert model.hf.config.to_dict() == config
    assert model.tokenizer.special_tokens_map == special
    after = ours(model)
    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.residuals, before.residuals)
    assert all(torch.equal(a, b) for a, b in zip(after.rows, before.rows, strict=True))


def storages(*modules: nn.Module) -> dict[int, int]:
    tensors = [t for m in modules for t in [*m.parameters(), *m.buffers()]]
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}


def test_no_weight_is_copied(model: Model) -> None:
    own = storages(model.hf)
    assert not storages(twin(model.hf)).keys() - own.keys()
    sight = model.to_nnsight()
    assert not storages(sight._module).keys() - own.keys()
    lens = model.to_transformer_lens()
    new = {k: v for k, v in storages(lens, lens.original_model).items() if k not in own}
    vocabulary = model.hf.config.vocab_size
    assert sum(new.values()) == 4 * vocabulary, "TransformerLens adds a bias to the unembedding"


def test_tied_weights_stay_tied() -> None:
    model = tiny("gpt2")
    other = twin(model.hf)
    assert other.lm_head.weight is other.transformer.wte.weight
    assert other.lm_head.weight is not model.hf.lm_head.weight
    assert other.lm_head.weight.data_ptr() == model.hf.lm_head.weight.data_ptr()


def test_a_model_that_accelerate_placed_has_adapters_too(model: Model) -> None:
    placed = tiny(model.name.removeprefix("tiny:"))
    where = {name: "cpu" for name, _ in placed.hf.named_children()}
    dispatch_model(placed.hf, where, main_device="cpu", force_hooks=True)
    before = ours(model).logits
    with torch.inference_mode():
        torch.testing.assert_close(placed.to_transformer_lens()(batch())[0], before, **CLOSE)
    door = placed.to_nnsight()
    with door.trace(batch()):
        theirs = door.lm_head.output.save()
    torch.testing.assert_close(theirs[0], before, **CLOSE)
    assert torch.equal(ours(placed).logits, before)


@pytest.mark.in_time(3)
@pytest.mark.parametrize("family", [f for f in [*CONFIGS, *NO_TREE] if f not in FAMILIES])
def test_both_adapters_serve_every_family(family: str) -> None:
    model = tiny(family)
    here = ours(model, rows=False)
    if family in WITHOUT_AN_ADAPTER:
        with pytest.raises(UserError, match="has no adapter for"):
            model.to_transformer_lens()
    else:
        check_transformer_lens(model, here)
    door = model.to_nnsight()
    with door.trace(batch()):
        theirs = door.output.save()
    torch.testing.assert_close(theirs.logits[0], here.logits, **CLOSE)


def check_transformer_lens(model: Model, here: Read) -> None:
    with torch.inference_mode():
        logits, cache = model.to_transformer_lens().run_with_cache(batch())
    torch.testing.assert_close(logits[0], here.logits, **CLOSE)
    assert here.residuals is not None
    last = cache[f"blocks.{model.n_layers - 1}.hook_resid_post"][0]
    torch.testing.assert_close(last, here.residuals[:, -1], **CLOSE)


class TestRemote:
    """nnsight's own client, without a network."""

    def test_a_dry_run_of_the_remote_path_gives_the_same(self, model: Model) -> None:
        door = model.to_nnsight()
        with door.trace(batch(), remote="local"):
            theirs = door.lm_head.output.save()
        torch.testing.assert_close(theirs[0], ours(model).logits, **CLOSE)

    def test_the_client_is_told_model_revision_and_kernel(
        self, model: Model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(
            sys.modules["nnsight.modeling.huggingface"]._ID_CACHE, "org/model", "org/model"
        )
        door = door_of_hub(model, revision="abc")
        backend = door._remote_backend("http://127.0.0.1:9", True, None, False)
        assert isinstance(backend, RemoteBackend)
        assert '"repo_id": "org/model"' in backend.model_key
        assert '"revision": "abc"' in backend.model_key
        assert backend.env == {"attn_implementation": "sdpa"}
        with (
            pytest.raises(ConnectionRefusedError),
            door.trace(batch(), remote="http://127.0.0.1:9"),
        ):
            door.lm_head.output.save()


def door_of_hub(model: Model, **options: Any) -> Any:
    """The door of a model that was loaded by a hub id."""
    model.hf.name_or_path, before = "org/model", model.hf.name_or_path
    try:
        return model.to_nnsight(**options)
    finally:
        model.hf.name_or_path = before


@pytest.mark.parametrize(
    ("opened", "module", "extra"),
    [
        (Model.to_transformer_lens, "transformer_lens.model_bridge", "tl"),
        (Model.to_nnsight, "nnsight.modeling.transformers", "nnsight"),
    ],
)
def test_a_missing_extra_is_named(
    opened: Callable[[Model], Any], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"pip install 'faithscope\[{extra}\]'"):
        opened(tiny("llama"))


def test_an_architecture_that_transformer_lens_lacks_is_named() -> None:
    model = tiny("llama")
    model.hf.config.architectures, model.hf.config.model_type = ["UnheardOf"], "unheard_of"
    with pytest.raises(UserError, match="no adapter for LlamaForCausalLM"):
        model.to_transformer_lens()


def test_offloaded_weights_are_refused() -> None:
    model = tiny("llama")
    model.hf.lm_head.to("meta")
    for opened in (model.to_transformer_lens, model.to_nnsight):
        with pytest.raises(UserError, match="offloaded"):
            opened()
