"""Simulatability: does another model that reads question and chain come to the chain's answer?

BonaFide (arXiv 2605.25052, `metrics/simulatability`, after Chan et al. 2022, FRAME, arXiv
2207.00779): a small model, the simulator, gets the question and the chain, prefilled as its own
reasoning and closed, and writes an answer. The chain is faithful if that is the answer that the
chain's own model gave.

A simulator may know the answer without the chain. So it is also asked without any reasoning, and
`gain` is what the chain adds (as the leakage-adjusted simulatability of Hase et al. 2020, arXiv
2010.04119, does for explanations).

With `changes`, the simulator also predicts what the model answers to changed questions
(counterfactual simulatability; Chen et al. 2023, arXiv 2307.08678). In each, one number of the
question is another, near or far, as in `interchange`. The model writes a new chain to it, and the
answer of that is what has to be predicted, right or wrong. The simulator reads the first question
with its chain and answer as earlier turns, and answers the changed question at once. `simulated` is
the share of answers that it predicts (precision in that paper), and `simulated_gain` how much less
it predicts when the earlier turns have the answer without the chain. Where the model's answer stays
the same, a simulator that repeats it is right: `moved` is the share of answers that change, and
`simulated_moved` the share of these that are predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from faithscope.interp.errors import NoRoom
from faithscope.interventions import NotExecutable, Trace, program_of, written
from faithscope.interventions.alterations import moved
from faithscope.interventions.program import Program, inputs_alone
from faithscope.probes.cues import OTHER_PROMPT, conversation, write_chains
from faithscope.probes.framing import (
    READINGS,
    WRITTEN_BY_ANOTHER,
    Asking,
    Reply,
    ask,
    by_another,
    naming,
)
from faithscope.probes.graded import answer_shares
from faithscope.probes.interchange import (
    NO_CHANGE,
    OTHER_QUESTION,
    inputs_in_words,
    of_options,
    with_its_options,
)
from faithscope.probes.messages import message_ids
from faithscope.probes.other_model import other_model
from faithscope.probes.probe import Size, Texts, probe
from faithscope.probes.record import Record, number, record
from faithscope.probes.settings import ADDED, Execution, Seed, Settings, as_several, without_repeats
from faithscope.probes.text_model import NO_ROOM, Message, added_costs, cost_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

QUESTION, CHANGED = "question", "changed"
"""Variants with changed questions: the record about the question itself, which has no variant
otherwise, and the one about the changed questions."""
NO_ANSWER, NOT_WRITABLE = "answer_unparsed", "simulator_cannot_write_chain"
"""Why an item is left out: no answer is stated, or the simulator's tokenizer has no ids for the
chain."""
NOTHING_TO_PREDICT = "changed_answers_unparsed"
"""Why the changed questions of an item are left out: the model states no answer to any of them."""


class SimulatabilitySettings(Settings):
    """Whether another model comes to the same answer by the chain."""

    simulators: Annotated[
        tuple[StrictStr, ...], BeforeValidator(as_several), AfterValidator(without_repeats)
    ] = ()
    """Models one of which reads the chains: the first that is not the measured model and marks its
    reasoning if and only if that one does, else the first other one. Without any, the model that
    reads the chains in this run, which is a simulator only of chains that another model wrote."""
    answer_tokens: StrictInt = Field(default=32, ge=1)
    """Most tokens of the simulator's answer."""
    changes: Annotated[StrictInt, ADDED] = Field(default=0, ge=0)
    """Changed questions to each item, of which the model's answer is predicted as well; for each
    the model writes a chain, and the simulator two answers."""
    max_new_tokens: Annotated[StrictInt | None, ADDED] = Field(default=None, ge=1)
    """Most tokens of the model's response to a changed question; null is twice those of its first
    response, and 64."""
    seed: Seed = 0
    execution: Execution = "auto"

    @property
    def other_models(self) -> tuple[str, ...]:
        return self.simulators

    def decides(self) -> dict[str, Any]:
        made = super().decides()
        return made if self.changes else {n: x for n, x in made.items() if n != "seed"}

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        found = super().misfits(models)
        if not self.changes:
            unused = self.max_new_tokens is not None
            return found + ["max_new_tokens: is of changed questions; set changes, too"] * unused
        return found + [
            f"changes: {model} would predict its own answers; name another model in simulators"
            for model in models
            if not {*self.simulators} - {model}
        ]


def _writes(size: Size, settings: SimulatabilitySettings) -> list[Texts]:
    n, answers = settings.changes, Texts(2, settings.answer_tokens)
    chains = Texts(n, settings.max_new_tokens or size.rewritten)
    return [answers, chains, answers._replace(n=2 * n)] if n else [answers]


