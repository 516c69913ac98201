"""What models behind APIs are still to be asked in an RFEval run, for `--dry-run`."""

from __future__ import annotations

from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.studies.rfeval.asks import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.judging.judges import asked_of, step_asks
from faithscope.experiments.studies.rfeval.records import outputs_of
from faithscope.experiments.studies.rfeval.subjects.closed import writing_of
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import (
    OUTPUTS,
    RfUnits,
    judged_stage,
    steps_stage,
)
from faithscope.probes.judge.form import Ask, Writing

_NOT_YET = "(not written yet)"
_UNWRITTEN: dict[Condition, Output] = dict.fromkeys(
    CONDITIONS, Output(_NOT_YET, _NOT_YET, _NOT_YET, "complete")
)


def run_lines(whole: RfUnits, index: Index) -> list[str]:
    """What is still to be asked of models and judges, where they are behind APIs with its price."""
    return [
        *_writing_lines(whole, index),
        *_step_lines(whole, index),
        *_judging_lines(whole, index),
    ]


def _writing_lines(whole: RfUnits, index: Index) -> list[str]:
    """Calls, tokens and cost of the outputs of models behind APIs; none without any."""
    asks: dict[str, list[Ask | Writing]] = {
        name: [
            writing_of(pair, condition, whole.words, subject.file.system)
            for pair in whole.of(name)
            for condition, stage in OUTPUTS.items()
            if stage in missing(index, pair)
        ]
        for name, subject in whole.subjects.items()
        if subject.asked is not None
    }
    return spending_lines(asks, whole.config.api, whole.config.spend, "model")


def _judging_lines(whole: RfUnits, index: Index) -> list[str]:
    """Calls, tokens and cost of the judges behind APIs; none without any.

    An output that is not written yet counts as one of a few words: its own tokens come on top.
    """
    asks: dict[str, list[Ask | Writing]] = {}
    unwritten = unread = 0
    for judge in whole.config.apis:
        asks[judge], stage, by_step = [], judged_stage(judge), steps_stage(judge, "generated")
        unwritten = 0
        for pair in whole.pairs:
            lacking = missing(index, pair)
            outputs = outputs_of(index, pair, whole.config.paper_compat)
            if by_step in lacking and outputs is None:
                unread += 1
            elif by_step in lacking:
                asks[judge] += [ask for _, _, ask in step_asks(whole, index, pair, judge)]
            if stage not in lacking:
                continue
            if outputs is None:
                unwritten += 1
                outputs = _UNWRITTEN
            if all(output.usable for output in outputs.values()):
                asks[judge] += [asked_of(whole, pair, c, outputs[c]) for c in CONDITIONS]
    lines = spending_lines(asks, whole.config.judge, whole.config.spend)
    if lines and unwritten:
        each = max(s.max_new_tokens for s in whole.subjects.values())
        lines.append(
            f"of {unwritten} pairs the outputs are not written yet: their own tokens, at most "
            f"{each:,} each, come on top of the input"
        )
    if lines and unread:
        lines.append(
            f"pairs to be judged step by step whose outputs are not written yet: {unread}; their "
            "steps are not among the calls, two for every part"
        )
    return lines


def _step_lines(whole: RfUnits, index: Index) -> list[str]:
    """How many pairs are to be judged step by step, a line for every judge and reading."""
    lines = []
    for judge in whole.config.per_step.judge:
        for reading in whole.config.readings_by_step(judge):
            stage = steps_stage(judge, reading)
            mine = [p for p in whole.pairs if stage in p.units]
            left = sum(not index.is_done(p.key(stage), p.units[stage]) for p in mine)
            lines.append(
                f"step by step, {judge} ({reading}): pairs {len(mine)}, left {left}; of these only "
                f"those that count, with at most {whole.config.per_step.most_steps} steps"
            )
    return lines
