"""A model of the size of an 8B Llama with random weights, to measure speed and memory.

    python benchmarks/random_model.py FOLDER [--device cuda]
    python benchmarks/forest.py --model FOLDER --dtype bfloat16

32 layers of width 4,096 with 32 heads over 8 of keys, as Llama 3.1 8B, and 49,152 token ids: 7.4
billion parameters, written in bfloat16 (14 GiB) with a tokenizer of bytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from tiny_configs import byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    config = LlamaConfig(
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=49_152,
        max_position_embeddings=131_072,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(args.device):
        model = LlamaForCausalLM(config)
    model.save_pretrained(args.folder)
    byte_tokenizer().save_pretrained(args.folder)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters in {args.folder}")


if __name__ == "__main__":
    main()
