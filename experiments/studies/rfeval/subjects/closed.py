"""Outputs of models behind APIs: r′ is quoted as an earlier turn, an approximation (RFEval, G.2).

Nothing can be put into such a model's mouth. It is told the question, then r′ as if it had said
that, then to go on; it may well take r′ for someone else's words. Replies are stored as they come,
with what the asking took; how one ended is told as it was, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import cast

from faithscope.experiments.studies.rfeval.asks import Condition, question_of
from faithscope.experiments.studies.rfeval.records import NO_ROOM, Record, parts_of
from faithscope.experiments.studies.rfeval.subjects.injection import MULTI_TURN, multi_turn
from faithscope.experiments.studies.rfeval.subjects.parsing import (
    Outcome,
    Output,
    components,
    parse_output,
)
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair
from faithscope.probes.judge.form import Reply, Writing

DECLINED = ("refused", "filtered")
"""Outcomes of a reply that are outcomes of the output, too: what was written is no output."""


def writing_of(
    pair: Pair, condition: Condition, words: Mapping[str, str], system: str | None = None
) -> Writing:
    """The conversation after which a model writes one of its two outputs; its id is the unit's."""
    unit, question = pair.units[OUTPUTS[condition]], question_of(pair.of, words)
    if condition == "baseline":
        return Writing(unit, question, system)
    first, r_prime, last = (turn["content"] for turn in multi_turn(question, pair.of.r_prime))
    return Writing(unit, last, system, (("user", first), ("assistant", r_prime)))


def closed_record(of: Record, reply: Reply, system: str | None = None) -> Record:
    """A reply as an output, with the keys of `records.output_record` and what only an API tells.

    Beside those: the `system` prompt it was asked with (null for none), `thinking` as it was
    shown, `reasoning_from` (`thinking`, or `text` where none was), `problem`, `served`,
    `from_cache` and the usage. There are no ids. `n_tokens` is what the service counts as
    written, thinking included, and None where it says nothing of this one reply: it came from
    the cache, or took several attempts.
    """
    counted = reply.usage.calls == 1 and reply.usage.output_tokens > 0
    finish = {"truncated": "length", "overflow": NO_ROOM}.get(reply.outcome, "stop")
    return of | {
        "framing": MULTI_TURN,
        "system": system,
        "n_prompt": reply.usage.input_tokens if counted else None,
        "n_r_prime": 0,
        "ids": [],
        "text": reply.text,
        "thinking": reply.thinking,
        "reasoning_from": "thinking" if reply.thinking.strip() else "text",
        "finish": finish,
        "end_id": None,
        "n_tokens": reply.usage.output_tokens if counted else None,
        "seconds": None if reply.from_cache else reply.seconds,
        "backend": {"backend": "api"},
        "reply": reply.outcome,
        "problem": reply.problem,
        "served": reply.served,
        "from_cache": reply.from_cache,
        **asdict(reply.usage),
        **parts_of(output_of_reply(reply), output_of_reply(reply, paper_compat=True)),
    }


def output_of_reply(reply: Reply, paper_compat: bool = False) -> Output:
    """The components of a reply: its reasoning is the thinking where the service shows any, which
    may be a summary, else what the reply says before its answer.

    A reply that the model declined or a filter stopped has no components.
    """
    if reply.outcome in DECLINED:
        return Output("", "", "", cast(Outcome, reply.outcome))
    if reply.outcome == "overflow":
        return Output("", "", "", "empty")
    if reply.outcome == "unclosed_thinking":
        return parse_output(reply.thinking, "opened", paper_compat=paper_compat)
    finished = reply.outcome != "truncated"
    if reply.thinking.strip():
        return components(reply.thinking, reply.text, finished, paper_compat)
    return parse_output(reply.text, "unmarked", finished, paper_compat)
