"""Work of the judges: every pair of outputs in one unit, or step by step the pairs that count as a
judge has read them whole; and, for `--dry-run`, the calls to APIs that are pending."""

from __future__ import annotations

from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.hours import (
    Replies,
    asking_lines,
    costs_of,
    replies_lines,
)
from faithscope.experiments.engine.models.judging import Judging
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.judging.stepwise import asks_of_parts, n_steps, parts_of
from faithscope.experiments.studies.rfeval.pairs import output_ask, pair_row
from faithscope.experiments.studies.rfeval.records import keys_of, outputs_of, writing_of
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.tables.chains import contrast_of, exclusion_of
from faithscope.experiments.studies.rfeval.units import (
    OUTPUTS,
    Pair,
    RfUnits,
    judged_stage,
    steps_stage,
)
from faithscope.probes.judge.form import Ask, Writing


def judging_whole(whole: RfUnits, first: str = "") -> Judging[Pair]:
    """What every judge is asked about the outputs of a pair, in one unit.

    Args:
        first: the judge that begins, as its weights are already loaded.
    """
    c = whole.config
    judges = sorted(c.judge.model, key=lambda judge: judge != first)
    return Judging(
        c.judge,
        c.seed,
        {judge: {judged_stage(judge): "generated"} for judge in judges},
        asks=lambda index, pair, judge, stage: output_asks(whole, index, pair),
        about=keys_of,
        needs=dict.fromkeys(judges, tuple(OUTPUTS.values())),
    )


def judging_by_step(whole: RfUnits, judge: str) -> Judging[Pair]:
    """What one judge is asked about the steps of a pair, in a unit of each reading.

    A pair is asked about once its judgement as a whole is there, and only where it counts by that
    (complete, judged, in contrast): of the others there is no RF, by steps or by blocks.
    """
    c = whole.config
    return Judging(
        c.judge,
        c.seed,
        {judge: {steps_stage(judge, r): r for r in c.readings_by_step(judge)}},
        asks=lambda index, pair, judge, stage: step_asks(whole, index, pair, judge),
        about=keys_of,
        needs={judge: (*OUTPUTS.values(), judged_stage(judge))},
        keeps_prompts=False,
    )


def output_asks(whole: RfUnits, index: Index, pair: Pair) -> list[ItemPrompt]:
    """The asks about both outputs of a pair; none if one cannot be judged, as the pair then counts
    for nothing. In a dry run, an output that is not written yet counts as one of a few words."""
    outputs = outputs_of(index, pair, whole.config.paper_compat) or _UNWRITTEN
    if not all(output.usable for output in outputs.values()):
        return []
    ask = lambda c: output_ask(pair.model, pair.of, c, outputs[c], whole.forms[c])  # noqa: E731
    return [ItemPrompt(ask(c), {"condition": c}) for c in CONDITIONS]


def step_asks(whole: RfUnits, index: Index, pair: Pair, judge: str) -> list[ItemPrompt]:
    """What a judge is asked about the steps of a pair.

    None if the pair does not count as this judge has read it whole, or has more steps than the
    config admits. A pair that it has not read yet is taken for one that counts.
    """
    config, stage = whole.config, judged_stage(judge)
    outputs = outputs_of(index, pair, config.paper_compat)
    if outputs is None or not all(output.usable for output in outputs.values()):
        return []
    if index.is_done(pair.key(stage), pair.units[stage]):
        replies = {r["condition"]: r for r in index.records(pair.key(stage))}
        row = pair_row(judge, pair.model, pair.of, outputs, replies)
        if exclusion_of(row, contrast_of(row)):
            return []
    parts = parts_of(pair.of, outputs)
    if n_steps(parts) > config.per_step.most_steps:
        return []
    return asks_of_parts(pair.of, pair.model, parts, whole.step_forms)


_NOT_YET = "(not written yet)"
SHORT = 1_000
"""Tokens of an output for which hours are said, besides the most that the config allows."""
_UNWRITTEN: dict[Condition, Output] = dict.fromkeys(
    CONDITIONS, Output(_NOT_YET, _NOT_YET, _NOT_YET, "complete")
)


def run_lines(whole: RfUnits, index: Index) -> list[str]:
    """Dry-run lines on what models and judges are still to be asked, with the price of APIs."""
    return [
        *_writing_lines(whole, index),
        *_step_lines(whole, index),
        *_judging_lines(whole, index),
    ]


def _writing_lines(whole: RfUnits, index: Index) -> list[str]:
    """States calls, tokens and cost of the outputs of models behind APIs, and the hours of those
    here."""
    asks: dict[str, list[Ask | Writing]] = {
        name: [
            writing_of(pair, condition, subject.system)
            for pair in whole.of(name)
            for condition, stage in OUTPUTS.items()
            if stage in missing(index, pair)
        ]
        for name, subject in whole.subjects.items()
    }
    here = {
        costs: [
            Replies.of(asks[name], n)
            for n in sorted({min(SHORT, s.max_new_tokens), s.max_new_tokens})
        ]
        for name, s in whole.subjects.items()
        if s.asked is None and (costs := costs_of(name, s.device, s.dtype, s.quantize))
    }
    return [
        *spending_lines(asks, whole.config.api, whole.config.spend, "model"),
        *replies_lines(here, whole.config.generate.batch_size, "model"),
    ]


def _judging_lines(whole: RfUnits, index: Index) -> list[str]:
    """States calls, tokens and cost of the judges behind APIs, and the hours of those here.

    An output that is not written yet counts as one of a few words: its own tokens come on top.
    """
    pairs, judges = whole.pairs, whole.config.judge.model
    asks = judging_whole(whole).pending(index, dict.fromkeys(judges, pairs))
    scored: dict[str, list[Ask | Writing]] = {}
    unwritten = {
        p.key("") for p in pairs if outputs_of(index, p, whole.config.paper_compat) is None
    }
    unread = 0
    for judge in whole.config.per_step.judge:
        of = {judge: pairs}
        asks[judge] += judging_by_step(whole, judge).pending(index, of)[judge]
        scored |= judging_by_step(whole, judge).pending(index, of, "scored")
        stage = steps_stage(judge, "generated")
        unread += sum(p.key("") in unwritten and stage in p.units for p in pairs)
    lines = asking_lines(asks, scored, whole.config.judge, whole.config.spend)
    if lines and unwritten:
        each = max(s.max_new_tokens for s in whole.subjects.values())
        lines.append(
            f"of {len(unwritten)} pairs the outputs are not written yet: their own tokens, at most "
            f"{each:,} each, come on top of the input"
        )
    if lines and unread:
        lines.append(
            f"pairs to be judged step by step whose outputs are not written yet: {unread}; their "
            "steps are not among the calls, two for every part"
        )
    return lines


def _step_lines(whole: RfUnits, index: Index) -> list[str]:
    """Counts the pairs to be judged step by step, in a line for every judge and reading."""
    lines = []
    for judge in whole.config.per_step.judge:
        for reading in whole.config.readings_by_step(judge):
            stage = steps_stage(judge, reading)
            planned = [p for p in whole.pairs if stage in p.units]
            left = sum(not index.is_done(p.key(stage), p.units[stage]) for p in planned)
            lines.append(
                f"step by step, {judge} ({reading}): pairs {len(planned)}, left {left}; of these "
                f"only those that count, with at most {whole.config.per_step.most_steps} steps"
            )
    return lines
