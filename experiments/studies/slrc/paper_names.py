"""The SLRC paper's names of models and tasks, and ours for them."""

from __future__ import annotations

OPUS = "api:anthropic/claude-opus-4-6"
DEEPSEEK = ("api:openrouter/deepseek/deepseek-v3.2", "api:together/deepseek-ai/DeepSeek-V3.2")
GPT_OSS = "api:groq/openai/gpt-oss-120b"
KIMI = "api:openai-api/moonshot/kimi-k2.5"
MINIMAX = "api:openai-api/minimax/MiniMax-M2.5"
NEMOTRON = "api:openai-api/nebius/nvidia/Llama-3_1-Nemotron-Ultra-253B-v1"
R1_32B = (
    "api:openai-api/vultr/deepseek-r1-distill-qwen-32b",
    "api:openrouter/deepseek/deepseek-r1-distill-qwen-32b",
)
R1_70B = (
    "api:openai-api/vultr/deepseek-r1-distill-llama-70b",
    "api:openrouter/deepseek/deepseek-r1-distill-llama-70b",
)
GPT_5_4 = "api:openai/gpt-5.4"
O4_MINI = ("api:openai/azure/o4-mini", "api:openai/o4-mini")
GROK, GROK_REASONING = "api:grok/grok-4-fast-non-reasoning", "api:grok/grok-4-fast-reasoning"
GEMINI = "api:google/gemini-2.5-pro"
QWEN_122B = "api:openai-api/dashscope/qwen3.5-122b-a10b"
QWEN_397B = "api:openai-api/dashscope/qwen3.5-397b-a17b"
QWEN_06B = "Qwen/Qwen3-0.6B"
MODELS = {
    "GPT-5.4": GPT_5_4,
    "Claude Opus 4.6-R": OPUS,
    "Claude Opus": OPUS,
    "Claude": OPUS,
    "DeepSeek-V3.2": DEEPSEEK,
    "DeepSeek": DEEPSEEK,
    "V3.2": DEEPSEEK,
    "DeepSeek-R1-32B": R1_32B,
    "R1-32B": R1_32B,
    "DeepSeek-R1-70B": R1_70B,
    "R1-70B": R1_70B,
    "GPT-OSS-120B": GPT_OSS,
    "GPT-OSS": GPT_OSS,
    "Kimi-K2.5": KIMI,
    "Kimi": KIMI,
    "MiniMax-M2.5": MINIMAX,
    "MiniMax": MINIMAX,
    "Qwen3.5-122B": QWEN_122B,
    "Qwen3.5-397B": QWEN_397B,
    "Grok-4 reasoning": GROK_REASONING,
    "Grok-4 non-reasoning": GROK,
    "o4-mini": O4_MINI,
    "Gemini 2.5 Pro": GEMINI,
    "Nemotron-Ultra": NEMOTRON,
    "Nemotron": NEMOTRON,
    "GLM-5": "api:openai-api/zai/glm-5",
    "Small models (0.8–8B avg)": (),
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-0.6B": QWEN_06B,
    "R1-Qwen-1.5B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
}
"""The paper's names of models -> ours, those of configs/paper/slrc.yaml first, then other services
that have the same model."""
TITLES = {
    "SST-2": "sst2",
    "GSM8K": "gsm8k",
    "AG News": "ag_news",
    "MedQA": "medqa",
    "CSQA": "commonsense_qa",
    "ARC": "arc_challenge",
    "Rotten Tomatoes": "sentiment",
    "Single-cue": "single_cue",
    "Conflicting-cue": "conflicting_cue",
    "Multi-feature": "multi_feature",
    "Sequential math": "sequential_math",
}
"""Name of a task -> ours: the paper's, and that of `sentiment`, whose sentences are like those that
SST-2 labels."""
FIRST = ("sst2", "gsm8k", "sentiment")
"""Tasks of Table 1."""
CUES = ("single_cue", "conflicting_cue", "multi_feature", "sequential_math")
"""Tasks of Table 3."""
