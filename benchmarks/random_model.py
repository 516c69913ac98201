"""A model of the size of an 8B Llama with random weights, to measure speed and memory.

    python benchmarks/random_model.py FOLDER [--device cuda] [--size 1.5b]
    python benchmarks/forest.py --model FOLDER --dtype bfloat16

`8b`: 32 layers of width 4,096 with 32 heads over 8 of keys, as Llama 3.1 8B; `1.5b`: 28 layers of
width 1,536 with 12 heads over 2, as Qwen2.5-1.5B; `tiny` is for rehearsals on a CPU. All have
49,152 token ids (7.4 and 1.5 billion parameters), and are written in bfloat16 (14 and 3 GB) with a
tokenizer of bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tiny_configs import byte_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SIZES = {
    "8b": {
        "hidden_size": 4096,
        "intermediate_size": 14_336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    },
    "1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
    },
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}


def random_llama(device: str, size: str = "8b") -> LlamaForCausalLM:
    """The random model in bfloat16, made on `device`."""
    config = LlamaConfig(**SIZES[size], vocab_size=49_152, max_position_embeddings=131_072)  # pyright: ignore
    torch.manual_seed(0)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(usual)


def word_tokenizer(size: int = 49_152) -> PreTrainedTokenizerFast:
    """A tokenizer that encodes text in bytes and decodes all other ids as words, for texts that a
    random model writes."""
    vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocabulary |= {f"\u0120word{i}": i for i in range(len(vocabulary), size)}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=SIZES, default="8b")
    args = parser.parse_args()
    model = random_llama(args.device, args.size)
    model.save_pretrained(args.folder)
    byte_tokenizer().save_pretrained(args.folder)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters in {args.folder}")


if __name__ == "__main__":
    main()
