"""Tiny configurations of all causal language model families of transformers.

Each is the family's default with all sizes reduced: four layers, a width of 64, windows and chunks
of 8 tokens, so that a text of 50 tokens reaches past all of them.
"""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedConfig, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

VOCABULARY = 320
"""Size of the vocabulary, above the 256 of a byte tokenizer: some tokenizer classes add tokens."""


def _all(names: str, value: int) -> dict[str, int]:
    return dict.fromkeys(names.split(), value)


_SIZES: dict[str, int] = {
    **_all("vocab_size unpadded_vocab_size vocab_size_per_layer_input", VOCABULARY),
    **_all(
        "num_hidden_layers n_layer n_layers num_layers num_blocks decoder_layers encoder_layers "
        "num_decoder_layers num_encoder_layers",
        4,
    ),
    **_all(
        "hidden_size d_model n_embd embedding_size embedding_dim emb_dim word_embed_proj_dim "
        "input_embedding_size output_embedding_size lru_width",
        64,
    ),
    **_all(
        "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim ffn_hidden_size dim_ff dff "
        "d_inner feed_forward_size intermediate_size_mlp dense_intermediate_size",
        96,
    ),
    **_all(
        "num_attention_heads encoder_attention_heads decoder_attention_heads attention_heads "
        "num_encoder_attention_heads num_decoder_attention_heads n_head n_heads num_heads "
        "swa_num_attention_heads num_query_groups linear_num_heads linear_num_value_heads",
        4,
    ),
    **_all("num_key_value_heads num_kv_heads swa_num_key_value_heads linear_num_key_heads", 2),
    **_all(
        "head_dim d_head dim_head kv_channels swa_head_dim linear_head_dim linear_key_head_dim "
        "linear_value_head_dim attention_head_size global_head_dim",
        16,
    ),
    **_all(
        "max_position_embeddings n_positions n_ctx max_seq_len model_max_length context_length "
        "max_target_positions original_max_position_embeddings",
        512,
    ),
    # mixtures of experts
    **_all("num_experts n_routed_experts num_local_experts moe_num_experts", 4),
    **_all("num_experts_per_tok num_experts_per_token moe_topk moe_top_k moe_k", 2),
    **_all(
        "moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size "
        "shared_experts_intermediate_size expert_ffn_hidden_size router_hidden_size "
        "moe_shared_expert_intermediate_size",
        32,
    ),
    **_all(
        "n_shared_experts num_shared_experts moe_num_shared_experts num_nextn_predict_layers "
        "topk_group first_k_dense_replace num_dense_layers zero_expert_num",
        1,
    ),
    **_all("n_group num_expert_group", 2),
    # multi-head latent attention, and its index of keys
    **_all("q_lora_rank qk_head_dim", 24),
    **_all("kv_lora_rank qk_nope_head_dim v_head_dim index_head_dim index_topk", 16),
    **_all("qk_rope_head_dim index_block_size", 8),
    "index_n_heads": 4,
    "index_topk_blocks": 2,
    # windows and chunks
    **_all(
        "sliding_window sliding_window_size attention_window_size window_size local_attention "
        "keep_window_size attention_chunk_size",
        8,
    ),
    # recurrent and convolutional layers
    **_all("mamba_d_state state_size ssm_state_size mamba_d_head mamba_head_dim mamba_headdim", 16),
    **_all("mamba_d_conv time_step_rank mamba_dt_rank", 4),
    **_all("mamba_n_heads mamba_num_heads mamba_chunk_size chunk_size block_size", 8),
    **_all("mamba_expand n_mamba_heads", 2),
    **_all("mamba_n_groups n_groups", 1),
    "mamba_d_ssm": 128,
    # single families
    **_all("hidden_size_per_layer_input laurel_rank rotary_dim adapter_rank", 8),
    **_all("o_lora_rank rel_extent", 16),
    **_all("num_kv_shared_layers o_groups max_window_layers", 2),
}

_ALTERNATE = ["sliding_attention", "full_attention"] * 2
_HYBRID = ["linear_attention", "linear_attention", "hybrid", "hybrid"]
_LINEAR = ["linear_attention", "full_attention"] * 2
_IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_PADDED = {"pad_token_id": 1}
_GEMMA4 = {"layer_types": _ALTERNATE, "num_kv_shared_layers": 2, "pad_token_id": 0}
_DOTS = {
    "num_key_value_heads": 4,
    "use_dsa": True,
    "sliding_window_size": 8,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 4,
    "swa_q_lora_rank": 24,
    "swa_kv_lora_rank": 16,
    "swa_head_dim": 24,
    "swa_qk_nope_head_dim": 16,
    "swa_v_head_dim": 16,
}
_QWEN4 = {
    "hc_lowrank": 16,
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 8,
    "indexer_compress_ratio": 4,
}

