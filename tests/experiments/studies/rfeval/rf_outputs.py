"""Outputs of tiny models with r′ and without it, as they would be written."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.studies.rfeval.subjects.subjects import forced
from faithscope.interp.control import encode_marks
from faithscope.interp.model import Model

WRITTEN = {
    "baseline": " It is plain.\nAnswer: B",
    "intervened": " But no. It is so.\nAnswer: C",
}


def outputs(model: Model) -> dict[Any, Any]:
    """Condition -> the conversation of an output of a model without marks, and its ids."""
    starts = {
        "baseline": forced(model, "Guilty?"),
        "intervened": forced(model, "Guilty?", "He was not there."),
    }
    return {c: (start, model.encode(WRITTEN[c])) for c, start in starts.items()}


def said(model: Model, *, closed: bool = True) -> tuple[int, ...]:
    """What a model with marks writes after r′: reasoning, and if it is closed explanation and
    answer."""
    reasoning = model.encode("No, it is 5. It is.")
    if not closed:
        return reasoning
    closer = encode_marks(model.tokenizer, model.format.closer)
    return (*reasoning, *closer, *model.encode("\n\nSo five.\n\n**Answer:** B"))
