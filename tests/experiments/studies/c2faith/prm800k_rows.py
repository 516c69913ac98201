"""Rows in PRM800K's released format, made up, with every turn that the format knows."""

from __future__ import annotations

from typing import Any

Values = dict[str, Any]


def completion(text: str, rating: int | None = 1) -> Values:
    return {"text": text, "rating": rating, "flagged": None}


def step(*completions: Values, chosen: int | None = 0, human: Any = None) -> Values:
    return {
        "completions": list(completions),
        "human_completion": human,
        "chosen_completion": chosen,
    }


def human(text: str, rating: int | None = None) -> Values:
    return {
        "text": text,
        "rating": rating,
        "source": "human",
        "flagged": False,
        "corrected_rating": None,
    }


def row(problem: str, *steps: Values, finish: str = "solution") -> Values:
    return {
        "labeler": "340d89bc-f5b7-45e9-b272-909ba68ee363",
        "timestamp": "2023-01-22T04:34:27.052924",
        "generation": 9,
        "is_quality_control_question": False,
        "is_initial_screening_question": False,
        "question": {"problem": problem, "ground_truth_answer": "7"},
        "label": {"steps": list(steps), "total_time": 278270, "finish_reason": finish},
    }


def solved(problem: str, n: int, start: int = 20) -> Values:
    """A perfect solution of `n` steps with numbers of its own."""
    texts = [f"Step on, we get $x = {start + 3 * i}$." for i in range(n - 1)]
    return row(
        problem, *(step(completion(t)) for t in texts), step(completion("So.\n\n# Answer\n\n7"))
    )
