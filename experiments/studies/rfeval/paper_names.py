"""The RFEval paper's names of models, tasks, sources and statistics, and ours for them."""

from __future__ import annotations

from faithscope.experiments.analysis.tables import OVERALL
from faithscope.experiments.studies.rfeval.items import ABBREVIATIONS, TASKS
from faithscope.experiments.studies.rfeval.tables import faithfulness

MODELS = {
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "R1-Qwen-7B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "R1-Qwen-32B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "R1-Llama-8B": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "R1-Llama-70B": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "MiMo-RL": "XiaomiMiMo/MiMo-7B-RL",
    "MiMo-RL-Zero": "XiaomiMiMo/MiMo-7B-RL-Zero",
    "Magistral-Small": "mistralai/Magistral-Small-2506",
    "LN-Super_v1": "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
}
"""The paper's twelve models -> ours."""
QUOTED = {
    "gpt-5.1-2025-11-13": ("api:openai/gpt-5.1-2025-11-13", "api:openai/gpt-5.1"),
    "claude-sonnet-4-5-20250929": (
        "api:anthropic/claude-sonnet-4-5-20250929",
        "api:anthropic/claude-sonnet-4-5",
    ),
}
"""Models behind APIs (Table 26) -> ours."""
REGIMES = (
    *(f"XiaomiMiMo/MiMo-7B-{variant}" for variant in ("Base", "SFT", "RL-Zero", "RL")),
    *("allenai/Olmo-3-1025-7B", "allenai/Olmo-3-7B-Think-SFT", "allenai/Olmo-3-7B-Think"),
)
"""The models of two families after different post-training (Table 3)."""
R1 = tuple(MODELS[name] for name in MODELS if name.startswith("R1-"))
TASK_NAMES = {short: task for task, short in ABBREVIATIONS.items()}
TASK_NAMES |= {task.replace("_", " ").title(): task for task in TASKS}
TASK_NAMES |= {"Overall": OVERALL, "Total": OVERALL}
SOURCES = {
    "DS-1000": "ds1000",
    "LiveCodeBench (v1–v6)": "livecodebench",
    "GSM8K": "gsm8k",
    "MMLU (College Math)": "mmlu_college_mathematics",
    "MMLU (High School Math)": "mmlu_high_school_mathematics",
    "PrOntoQA": "prontoqa",
    "RuleBert-Union-Rules": "rulebert_union_rules",
    "SCITAB": "scitab",
    "PubMedQA": "pubmedqa",
    "MMLU (Professional Law)": "mmlu_professional_law",
    "PeerRead": "peerread",
}
"""The paper's names of source data sets -> ours (`paper_rows.one_source`)."""
LINK_NAMES = {"pr": "r′→r", "re": "r→e", "ea": "e→a", "ra": "r→a"}
BASELINE_LINK_NAMES = {link: LINK_NAMES[link] for link in faithfulness.BASELINE_LINKS}
VIOLATION_NAMES: dict[str, str] = dict(
    zip(faithfulness.VIOLATIONS, ("χ(o)=0", "χ(o′)=0", "κ=0", "Other"), strict=True)
)
CAUSALITY_NAMES: dict[str, str] = {c: c.capitalize() for c in faithfulness.CAUSALITY}
AGREEMENT = {
    "agreement": "Percent agreement",
    "pabak": "PABAK",
    "fleiss_kappa": "Fleiss’ κ",
    "krippendorff_alpha": "Krippendorff’s α",
}
"""Agreement of reviewers; the text has lost the first heading."""
OVERALL_METRICS = {
    "agreement": "Overall percent agreement",
    "pabak": "Overall PABAK",
    "fleiss_kappa": "Overall Fleiss’ κ",
    "krippendorff_alpha": "Overall Krippendorff’s α",
    "accepted": "Overall yes rate",
    "accepted_low": "Overall yes rate Wilson 95% CI (low)",
    "accepted_high": "Overall yes rate Wilson 95% CI (high)",
}
