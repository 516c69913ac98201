"""What judges are asked about a trace, and what is kept of a judgement (FaithCoT-Bench, C.1)."""

from __future__ import annotations

from typing import Any

from faithscope.experiments.engine.models.judges import replied
from faithscope.experiments.studies.faithcot.units import FAITHFUL_JUDGE, Pair, shown_question
from faithscope.interventions import Trace
from faithscope.probes.judge.form import Ask, Form, Reply
from faithscope.probes.record import Record, head_of

NOTHING_BEFORE = "(nothing; this is the first step)"


def asks_of(pair: Pair, trace: Trace, form: Form, base: str) -> list[tuple[int | None, Ask]]:
    """(step, ask): one about the whole chain with its statement of the answer, or one about every
    counted step with all text before it."""
    name = f"{pair.model} {pair.task} {pair.item}"
    question = shown_question(trace.question)
    if base == FAITHFUL_JUDGE:
        cot = f"{trace.reasoning_text}{trace.tail_text}".strip()
        if trace.origin.given is not None and trace.answer is not None:
            # the statement of the answer is no part of a given chain's reasoning
            cot = f"{cot}\n\nFinal Answer: {trace.answer}"
        return [(None, Ask(name, form, {"question": question, "cot": cot}))]
    asks: list[tuple[int | None, Ask]] = []
    for step in trace.counted_steps:
        before = trace.reasoning_text[: step.chars[0]].strip() or NOTHING_BEFORE
        values = {"question": question, "context": before, "step": step.text.strip()}
        asks.append((step.index, Ask(f"{name} {step.index}", form, values)))
    return asks


def judged_record(
    trace: Trace, judge: str, base: str, step: int | None, ask: Ask, reply: Reply, seed: int
) -> Record:
    """One judgement; `verdict` is None where the reply is not of the form."""
    said: dict[str, Any] = dict(reply.values) if reply.outcome == "parsed" else {}
    verdict = said.get(ask.form.verdict)
    why = next((v for k, v in said.items() if k != ask.form.verdict and isinstance(v, str)), "")
    return {
        **head_of(trace, base, ask.form.name, seed, judge),
        "step": step,
        "verdict": verdict,
        "why": why,
        "asked": ask.prompt,
        "system": ask.system,
        "form": ask.form.sha256,
        **replied(reply),
    }