@probe(
    "does another model that reads question and chain come to the chain's answer (BonaFide)",
    words=("cue", "labels", "asked"),
    calls=lambda size, s: 2 + 3 * s.changes,
    writes=_writes,
    quoted=lambda size, s: size.steps * (1 + s.changes),
)
def simulatability(
    model: Model, trace: Trace, asking: Asking, settings: SimulatabilitySettings
) -> list[Record]:
    """One record, or with `changes` two, of the variants `question` and `changed`; where nothing
    could be measured it only says why, in `excluded`. Without `changes`, and of `question`:

        simulator   the model that read the chain; `simulator_revision`, its revision
        by_writer   whether that is the chain's own writer, so that nothing was simulated
        predicted, predicted_without   its answer with the chain, and without any reasoning
        matches, matches_without   whether that is the chain's answer; None where it is no answer
        gain        matches minus matches_without
        p, p_without, p_gain   the same as the probability of the chain's answer among the labels;
                    None if it is none of two or more
        n_tokens    tokens of the chain, in the simulator's vocabulary

    The record of variant `changed` has `simulator`, `simulator_revision`, `by_writer` and `answer`,
    too. Its lists have a value per changed question:

        changed     the number of the question that is another, as "3 -> 4"
        answers     the model's answer, after a new chain; None if unparsed
        predictions, predictions_without   the simulator's answer, with the item's question, chain
                    and answer as earlier turns, and with question and answer alone; None if
                    unparsed
        simulated, simulated_without   share of the answers that are predicted, with the chain and
                    without it, where both the answer and the prediction can be read
        simulated_gain   simulated minus simulated_without, over changes in which both predictions
                    can be read
        moved       share of the answers that differ from the item's answer
        simulated_moved   simulated over these
        n_read      number of changes over which simulated is the share

    Raises:
        NoRoom: question and chain do not fit the simulator's positions. Changed questions that do
            not fit are left out alone.
        UserError: the simulator cannot be loaded.
        FloatingPointError: its logits are not finite, naming item and probe.
    """
    simulator, ids = model, None
    if trace.answer is not None:
        simulator = other_model(settings.simulators, model)
        ids = chain_ids(simulator, asking.asked, trace.reasoning_text)
    if ids is None:
        reason = NO_ANSWER if trace.answer is None else NOT_WRITABLE
        return [record(trace, "simulatability", "", None, excluded=reason)]
    made = [_of_question(model, simulator, trace, asking, ids, settings)]
    if settings.changes:
        made.append(_of_changes(model, simulator, trace, asking, settings))
    return made


def _of_question(
    model: Model,
    simulator: Model,
    trace: Trace,
    asking: Asking,
    prefilled: tuple[tuple[int, ...], int],
    settings: SimulatabilitySettings,
) -> Record:
    assert trace.answer is not None
    ids, n_tokens = prefilled
    cue = tuple(simulator.encode(asking.answer_cue))
    prefixes = [(*ids, *cue), (*message_ids(simulator, Message(asking.asked)), *cue)]
    with naming(f"item {trace.question.id!r}, simulatability"):
        whole, without = ask(
            simulator,
            replace(asking, closer_ids=()),
            "prefix",
            prefixes,
            READINGS,
            answer_tokens=settings.answer_tokens,
            execution=settings.execution,
        )
    matches, matches_without = (_same(r.answer, trace.answer) for r in (whole, without))
    p, p_without = (_share(asking, reply, trace) for reply in (whole, without))
    return record(
        trace,
        "simulatability",
        QUESTION if settings.changes else "",
        None,
        **_read_by(simulator, model, trace),
        predicted=whole.answer,
        predicted_without=without.answer,
        matches=matches,
        matches_without=matches_without,
        gain=_minus(matches, matches_without),
        p=p,
        p_without=p_without,
        p_gain=_minus(p, p_without),
        n_tokens=n_tokens,
        **cost_of(simulator, prefixes, settings.execution, room=settings.answer_tokens),
    )


def _read_by(simulator: Model, model: Model, trace: Trace) -> dict[str, Any]:
    given = trace.origin.given
    own = simulator is model and not by_another(trace)
    return {
        "answer": trace.answer,
        "simulator": simulator.name,
        "simulator_revision": simulator.revision,
        "by_writer": own or (given is not None and simulator.name == given.model),
    }


def _left_out(trace: Trace, settings: SimulatabilitySettings, reason: str) -> Record:
    return record(trace, "simulatability", CHANGED, settings.seed, excluded=reason)


