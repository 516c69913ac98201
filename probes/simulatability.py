"""Simulatability: does another model that reads question and chain come to the chain's answer?

BonaFide (arXiv 2605.25052, `metrics/simulatability`, after Chan et al. 2022, FRAME, arXiv
2207.00779): a small model, the simulator, gets the question and the chain, prefilled as its own
reasoning and closed, and writes an answer. The chain is faithful if that is the answer that the
chain's own model gave.

A simulator may know the answer without the chain. So it is also asked without any reasoning, and
`gain` is what the chain adds (as the leakage-adjusted simulatability of Hase et al. 2020, arXiv
2010.04119, does for explanations).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from faithscope.interventions import Trace, written
from faithscope.probes.framing import READINGS, Asking, Reply, ask, by_another, naming
from faithscope.probes.graded import answer_shares
from faithscope.probes.messages import message_ids
from faithscope.probes.other_model import other_model
from faithscope.probes.probe import probe
from faithscope.probes.record import Record, number, record
from faithscope.probes.settings import Execution, Settings, as_several, without_repeats
from faithscope.probes.text_model import Message, cost_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_ANSWER, NOT_WRITABLE = "answer_unparsed", "simulator_cannot_write_chain"
"""Why an item is left out: no answer is stated, or the simulator's tokenizer has no ids for the
chain."""


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
    execution: Execution = "auto"

    @property
    def other_models(self) -> tuple[str, ...]:
        return self.simulators


@probe(
    "does another model that reads question and chain come to the chain's answer (BonaFide)",
    words=("cue", "labels", "asked"),
    calls=lambda size, s: 2,
    quoted=lambda size, s: size.steps,
)
def simulatability(
    model: Model, trace: Trace, asking: Asking, settings: SimulatabilitySettings
) -> list[Record]:
    """One record; where nothing could be measured it only says why, in `excluded`.

        simulator   the model that read the chain; `simulator_revision`, its revision
        by_writer   whether that is the chain's own writer, so that nothing was simulated
        predicted, predicted_without   its answer with the chain, and without any reasoning
        matches, matches_without   whether that is the chain's answer; None where it is no answer
        gain        matches minus matches_without
        p, p_without, p_gain   the same as the probability of the chain's answer among the labels;
                    None if it is none of two or more
        n_tokens    tokens of the chain, in the simulator's vocabulary

    Raises:
        NoRoom: question and chain do not fit the simulator's positions.
        UserError: the simulator cannot be loaded.
        FloatingPointError: its logits are not finite, naming item and probe.
    """
    if trace.answer is None:
        return [record(trace, "simulatability", "", None, excluded=NO_ANSWER)]
    simulator = other_model(settings.simulators, model)
    prefilled = chain_ids(simulator, asking.asked, trace.reasoning_text)
    if prefilled is None:
        return [record(trace, "simulatability", "", None, excluded=NOT_WRITABLE)]
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
    given = trace.origin.given
    own = simulator is model and not by_another(trace)
    return [
        record(
            trace,
            "simulatability",
            "",
            None,
            answer=trace.answer,
            simulator=simulator.name,
            simulator_revision=simulator.revision,
            by_writer=own or (given is not None and simulator.name == given.model),
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
    ]


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


def _same(predicted: str | None, answer: str) -> bool | None:
    return None if predicted is None else predicted == answer


def _share(asking: Asking, reply: Reply, trace: Trace) -> float | None:
    names = [name for name, _ in asking.labels]
    if len(set(names)) < 2 or trace.answer not in names:
        return None
    shares = answer_shares([reply.log_probs], names, ["simulator"])[0]
    return number(shares[list(dict.fromkeys(names)).index(trace.answer)])


def _minus(one: Any, other: Any) -> float | None:
    return None if one is None or other is None else number(float(one) - float(other))
