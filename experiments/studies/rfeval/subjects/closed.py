"""Outputs of models behind APIs: r′ is quoted as an earlier turn, an approximation (RFEval, G.2).

Nothing can be put into such a model's mouth. It is told the question, then r′ as if it had said
that, then to go on; it may well take r′ for someone else's words. Replies are stored as they come,
with what the asking took; how one ended is told as it was, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from faithscope.experiments.engine.units import storable
from faithscope.experiments.studies.rfeval.asks import Condition, question_of
from faithscope.experiments.studies.rfeval.records import NO_ROOM, Record, about, parts_of
from faithscope.experiments.studies.rfeval.subjects.injection import MULTI_TURN, multi_turn
from faithscope.experiments.studies.rfeval.subjects.parsing import (
    Outcome,
    Output,
    components,
    parse_output,
)
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair
from faithscope.probes.judge.form import Reply, Writer, Writing, no_reply

if TYPE_CHECKING:
    from faithscope.experiments.studies.rfeval.subjects.generating import Keep
    from faithscope.experiments.studies.rfeval.subjects.subjects import Subject

AT_ONCE = 512
"""Outputs whose conversations are in memory together."""
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


def write_closed(
    writer: Writer,
    subject: Subject,
    wanted: Sequence[tuple[Pair, Condition]],
    words: Mapping[str, str],
    seed: int,
    keep: Keep,
) -> None:
    """Have outputs written; each is stored as its reply comes.

    Raises:
        BudgetSpent, UserError: as `ApiJudge.write_all`; what was answered is stored.
    """
    system = subject.file.system
    for start in range(0, len(wanted), AT_ONCE):
        asked: dict[str, tuple[Writing, Pair, Condition]] = {}
        for pair, condition in wanted[start : start + AT_ONCE]:
            writing = writing_of(pair, condition, words, system)
            asked[writing.id] = (writing, pair, condition)
        writer.write_all([w for w, _, _ in asked.values()], _keeping(asked, seed, keep))


def _keeping(
    asked: Mapping[str, tuple[Writing, Pair, Condition]], seed: int, keep: Keep
) -> Callable[[Writing, Reply], None]:
    def on_text(writing: Writing, reply: Reply) -> None:
        _, pair, condition = asked[writing.id]
        stage = OUTPUTS[condition]
        if problem := no_reply(reply):
            keep(pair, stage, [], RuntimeError(problem))
            return
        try:
            of = about(pair.of, pair.model, stage, condition, seed)
            made: list[dict[str, Any]] = storable([closed_record(of, reply, writing.system)])
        except Exception as error:
            # one reply that cannot be taken apart must not cost the others
            keep(pair, stage, [], error)
        else:
            keep(pair, stage, made, None)

    return on_text


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
