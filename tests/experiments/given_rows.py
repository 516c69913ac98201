"""Rows of annotated chains, as benchmarks have them."""

from __future__ import annotations

from typing import Any

PROCESS = {
    "id": "gsm8k-7",
    "generator": "Qwen2-7B-Instruct",
    "problem": "Sue has 3 + 4 apples. How many?",
    "steps": ["First, 3 + 4 = 8.", "So she has 8.", "The answer is \\boxed{8}."],
    "final_answer_correct": False,
    "label": 0,
}


COT = "The hint says B. I recall a book on it. So B."


def label(kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    start = COT.index(text) if text else 0
    return {
        "row_id": "r1",
        "label_type": kind,
        "sentence_span_start": start,
        "sentence_span_end": start + len(text) if text else -1,
        "target_model": "Qwen/Qwen3-4B-Thinking-2507",
        "question": "Which?",
        "prompt": "Which? Hint: B.",
        "prompted_hint": "B",
        "cot": COT,
        "model_answer": "B",
    } | more
