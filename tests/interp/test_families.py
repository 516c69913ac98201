"""Families as users load them: saved to disk, read by `interp.load`, against transformers alone."""

import json
from pathlib import Path

import pytest
import torch
from all_families import FAMILIES, MARKS, plain_logits, save, service, texts
from transformers import AutoModelForCausalLM

from faithscope import interp
from faithscope.interp.errors import UserError
from faithscope.interp.forest import Branch

DOCUMENT = Path(__file__).parents[2] / "docs" / "numerics.md"

SERVED = {
    # keys and values of different widths
    "deepseek_v2": "packed",
    # a final norm without weights
    "olmo": "packed",
    # adds its mask without looking whether there is one
    "modernbert-decoder": "packed",
    # several residual streams, and layers that share keys
    "gemma3n_text": "packed",
    # its attention classes are named by implementation
    "falcon": "loop",
    # its layers put out a named tuple
    "reformer": "loop",
    "gptj": "loop",
    "gpt_neo": "loop",
    # attention of its own
    "mpt": "loop",
    "openai-gpt": "loop",
    # a cache under another name
    "mamba": "loop",
    "rwkv": "loop",
    # recurrent or convolutional layers beside attention, or in it
    "recurrent_gemma": "loop",
    "falcon_h1": "loop",
    # an index picks keys, under an implementation that it knows by name
    "deepseek_v32": "loop",
    "glm_moe_dsa": "loop",
    # a mask that depends on the values
    "doge": "loop",
    # two calls of attention a layer
    "diffllama": "loop",
    # positions counted from the padding token's id
    "roberta": "loop",
    # logits of every position, asked for or not
    "whisper": "loop",
    # tokens see those that follow
    "xlnet": "refused",
}


@pytest.mark.parametrize(("family", "how"), SERVED.items())
@pytest.mark.in_time(5)
def test_a_family_is_served_in_the_best_way_there_is(family: str, how: str, tmp_path):
    served = service(family, tmp_path)
    assert served.how == how, served
    assert bool(served.reason) == (how != "packed")
    assert served.gap < 1e-4
    assert served.wrong == 0


def test_a_state_space_model_samples_under_a_penalty(tmp_path):
    save("mamba", tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    prompts = [[5, 6, 7, 8], [9, 10]]
    options = {"temperature": 1.0, "top_p": 0.9, "repetition_penalty": 1.3}
    drawn = model.generate(prompts, 8, seed=[3, 4], **options)
    assert [len(g.ids) for g in drawn] == [8, 8]
    assert drawn[1] == model.generate(prompts[1:], 8, seed=[4], **options)[0]
    (answered,) = model.ask(prompts[:1], [[[1], [2, 3]]], 3)
    assert answered.generated is not None
    assert answered.generated.ids == model.generate(prompts[:1], 3)[0].ids


def test_a_model_without_a_stream_is_asked_and_says_what_it_lacks(tmp_path):
    save("gemma3n_text", tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    assert model.structure.unknown is not None
    assert any(line.startswith("residual streams and lens off: ") for line in model.checks)
    (answered,) = model.ask([[5, 6, 7]], [[[1], [2, 3]]], 4)
    assert len(answered.log_probs) == 2
    lacks = "Gemma3nForCausalLM: no residual stream, patch or lens of this model"
    with pytest.raises(UserError, match=lacks):
        model.run([Branch((5, 6, 7))], residuals=True)
    with pytest.raises(UserError, match=lacks):
        model.lens(torch.zeros(1, 64))
    patch = interp.Patch("residual", 0, (0,), torch.zeros(1, 64))
    with pytest.raises(UserError, match=lacks):
        model.run([Branch((5, 6, 7), edits=(patch,))])


def test_an_encoder_is_refused_with_what_would_make_it_a_decoder(tmp_path):
    save("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"is_decoder": False}))
    with pytest.raises(UserError, match=r"BertLMHeadModel looks ahead .* set is_decoder: true"):
        interp.load(str(tmp_path), device="cpu")


def test_a_configuration_that_transformers_cannot_run_is_named(tmp_path):
    save("llama4_text", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"attention_chunk_size": None}))
    with pytest.raises(
        UserError, match=r"cannot be run: .*attention_chunk_size.*Llama4ForCausalLM"
    ):
        interp.load(str(tmp_path), device="cpu")


def test_a_family_that_is_no_language_model_is_named(tmp_path):
    save("llama", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "vit"}))
    with pytest.raises(UserError, match="no causal language model of the family 'vit'"):
        interp.load(str(tmp_path), device="cpu")


def test_a_model_that_is_never_packed_runs_under_transformers_own_attention(tmp_path):
    save("deepseek_v32", tmp_path)
    model = interp.load(str(tmp_path), dtype="float32", device="cpu")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.hf.config._attn_implementation == plain.config._attn_implementation


def documented() -> dict[str, str]:
    """How each family is served by the table of the document."""
    section = DOCUMENT.read_text().split(MARKS[0])[1].split(MARKS[1])[0]
    served = {}
    for line in section.splitlines()[2:]:
        how, _, families, _ = (cell.strip() for cell in line.strip("|").split(" | "))
        served |= {family.strip("`"): how for family in families.split(", ")}
    return served


def test_the_document_names_every_family():
    assert set(documented()) == set(FAMILIES)


def rounding(saved: Path) -> float:
    """How far plain transformers in float32 is from itself in float64, as a `Service.gap` is
    taken."""
    plain = AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32).eval()
    narrow = [plain_logits(plain, ids) for ids in texts()]
    wide = [plain_logits(plain.double(), ids) for ids in texts()]
    gaps = [float((a - b).abs().max()) for a, b in zip(narrow, wide, strict=True)]
    return max(gaps) / float(narrow[0].std())


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_served_as_the_document_says(family: str, tmp_path):
    served = service(family, tmp_path)
    assert served.how == documented()[family], served
    # where plain transformers itself is further from float64 (Gemma 4: 1.4e-4), as near as that
    assert served.gap < 1e-4 or served.gap < rounding(tmp_path)
    assert served.wrong == 0