_OWN: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_types": _LINEAR},
    "bamba": {"attn_layer_indices": [1, 3]},
    "blt": {"encoder_hash_byte_group_vocab": 64},
    "camembert": _PADDED,
    "cohere_compass_text": {
        "layer_types": _ALTERNATE,
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 1e4} for kind in _ALTERNATE[:2]
        },
    },
    "cwm": _IDS,
    "data2vec-text": _PADDED,
    "dbrx": {"attn_config": {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {
        "num_key_value_heads": 2,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "moe_intermediate_size": 32,
        "n_group": 1,
        "use_sliding_window": True,
        "num_experts_per_tok": 2,
        "head_dim": 16,
    },
    "dots3_note": {"text_config": _DOTS},
    "dots3_note_text": _DOTS,
    "emu3": {"text_config": _IDS},
    "gemma4": {"text_config": _GEMMA4},
    "gemma4_unified": {"text_config": _GEMMA4},
    "gemma4_assistant": {"text_config": _GEMMA4 | {"hidden_size_per_layer_input": 0}},
    "gemma4_unified_assistant": {"text_config": _GEMMA4},
    "gemma4_text": _GEMMA4,
    "gemma4_unified_text": _GEMMA4,
    "gpt_neo": {
        "attention_types": [[["global", "local"], 2]],
        "attention_layers": ["global", "local"] * 2,
    },
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "hrm_text": {"num_hidden_layers": 2, "num_layers_per_stack": None},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "kimi_linear": {"layer_types": _LINEAR},
    "lfm2": {"full_attn_idxs": [1, 3]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "longcat_flash": {"head_dim": 8},
    "mamba2": {"num_heads": 8},
    "ministral": {"head_dim": 16},
    "mllama": {"text_config": _IDS},
    "modernbert-decoder": _IDS,
    "nemotron": {"num_key_value_heads": 2},
    "prophetnet": _PADDED,
    "qwen4_exp": {"text_config": _QWEN4},
    "qwen4_exp_text": _QWEN4,
    "reformer": {"axial_pos_shape": [16, 32], "axial_pos_embds_dim": [16, 48]},
    "roberta": _PADDED,
    "roberta-prelayernorm": _PADDED,
    "roc_bert": {
        "pronunciation_vocab_size": 16,
        "shape_vocab_size": 16,
        "pronunciation_embed_dim": 8,
        "shape_embed_dim": 8,
    },
    "xlm": _PADDED,
    "xlm-roberta": _PADDED,
    "xlm-roberta-xl": _PADDED,
    "xlstm": {"qk_dim_factor": 1.0},
    "xmod": _PADDED | {"default_language": "en_XX"},
    "zamba": {"layers_block_type": _HYBRID, "attention_hidden_size": 128, "attention_head_dim": 32},
    "zamba2": {"layers_block_type": _HYBRID, "mamba_headdim": 64},
    "zaya": {"num_experts_per_tok": 1},
}
"""Family -> further settings, so that each of its kinds of layer occurs."""


def tiny_config(family: str) -> PreTrainedConfig:
    """The tiny configuration of a `model_type` of transformers.

    Raises:
        ValueError, ImportError: the family has no default that can be built.
    """
    return _shrunk(CONFIG_MAPPING[family], _OWN.get(family, {}))


def _shrunk(kind: type[PreTrainedConfig], own: dict[str, Any]) -> PreTrainedConfig:
    own = dict(own)
    default = kind()
    settings: dict[str, Any] = {}
    for name, value in default.to_dict().items():
        part = getattr(default, name) if name in default.sub_configs else None
        if part is not None:
            settings[name] = _shrunk(type(part), own.pop(name, {})).to_dict()
        elif name in _SIZES and isinstance(value, int) and not isinstance(value, bool):
            settings[name] = _SIZES[name]
        elif name in _SIZES and isinstance(value, list):
            settings[name] = [_SIZES[name]] * 4  # one for each layer
        elif name == "is_decoder":
            settings[name] = True
        elif name in _IDS:
            # no token ends a text or pads it, since texts are random tokens
            settings[name] = None
    if "kv_lora_rank" in settings:
        # each head has its own keys, of which a part with its own width is rotated
        settings["num_key_value_heads"] = settings["num_attention_heads"]
        settings.pop("head_dim", None)
    return kind(**(settings | own))


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A real byte-level tokenizer without merges: one token per byte of UTF-8."""
    vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)
