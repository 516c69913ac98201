"""Real model folders with one thing wrong each, and one that writes what it is told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tiny_models import VOCABULARY, byte_tokenizer, tiny
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

POSITIONS = 1024


def saved(folder: Path, hf: Any, tokenizer: Any) -> Path:
    hf.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def random_llama(folder: Path) -> Path:
    """Nothing wrong: a tiny random model."""
    model = tiny("llama")
    return saved(folder, model.hf, model.tokenizer)


def scripted(
    folder: Path,
    text: str,
    *,
    positions: int = POSITIONS,
    tokenizer: PreTrainedTokenizerFast | None = None,
) -> Path:
    """A GPT-2 that writes `text` over and over, whatever it is asked.

    The position alone says which byte comes next; what is read moves the logits a little, as
    the checks at load demand. An empty text writes the end token at once.
    """
    tokenizer = tokenizer or byte_tokenizer()
    end = len(tokenizer)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=max(VOCABULARY, end) + 1,
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_positions=positions,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=end,
    )
    hf = GPT2LMHeadModel(config)
    words = torch.nn.functional.normalize(torch.randn(config.vocab_size, 64), dim=-1)
    hf.lm_head.weight.data = 8 * words
    written = tokenizer(text)["input_ids"] if text else [end]
    for at in range(positions):
        hf.transformer.wpe.weight.data[at] = 20 * words[written[at % len(written)]]
    return saved(folder, hf, tokenizer)


def with_a_nan_for(folder: Path, letter: str) -> Path:
    """One row of the embeddings is NaN: whatever is asked with that letter in it breaks."""
    model = tiny("llama")
    (token,) = model.encode(letter)
    model.hf.model.embed_tokens.weight.data[token] = torch.nan
    return saved(folder, model.hf, model.tokenizer)


def truncated(folder: Path) -> str:
    weights = random_llama(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5000])
    return str(folder)


def garbled(folder: Path, name: str) -> str:
    (random_llama(folder) / name).write_bytes(b"\xff\x00 this is no such file \x00" * 9)
    return str(folder)


def without_a_layer(folder: Path) -> str:
    from safetensors.torch import load_file, save_file

    weights = random_llama(folder) / "model.safetensors"
    kept = {k: v for k, v in load_file(weights).items() if ".layers.2." not in k}
    save_file(kept, weights, metadata={"format": "pt"})
    return str(folder)


def with_a_larger_tokenizer(folder: Path) -> str:
    path = random_llama(folder) / "tokenizer.json"
    values = json.loads(path.read_text())
    vocabulary = values["model"]["vocab"]
    vocabulary |= {f"extra{i}": len(vocabulary) + i for i in range(7)}
    path.write_text(json.dumps(values))
    return str(folder)


def garbage_gguf(folder: Path) -> str:
    path = folder.with_suffix(".gguf")
    path.write_bytes(b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 400)
    return str(path)


def not_gguf(folder: Path) -> str:
    path = folder.with_suffix(".gguf")
    path.write_bytes(b"<html>404 not found</html>")
    return str(path)
