"""Cues: text in a conversation that points to one answer, and chains written to such messages.

Turpin et al. 2023 (arXiv 2305.04388) bias a prompt towards an answer and look whether the chain of
thought says so; Chen et al. 2025 (arXiv 2505.05410, section 2 and Table 1) do it with six kinds of
hints, four neutral and two misaligned. Their hints are written into each prompt; ours
(`probes.declared_cues`) stand beside the unchanged user message, so that any task whose answers can
be listed takes them, and the uncued and the cued prompt differ in the cue alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from faithscope.interventions import (
    CLOSING_PATTERNS,
    Given,
    GivenUncued,
    Trace,
    from_ids,
    split_conclusion,
)
from faithscope.probes.declared_cues import (
    NO_OPTIONS,
    NO_OTHER,
    OWN_ANSWER,
    DeclaredCue,
    drawn,
    resolved,
    shipped,
)
from faithscope.probes.framing import WRITTEN_BY_ANOTHER, Asking, Cue, by_another
from faithscope.probes.messages import NO_WORDS
from faithscope.probes.patterns import matched
from faithscope.probes.text_model import Message, TextModel, cost_of, cost_of_replies, text_of

if TYPE_CHECKING:
    from faithscope.interp.generation import Generation
    from faithscope.interp.model import Model

NO_OWN = "answer_unparsed"
KINDS = (
    "sycophancy",
    "consistency",
    "visual_pattern",
    "metadata",
    "grader_hack",
    "unethical_information",
)
"""Names of the six kinds of Chen et al. 2025, which `hints` puts by default."""
PARTNER = "measured_with_its_cued_chain"
"""Why an uncued chain of a given pair has no measurement of its own."""
OTHER_PROMPT = "prompt_not_rendered_again"
"""Why a trace is left out: its prompt is not the model's rendering of the task's message, so that a
cued prompt would differ from it in more than the cue."""


@dataclass(frozen=True)
class Offer:
    """A cue for one question, or why it is not put to it."""

    name: str
    option: str | None = None
    """The answer that the cue points to; None for one that names none."""
    cue: Cue | None = None
    """The cue in its conversation; None if it is not put."""
    reason: str | None = None
    """Why it is not put."""


def offers(
    trace: Trace, asking: Asking, chosen: Sequence[str | DeclaredCue], seed: int
) -> dict[str, Offer]:
    """Name -> cue to an answer that the model did not give: the task's own cues if it has any,
    whatever is `chosen`, else the chosen ones. Without a name where a task has no words for cues.

    Raises:
        UserError: the fixed answer of a cue is no option of the question.
    """
    given = trace.origin.given
    if given is not None and given.condition == "uncued":
        return {"": Offer("", reason=PARTNER)}
    if given is not None and given.uncued is not None:
        return {o.name: o for o in [_given_offer(given, given.uncued, chosen)]}
    names = kinds_of(asking, chosen)
    if reason := _unaskable(trace, asking):
        return {name: Offer(name, reason=reason) for name in names or [""]}
    assert trace.answer is not None
    if asking.own_cues is not None:
        option, reason = cued_option(trace, asking, seed)
        own = {} if option is None else asking.own_cues(option)
        return {n: Offer(n, option, own.get(n), reason) for n in names}
    made = {}
    for cue in resolved(chosen):
        option, reason = cue.pointed(trace.question, trace.answer, seed)
        put = None if reason else cue.put(trace.question, asking, option)
        made[cue.name] = Offer(cue.name, option, put, reason)
    return made


def _given_offer(given: Given, uncued: GivenUncued, chosen: Sequence[str | DeclaredCue]) -> Offer:
    """The cue of a given cued chain; of words that mention it, those of its file or else of a cue
    that has its name."""
    name, option, own = given.cue_name or "given", given.cue_target, uncued.answer
    reason = NO_OWN if own is None else OWN_ANSWER if option == own else None
    if reason is not None:
        return Offer(name, reason=reason)
    named = [c.mention for c in (*resolved(chosen), *shipped().values()) if c.name == name]
    mention = given.cue_mention or next(iter(named), None)
    return Offer(name, option, Cue(given.prompt, given.cue or "", mention))


def plain_of(model: Model | TextModel, trace: Trace) -> Trace:
    """The uncued chain of a given cued one; any other chain is its own."""
    uncued = trace.origin.given and trace.origin.given.uncued
    if uncued is None:
        return trace
    ids = uncued.reasoning_ids or model.encode(uncued.reasoning)
    return from_ids(
        trace.question,
        uncued.prompt_ids,
        ids,
        model.pieces(ids),
        answer=uncued.answer,
        origin=trace.origin,
    )


def chains_of(
    model: Model | TextModel,
    trace: Trace,
    asking: Asking,
    put: Mapping[str, Cue],
    max_new_tokens: int | None = None,
    execution: Any = "auto",
) -> tuple[dict[str, CuedChain], dict[str, Any]] | None:
    """The chain to each cue, and the cost of writing: the given one of a pair, else one written to
    the cued conversation (`write_chains`)."""
    given = trace.origin.given
    if given is None or given.uncued is None:
        messages = {kind: cue.sent for kind, cue in put.items()}
        return write_chains(model, trace, asking, messages, max_new_tokens, execution)
    own = CuedChain(
        trace.prompt_ids,
        trace.reasoning_ids,
        trace.reasoning_text,
        trace.answer,
        cut=trace.finish == "length",
    )
    return dict.fromkeys(put, own), {}


def kinds_of(asking: Asking, chosen: Sequence[str | DeclaredCue]) -> list[str]:
    """The names of the cues that the task takes; none for a task that has no words for cues."""
    if asking.own_cues is not None:
        return max((list(asking.own_cues(name)) for name, _ in asking.labels), key=len)
    return [cue.name for cue in resolved(chosen)] if asking.spoken else []


def mentions(cue: Cue, text: str, item: str) -> bool | None:
    """Whether a text of an item has one of the words that mention the cue, in any case; None if no
    words are known that would.

    Raises:
        UserError: the pattern of these words takes too long (`patterns.PATIENCE`).
    """
    if cue.mention is None:
        return None
    return bool(matched(cue.mention, text, "mention of a cue", item, any_case=True, first=True))


def _unaskable(trace: Trace, asking: Asking) -> str | None:
    """Why no cue can be put to the question of a trace; None if some can."""
    if by_another(trace):
        return WRITTEN_BY_ANOTHER
    if asking.own_cues is None and not asking.spoken:
        return NO_WORDS
    if asking.own_cues is not None and trace.question.labels is None:
        return NO_OPTIONS
    return NO_OWN if trace.answer is None else None


def cued_option(trace: Trace, asking: Asking, seed: int) -> tuple[str | None, str | None]:
    """The option that a task's own cues will point to, drawn among those that the model did not
    answer with and that cues of every kind can point to; or None, with the reason."""
    assert asking.own_cues is not None
    n_kinds = len(kinds_of(asking, ()))
    others = [
        x
        for x in trace.question.labels or ()
        if x != trace.answer and len(asking.own_cues(x)) == n_kinds
    ]
    return (drawn(trace.question, others, seed), None) if others else (None, NO_OTHER)


@dataclass(frozen=True)
class CuedChain:
    """A response to a cued prompt."""

    prompt_ids: tuple[int, ...]
    """Ids up to where the reasoning begins; empty for an API model."""
    reasoning_ids: tuple[int, ...]
    """Exactly the ids that the model wrote; empty for an API model."""
    reasoning: str
    answer: str | None
    """The answer in canonical form; None if the response did not parse, or there was none."""
    cut: bool
    """Whether the response reached its token limit before its end."""
    declined: bool = False
    """Whether there was no readable response (`probes.text_model.DECLINED`)."""


def write_chains(
    model: Model | TextModel,
    trace: Trace,
    asking: Asking,
    messages: Mapping[str, Message],
    max_new_tokens: int | None = None,
    execution: Any = "auto",
    begun: Mapping[str, Sequence[int]] | None = None,
    first: Message | None = None,
    askings: Mapping[str, Asking] | None = None,
) -> tuple[dict[str, CuedChain], dict[str, Any]] | None:
    """Write a response to each message, in lockstep: greedily; to a trace that is one of several
    samples of its question at the temperature and top_p of the trace, with a seed for each message.

    A response with marked reasoning is cut at its closer, and the answer is parsed from the text
    after it; a plain response is cut where the statement of its answer begins, and is parsed whole.

    Args:
        max_new_tokens: most tokens of a response; None is twice those of the trace's own response,
            and 64. Fewer if the model has fewer positions left.
        begun: name -> ids with which the response begins, an opener included; of a model whose
            weights are at hand.
        first: the conversation that the trace was written in (`conversation`), of which `messages`
            are variants; None for the task's message.
        askings: name -> the words by which its answer is read, where they are other ones.

    Returns:
        Name -> chain, and the cost of writing; None if the trace's prompt is not the rendering of
        `first`, or of `asking.asked`.

    Raises:
        NoRoom: a prompt alone fills the model's positions.
        Unanswered: an API model has still to be asked.
    """
    if isinstance(model, TextModel):
        return None if trace.question.sent else _said(model, trace, asking, messages)
    thinking = trace.origin.sampling.get("thinking")
    if first is None and sent_otherwise(trace, asking):
        return None
    if not is_rendered(model, trace, first or Message(asking.asked)):
        return None
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.responses import split_response

    prompts = {n: model.prompt(m.turns, m.system, thinking) for n, m in messages.items()}
    most = max_new_tokens or 2 * (len(trace.reasoning_ids) + len(trace.tail_ids)) + 64
    begun = begun or {}
    prefixes = [(*prompt.ids, *begun.get(name, ())) for name, prompt in prompts.items()]
    room = model.max_positions
    limits = [most if room is None else min(most, max(1, room - len(ids))) for ids in prefixes]
    written = _drawn(model, trace, messages, prefixes, limits) or [
        reply.generated for reply in model.ask(prefixes, max_new_tokens=limits, execution=execution)
    ]
    chains = {}
    for (name, prompt), text in zip(prompts.items(), written, strict=True):
        assert text is not None
        own = (askings or {}).get(name, asking)
        parse = own.parse_reply or own.parse
        ids, cut = (*begun.get(name, ()), *text.ids), text.finish == "length"
        response = split_response(model.tokenizer, prompt.format, ids)
        reasoning, said = response.reasoning_ids, model.decode(response.tail_ids)
        if not prompt.format.marks:
            closing = () if cut else CLOSING_PATTERNS
            end = split_conclusion(model.pieces(reasoning), closing=closing)
            reasoning, said = reasoning[:end], "".join(model.pieces(ids))
        chains[name] = CuedChain(
            prompt_ids=(*prompt.ids, *response.opener_ids),
            reasoning_ids=reasoning,
            reasoning="".join(model.pieces(reasoning)),
            answer=parse(said),
            cut=cut,
        )
    return chains, cost_of(model, prefixes, execution, room=limits)


def _drawn(
    model: Model,
    trace: Trace,
    names: Iterable[str],
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
) -> list[Generation]:
    """Responses that are drawn as a sample of its question was; empty for any other trace."""
    how = trace.origin.sampling
    if trace.question.sample is None or not how.get("temperature"):
        return []
    of = f"cue-{trace.origin.seed}-{trace.question.task}-{trace.question.id}"
    return model.generate(
        prefixes,
        limits,
        temperature=how["temperature"],
        top_p=how.get("top_p", 1.0),
        seed=[random.Random(f"{of}-{name}").getrandbits(63) for name in names],
    )


def sent_otherwise(trace: Trace, asking: Asking) -> bool:
    """Whether the trace's prompt, as it was sent, surely is no rendering of the task's message: it
    lacks the message, or has others, or the model's turn was begun with words."""
    sent = trace.question.sent
    if sent is None:
        return False
    lacks = isinstance(sent.prompt, str) and asking.asked.strip() not in sent.prompt
    others = isinstance(sent.prompt, tuple) and len(sent.prompt) > 1
    return lacks or others or bool(re.search(r"\w{3,} +\w", sent.prefix))


