"""Stand-ins for families of models, and an r′ that holds their marks."""

from __future__ import annotations

from dataclasses import replace

from chat_tokenizers import tokenizer
from tiny_models import tiny

from faithscope.interp.formats import detect_format
from faithscope.interp.model import Model

R_PRIME = "Okay, let’s see: 3 ≤ 4,\n\nso <think> it is 5."


def family(name: str) -> Model:
    tokens = tokenizer(name)
    base = tiny("llama", vocab_size=len(tokens) + 8)
    return replace(base, tokenizer=tokens, format=detect_format(tokens))
