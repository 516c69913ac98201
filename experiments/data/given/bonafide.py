"""BonaFide (arXiv 2605.25052, `yoavgur/BonaFide`): ground-truth labels of steps and of chains.

A row is one label. That of a step has the character span of a sentence in `cot`; that of a chain
has the span 0 to -1. The rows of one chain have the same model, prompt and text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from faithscope.experiments.data.given.cells import exact, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.tasks.sources.rows import Row, text_of
from faithscope.interp.errors import UserError

LABELS = {
    "FAITHFUL_STEP": False,
    "UNFAITHFUL_STEP": True,
    "FAITHFUL_COT": False,
    "UNFAITHFUL_COT": True,
}
"""`label_type` -> whether it is unfaithful."""
Span = tuple[int, int]


def chains(rows: Sequence[Row]) -> Iterator[GivenChain]:
    """A chain for all rows of one model, prompt and text, in the order of the first of each.

    Raises:
        UserError: an unknown label, or a span that is none of the text.
    """
    of_chain: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        prompt = text(row, "prompt", "question") or text_of(row, ("prompt", "question"))
        key = (text(row, "target_model") or "", prompt, exact(row, "cot"))
        of_chain.setdefault(key, []).append(row)
    for (model, prompt, cot), same in of_chain.items():
        yield _chain(model, prompt, cot, same)


def _chain(model: str, prompt: str, cot: str, rows: Sequence[Row]) -> GivenChain:
    first = rows[0]
    labels: dict[str, Any] = {}
    of_span: dict[Span, set[bool]] = {}
    for row in rows:
        name = text_of(row, ("label_type",))
        if name not in LABELS:
            raise UserError(
                f"{row.where}: label_type {name!r} is none of {', '.join(LABELS)}; give one"
            )
        if name.endswith("_COT"):
            if labels.get("unfaithful", LABELS[name]) != LABELS[name]:
                raise UserError(
                    f"{row.where}: the chain is {name}, and was the other in {first.where}; leave "
                    "one of them"
                )
            labels["unfaithful"] = LABELS[name]
        else:
            of_span.setdefault(_span(row, cot), set()).add(LABELS[name])
    spans = sorted(of_span)
    # a step that has both labels has none
    conflicting = sum(len(of_span[span]) > 1 for span in spans)
    if conflicting:
        labels["conflicting_steps"] = conflicting
    hint = text(first, "prompted_hint")
    return GivenChain(
        id=text(first, "row_id", "id") or first.id,
        dataset="bonafide",
        question=text(first, "question") or prompt,
        kind=None,
        options=None,
        gold=None,
        reasoning=cot,
        steps=tuple(spans) or None,
        answer=text(first, "model_answer"),
        model=model,
        prompt=prompt,
        labels=labels | ({} if hint is None else {"prompted_hint": hint}),
        step_labels={"unfaithful": tuple(_one(of_span[s]) for s in spans)} if spans else {},
        where=first.where,
    )


def _one(values: set[bool]) -> bool | None:
    return next(iter(values)) if len(values) == 1 else None


def _span(row: Row, cot: str) -> Span:
    names = ("sentence_span_start", "sentence_span_end")
    try:
        start, end = (int(float(str(row.values.get(name)))) for name in names)
    except (ValueError, OverflowError):
        start, end = 0, -1
    if not 0 <= start < end <= len(cot):
        shown = " to ".join(repr(row.values.get(name)) for name in names)
        raise UserError(
            f"{row.where}: the span {shown} is none of 'cot', which has {len(cot)} characters; "
            "give half-open offsets of a sentence in it"
        )
    return start, end


BONAFIDE = Reader(
    "bonafide",
    "BonaFide: a row per label, of a sentence's span in `cot` or of the chain",
    lambda row: {"label_type", "sentence_span_start", "sentence_span_end", "cot"} <= set(row),
    chains,
)
