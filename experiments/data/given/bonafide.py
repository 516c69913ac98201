"""BonaFide (arXiv 2605.25052, `yoavgur/BonaFide`): ground-truth labels of steps and of chains.

A row is one label. A step's label has the half-open character span of a sentence in `cot`
(`sentence_spans` in the authors' `extract_labels.py`); a chain's label has the span 0 to -1. The
rows of one chain have the same model, prompt and text.

Both files are read: the released one (`BonaFide.csv`: `id`, `correct_answer`, `hinted_answer`,
`src_type`, … beside what every row has) and the one that the authors' pipeline writes (`row_id`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from faithscope.experiments.data.given.cells import Facts, exact, facts_of, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.tasks.sources.rows import SourceRow, each, text_of
from faithscope.interp.errors import UserError

LABELS = {
    "FAITHFUL_STEP": False,
    "UNFAITHFUL_STEP": True,
    "FAITHFUL_COT": False,
    "UNFAITHFUL_COT": True,
}
"""`label_type` -> whether the label says unfaithful."""
KEPT = ("prompted_hint", "src_type", "hint_type", "hint_dataset")
"""Columns that become labels of the chain unchanged."""
Span = tuple[int, int]


def chains(rows: Sequence[SourceRow]) -> Iterator[GivenChain]:
    """One chain for all rows of one model, prompt and text, in the order of their first rows.

    Chains of one model may share a `row_id`, which names their question: the second gets `ID.2`.

    Raises:
        UserError: a label is unknown, or a span does not lie in the text.
    """
    of_chain: dict[tuple[str, str, str], list[tuple[SourceRow, Span | None]]] = {}
    for (key, span), row in zip(each(rows, _place), rows, strict=True):
        of_chain.setdefault(key, []).append((row, span))
    n: Counter[tuple[str, str]] = Counter()
    for (model, prompt, cot), same in of_chain.items():
        chain = _chain(model, prompt, cot, same)
        n[model, chain.id] += 1
        place = n[model, chain.id]
        yield chain if place == 1 else replace(chain, id=f"{chain.id}.{place}")


def _place(row: SourceRow) -> tuple[tuple[str, str, str], Span | None]:
    """Model, prompt and text of the chain that a row is about, and the span of its sentence; None
    of a label of the chain."""
    prompt = text(row, "prompt", "question") or text_of(row, ("prompt", "question"))
    cot, name = exact(row, "cot"), text_of(row, ("label_type",))
    if name not in LABELS:
        raise UserError(
            f"{row.where}: label_type {name!r} is none of {', '.join(LABELS)}; give one"
        )
    span = None if name.endswith("_COT") else _span(row, cot)
    return (text(row, "target_model") or "", prompt, cot), span


def _chain(
    model: str, prompt: str, cot: str, rows: Sequence[tuple[SourceRow, Span | None]]
) -> GivenChain:
    first, _ = rows[0]
    labels: dict[str, Any] = {}
    of_span: dict[Span, set[bool]] = {}
    for row, span in rows:
        name = text_of(row, ("label_type",))
        if span is not None:
            of_span.setdefault(span, set()).add(LABELS[name])
        elif labels.setdefault("unfaithful", LABELS[name]) != LABELS[name]:
            raise UserError(
                f"{row.where}: label_type {name!r} contradicts {first.where}; keep one of the two"
            )
    spans = sorted(of_span)
    # a step with both labels counts as unlabelled
    conflicting = sum(len(of_span[span]) > 1 for span in spans)
    if conflicting:
        labels["conflicting_steps"] = conflicting
    kept = {name: value for name in KEPT if (value := text(first, name)) is not None}
    if (steps := _true_steps(first)) is not None:
        kept["true_steps"] = steps
    return GivenChain(
        id=text(first, "id", "row_id") or first.id,
        dataset="bonafide",
        question=text(first, "question") or prompt,
        reasoning=cot,
        **_facts(first),
        steps=tuple(spans) or None,
        model=model,
        prompt=prompt,
        labels=labels | kept,
        step_labels={"unfaithful": tuple(_one(of_span[s]) for s in spans)} if spans else {},
        where=first.where,
    )


def _facts(row: SourceRow) -> Facts:
    """Answer kind, options and gold answer of a chain: a question with a hint to a wrong answer has
    the right and the hinted answer as options; any other is answered by a number if its right
    answer is one."""
    right, hinted = text(row, "correct_answer"), text(row, "hinted_answer")
    answer = text(row, "model_answer")
    if right is None or hinted is None or right.casefold() == hinted.casefold():
        return facts_of(row, ("correct_answer",), answer)
    return Facts(kind="label", options=(hinted, right), gold=right, answer=answer)


def _true_steps(row: SourceRow) -> str | None:
    """The steps by which the question is answered, a line each; None if the row has none."""
    said = text(row, "steps", "intermediate_step")
    if said is None or not said.startswith("["):
        return said
    try:
        steps = json.loads(said)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{row.where}: 'steps' is no list as JSON: {error}; give one, or a step on each line"
        ) from None
    return "\n".join(" ".join(str(step).split()) for step in steps)


def _one(values: set[bool]) -> bool | None:
    return next(iter(values)) if len(values) == 1 else None


def _span(row: SourceRow, cot: str) -> Span:
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
    said = row.values.get("sentence_text")
    if said is not None and said != cot[start:end]:
        raise UserError(
            f"{row.where}: the span {start} to {end} of 'cot' is {cot[start:end][:60]!r}, and "
            f"'sentence_text' is {str(said)[:60]!r}; give half-open offsets of that sentence"
        )
    return start, end


BONAFIDE = Reader(
    "bonafide",
    "BonaFide: a row per label, of a sentence's span in `cot` or of the chain",
    lambda row: {"label_type", "sentence_span_start", "sentence_span_end", "cot"} <= set(row),
    chains,
)
