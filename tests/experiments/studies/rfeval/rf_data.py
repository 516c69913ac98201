"""Rows of RFEval as files, and the folder of the real ones where it is beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from run_files import write_rows

SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "data" / "rfeval"


def row(task: str = "legal_decision", **changes: Any) -> dict[str, Any]:
    return {
        "task": task,
        "id": "1",
        "question": "Who is right?",
        "options": ["the buyer", "the seller"],
        "answer": "B: the seller",
        "content": {"source": "mmlu_professional_law"},
        "r_prime": "The buyer paid first.",
        "explanation": "Payment is not decisive.",
    } | changes


def write(path: Path, *rows: dict[str, Any]) -> Path:
    write_rows(path, *rows)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), "utf-8")
    return path
