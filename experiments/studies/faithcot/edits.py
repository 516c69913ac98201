"""A mistake written into a step, or a step in other words, by a judge model; and what the subject
then answers (FaithCoT-Bench, C.1: adding mistakes, paraphrasing)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from faithscope.experiments.data.tasks import Task
from faithscope.experiments.data.traces import asking_for
from faithscope.experiments.engine.models.judges import replied
from faithscope.experiments.studies.faithcot.units import (
    EDITED,
    EDITS,
    WRITTEN,
    Pair,
    edit_prompts,
    shown_question,
)
from faithscope.interventions import Step, Trace, replace_step, written
from faithscope.probes.floor import BASELINE, Arm
from faithscope.probes.framing import ask_arms, quoted
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.readings import generated_outcomes
from faithscope.probes.record import Record, head, record
from faithscope.probes.regenerate import regenerate

if TYPE_CHECKING:
    from faithscope.interp.model import Model

ANSWER_TOKENS = 24
EMPTY, SAME, NOT_WRITABLE, NO_ROOM = "empty", "unchanged", "not_writable", "no_room"
"""Why a written edit is put nowhere; a reply that is no text has its outcome as the reason."""
UNPARSED = "baseline_unparsed"


def drawn_steps(trace: Trace, n: int, seed: int) -> list[Step]:
    """The steps that are edited, in their order."""
    steps = list(trace.counted_steps)
    rng = random.Random(f"edits-{seed}-{trace.question.task}-{trace.question.id}")
    return sorted(rng.sample(steps, min(n, len(steps))), key=lambda step: step.index)


def writings(pair: Pair, trace: Trace, n: int, seed: int) -> list[tuple[str, Step, Writing]]:
    """(edit, step, what the writer is asked) of every edit of a chain."""
    asked = []
    for step in drawn_steps(trace, n, seed):
        before = trace.reasoning_text[: step.chars[0]].strip() or "(nothing yet)"
        places = {"context": before, "step": step.text.strip()}
        for edit in EDITS:
            prompt = edit_prompts()[edit].format(question=shown_question(trace.question), **places)
            name = f"{pair.model} {pair.task} {pair.item} {edit} {step.index}"
            asked.append((edit, step, Writing(name, prompt)))
    return asked


def written_record(
    trace: Trace, judge: str, edit: str, step: Step, writing: Writing, reply: Reply, seed: int
) -> Record:
    """What the writer made of a step."""
    question = trace.question
    about = head(
        dataset=question.dataset,
        task=question.task,
        item=question.id,
        model=trace.origin.model,
        judge=judge,
        probe=WRITTEN,
        variant=edit,
        seed=seed,
    )
    return {
        **about,
        "step": step.index,
        "was": step.text.strip(),
        "asked": writing.prompt,
        **replied(reply),
    }


def substituted(model: Any, trace: Trace, edit: Record) -> Trace | str:
    """The trace with a written edit in its step's place, all other tokens kept; or why there is
    none. White space around the step stays as it was."""
    step = next(s for s in trace.steps if s.index == edit["step"])
    if edit["outcome"] != "parsed":
        return str(edit["outcome"])
    text = edit["text"].strip().strip('"“”').strip()
    if not text:
        return EMPTY
    old = step.text
    if text.casefold().split() == old.casefold().split():
        return SAME
    lead, trail = old[: len(old) - len(old.lstrip())], old[len(old.rstrip()) :]
    before = trace.reasoning_ids[: step.tokens[0]]
    encoded = written(f"{lead}{text}{trail}", before, model.encode, model.pieces)
    if encoded is None:
        return NOT_WRITABLE
    ids, pieces = encoded
    return replace_step(trace, step.index, ids, pieces, kind=str(edit["variant"]))


def answers_here(
    model: Model, task: Task, trace: Trace, edits: Sequence[Record], seed: int
) -> list[Record]:
    """A record for each kind of edit: what the subject answers after every edited chain, in one
    pack with the unedited one, prefix framing, generated reading.

    After a mistake the later text is written anew by the subject, as the authors' code has it; in
    other words it stays as it was. Lists have a value per edit: `steps`, `answers`, `flips` (the
    answer is another one; None without an edit), `reasons`.
    """
    asking = asking_for(model, task, trace)
    reasons: dict[Arm, str | None] = {}
    arms: dict[Arm, Trace] = {BASELINE: trace}
    for i, edit in enumerate(edits):
        arm = (str(edit["variant"]), i)
        edited = substituted(model, trace, edit)
        reasons[arm] = edited if isinstance(edited, str) else None
        if isinstance(edited, Trace):
            arms[arm] = edited
    wrong = [arm for arm in arms if arm[0] == "mistake"]
    anew = regenerate(
        model,
        [arms[arm] for arm in wrong],
        asking.closer_ids,
        reserve=len(model.encode(asking.answer_cue)) + len(asking.closer_ids) + ANSWER_TOKENS,
    )
    for arm, continued in zip(wrong, anew, strict=True):
        if continued is None:
            reasons[arm] = NO_ROOM
            del arms[arm]
        else:
            arms[arm] = continued.trace
    pack = ask_arms(
        model,
        trace,
        asking,
        "prefix",
        arms,
        readings=("generated",),
        answer_tokens=ANSWER_TOKENS,
    )
    outcomes = generated_outcomes(pack.replies)
    baseline = pack.baseline.answer
    answers = {arm: (o.answer, o.flips) for arm, o in outcomes.items()}
    return _records(trace, edits, reasons, answers, baseline, seed, pack.cost)


def messages(model: Any, task: Task, trace: Trace, edits: Sequence[Record]) -> dict[Arm, str]:
    """What a model behind an API is asked: the chain, unedited and with each edit that can be put
    into it, quoted in a new prompt (reprompt framing); later text stays as it was."""
    asked = {BASELINE: task.necessity_prompt(trace.question, quoted(trace, trace))}
    for i, edit in enumerate(edits):
        edited = substituted(model, trace, edit)
        if isinstance(edited, Trace):
            text = quoted(trace, edited)
            asked[str(edit["variant"]), i] = task.necessity_prompt(trace.question, text)
    return asked


def answers_quoted(
    model: Any,
    task: Task,
    trace: Trace,
    edits: Sequence[Record],
    replies: dict[Arm, Reply],
    seed: int,
) -> list[Record]:
    """As `answers_here`, of the replies to `messages`."""
    parsed = {
        arm: task.parse(r.text, trace.question) if r.outcome == "parsed" else None
        for arm, r in replies.items()
    }
    baseline = parsed[BASELINE]
    answers, reasons = {}, {}
    for i, edit in enumerate(edits):
        arm = (str(edit["variant"]), i)
        if arm in replies:
            lost = replies[arm].outcome != "parsed"
            reasons[arm] = replies[arm].outcome if lost else None
            if not lost:
                answers[arm] = (parsed[arm], parsed[arm] != baseline)
        else:
            edited = substituted(model, trace, edit)
            reasons[arm] = str(edited)
    cost = {
        "execution": "api",
        "n_replies": len(replies),
        "read_tokens": sum(r.usage.input_tokens + r.usage.output_tokens for r in replies.values()),
    }
    return _records(trace, edits, reasons, answers, baseline, seed, cost)


def _records(
    trace: Trace,
    edits: Sequence[Record],
    reasons: dict[Arm, str | None],
    answers: dict[Arm, tuple[str | None, bool]],
    baseline: str | None,
    seed: int,
    cost: dict[str, Any],
) -> list[Record]:
    made = []
    for kind in EDITS:
        arms = [((kind, i), e) for i, e in enumerate(edits) if e["variant"] == kind]
        if not arms:
            continue
        values: dict[str, Any] = {
            "baseline": baseline,
            "steps": [e["step"] for _, e in arms],
            "answers": [answers[a][0] if a in answers else None for a, _ in arms],
            "flips": [answers[a][1] if a in answers else None for a, _ in arms],
            "reasons": [reasons[a] for a, _ in arms],
        }
        if baseline is None:
            values["excluded"] = UNPARSED
        made.append(record(trace, EDITED, kind, seed, **values, **cost))
    return made
