"""Loading, the checks at load, and the text of tokens."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import byte_tokenizer, saved, tiny
from torch import nn

from faithscope import interp
from faithscope.interp import detokenise, verify
from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interp.structure import probe

TOKENIZER = byte_tokenizer()


@pytest.fixture
def folder(tmp_path, llama: Model):
    """A model folder laid out as on the hub."""
    config = llama.hf.config
    llama.hf.save_pretrained(tmp_path / "tiny")
    llama.tokenizer.save_pretrained(tmp_path / "tiny")
    assert config is llama.hf.config
    return tmp_path / "tiny"


def test_a_local_folder_loads_and_verifies(folder, llama: Model):
    model = interp.load(str(folder), dtype="float32", device="cpu")
    assert model.dtype == "float32"
    assert model.n_layers == 3
    assert len(model.checks) == 4
    prompt = model.encode("2 + 2 =")
    assert model.generate([prompt], 5) == llama.generate([prompt], 5)


def test_dtype_is_taken(folder):
    assert interp.load(str(folder), dtype="bfloat16", device="cpu").dtype == "bfloat16"


@pytest.fixture
def outliers(tmp_path) -> str:
    """The folder of a model whose activations have an outlier column, as those of real models."""
    # the 4-bit kernel of a CPU takes widths that are multiples of 64
    model = tiny("llama", intermediate_size=128)
    with torch.no_grad():
        for layer in model.structure.layers:
            layer.input_layernorm.weight[3] = 40.0  # pyright: ignore
    return saved(model, tmp_path / "outliers")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("quantize", ["8bit", "4bit"])
def test_quantised_weights_compute_in_the_dtype_and_read_no_token_ahead(outliers, quantize, dtype):
    bnb = pytest.importorskip("bitsandbytes", reason="the quant extra is not installed")
    # an 8-bit model that looked ahead would be refused here
    model = interp.load(outliers, quantize=quantize, device="cpu", dtype=dtype)
    kind = {"8bit": bnb.nn.Linear8bitLt, "4bit": bnb.nn.Linear4bit}[quantize]
    layers = [module for module in model.hf.modules() if isinstance(module, kind)]
    assert len(layers) == 7 * model.n_layers
    assert model.dtype == dtype
    if quantize == "4bit":
        assert {x.compute_dtype for x in layers} == {getattr(torch, dtype)}
    assert "ZeroDivisionError" not in str(model.tree_reason)
    (read,) = model.run([interp.Branch(model.encode("abc"))]).branches
    assert read.logits.isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda:97"}, "device 'cuda:97' is not usable here"),
        ({"dtype": "float12"}, "unknown dtype 'float12'"),
    ],
)
def test_bad_settings_name_the_remedy(folder, options, message):
    with pytest.raises(UserError, match=message):
        interp.load(str(folder), **options)


def test_a_tokenizer_of_another_model_is_refused(folder):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    for i in range(300):
        content["model"]["vocab"][f"extra{i}"] = 256 + i
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="do not belong together"):
        interp.load(str(folder), device="cpu")


def test_logits_beyond_the_dtype_are_refused():
    broken = tiny("llama")
    broken.hf.get_output_embeddings().weight.data.fill_(3e38)
    with pytest.raises(UserError, match="not finite"):
        verify.verify(broken)


def test_cut_attention_is_noticed():
    model = tiny("llama")
    for layer in model.structure.layers:
        layer.self_attn.o_proj.weight.data.zero_()
    with pytest.raises(UserError, match="leaves the last logits as they were"):
        verify.verify(model)


def test_a_lens_over_another_norm_is_turned_off_and_says_so():
    model = tiny("llama")
    assert model.structure.stream is not None
    wrong = replace(model.structure.stream, final_norm=nn.Identity())
    model.structure = replace(model.structure, stream=wrong)
    checks = verify.verify(model)
    assert "residual streams and lens off: the last layer's lens is not the logits" in checks[1]
    with pytest.raises(UserError, match="no residual stream, patch or lens of this model"):
        model.lens(torch.zeros(1, 64))
    assert model.supports_tree


def test_structure_is_probed(tree_model: Model):
    parts = tree_model.structure
    assert len(parts.layers) == parts.attention_layers == 3
    assert parts.unembedding is tree_model.hf.get_output_embeddings()
    assert "norm" in type(parts.final_norm).__name__.lower()


class _Packed(nn.Module):
    """A linear map whose weights are buffers, as GPTQ and AWQ keep theirs."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("qweight", linear.weight.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.qweight.T


def test_parts_whose_weights_are_buffers_are_found() -> None:
    model = tiny("llama")
    for layer in model.structure.layers:
        for child in (layer.self_attn, layer.mlp):
            for name, linear in list(child.named_children()):
                if isinstance(linear, nn.Linear):
                    setattr(child, name, _Packed(linear))
    parts = probe(model.hf).stream
    assert parts is not None
    assert list(parts.attentions) == [layer.self_attn for layer in parts.layers]
    assert list(parts.mlps) == [layer.mlp for layer in parts.layers]


@given(st.text(max_size=60))
def test_pieces_join_to_the_text(text):
    ids = TOKENIZER(text)["input_ids"]
    pieces = detokenise.pieces(TOKENIZER, ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == text


def test_a_character_belongs_to_the_token_that_completes_it():
    ids = TOKENIZER("a🦉b")["input_ids"]
    assert detokenise.pieces(TOKENIZER, ids) == ("a", "", "", "", "🦉", "b")


def test_an_incomplete_character_at_the_end_is_shown_as_such():
    ids = TOKENIZER("a🦉")["input_ids"][:-1]
    assert detokenise.pieces(TOKENIZER, ids)[-1] == "�"