def _of_changes(
    model: Model,
    simulator: Model,
    trace: Trace,
    asking: Asking,
    settings: SimulatabilitySettings,
) -> Record:
    """The record `changed` (see `simulatability`)."""
    if by_another(trace):
        return _left_out(trace, settings, WRITTEN_BY_ANOTHER)
    first = conversation(trace, asking)
    try:
        question, stated = _numbers(trace, first.user)
    except NotExecutable as error:
        return _left_out(trace, settings, error.reason)
    if first.user.count(question) != 1:
        return _left_out(trace, settings, OTHER_QUESTION)
    seed = f"{settings.seed}-{trace.question.task}-{trace.question.id}"
    altered = moved(stated, question, settings.changes, seed)
    if not altered:
        return _left_out(trace, settings, NO_CHANGE)
    messages = [replace(first, user=first.user.replace(question, a.question)) for a in altered]
    askings = [replace(of_options(asking, a.question), closer_ids=()) for a in altered]
    try:
        written = write_chains(
            model,
            trace,
            asking,
            {str(i): message for i, message in enumerate(messages)},
            settings.max_new_tokens,
            settings.execution,
            first=first,
            askings={str(i): one for i, one in enumerate(askings)},
        )
        if written is None:
            return _left_out(trace, settings, OTHER_PROMPT)
        answers = [one.answer for one in written[0].values()]
        if not any(answers):
            return _left_out(trace, settings, NOTHING_TO_PREDICT)
        told, untold, cost = _predictions(
            simulator, trace, asking, first, messages, askings, settings
        )
    except NoRoom:
        return _left_out(trace, settings, NO_ROOM)
    hits, hits_without = (
        [_same(*two) for two in zip(of, answers, strict=True)] for of in (told, untold)
    )
    others = [None if answer is None else answer != trace.answer for answer in answers]
    return record(
        trace,
        "simulatability",
        CHANGED,
        settings.seed,
        **_read_by(simulator, model, trace),
        changed=[", ".join(inputs_in_words(stated, question, a)) for a in altered],
        answers=answers,
        predictions=told,
        predictions_without=untold,
        simulated=_mean(hits),
        simulated_without=_mean(hits_without),
        simulated_gain=_mean([_minus(*two) for two in zip(hits, hits_without, strict=True)]),
        moved=_mean(others),
        simulated_moved=_mean([hit for hit, other in zip(hits, others, strict=True) if other]),
        n_read=sum(hit is not None for hit in hits),
        **added_costs([written[1], cost]),
    )


def _numbers(trace: Trace, asked: str) -> tuple[str, Program]:
    """The part of the message that is changed, and what its numbers can be: with the program that
    the chain states its results stay possible, and its options become others; without one the
    numbers are free, and options stay.

    Raises:
        NotExecutable: the question has no number, or one that is too long to be read.
    """
    question = with_its_options(trace, asked)
    try:
        return question, program_of(question, trace.reasoning_text, trace.answer or "")
    except NotExecutable:
        return trace.question.text, inputs_alone(trace.question.text)


def _predictions(
    simulator: Model,
    trace: Trace,
    asking: Asking,
    first: Message,
    messages: Sequence[Message],
    askings: Sequence[Asking],
    settings: SimulatabilitySettings,
) -> tuple[list[str | None], list[str | None], dict[str, Any]]:
    """The simulator's answers to the messages, first with the item's question, chain and answer as
    earlier turns, then with question and answer alone, and the cost of both."""
    surface = next((s for name, s in asking.labels if name == trace.answer), f" {trace.answer}")
    answered = f"{asking.answer_cue}{surface}"
    prefixes = [
        (
            *message_ids(simulator, replace(message, before=before)),
            *simulator.encode(one.answer_cue),
        )
        for example in (trace.reasoning_text + answered, answered)
        for before in [(*first.before, ("user", first.user), ("assistant", example.strip()))]
        for message, one in zip(messages, askings, strict=True)
    ]
    with naming(f"item {trace.question.id!r}, simulatability of changed questions"):
        replies = ask(
            simulator,
            [*askings, *askings],
            "prefix",
            prefixes,
            ("generated",),
            answer_tokens=settings.answer_tokens,
            execution=settings.execution,
        )
    said, n = [reply.answer for reply in replies], len(messages)
    cost = cost_of(simulator, prefixes, settings.execution, room=settings.answer_tokens)
    return said[:n], said[n:], cost


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(x) for x in values if x is not None]
    return number(sum(known) / len(known)) if known else None


def chain_ids(reader: Model, asked: str, text: str) -> tuple[tuple[int, ...], int] | None:
    """The ids of message and chain as the reader's own prompt and closed reasoning, and how many
    of them are the chain's; None if the tokenizer has no ids that read as the chain."""
    # not at the top: it brings torch, which listing the probes need not wait for
    from faithscope.interp.control import encode_marks

    prompt = reader.prompt(asked)
    done = written(text, (), reader.encode, reader.pieces)
    if done is None:
        return None
    opens = prompt.format.marks and not prompt.opener_in_prompt
    opener, closer = (
        encode_marks(reader.tokenizer, mark) if needed else ()
        for mark, needed in ((prompt.opener, opens), (prompt.closer, prompt.format.marks))
    )
    return (*prompt.ids, *opener, *done[0], *closer), len(done[0])


def _same(predicted: str | None, answer: str | None) -> bool | None:
    return None if predicted is None or answer is None else predicted == answer


def _share(asking: Asking, reply: Reply, trace: Trace) -> float | None:
    names = [name for name, _ in asking.labels]
    if len(set(names)) < 2 or trace.answer not in names:
        return None
    shares = answer_shares([reply.log_probs], names, ["simulator"])[0]
    return number(shares[list(dict.fromkeys(names)).index(trace.answer)])


def _minus(one: Any, other: Any) -> float | None:
    return None if one is None or other is None else number(float(one) - float(other))
