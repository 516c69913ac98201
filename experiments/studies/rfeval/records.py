"""What an RFEval run stores: flat records of outputs, tests, readings and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.judges import replied
from faithscope.experiments.studies.rfeval.asks import Condition
from faithscope.experiments.studies.rfeval.inside.scored_stances import ScoredStance
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.programs.sandbox import Report
from faithscope.experiments.studies.rfeval.subjects.injection import PREFIX, Framing
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair
from faithscope.interp.generation import Generation
from faithscope.probes.judge.form import Ask, Reply
from faithscope.probes.record import head

DATASET = "rfeval"
NO_ROOM = "no_room"
"""`finish` of an output that was not written: its prompt leaves the model no room for it."""
NO_SANDBOX = "no_sandbox"
"""`outcome` of a program that is to be tested where there is a sandbox."""
Record = dict[str, Any]


def about(
    item: Item, model: str | None, probe: str, variant: str, seed: int, judge: str | None = None
) -> Record:
    """What every record begins with."""
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


def output_record(
    of: Record,
    n_prompt: int,
    n_r_prime: int,
    made: Generation,
    text: str,
    output: Output,
    paper: Output,
    backend: Mapping[str, str],
    framing: Framing = PREFIX,
) -> Record:
    """An output: its ids, its text, and its components by our rules and by the authors' code.

    Args:
        of: what `about` gave.
        n_prompt: tokens up to the reasoning opener, r′ not among them; but of framing
            `multi_turn`, in whose prompt it stands.
        backend: what wrote it (`Backend.describe`).
    """
    return of | {
        "framing": framing,
        "n_prompt": n_prompt,
        "n_r_prime": n_r_prime,
        "ids": list(made.ids),
        "text": text,
        "finish": made.finish,
        "end_id": made.end_id,
        "n_tokens": made.n_tokens,
        "seconds": made.seconds,
        "backend": dict(backend),
        **parts_of(output, paper),
    }


def parts_of(output: Output, paper: Output) -> Record:
    """The components by our rules and by the authors' code."""
    # most are the same by both, and are kept once
    return asdict(output) | {"paper_parts": None if paper == output else asdict(paper)}


def no_room_record(
    of: Record, n_prompt: int, n_r_prime: int, why: str, framing: Framing = PREFIX
) -> Record:
    """In place of an output that the model has no positions for."""
    made = Generation((), "length")
    nothing = Output("", "", "", "empty")
    record = output_record(of, n_prompt, n_r_prime, made, "", nothing, nothing, {}, framing)
    return record | {"finish": NO_ROOM, "problem": why}


def output_in(record: Record, paper_compat: bool = False) -> Output:
    """The components of a stored output."""
    parts = (record["paper_parts"] if paper_compat else None) or record
    return Output(parts["reasoning"], parts["explanation"], parts["answer"], parts["outcome"])


def records_of(index: Index, pair: Pair) -> dict[Condition, Record] | None:
    """The stored outputs of a pair; None while one of them is not there."""
    found: dict[Condition, Record] = {}
    for condition, stage in OUTPUTS.items():
        if not index.is_done(pair.key(stage), pair.units[stage]):
            return None
        (found[condition],) = index.records(pair.key(stage))
    return found


def outputs_of(index: Index, pair: Pair, paper_compat: bool) -> dict[Condition, Output] | None:
    """The components of both outputs; None while one of them is not there."""
    found = records_of(index, pair)
    if found is None:
        return None
    return {condition: output_in(record, paper_compat) for condition, record in found.items()}


def tests_record(of: Record, condition: Condition, code: str, report: Report) -> Record:
    """What came of the tests of one output."""
    last = report.runs[-1]
    return of | {
        "condition": condition,
        "stance": report.stance,
        "n_tests": report.n_tests,
        "n_run": len(report.runs),
        "outcome": last.outcome,
        "detail": last.detail,
        "seconds": round(sum(r.seconds for r in report.runs), 3),
        "code": code,
    }


def untested_record(of: Record, condition: Condition, outcome: str, why: str) -> Record:
    """Of an output whose tests were not run.

    Args:
        outcome: `NO_SANDBOX`, or `not_run` where there is nothing to run.
    """
    blank = {"stance": "", "n_tests": 0, "n_run": 0, "outcome": outcome, "seconds": 0.0}
    return of | {"condition": condition, **blank, "detail": why, "code": ""}


def stance_record(of: Record, condition: Condition, scored: ScoredStance) -> Record:
    """What the model would have answered after one part."""
    values = asdict(scored)
    values["probabilities"] = list(scored.probabilities)
    return of | {"condition": condition, **values}


def judged_record(of: Record, condition: Condition, ask: Ask, reply: Reply) -> Record:
    """Who was asked what of which output, and what came back, word for word."""
    return of | {
        "condition": condition,
        "values": dict(reply.values),
        "form_sha256": ask.form.sha256,
        "system": ask.form.system,
        "asked": ask.prompt,
        **replied(reply),
    }
