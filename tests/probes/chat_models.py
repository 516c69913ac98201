"""Tiny models with a chat template, and labels of a sentiment task."""

from __future__ import annotations

import torch
from chat_tokenizers import tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig

from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

LABELS = (("positive", " positive"), ("positive", " Positive"), ("negative", " negative"))


def chat(family: str) -> Model:
    """A tiny random model that speaks in a family's real chat template."""
    words = tokenizer(family)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    torch.manual_seed(0)
    return wrap(AutoModelForCausalLM.from_config(config), words, name=f"tiny:{family}")
