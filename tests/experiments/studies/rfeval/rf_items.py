"""Items made up for tests of RFEval."""

from __future__ import annotations

from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.prompts import questions

WORDS = questions()


def item(n: int = 0, task: str = "legal_decision", **changes: object) -> Item:
    values = {"id": f"{task}/{n}", "task": task, "source": "s", "question": f"Question {n}?"}
    values |= {"context": "", "options": ("no", "yes"), "answer": "B", "r_prime": f"Reason {n}."}
    return Item(**(values | {"explanation": f"Flaw {n}."} | changes)).posed(WORDS)  # pyright: ignore
