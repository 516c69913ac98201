"""Traces of API models: from a reply to reasoning, steps and answer."""

from __future__ import annotations

from dataclasses import asdict

from faithscope.experiments.config.api import SubjectConfig
from faithscope.experiments.data.statements import stated_before_the_cut
from faithscope.experiments.data.tasks import Task
from faithscope.experiments.data.traces import TraceSettings, exclusion, to_record
from faithscope.interventions import (
    CLOSING_PATTERNS,
    Origin,
    Question,
    Trace,
    from_ids,
    split_conclusion,
)
from faithscope.probes.judge.form import Reply
from faithscope.probes.record import Record, head
from faithscope.probes.text_model import Message, TextModel

DECLINED = ("refused", "filtered", "overflow")
"""Outcomes of a reply that are also the reason why an item has no trace."""
NO_THINKING = "no_thinking_shown"
CHARACTERS_PER_TOKEN = 4
"""Approximate characters per token of English, to compare a reply's length with the number of
tokens from which steps are paragraphs."""


def trace_of_reply(
    model: TextModel,
    task: Task,
    question: Question,
    reply: Reply,
    settings: TraceSettings,
    api: SubjectConfig,
) -> Trace:
    """The trace made of an API model's reply; its tokens are characters.

    The reasoning is the reply up to where the statement of its answer begins, as for an open model
    that marks no thinking; or (`api.steps_from`) the thinking before the reply, which few services
    show in full.
    """
    thought = api.steps_from == "thinking"
    text = reply.thinking if thought else reply.text
    pieces = model.pieces(model.encode(text))
    cut, is_cut = len(pieces), reply.outcome == "truncated"
    if not thought and settings.conclusion == "strip":
        # A text that the token limit cut off has no closing statement, whatever it says.
        closing = () if is_cut else CLOSING_PATTERNS
        cut = split_conclusion(pieces, closing=closing)
    tail = reply.text if thought else text[cut:]
    said = stated_before_the_cut(reply.text) if is_cut else reply.text
    sampling = {
        "tokens": "characters",
        "steps_from": api.steps_from,
        "max_new_tokens": api.max_tokens,
        "temperature": api.temperature,
        "top_p": api.top_p,
        "reasoning_effort": api.reasoning_effort,
        "reasoning_format": "none",
    }
    return from_ids(
        question,
        (),
        model.encode(text[:cut]),
        pieces[:cut],
        mode=settings.segmentation,
        min_chars=settings.min_step_chars,
        groups=settings.groups,
        n_tokens=cut // CHARACTERS_PER_TOKEN,
        tail_ids=model.encode(tail),
        tail_text=tail,
        answer=task.parse(said, question),
        finish="length" if is_cut else "stop",
        origin=Origin(model.name, sampling=sampling, seed=settings.seed),
    )


def trace_record(trace: Trace, reply: Reply) -> Record:
    """The record of an API model's trace, with the cost of asking and whether it declined."""
    excluded = exclusion(trace)
    if reply.outcome in DECLINED:
        excluded = reply.outcome
    elif reply.outcome == "unclosed_thinking" or (
        reply.outcome == "truncated" and not reply.text.strip()
    ):
        # the token limit was reached before the answer began
        excluded = "reasoning_unclosed"
    elif not reply.text.strip():
        excluded = "empty_generation"
    elif trace.origin.sampling["steps_from"] == "thinking" and not reply.thinking.strip():
        excluded = NO_THINKING
    return to_record(trace) | {
        "excluded": excluded,
        "outcome": reply.outcome,
        "served": reply.served,
        **asdict(reply.usage),
    }


def reply_record(
    model: str, question: Question, message: Message, reply: Reply, seed: int
) -> Record:
    """The record of one message and its reply, which probes look up and a person may read."""
    about = {"dataset": question.dataset, "task": question.task, "item": question.id}
    keys = head(**about, model=model, probe="api_replies", seed=seed)
    before = {"before": [list(turn) for turn in message.before]} if message.before else {}
    return keys | {"asked": message.user, "system": message.system} | before | reply.to_record()
