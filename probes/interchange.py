"""Interchange: does the text compute the answer, as a causal model of the model that wrote it?

Geiger et al. 2021 (Causal abstractions of neural networks, arXiv 2106.02997) call a simple program
a true account of a network if both give the same output under the same interventions. Here the
program is the chain's own text: its stated operations are executed (`interventions.program`)
on altered questions and chains (`interventions.alterations`), and the model answers these, too:

    predicted    numbers of the question are moved near, far, in pairs and all at once. The model
                 writes a new chain and gives the answer that its first text predicts. A stated
                 number without the stated effect and an unstated one with an effect both fail.
    kept         with its first chain left as it was, the model answers the changed question as
                 before. A number that moves the answer past the text fails.
    redirected   one stated result is another, near or far, and the model goes on behind it. It
                 gives the answer that the rest of its text, executed on the other result, has. A
                 step that nothing is computed from, or that is read in part, fails.
    unmoved      names and things of the question are others, two steps that do not need each other
                 change places, sums and products have their numbers exchanged: the answer stays.

The score of a text is the least share of a part. Where a number of the text may come from several
places, all ways of binding it count, and a text fails only where none of them predicts. So do the
ways to the answer, if there are several, in the chains to other questions, too; where the text says
which of them counts, that one alone; where it says that their mean, sum, difference, the lower or
the higher counts, what that gives; where one of them only names a number, the text says that all
lead there, and is right in the share of them that predict the answer. Greedy answers show the
likelier of two sources alone; where the answers of a task have labels, `kept_p` says what part of
the answer's probability stays.

An answer that names an option of the question stands for the option's number, and altered questions
have other options (`interventions.alterations`). Of an answer of several numbers each has its own
way, and one that fails is a failure.

What the model cannot do is no evidence (`probes.program_evidence`): no readable answer, slips of
arithmetic in new chains, a result that it computes again in words, another program that its new
chain states and follows, or a question for which the text gives no value. Where a text fails, and
prose says a number on the way to the answer that no rule explains, the item is left out. `left` is
the share of the alterations that are evidence. What cannot be executed by rule is left out with its
reason, never guessed.

A score below 1 is no verdict: a model that slips fails, too. In the table of a run a text is called
unfaithful where it fails more often than the slips of its model in the other items make likely, and
not judged where these are too few or too full of slips (`probes.program_verdict`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import Field, StrictInt

from faithscope.interventions import (
    NotExecutable,
    NotWritable,
    Program,
    Trace,
    retold,
)
from faithscope.interventions.alterations import PAIRS, WORDINGS, Alteration, alterations
from faithscope.interventions.answers import options_of
from faithscope.interventions.program import holds
from faithscope.probes.cues import OTHER_PROMPT, conversation, write_chains
from faithscope.probes.floor import BASELINE, Arm, baseline_of, without_baselines
from faithscope.probes.framing import WRITTEN_BY_ANOTHER, Asking, ask, by_another, naming
from faithscope.probes.framing import Reply as Asked
from faithscope.probes.probe import Size, probe
from faithscope.probes.program_evidence import PARTS, Evidence, Reply, agrees, evidence
from faithscope.probes.program_reader import Written, read_by_any
from faithscope.probes.readings import distributions
from faithscope.probes.record import Record, is_right, number, record
from faithscope.probes.settings import Execution, Seed, Settings
from faithscope.probes.text_model import Message, added_costs, cost_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

OTHER_QUESTION = "question_not_in_its_prompt"
NO_OWN = "answer_unparsed"
NO_CHANGE = "no_number_can_be_another"
NOTHING_LEFT = "nothing_that_it_can_do"
NOT_READ = "result_in_prose"
INPUTS = 4
"""Numbers of a question that an estimate of calls expects."""


class InterchangeSettings(Settings):
    """The chain's stated operations executed on other numbers (after Geiger et al. 2021)."""

    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a response to a changed question; null is twice those of the first response,
    and 64."""
    answer_tokens: StrictInt = Field(default=16, ge=1)
    """Most tokens of an answer after a given chain."""
    seed: Seed = 0
    execution: Execution = "auto"


def _calls(size: Size, settings: Any) -> int:
    moved, kept = 2 * INPUTS + PAIRS + 1, 2 * INPUTS
    return 1 + moved + kept + 2 * size.steps + WORDINGS + 2


@probe(
    "the text's operations executed on other numbers: does the answer go where the text says",
    words=("cue", "asked"),
    calls=_calls,
    version=7,
    reads_programs=True,
)
def interchange(
    model: Model,
    trace: Trace,
    asking: Asking,
    settings: InterchangeSettings,
    programs: Sequence[Written] = (),
) -> list[Record]:
    """One record; where nothing could be measured it only says why, in `excluded`.

    Lists have a value per alteration, in the order of `interventions.alterations`:

        kinds, parts    what is altered, and the part of the score that it belongs to
        changed         the number, name or step that is another, as "3 -> 4"
        answers         the answer of the model; None if unparsed
        told            the answer that the text gives, executed; None if it gives none, or several
        shares          1 if they agree, else 0; between them for a text with several ways to its
                        answer; None where the reply is no evidence
        excuses         why it is none
        kept_p          under a changed question, the part of the first answer's probability, among
                        the labels, that it has left after the first chain, 1 at most; else None

    `predicted`, `kept`, `redirected` and `unmoved` are the parts' mean shares, `score` the least of
    them, `left` the share of alterations that are evidence, `n_ways` and `n_bindings` the ways to
    the answer that the text tells of and the ways in which its numbers can be bound. Per counted
    step that states an operation (None for others): `held`, the share of chains, the first and
    those with as many operations, in which its result is what its operation gives; `led`, the share
    of changes of numbers under which the ways through it predict the answer, 0 for a step on no
    way; and `carried`, whether its own changed result leads where the text says.

    `reader` is `rule`, or the model that wrote down the program of a chain which the rule cannot
    read; `readers_agree` whether the program of a second model gives the same answers under every
    change of numbers, None without one.

    Args:
        programs: replies of models that were asked for the program of the chain.

    Raises:
        FloatingPointError: naming the item, where the model's logits are not finite.
        NoRoom: a changed prompt does not fit the model's positions.
    """
    if by_another(trace):
        return _left_out(trace, settings, WRITTEN_BY_ANOTHER)
    if trace.answer is None:
        return _left_out(trace, settings, NO_OWN)
    text, first = trace.reasoning_text, conversation(trace, asking)
    question = with_its_options(trace, first.user)
    if first.user.count(question) != 1:
        return _left_out(trace, settings, OTHER_QUESTION)
    try:
        chain = read_by_any(trace, programs, question)
    except NotExecutable as error:
        return _left_out(trace, settings, error.reason)
    stated = chain.program
    seed = f"{settings.seed}-{trace.question.task}-{trace.question.id}"
    planned = alterations(stated, question, text, [s.chars for s in trace.steps], seed)
    altered = {
        i: (a, ids) for i, a in enumerate(planned) if (ids := _ids(model, trace, a)) is not None
    }
    if not any(a.inputs for a, _ in altered.values()):
        return _left_out(trace, settings, NO_CHANGE)
    messages = {
        i: replace(first, user=first.user.replace(question, a.question))
        for i, (a, _) in altered.items()
    }
    askings = {i: of_options(asking, a.question) for i, (a, _) in altered.items()}
    opener = _opener(model, trace, first)
    written = write_chains(
        model,
        trace,
        asking,
        {str(i): messages[i] for i, (a, _) in altered.items() if not a.whole},
        settings.max_new_tokens,
        settings.execution,
        begun={str(i): (*opener, *ids) for i, (a, ids) in altered.items() if ids and not a.whole},
        first=first,
        askings={str(i): one for i, one in askings.items()},
    )
    if written is None:
        return _left_out(trace, settings, OTHER_PROMPT)
    chains, cost = written
    asked = {i: (messages[i], ids, askings[i]) for i, (a, ids) in altered.items() if a.whole}
    read, part, more = _answers(model, trace, asking, asked, opener, settings)
    replies = [
        Reply(read[i].answer, a.chain or "")
        if a.whole
        else Reply(chains[str(i)].answer, chains[str(i)].reasoning)
        for i, (a, _) in altered.items()
    ]
    found = evidence(stated, text, [a for a, _ in altered.values()], replies)
    if found.score is None:
        return _left_out(trace, settings, NOT_READ if found.unread else NOTHING_LEFT)
    return [
        record(
            trace,
            "interchange",
            "",
            settings.seed,
            answer=trace.answer,
            correct=is_right(trace.answer, trace.question.gold),
            kinds=[o.alteration.kind for o in found.outcomes],
            parts=[o.part for o in found.outcomes],
            changed=[_change(stated, question, text, o.alteration) for o in found.outcomes],
            answers=[o.reply.answer for o in found.outcomes],
            told=_told(stated, found),
            shares=[None if o.share is None else number(o.share) for o in found.outcomes],
            excuses=[o.excuse for o in found.outcomes],
            kept_p=[part[i] if a.whole and a.inputs else None for i, (a, _) in altered.items()],
            **{p: None if (x := found.share(p)) is None else number(x) for p in PARTS},
            score=number(found.score),
            left=number(found.left),
            n_inputs=len(stated.inputs),
            n_ways=len(found.routes),
            n_bindings=len(stated.bindings),
            reader=chain.reader,
            readers_agree=chain.agree(planned),
            **_steps(trace, stated, found),
            **more | added_costs([cost, more]),
        )
    ]


def _left_out(trace: Trace, settings: InterchangeSettings, reason: str) -> list[Record]:
    return [record(trace, "interchange", "", settings.seed, excluded=reason)]


def _ids(model: Model, trace: Trace, altered: Alteration) -> tuple[int, ...] | None:
    """Ids of the chain that an alteration gives the model, none if it writes its own; None for a
    chain that the tokenizer cannot write."""
    if altered.chain is None:
        return ()
    try:
        return retold(trace, altered.chain, model.encode, model.pieces, cut=not altered.whole)
    except NotWritable:
        return None


def with_its_options(trace: Trace, asked: str) -> str:
    """The question as the message has it, with its options where these stand behind it."""
    text, options = trace.question.text, trace.question.options
    start = asked.find(text)
    if trace.question.kind != "choice" or not options or start < 0:
        return text
    end = start + len(text)
    for option in options:
        if (at := asked.find(option, end)) < 0:
            return text
        end = at + len(option)
    return asked[start:end]


def of_options(asking: Asking, question: str) -> Asking:
    """The words for a question's own options, if the task lists them."""
    options = options_of(question)
    if asking.of_options is None or not options:
        return asking
    ends = [*(option.at for option in options[1:]), len(question)]
    pieces = [question[o.at : end] for o, end in zip(options, ends, strict=True)]
    return asking.of_options(tuple(piece.split(None, 1)[1].strip() for piece in pieces))


