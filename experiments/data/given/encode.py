"""From a given chain to a trace: its question, and its text in the tokens of who reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from faithscope.experiments.data.given.asked import Asked
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.interp.control import encode_marks
from faithscope.interp.errors import UserError
from faithscope.interventions import (
    Given,
    NotWritable,
    Origin,
    Question,
    Trace,
    from_ids,
    from_steps,
    split_conclusion,
    written,
)
from faithscope.interventions.segment import units
from faithscope.probes.text_model import TextModel

if TYPE_CHECKING:
    from faithscope.experiments.data.traces import TraceSettings
    from faithscope.interp.language import Speaks


def given_trace(model: Speaks | TextModel, asked: Asked, settings: TraceSettings) -> Trace:
    """A given chain as a model reads it: its own prompt, then the reasoning token for token.

    Given steps are kept as they are, each tokenised by itself with the white space after it (a
    single blank goes to the step after it, as models write it); text between them is cut as
    usual. Without steps the whole text is tokenised at once and cut as usual, and of a model that
    marks no reasoning the statement of the answer that ends it goes to the tail. A model that
    marks its reasoning reads the chain as such, closed.

    Raises:
        UserError: a step, or the text, that this model's tokenizer has no ids for; names file,
            line, step and characters.
    """
    chain, question = asked.chain, asked.question
    if isinstance(model, TextModel):
        prompt_ids, marks, closer = (), "none", ""
        sampling: dict[str, object] = {"tokens": "characters", "reasoning_format": "none"}
        about = Origin(model.name, seed=settings.seed)
    else:
        prompt = model.prompt(asked.prompt, thinking=settings.thinking)
        prompt_ids, marks, closer = prompt.ids, prompt.format.name, prompt.format.closer
        sampling = {"thinking": settings.thinking, "reasoning_format": marks}
        about = Origin(model.name, model.revision, None, prompt.template_hash, seed=settings.seed)
        marks = "marked" if prompt.format.marks else "none"
    segments = list(_segments(chain, settings)) if chain.steps is not None else None
    if segments is None:
        trace = _whole(model, question, chain, settings, strip=marks == "none")
    else:
        trace = _in_steps(model, question, chain, segments, settings)
    if marks == "marked" and not isinstance(model, TextModel):
        trace = replace(trace, tail_ids=encode_marks(model.tokenizer, closer), tail_text=closer)
    labels = {
        name: tuple(None if i is None else of_steps[i] for i, _ in segments or ())
        for name, of_steps in chain.step_labels.items()
    }
    given = Given(
        asked.file,
        asked.format,
        chain.model,
        asked.sha256,
        asked.kind,
        asked.prompt,
        dict(chain.labels),
        labels,
    )
    return replace(
        trace,
        prompt_ids=prompt_ids,
        answer=_answer(asked),
        origin=replace(about, sampling=sampling, given=given),
    )


def _answer(asked: Asked) -> str | None:
    """The chain's answer in canonical form, as a response of the task is read."""
    if asked.kind is None:
        return None
    said, question, task = asked.chain.answer, asked.question, asked.task
    if said is None:
        return task.parse(asked.chain.reasoning, question)
    bare = said.strip()
    if bare in (question.labels or ()):
        return bare
    return task.parse_continuation(f" {bare}", question) or task.parse(bare, question)


def _segments(chain: GivenChain, settings: TraceSettings) -> Iterator[tuple[int | None, str]]:
    """(given step or None, text) that tile the reasoning."""
    text, starts, at = chain.reasoning, [], 0

    def between(a: int, b: int) -> Iterator[tuple[int, None]]:
        if text[a:b].strip():
            yield from ((a + s, None) for s in units(text[a:b], settings.segmentation)[1])

    for i, (start, end) in enumerate(chain.steps or ()):
        starts += between(at, start)
        starts.append((start, i))
        at = end
    starts += between(at, len(text))
    begins = [_begin(text, start) for start, _ in starts]
    if begins:
        begins[0] = 0
    for (_, i), a, b in zip(starts, begins, [*begins[1:], len(text)], strict=True):
        yield i, text[a:b]


def _begin(text: str, start: int) -> int:
    """Where the segment begins whose first character is at `start`: a lone blank before it is its
    own."""
    while start < len(text) and text[start].isspace():
        start += 1
    lone = start > 1 and text[start - 1] == " " and not text[start - 2].isspace()
    return start - 1 if lone else start


def _in_steps(
    model: Speaks | TextModel,
    question: Question,
    chain: GivenChain,
    segments: list[tuple[int | None, str]],
    settings: TraceSettings,
) -> Trace:
    texts = [text for _, text in segments]
    try:
        trace = from_steps(question, (), texts, model.encode, model.pieces)
    except NotWritable as error:
        raise UserError(f"{chain.where}: {_unwritable(model, segments)}") from error
    steps = tuple(
        replace(s, counted=i is not None or len(s.text.strip()) >= settings.min_step_chars)
        for s, (i, _) in zip(trace.steps, segments, strict=True)
    )
    return replace(trace, steps=steps)


def _unwritable(model: Speaks | TextModel, segments: list[tuple[int | None, str]]) -> str:
    at, before = 0, ()
    for i, text in segments:
        done = written(text, before, model.encode, model.pieces)
        if done is None:
            what = "the text" if i is None else f"step {i}"
            return (
                f"{what} (characters {at} to {at + len(text)}, {text[:60]!r}) cannot be put into "
                f"whole tokens of {model.name}; write it in characters that its tokenizer gives "
                "back, or let another model read it"
            )
        at, before = at + len(text), (*before, *done[0])
    raise AssertionError(segments)


def _whole(
    model: Speaks | TextModel,
    question: Question,
    chain: GivenChain,
    settings: TraceSettings,
    strip: bool,
) -> Trace:
    done = written(chain.reasoning, (), model.encode, model.pieces)
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
        n_tokens=len(chain.reasoning) // 4 if isinstance(model, TextModel) else None,
        tail_ids=ids[cut:],
        tail_text="".join(pieces[cut:]),
    )
