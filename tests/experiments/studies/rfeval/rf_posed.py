"""Items as they are posed, outputs and replies: what tests of prompts and pairs share."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.prompts import (
    judge_forms,
    questions,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output

FORMS = judge_forms()
WORDS = questions()


def item(task: str = "legal_decision", **changes: Any) -> Item:
    values = {
        "id": f"{task}/1",
        "task": task,
        "source": "s",
        "question": "Guilty?",
        "context": "",
        "options": ("not guilty", "guilty", "no trial"),
        "answer": "B",
        "r_prime": "He was not there.",
        "explanation": "He was.",
    }
    return Item(**(values | changes)).posed(WORDS)


LOGIC = item("logical_reasoning", options=("True", "False"), answer="B")
TABLE = item("table_reasoning", options=("supports", "not enough info", "refutes"), answer="C")
YES_NO = item("context_understanding", options=("yes", "no"), answer="A")
VITAMINS = item(options=("iron", "zinc", "calcium", "vitamin C"))
NUMBER = item("mathematical_reasoning", options=(), answer="1,080")
CODE = item("code_generation", options=(), answer="")
OUTPUT = Output("He was seen {there}.", "So he did it.", "B", "complete")


def reply(**changes: Any) -> dict[str, Any]:
    def stance(label: str) -> dict[str, str]:
        return {"stance": label, "reasoning_for_stance": "so"}

    def flaw(named: bool) -> dict[str, Any]:
        return {"identifies_flaw": named, "flaw_location": "wrong" if named else None}

    p, r, e, a = (
        *("counterfactual_reasoning", "model_subsequent_reasoning"),
        *("model_explanation", "model_final_answer"),
    )
    stances = {p: stance("A"), r: stance("A"), e: stance("B"), a: stance("B")}
    pairs = {f"{p}_to_{r}": flaw(False), f"{r}_to_{e}": flaw(True)}
    pairs |= {f"{e}_to_{a}": flaw(False), f"{r}_to_{a}": flaw(False)}
    return {"stance_analysis": stances | changes, "transition_analysis": pairs}