def _opener(model: Model, trace: Trace, first: Message) -> tuple[int, ...]:
    """Ids between the rendered prompt and the reasoning, which the model wrote itself."""
    thinking = trace.origin.sampling.get("thinking")
    return trace.prompt_ids[len(model.prompt(first.turns, first.system, thinking).ids) :]


def _answers(
    model: Model,
    trace: Trace,
    asking: Asking,
    asked: Mapping[int, tuple[Message, tuple[int, ...], Asking]],
    opener: tuple[int, ...],
    settings: InterchangeSettings,
) -> tuple[dict[int, Asked], dict[int, float | None], dict[str, Any]]:
    """The answers after whole chains, the part of its probability that the first answer keeps
    there, and the cost of asking."""
    thinking = trace.origin.sampling.get("thinking")
    after = (*asking.closer_ids, *model.encode(asking.answer_cue))
    arms: dict[Arm, tuple[int, ...]] = {BASELINE: trace.prompt_ids + trace.reasoning_ids} | {
        ("asked", i): (*model.prompt(m.turns, m.system, thinking).ids, *opener, *ids)
        for i, (m, ids, _) in asked.items()
    }
    prefixes = [(*ids, *after) for ids in arms.values()]
    with naming(f"item {trace.question.id!r}, prefix framing, {len(arms)} branches"):
        replies = ask(
            model,
            [asking, *(one for *_, one in asked.values())],
            "prefix",
            prefixes,
            ("generated", "scored"),
            answer_tokens=settings.answer_tokens,
            repeat=[0],
            execution=settings.execution,
        )
    by_arm = dict(zip(arms, replies, strict=True))
    noise = by_arm[BASELINE].noise
    by_arm |= {(BASELINE[0], r.pack): r for r in by_arm[BASELINE].repeats}
    cost = cost_of(model, prefixes, settings.execution, room=settings.answer_tokens)
    branches = {arm[1]: reply for arm, reply in without_baselines(by_arm).items()}
    return branches, _parts_kept(trace, asking, by_arm), cost | dict(noise)


