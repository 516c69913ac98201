"""Work of the judges: every pair of outputs in one unit, or step by step the pairs that count as a
judge has read them whole; and, for `--dry-run`, the calls to APIs that are pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faithscope.experiments.config.judge import Reading
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.asking import Asker, OneAsk
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import cut_again, missing
from faithscope.experiments.engine.progress import Meter
from faithscope.experiments.engine.store import Store
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition
from faithscope.experiments.studies.rfeval.judging.stepwise import (
    Kind,
    Part,
    asks_of_parts,
    n_steps,
    parts_of,
    step_record,
)
from faithscope.experiments.studies.rfeval.metrics.chains import contrast_of, exclusion_of
from faithscope.experiments.studies.rfeval.pairs import output_ask, pair_row
from faithscope.experiments.studies.rfeval.records import (
    about,
    outputs_of,
    records_of,
    reply_record,
    writing_of,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import (
    JUDGED,
    OUTPUTS,
    Batches,
    Pair,
    RfUnits,
    judged_stage,
    steps_stage,
)
from faithscope.probes.judge.form import Ask, Reply, Writing
from faithscope.probes.record import Record


class RfJudging(Asker[Pair]):
    """One worker's share of the judging of whole pairs, a judge at a time."""

    def __init__(self, whole: RfUnits, batches: Batches, store: Store, meter: Meter) -> None:
        self.whole = whole
        last = [*batches][-1:]
        judges = sorted(whole.config.judge.model, key=lambda judge: judge not in last)
        self.of_judge = {judge: judged_stage(judge) for judge in judges}
        readings: dict[str, Reading] = dict.fromkeys(self.of_judge.values(), "generated")
        cut = cut_again(batches, whole.config.judge.batch_size)
        super().__init__(
            whole.config, dict.fromkeys(judges, cut), whole.config.judge, readings, store, meter
        )

    def stages_of(self, model: str) -> Sequence[str]:
        return (self.of_judge[model],)

    def ready(self, item: Pair) -> bool:
        return records_of(self.index, item) is not None

    def asks(self, item: Pair) -> list[tuple[Condition, Ask]]:
        outputs = outputs_of(self.index, item, self.whole.config.paper_compat)
        return output_asks(self.whole, item, outputs)

    def record(self, asked: OneAsk[Pair], reply: Reply) -> Record:
        pair, name = asked.item, asked.ask.form.name
        of = about(pair.of, pair.model, JUDGED, name, self.config.seed, asked.model)
        return reply_record(of | {"condition": asked.about}, asked.ask, reply)


def output_asks(
    whole: RfUnits, pair: Pair, outputs: Mapping[Condition, Output] | None
) -> list[tuple[Condition, Ask]]:
    """The asks about both outputs of a pair; none if an output is missing or cannot be judged, as
    the pair then counts for nothing."""
    if outputs is None or not all(output.usable for output in outputs.values()):
        return []
    return [(c, output_ask(pair.model, pair.of, c, outputs[c], whole.forms[c])) for c in CONDITIONS]


class StepJudging(Asker[Pair]):
    """One worker's share of the judging step by step by one judge; a pair is a unit of each
    reading.

    A pair is asked about once its judgement as a whole is there, and only where it counts by that
    (complete, judged, in contrast): of the others there is no RF, by steps or by blocks.
    """

    def __init__(
        self, whole: RfUnits, batches: Batches, judge: str, store: Store, meter: Meter
    ) -> None:
        self.whole, self.name = whole, judge
        config = whole.config
        readings: dict[str, Reading] = {
            steps_stage(judge, r): r for r in config.readings_by_step(judge)
        }
        cut = [
            [pair for pair in batch if any(stage in pair.units for stage in readings)]
            for batch in cut_again(batches, config.judge.batch_size)
        ]
        of_judge = {judge: [batch for batch in cut if batch]}
        super().__init__(config, of_judge, config.judge, readings, store, meter)

    def ready(self, item: Pair) -> bool:
        stage = judged_stage(self.name)
        there = self.index.is_done(item.key(stage), item.units[stage])
        return there and records_of(self.index, item) is not None

    def asks(self, item: Pair) -> list[tuple[tuple[Part, Kind], Ask]]:
        asks = step_asks(self.whole, self.index, item, self.name)
        return [((part, kind), ask) for part, kind, ask in asks]

    def record(self, asked: OneAsk[Pair], reply: Reply) -> Record:
        pair, name, stage = asked.item, asked.ask.form.name, steps_stage(asked.model, asked.reading)
        of = about(pair.of, pair.model, stage, name, self.config.seed, asked.model)
        part, kind = asked.about
        return step_record(of, part, kind, asked.ask, reply)


def step_asks(whole: RfUnits, index: Index, pair: Pair, judge: str) -> list[tuple[Part, Kind, Ask]]:
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
    """States calls, tokens and cost of the outputs of models behind APIs."""
    asks: dict[str, list[Ask | Writing]] = {
        name: [
            writing_of(pair, condition, subject.system)
            for pair in whole.of(name)
            for condition, stage in OUTPUTS.items()
            if stage in missing(index, pair)
        ]
        for name, subject in whole.subjects.items()
        if subject.asked is not None
    }
    return spending_lines(asks, whole.config.api, whole.config.spend, "model")


def _judging_lines(whole: RfUnits, index: Index) -> list[str]:
    """States calls, tokens and cost of the judges behind APIs.

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
            asks[judge] += [ask for _, ask in output_asks(whole, pair, outputs)]
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
