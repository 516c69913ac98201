"""Tiny random models of every family, built from configs: no download, seconds."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from interp.loading import wrap
from interp.model import Model

VOCABULARY = 256

_SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
_GPT2 = {
    "vocab_size": VOCABULARY,
    "n_embd": 64,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 512,
    "bos_token_id": None,
    "eos_token_id": None,
}
_EXPERTS = {"num_experts_per_tok": 2}

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", _SMALL),
    "qwen2": ("Qwen2Config", _SMALL),
    "qwen3": ("Qwen3Config", _SMALL | {"head_dim": 24}),
    "mistral": ("MistralConfig", _SMALL | {"sliding_window": 8}),
    "phi3": ("Phi3Config", _SMALL),
    "gemma2": ("Gemma2Config", _SMALL | {"head_dim": 16, "sliding_window": 8}),
    "gemma3": ("Gemma3TextConfig", _SMALL | {"head_dim": 16, "sliding_window": 8}),
    "gpt_oss": (
        "GptOssConfig",
        _SMALL | _EXPERTS | {"head_dim": 16, "num_local_experts": 4, "sliding_window": 8},
    ),
    "gpt2": ("GPT2Config", _GPT2),
    "mixtral": ("MixtralConfig", _SMALL | {"num_local_experts": 4}),
    "qwen3_moe": (
        "Qwen3MoeConfig",
        _SMALL | _EXPERTS | {"head_dim": 16, "num_experts": 4, "moe_intermediate_size": 32},
    ),
    "cohere": ("CohereConfig", _SMALL),
    "granite": ("GraniteConfig", _SMALL | {"logits_scaling": 2.0}),
    "smollm3": ("SmolLM3Config", _SMALL),
    "olmo2": ("Olmo2Config", _SMALL),
    # keys of 24 dimensions, values of 16
    "deepseek_v3": (
        "DeepseekV3Config",
        _SMALL
        | _EXPERTS
        | {
            "num_key_value_heads": 4,
            "q_lora_rank": 24,
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "n_shared_experts": 1,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
    ),
}
"""Families a tree serves."""

NO_TREE: dict[str, tuple[str, dict[str, Any]]] = {
    "falcon": (
        "FalconConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "bos_token_id": None,
            "eos_token_id": None,
        },
    ),
    "gptj": ("GPTJConfig", _GPT2 | {"rotary_dim": 8}),
    "gpt_neo": (
        "GPTNeoConfig",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 64,
            "num_layers": 4,
            "attention_types": [[["global", "local"], 2]],
            "window_size": 8,
            "num_heads": 4,
            "max_position_embeddings": 512,
            "bos_token_id": None,
            "eos_token_id": None,
        },
    ),
    "qwen3_next": (
        "Qwen3NextConfig",
        _SMALL
        | _EXPERTS
        | {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "num_experts": 4,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
        },
    ),
}
"""Families that fall back to the loop."""


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A real byte-level tokenizer without merges: one token per byte of UTF-8."""
    vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def tiny(family: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Model:
    """A seeded random model; weights scaled up so that edits move its logits visibly."""
    kind, settings = (CONFIGS | NO_TREE)[family]
    config = getattr(transformers, kind)(**(settings | changes))
    torch.manual_seed(0)
    hf = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for parameter in hf.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(4)
    return wrap(hf, byte_tokenizer(), name=f"tiny:{family}")