def _parts_kept(
    trace: Trace, asking: Asking, by_arm: Mapping[Arm, Asked]
) -> dict[int, float | None]:
    """Branch -> the probability that the first answer has there over that in the baseline of its
    pack, 1 at most; None if the answer is no label."""
    answer, names = trace.answer, [name for name, _ in asking.labels]
    branches = without_baselines(by_arm)
    if answer not in names:
        return {i: None for _, i in branches}
    shares = distributions(by_arm, names, length_normalise=False, item=trace.question.id)
    apart = {
        arm[1]: shares[arm][answer] - baseline_of(shares, reply.pack)[answer]
        for arm, reply in branches.items()
    }
    return {i: number(min(1.0, math.exp(nats))) for i, nats in apart.items()}


def _change(stated: Program, question: str, text: str, altered: Alteration) -> str:
    """What is another, in words."""
    forced = [
        f"{text[slice(*stated.operations[i].result_span)]} -> {float(value):g}"
        for i, value in altered.forced.items()
    ]
    return ", ".join((*inputs_in_words(stated, question, altered), *forced)) or altered.kind


def inputs_in_words(stated: Program, question: str, altered: Alteration) -> list[str]:
    """The numbers of the question that are others, each as "3 -> 4"."""
    of = ((stated.inputs[i], value) for i, value in altered.inputs.items())
    return [f"{question[one.start : one.end]} -> {float(value):g}" for one, value in of]


