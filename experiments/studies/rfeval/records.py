"""Records that an RFEval run stores: flat ones of outputs, tests, readings and judgements.

API models accept no prefilled reasoning. Such a model is told the question, then r′ as if
it had said that, then to go on (RFEval, G.2): an approximation, as it may well take r′ for someone
else's words. Its replies are stored as they come; how one ended is told as it was, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, cast

from faithscope.experiments.engine.index import Index
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, Framing
from faithscope.experiments.studies.rfeval.items import Condition, Item
from faithscope.experiments.studies.rfeval.subjects.parsing import (
    Outcome,
    Output,
    components,
    parse_output,
)
from faithscope.experiments.studies.rfeval.subjects.programs import Report
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced, multi_turn
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair
from faithscope.interp.generation import Generation
from faithscope.probes.judge.form import Reply, Writing
from faithscope.probes.record import head

DATASET = "rfeval"
NO_ROOM = "no_room"
"""`finish` of an output that was not written: its prompt leaves the model no room for it."""
NO_SANDBOX = "no_sandbox"
"""`outcome` of a program that is to be tested where there is a checker of programs."""
Record = dict[str, Any]
NO_TEXT, NOTHING = Generation((), "length"), Output("", "", "", "empty")


def about(
    item: Item, model: str | None, probe: str, variant: str, seed: int, judge: str | None = None
) -> Record:
    """The fields that every record begins with."""
    return head(
        dataset=DATASET,
        task=item.task,
        item=item.id,
        model=model,
        judge=judge,
        probe=probe,
        variant=variant,
        seed=seed,
    )


def keys_of(pair: Pair) -> Record:
    """What the records of judgements about a pair are about."""
    return {"dataset": DATASET, "task": pair.task, "item": pair.item, "model": pair.model}


def output_record(
    of: Record,
    start: Forced,
    framing: Framing,
    text: Generation = NO_TEXT,
    said: str = "",
    output: Output = NOTHING,
    paper: Output = NOTHING,
    backend: Mapping[str, str] = MappingProxyType({}),
) -> Record:
    """Record of an output: its ids, its text, and its components by our rules and by the authors'
    code. By default it is one that was not written, as the model has no positions for it.

    Args:
        of: what `about` gave.
        start: what it was written after. `n_prompt` are the tokens up to the reasoning opener, r′
            not among them; but of framing `multi_turn`, in whose prompt it stands.
        said: the text of its ids.
        backend: what wrote it (`Backend.describe`).
    """
    return of | {
        "framing": framing,
        "n_prompt": len(start.prompt.ids),
        "n_r_prime": len(start.r_prime_ids),
        "ids": list(text.ids),
        "text": said,
        "finish": text.finish,
        "end_id": text.end_id,
        "n_tokens": text.n_tokens,
        "seconds": text.seconds,
        "backend": dict(backend),
        **parts_of(output, paper),
    }


def parts_of(output: Output, paper: Output) -> Record:
    """Components of an output by our rules and by the authors' code."""
    # most are the same by both, and are kept once
    return asdict(output) | {"paper_parts": None if paper == output else asdict(paper)}


def output_in(record: Record, paper_compat: bool = False) -> Output:
    """The components of a stored output."""
    parts = (record["paper_parts"] if paper_compat else None) or record
    return Output(parts["reasoning"], parts["explanation"], parts["answer"], parts["outcome"])


def records_of(index: Index, pair: Pair) -> dict[Condition, Record] | None:
    """The stored outputs of a pair; None while one of them is not there."""
    records: dict[Condition, Record] = {}
    for condition, stage in OUTPUTS.items():
        if not index.is_done(pair.key(stage), pair.units[stage]):
            return None
        (records[condition],) = index.records(pair.key(stage))
    return records


def outputs_of(index: Index, pair: Pair, paper_compat: bool) -> dict[Condition, Output] | None:
    """The components of both outputs of a pair; None while one of them is not stored."""
    records = records_of(index, pair)
    if records is None:
        return None
    return {condition: output_in(record, paper_compat) for condition, record in records.items()}


UNTESTED = {"stance": "", "n_tests": 0, "n_run": 0, "compared": "", "seconds": 0.0, "code": ""}
"""Fields of an output whose tests were not run, beside `outcome` and `detail`."""


def tests_record(of: Record, code: str, report: Report) -> Record:
    """Record of the tests of one output."""
    last = report.runs[-1]
    return of | {
        "stance": report.stance,
        "n_tests": report.n_tests,
        "n_run": len(report.runs),
        "outcome": last.outcome,
        "compared": report.compared,
        "detail": last.detail,
        "seconds": round(sum(r.seconds for r in report.runs), 3),
        "code": code,
    }


DECLINED = ("refused", "filtered")
"""Outcomes of a reply that are outcomes of the output, too: the text of such a reply is no
output."""


def writing_of(pair: Pair, condition: Condition, system: str | None = None) -> Writing:
    """The conversation after which a model writes one of its two outputs; its id is the unit's."""
    unit, item = pair.units[OUTPUTS[condition]], pair.of
    if condition == "baseline":
        return Writing(unit, item.asked, system)
    first, r_prime, last = (turn["content"] for turn in multi_turn(item.asked, item.r_prime))
    return Writing(unit, last, system, (("user", first), ("assistant", r_prime)))


def closed_record(of: Record, reply: Reply, system: str | None = None) -> Record:
    """A reply as an output, with the keys of `output_record` and what only an API tells.

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
    """The components of a reply. Its reasoning is the thinking that the service shows, perhaps a
    summary; without any it is what the reply says before its answer.

    A reply that the model declined or a filter stopped has no components.
    """
    if reply.outcome in DECLINED:
        return Output("", "", "", cast(Outcome, reply.outcome))
    if reply.outcome == "overflow":
        return NOTHING
    if reply.outcome == "unclosed_thinking":
        return parse_output(reply.thinking, "opened", paper_compat=paper_compat)
    finished = reply.outcome != "truncated"
    if reply.thinking.strip():
        return components(reply.thinking, reply.text, finished, paper_compat)
    return parse_output(reply.text, "unmarked", finished, paper_compat)
