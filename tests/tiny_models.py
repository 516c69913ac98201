"""Tiny random models of every family, built from configs in seconds without download."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_configs import byte_tokenizer
from transformers import AutoModelForCausalLM

from faithscope.interp.loading import wrap
from faithscope.interp.model import Model

VOCABULARY = 256
DEVICE = os.environ.get("FAITHSCOPE_TEST_DEVICE", "cpu")
"""Device of the tests' tiny models: `cuda` runs the same tests on a GPU, `emulated:0` on an
emulated device that, like a GPU, refuses to be mixed with the CPU (`emulated_devices`)."""
if DEVICE.startswith("emulated"):
    import emulated_devices

    emulated_devices.require()

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
"""Families that the packed forest serves."""

_WINDOW = _SMALL | {"sliding_window": 8}
_SOME_WINDOWS = _WINDOW | {"use_sliding_window": True, "max_window_layers": 1}
_CHUNKS = _SMALL | {
    "num_hidden_layers": 4,
    "head_dim": 16,
    "intermediate_size_mlp": 64,
    "num_local_experts": 4,
    "attention_chunk_size": 8,
}
_QWEN_EXPERTS = _EXPERTS | {"num_experts": 4, "moe_intermediate_size": 32}

WINDOWED: dict[str, tuple[str, dict[str, Any]]] = {
    # only the mask has the window
    "phimoe": ("PhimoeConfig", _WINDOW | {"num_local_experts": 4}),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        _SOME_WINDOWS | _QWEN_EXPERTS | {"shared_expert_intermediate_size": 32},
    ),
    "mixtral_window": ("MixtralConfig", _WINDOW | {"num_local_experts": 4}),
    "phi3_window": ("Phi3Config", _WINDOW),
    "starcoder2": ("Starcoder2Config", _WINDOW),
    "ministral3": ("Ministral3Config", _WINDOW | {"head_dim": 16}),
    # the window is passed to the attention as well
    "qwen2_window": ("Qwen2Config", _SOME_WINDOWS),
    "qwen3_window": ("Qwen3Config", _SOME_WINDOWS | {"head_dim": 16}),
    "qwen3_moe_window": ("Qwen3MoeConfig", _SOME_WINDOWS | _QWEN_EXPERTS | {"head_dim": 16}),
    "smollm3_window": ("SmolLM3Config", _SOME_WINDOWS),
    "ministral": ("MinistralConfig", _WINDOW | {"head_dim": 16}),
    "cohere2": ("Cohere2Config", _WINDOW | {"head_dim": 16, "num_hidden_layers": 4}),
    "exaone4": ("Exaone4Config", _WINDOW | {"num_hidden_layers": 4}),
    "olmo3": ("Olmo3Config", _WINDOW | {"num_hidden_layers": 4}),
    "vaultgemma": ("VaultGemmaConfig", _WINDOW | {"head_dim": 16}),
    "dots1": (
        "Dots1Config",
        _SOME_WINDOWS
        | _EXPERTS
        | {
            "head_dim": 16,
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "moe_intermediate_size": 32,
            "first_k_dense_replace": 1,
        },
    ),
    "afmoe": (
        "AfmoeConfig",
        _WINDOW | _QWEN_EXPERTS | {"head_dim": 16, "num_hidden_layers": 4, "num_dense_layers": 1},
    ),
    # positions are cut into chunks
    "llama4_chunks": (
        "Llama4TextConfig",
        _CHUNKS | {"attn_temperature_tuning": False},
    ),
}
"""Families that the forest serves, with windows or chunks in the mask of transformers."""

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
    # the cache of the first layer does not tell how many tokens came before
    "bamba": (
        "BambaConfig",
        _SMALL
        | {
            "attn_layer_indices": [1],
            "mamba_n_heads": 8,
            "mamba_d_head": 16,
            "mamba_d_state": 8,
        },
    ),
    "minimax": (
        "MiniMaxConfig",
        _SMALL
        | {
            "num_local_experts": 4,
            "head_dim": 16,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
        },
    ),
    # layers with attention and a recurrent state
    "falcon_h1": (
        "FalconH1Config",
        _SMALL | {"mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8},
    ),
    # queries are scaled by their position in a forward
    "llama4": (
        "Llama4TextConfig",
        _CHUNKS | {"floor_scale": 16},
    ),
    # the mask contains weights
    "doge": ("DogeConfig", _SMALL),
}
"""Families that fall back to the loop."""


def random_weights(family: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A seeded transformers model; weights scaled up so that edits move its logits visibly."""
    kind, settings = (CONFIGS | WINDOWED | NO_TREE)[family]
    config = getattr(transformers, kind)(**(settings | changes))
    torch.manual_seed(0)
    hf = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for parameter in hf.parameters():
        if parameter.dim() > 1:
            parameter.data.mul_(4)
    return hf.eval()


def tiny(family: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Model:
    """A seeded random model, wrapped as a `Model` and verified."""
    weights = random_weights(family, dtype, **changes).to(DEVICE)
    return wrap(weights, byte_tokenizer(), name=f"tiny:{family}")


def saved(model: Model, folder: Path) -> str:
    """Saves a model, and returns its folder as a run can name it."""
    model.hf.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return str(folder)


@torch.inference_mode()
def hidden_states(model: Model, ids: Sequence[int]) -> list[torch.Tensor]:
    """(P, D) residual streams before the first and after each layer, by plain transformers."""
    last: list[torch.Tensor] = []

    def take(_: torch.nn.Module, __: tuple, out: torch.Tensor | tuple) -> None:
        last.append(out if isinstance(out, torch.Tensor) else out[0])

    # transformers' last hidden state is already normed
    hook = model.structure.layers[-1].register_forward_hook(take)
    out = model.hf(torch.tensor([list(ids)]), output_hidden_states=True, use_cache=False)
    hook.remove()
    return [h[0] for h in (*out.hidden_states[:-1], last[0])]
