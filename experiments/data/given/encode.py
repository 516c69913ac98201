"""Encoding of a given chain as a trace: question, and text in the reading model's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.question_of_chain import QuestionOfChain
from faithscope.experiments.data.given.steps import labels_of, segments
from faithscope.experiments.data.sent import sent_prompt
from faithscope.interp.errors import UserError
from faithscope.interp.turns import refusal_of
from faithscope.interventions import (
    Given,
    GivenUncued,
    NotWritable,
    Origin,
    Question,
    Step,
    Trace,
    from_ids,
    from_steps,
    split_conclusion,
    written,
)
from faithscope.interventions.scripts import length_in_letters
from faithscope.probes.text_model import TextModel

if TYPE_CHECKING:
    from faithscope.experiments.data.traces import TraceSettings
    from faithscope.interp.language import Speaks


def given_trace(
    model: Speaks | TextModel, asked: QuestionOfChain, settings: TraceSettings
) -> Trace:
    """A given chain as a model reads it: its own prompt, then the reasoning token for token.

    Given steps are kept, each tokenised alone with the white space after it (a single blank goes to
    the next step, as models write it); text between them is segmented as usual. Without steps the
    whole text is tokenised at once and segmented as usual, and for a model that marks no reasoning
    the final statement of the answer goes to the tail. A model that marks its reasoning reads the
    chain between its marks, closed.

    Raises:
        UserError: this model's tokenizer has no ids for a step or the text; the message names file,
            line, step and characters. Or the prompt begins or ends with a control token of this
            model, as a prompt that was rendered before.
    """
    chain, question = asked.chain, asked.question
    prompt_ids: tuple[int, ...] = ()
    tail: tuple[tuple[int, ...], str] | None = None
    sampling: dict[str, object] = {"tokens": "characters", "reasoning_format": "none"}
    origin = Origin(model.name, seed=settings.seed)
    if not isinstance(model, TextModel):
        # Not at the top: it imports transformers, which a dry run need not wait for.
        from faithscope.interp.control import control_token_at_an_end, encode_marks

        sign = control_token_at_an_end(model.tokenizer, asked.prompt)
        if sign is not None and question.sent is None:
            raise UserError(f"{chain.where}: {refusal_of(sign, 'prompt')}")
        prompt = sent_prompt(model, question, asked.prompt, settings.thinking)
        prompt_ids = prompt.ids
        if prompt.format.marks:
            if not prompt.opener_in_prompt:
                # the chain's model wrote the opener itself
                prompt_ids += encode_marks(model.tokenizer, prompt.format.opener)
            tail = encode_marks(model.tokenizer, prompt.format.closer), prompt.format.closer
        sampling = {"thinking": settings.thinking, "reasoning_format": prompt.format.name}
        origin = replace(origin, revision=model.revision, template_hash=prompt.template_hash)
    least = settings.min_step_chars
    parts = [] if chain.steps is None else list(segments(chain, settings.segmentation, least))
    if chain.steps is None:
        trace = _whole(model, question, chain, settings, strip=tail is None)
    else:
        trace = _in_steps(model, question, chain, parts, settings)
    if tail is not None:
        trace = replace(trace, tail_ids=tail[0], tail_text=tail[1])
    uncued = None if asked.uncued is None else _uncued(model, asked.uncued, settings)
    given = provenance(asked, parts, uncued)
    # a token that also holds text of the chain's model counts as that model's
    ends = accumulate(map(len, trace.pieces))
    prefilled = sum(end <= chain.prefilled for end in ends)
    origin = replace(origin, sampling=sampling, prefilled=prefilled, given=given)
    return replace(
        trace,
        prompt_ids=prompt_ids,
        answer=asked.answer,
        finish="length" if chain.cut else "stop",
        origin=origin,
    )


def provenance(
    asked: QuestionOfChain,
    parts: Sequence[tuple[int | None, str]],
    uncued: GivenUncued | None,
) -> Given:
    """The file's data about a chain, as its trace has them.

    Args:
        parts: (index of the given step, text) of all stretches; empty for a chain without steps.
        uncued: the uncued chain of a given pair.
    """
    chain, index_of = asked.chain, {i: n for n, (i, _) in enumerate(parts)}
    return Given(
        asked.file,
        asked.format,
        chain.model,
        asked.sha256,
        asked.kind,
        asked.prompt,
        dict(chain.labels),
        labels_of(chain, parts),
        chain.cue,
        chain.cue_target,
        chain.cue_name,
        chain.cue_mention,
        chain.pair,
        chain.condition,
        uncued,
        {
            kind: {index_of[i]: t for i, t in of.items() if i in index_of}
            for kind, of in chain.edits.items()
        },
    )


def _uncued(
    model: Speaks | TextModel, asked: QuestionOfChain, settings: TraceSettings
) -> GivenUncued:
    trace = given_trace(model, asked, settings)
    ids = () if isinstance(model, TextModel) else trace.reasoning_ids
    text = trace.reasoning_text
    return GivenUncued(asked.prompt, trace.prompt_ids, text, ids, trace.answer)


def _in_steps(
    model: Speaks | TextModel,
    question: Question,
    chain: GivenChain,
    parts: list[tuple[int | None, str]],
    settings: TraceSettings,
) -> Trace:
    texts = [text for _, text in parts]
    try:
        trace = _as_written(model, question, chain, texts) or from_steps(
            question, (), texts, model.encode, model.pieces
        )
    except NotWritable as error:
        raise UserError(f"{chain.where}: {_unwritable(model, parts)}") from error
    steps = tuple(
        replace(s, counted=i is not None or length_in_letters(s.text) >= settings.min_step_chars)
        for s, (i, _) in zip(trace.steps, parts, strict=True)
    )
    return replace(trace, steps=steps)


def _as_written(
    model: Speaks | TextModel, question: Question, chain: GivenChain, texts: Sequence[str]
) -> Trace | None:
    """The trace in the ids that the chain's model wrote; None if they are not known, read otherwise
    here, or have a token across the border of two steps."""
    if isinstance(model, TextModel) or (pieces := _pieces_of(model, chain)) is None:
        return None
    ends = [0, *accumulate(map(len, pieces))]
    token_at = {char: token for token, char in enumerate(ends)}
    chars = [0, *accumulate(map(len, texts))]
    if not all(char in token_at for char in chars):
        return None
    steps = tuple(
        Step(i, text, (a, b), (token_at[a], token_at[b]))
        for i, (text, (a, b)) in enumerate(zip(texts, pairwise(chars), strict=True))
    )
    return Trace(question, (), chain.ids, pieces, steps)


def _pieces_of(model: Speaks, chain: GivenChain) -> tuple[str, ...] | None:
    """The pieces of the ids that the chain's model wrote, if they read as its text here, too."""
    if not chain.ids or max(chain.ids) >= len(model.tokenizer):
        return None
    pieces = tuple(model.pieces(chain.ids))
    return pieces if "".join(pieces) == chain.reasoning else None