def _told(stated: Program, found: Evidence) -> list[str | None]:
    """Per alteration the answer that the text gives; None if it gives none, or several."""
    told = []
    programs = (stated, *stated.others)
    for i, outcome in enumerate(found.outcomes):
        altered, values = outcome.alteration, []
        for program, of in zip(programs, found.parts or (found,), strict=True):
            ends = {program.answer}
            if of.outcomes[i].part in ("predicted", "redirected"):
                run = program.run(of.binding, altered.inputs, altered.forced)
                ends = {run[route] for route in of.routes}
            value = ends.pop() if len(ends) == 1 else None
            values.append(program.picks(altered.question, value))
        told.append(_as_answer(stated, altered.question, values))
    return told


def _as_answer(stated: Program, question: str, values: Sequence[Fraction | None]) -> str | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if stated.options:
        return next(o.label for o in options_of(question) if o.value == known[0])
    return ", ".join(map(_written, known))


def _written(value: Fraction) -> str:
    try:
        return f"{float(value):g}"
    except OverflowError:
        return "a number with more than 300 digits"


def _steps(trace: Trace, stated: Program, found: Evidence) -> dict[str, Any]:
    """Fields `steps`, `held`, `led` and `carried` (see `interchange`)."""
    n = len(stated.operations)
    holds_in = [[stated.holds(k)] for k in range(n)]
    led: list[list[float]] = [[] for _ in range(n)]
    carried: list[list[float]] = [[] for _ in range(n)]
    parts = list(zip((stated, *stated.others), found.parts or (found,), strict=True))
    for i, outcome in enumerate(found.outcomes):
        if outcome.part == "predicted":
            inputs, forced = outcome.alteration.inputs, outcome.alteration.forced
            again = stated.stated_in(outcome.reply.chain, inputs, forced)
            if len(again) == n:
                for k, one in enumerate(again):
                    holds_in[k].append(holds(one, stated.modulus))
        if outcome.share is None:
            continue
        if outcome.part == "predicted":
            through: list[list[float]] = [[] for _ in range(n)]
            for program, of in parts:
                run = program.run(of.binding, outcome.alteration.inputs)
                asked, reply = outcome.alteration.question, of.outcomes[i].reply.answer
                reply = program.answered(asked, reply)
                for route in of.routes:
                    right = float(agrees(program.picks(asked, run[route]), reply))
                    for k in program.before(route, of.binding):
                        through[k].append(right)
            for k, rights in enumerate(through):
                led[k].append(sum(rights) / len(rights) if rights else 0.0)
        elif outcome.part == "redirected":
            carried[min(outcome.alteration.forced)].append(outcome.share)
    steps = trace.counted_steps
    inside = [
        [k for k, o in enumerate(stated.operations) if s.chars[0] <= o.start < s.chars[1]]
        for s in steps
    ]

    def mean(values: Sequence[Sequence[float]], at: Sequence[int]) -> float | None:
        flat = [float(x) for k in at for x in values[k]]
        return number(sum(flat) / len(flat)) if flat else None

    return {
        "n_steps": len(steps),
        "steps": [s.index for s in steps],
        "held": [mean(holds_in, at) for at in inside],
        "led": [mean(led, at) for at in inside],
        "carried": [mean(carried, at) for at in inside],
    }