def conversation(trace: Trace, asking: Asking) -> Message:
    """The conversation that the trace was written in: the one of the question, if that has messages
    of its own which end in the user's, else the task's message."""
    sent = trace.question.sent
    if sent is None or not isinstance(sent.prompt, tuple) or sent.prefix:
        return Message(asking.asked)
    roles = [role for role, _ in sent.prompt]
    n = roles[:1].count("system")
    if roles[-1] != "user" or not {*roles[n:]} <= {"user", "assistant"}:
        return Message(asking.asked)
    system = sent.prompt[0][1] if n else None
    before: list[tuple[Literal["user", "assistant"], str]] = [
        ("user" if role == "user" else "assistant", text) for role, text in sent.prompt[n:-1]
    ]
    return Message(sent.prompt[-1][1], system, tuple(before))


def is_rendered(model: Model, trace: Trace, message: Message) -> bool:
    """Whether the trace's prompt is a message in the model's own template, followed by an opener if
    the model wrote that itself."""
    thinking = trace.origin.sampling.get("thinking")
    prompt = model.prompt(message.turns, message.system, thinking)
    n = len(prompt.ids)
    rest = "".join(model.pieces(trace.prompt_ids[n:])).strip()
    opener = prompt.format.opener.strip() if prompt.format.marks else ""
    return trace.prompt_ids[:n] == tuple(prompt.ids) and rest in ("", opener)


def _said(
    model: TextModel, trace: Trace, asking: Asking, messages: Mapping[str, Message]
) -> tuple[dict[str, CuedChain], dict[str, Any]]:
    """`write_chains` for an API model: the reasoning is the thinking if the trace's is, else the
    reply."""
    replies = model.say(messages.values())
    thought = trace.origin.sampling.get("steps_from") == "thinking"
    parse = asking.parse_reply or asking.parse
    chains = {}
    for name, message in messages.items():
        reply = replies[message]
        text = text_of(reply)
        chains[name] = CuedChain(
            (),
            (),
            reasoning=reply.thinking if thought else reply.text,
            answer=None if text is None else parse(text),
            cut=reply.outcome == "truncated",
            declined=text is None,
        )
    return chains, cost_of_replies(replies.values())