def _unwritable(model: Speaks | TextModel, parts: list[tuple[int | None, str]]) -> str:
    at, before = 0, ()
    for i, text in parts:
        done = written(text, before, model.encode, model.pieces)
        if done is None:
            what = "the text" if i is None else f"step {i}"
            return (
                f"{what} (characters {at} to {at + len(text)}, {text[:60]!r}) cannot be put into "
                f"whole tokens of {model.name}; write it in characters that its tokenizer gives "
                "back, or let another model read it"
            )
        at, before = at + len(text), (*before, *done[0])
    raise AssertionError(parts)


def _whole(
    model: Speaks | TextModel,
    question: Question,
    chain: GivenChain,
    settings: TraceSettings,
    strip: bool,
) -> Trace:
    own = None if isinstance(model, TextModel) else _pieces_of(model, chain)
    done = (chain.ids, own) if own else written(chain.reasoning, (), model.encode, model.pieces)
    if done is None:
        reason = _unwritable(model, [(None, chain.reasoning)])
        raise UserError(f"{chain.where}: {reason}")
    ids, pieces = done
    cut = len(ids)
    if strip and settings.conclusion == "strip":
        cut = split_conclusion(pieces)
    return from_ids(
        question,
        (),
        ids[:cut],
        pieces[:cut],
        mode=settings.segmentation,
        min_chars=settings.min_step_chars,
        groups=settings.groups,
        n_tokens=len(chain.reasoning) // 4 if isinstance(model, TextModel) else None,
        tail_ids=ids[cut:],
        tail_text="".join(pieces[cut:]),
    )
