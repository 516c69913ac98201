"""A converted GGUF file is the model it was made from, down to its token ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_models import CONFIGS
from tokenizers import pre_tokenizers

from faithscope.interp import sources
from faithscope.interp.errors import UserError

gguf = pytest.importorskip("gguf", reason="needs faithscope[bundled]")

ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
MERGES = ["Ċ Ċ", "Ġ Ġ", "1 2"]
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = [*ALPHABET, *(m.replace(" ", "") for m in MERGES), *CONTROL]
START, END = VOCABULARY.index("<|im_start|>"), VOCABULARY.index("<|im_end|>")
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))


def random_model(family: str = "qwen2") -> Any:
    torch.manual_seed(0)
    kind, settings = CONFIGS[family]
    config = getattr(transformers, kind)(**(settings | {"vocab_size": len(VOCABULARY)}))
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.2)
    return model


def write(path: Path, model: Any, split: str = "qwen2", rope_factors: bool = False) -> Path:
    """`model` as a GGUF file, under llama.cpp's names, its weights as they are."""
    config = model.config
    out = gguf.GGUFWriter(path, config.model_type)
    out.add_block_count(config.num_hidden_layers)
    out.add_context_length(config.max_position_embeddings)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(config.num_attention_heads)
    out.add_head_count_kv(config.num_key_value_heads)
    out.add_rope_freq_base(config.rope_parameters["rope_theta"])
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(split)
    out.add_token_list(VOCABULARY)
    control = [gguf.TokenType.CONTROL] * len(CONTROL)
    out.add_token_types([gguf.TokenType.NORMAL] * (len(VOCABULARY) - len(CONTROL)) + control)
    out.add_token_merges(MERGES)
    out.add_eos_token_id(END)
    out.add_chat_template(TEMPLATE)
    if rope_factors:
        out.add_tensor("rope_freqs.weight", torch.ones(8).numpy())
    for name, tensor in model.state_dict().items():
        out.add_tensor(_gguf_name(name), tensor.numpy())
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def _gguf_name(name: str) -> str:
    outer = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in outer:
        return outer[name]
    _, _, layer, rest = name.split(".", 3)
    inner, _, kind = rest.rpartition(".")
    return f"blk.{layer}.{NAMES[inner]}.{kind}"


def convert(path: Path) -> tuple[Any, Any]:
    folder = sources.resolve(str(path), say=lambda line: None).location
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def test_the_weights_are_the_files_own(tmp_path: Path) -> None:
    model = random_model()
    converted, tokenizer = convert(write(tmp_path / "m.gguf", model))
    ids = torch.arange(2, 40).unsqueeze(0)
    with torch.no_grad():
        assert torch.equal(converted(ids).logits, model(ids).logits)
    assert not hasattr(converted.config, "quantization_config")
    assert converted.generation_config.eos_token_id == [END, END - 2]
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "ab"}], tokenize=True, return_dict=False
    )
    assert chat == [START, VOCABULARY.index("a"), VOCABULARY.index("b"), END]


def test_the_text_is_split_as_the_file_says(tmp_path: Path) -> None:
    model = random_model("llama")
    _, digits = convert(write(tmp_path / "digits.gguf", model, split="smollm"))
    assert digits.tokenize("\n\n12") == ["ĊĊ", "1", "2"]
    _, plain = convert(write(tmp_path / "plain.gguf", model, split="gpt-2"))
    assert plain.tokenize("\n\n12") == ["Ċ", "Ċ", "12"]


def test_what_cannot_be_read_faithfully_is_refused(tmp_path: Path) -> None:
    model = random_model()
    with pytest.raises(UserError, match="splits text in a way called 'unheard-of'"):
        convert(write(tmp_path / "split.gguf", model, split="unheard-of"))
    with pytest.raises(UserError, match="splits text otherwise than the file states"):
        convert(write(tmp_path / "class.gguf", model, split="smollm"))
    with pytest.raises(UserError, match=r"its RoPE is scaled \(rope_freqs\.weight\)"):
        convert(write(tmp_path / "rope.gguf", model, rope_factors=True))
    (tmp_path / "text.gguf").write_text("no weights here" * 100)
    with pytest.raises(UserError, match="not a GGUF file that transformers can read"):
        convert(tmp_path / "text.gguf")


def test_a_file_is_converted_once(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", random_model())
    said: list[str] = []
    first = sources.resolve(str(path), say=said.append)
    assert sources.resolve(str(path), say=said.append) == first
    assert said == ["converting m.gguf to safetensors (once)"]
    assert first.revision == sources.sha256(path)


@pytest.mark.slow
def test_the_bundled_model_reads_and_writes_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAITHSCOPE_CACHE")
    folder = sources.resolve("bundled:smollm2-135m").location
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.encode("Hello world") == [19556, 905]
    # the published tokenizer splits digits off first, so that line breaks before one stay one token
    assert tokenizer.tokenize("text\n\n1.") == ["text", "ĊĊ", "1", "."]
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    assert asked["input_ids"][0, :4].tolist() == [1, 9690, 198, 2683]
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert model.generation_config.eos_token_id == [2, 0]
    said = model.generate(**asked, max_new_tokens=16, do_sample=False)[0]
    answer = tokenizer.decode(said[asked["input_ids"].shape[1] :])
    assert answer == "The capital of France is Paris.<|im_end|>"
