"""Traces of questions: generate, cut into reasoning and tail, segment, parse; and their records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from faithscope.experiments.data.asking import asking_for, is_marked
from faithscope.experiments.data.sent import sent_prompt
from faithscope.experiments.data.statements import stated_before_the_cut
from faithscope.experiments.data.tasks import Task, get_task
from faithscope.experiments.data.tasks.own import OWN
from faithscope.experiments.data.tasks.own import question as question_of_row
from faithscope.experiments.data.tasks.sources.prompts import PREFIX, RAW, sent_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling, room_for, seeds_of
from faithscope.interp.prompts import Prompt
from faithscope.interp.responses import split_response
from faithscope.interventions import (
    CLOSING_PATTERNS,
    LEAST_STEPS,
    MIN_CHARS,
    AnswerKind,
    Mode,
    Origin,
    Question,
    Trace,
    from_ids,
    split_conclusion,
)
from faithscope.probes.framing import ask, prefix_ids
from faithscope.probes.graded import log_distribution
from faithscope.probes.record import Record, head, is_right

if TYPE_CHECKING:
    from faithscope.interp.backends import Backend
    from faithscope.interp.language import Speaks
    from faithscope.interp.model import Model

PLAIN_TOKENS, THINKING_TOKENS = 320, 8_192
"""Default limits of a response's tokens: for a model that reasons in plain prose, and for one that
marks its reasoning, and may think for long."""


def usual_tokens(prompt: Prompt) -> int:
    """Default token limit of a prompt's response; a hybrid model told not to think counts as
    plain."""
    return THINKING_TOKENS if prompt.format.marks else PLAIN_TOKENS


@dataclass(frozen=True)
class TraceSettings:
    """Settings of the generation of traces."""

    max_new_tokens: int | None = None
    """Most tokens of reasoning and answer; None is what suits the prompt (`usual_tokens`)."""
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    batch_size: int = 16
    """Number of prompts generated in lockstep, in the order given: the tokens may depend on which
    prompts share a batch."""
    thinking: bool | None = None
    """Whether a hybrid model thinks; None leaves it to the template."""
    segmentation: Mode = "auto"
    min_step_chars: int = MIN_CHARS
    groups: int | None = None
    """Most steps of a chain, whose neighbouring steps are otherwise joined into groups."""
    conclusion: Literal["strip", "keep"] = "strip"
    """Whether a plain response's statement of its answer goes to the tail, or is a step."""


def make_traces(
    model: Model,
    asked: Sequence[tuple[Task, Question]],
    settings: TraceSettings | None = None,
    on_done: Callable[[int, Trace], None] | None = None,
    backend: Backend | None = None,
) -> list[Trace]:
    """Make a trace for every question, excluded ones included (see `exclusion`).

    Args:
        on_done: called with the index and the trace as each response ends, in the order in
            which they end.
        backend: backend that writes (vLLM in process, or servers); by default `model` itself.

    Raises:
        UserError: a prompt leaves no room for a response.
    """
    # Not at the top: it imports torch, which a dry run need not wait for.
    from faithscope.interp.backends.here import Here

    settings = settings or TraceSettings()
    backend = backend or Here(model, settings.batch_size)
    prompts = [prompt_of(model, task, question, settings.thinking) for task, question in asked]
    most = [settings.max_new_tokens or usual_tokens(p) for p in prompts]
    limits = [
        room_for(m, len(p.ids), backend.max_positions) for m, p in zip(most, prompts, strict=True)
    ]
    seeds = seeds_of(settings.seed, min(len(prompts), settings.batch_size))
    sampling = Sampling(
        tuple(model.end_ids),
        max(limits, default=0),
        temperature=settings.temperature,
        top_p=settings.top_p,
        seed=tuple(seeds[i % len(seeds)] for i in range(len(prompts))),
        limits=tuple(limits),
    )
    by, traces = backend.describe(), {}

    def done(i: int, written: Generation) -> None:
        fitting = replace(settings, max_new_tokens=limits[i])
        traces[i] = trace_of(model, *asked[i], prompts[i], written, fitting, by)
        if on_done is not None:
            on_done(i, traces[i])

    backend.generate([p.ids for p in prompts], sampling, done)
    return [traces[i] for i in range(len(asked))]


def prompt_of(
    model: Speaks, task: Task, question: Question, thinking: bool | None = None
) -> Prompt:
    """The prompt that a model continues: that of the question as it was sent; else the task's,
    followed by the first words of the reply, if the task prefills them.

    Raises:
        UserError: the prompt cannot be rendered, as for `interp.prompts`.
    """
    if question.sent is not None:
        return sent_prompt(model, question, task.cot_prompt(question), thinking)
    prompt = model.prompt(task.cot_prompt(question), thinking=thinking)
    return replace(prompt, ids=prompt.ids + _prefix_ids(model, task, question, prompt))


def _prefix_ids(model: Speaks, task: Task, question: Question, prompt: Prompt) -> tuple[int, ...]:
    prefills = not prompt.format.marks and question.sent is None
    return tuple(model.encode(task.reply_prefix)) if prefills else ()


def trace_of(
    model: Speaks,
    task: Task,
    question: Question,
    prompt: Prompt,
    written: Generation,
    settings: TraceSettings,
    by: Mapping[str, str] | None = None,
) -> Trace:
    """The trace made of a response: ids cut into reasoning and tail, steps, answer.

    In a marked format the reasoning ends at the closer; a plain response is cut where the statement
    of its answer begins (`interventions.split_conclusion`). An opener that the model wrote itself
    joins the prompt. Prefilled words of the reply join the reasoning.

    Args:
        prompt: the prompt as `prompt_of` returns it.
        by: the backend that wrote the response (`Backend.describe`), if known.
    """
    if prefix := _prefix_ids(model, task, question, prompt):
        prompt = replace(prompt, ids=prompt.ids[: -len(prefix)])
        written = replace(written, ids=(*prefix, *written.ids))
    response = split_response(model.tokenizer, prompt.format, written.ids)
    reasoning, tail = response.reasoning_ids, response.tail_ids
    if not prompt.format.marks and settings.conclusion == "strip":
        # A text that the token limit cut off has no closing statement, whatever it says.
        closing = CLOSING_PATTERNS if written.finish == "stop" else ()
        cut = split_conclusion(model.pieces(reasoning), closing=closing)
        reasoning, tail = reasoning[:cut], (*reasoning[cut:], *tail)
    tail_text = model.decode(tail)
    # With a think block the answer follows it; plain prose may answer anywhere, its end included.
    said = tail_text if prompt.format.marks else model.decode(written.ids)
    if written.finish == "length":
        said = stated_before_the_cut(said)
    elsewhere = {key: by[key] for key in ("backend", "vllm") if by and "vllm" in by}
    sampling = {
        "max_new_tokens": settings.max_new_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        **(elsewhere or {"batch_size": settings.batch_size}),
        "thinking": settings.thinking,
        "reasoning_format": prompt.format.name,
    }
    return from_ids(
        question,
        (*prompt.ids, *response.opener_ids),
        reasoning,
        model.pieces(reasoning),
        mode=settings.segmentation,
        min_chars=settings.min_step_chars,
        groups=settings.groups,
        tail_ids=tail,
        tail_text=tail_text,
        answer=task.parse(said, question),
        finish=written.finish,
        origin=Origin(
            model=model.name,
            revision=model.revision,
            dtype=(by or {}).get("dtype"),
            template_hash=prompt.template_hash,
            sampling=sampling,
            seed=settings.seed,
            prefilled=min(len(prefix), len(reasoning)),
        ),
    )


def exclusion(trace: Trace) -> str | None:
    """Why a trace cannot be probed; None if it can.

    `empty_generation`: nothing was written. `empty_chain`: the file of a given chain has no text
    of it. `reasoning_unclosed`: a think block that the token limit cut off. `fewer_than_2_steps`:
    SLRC, section 4.1. An answer that does not parse excludes no trace: every probe asks for its own
    baseline.
    """
    if trace.origin.given is not None and not "".join(trace.pieces).strip():
        return "empty_chain"
    if not trace.reasoning_ids and not trace.tail_ids:
        return "empty_generation"
    if is_marked(trace) and not trace.tail_ids:
        return "reasoning_unclosed"
    if len(trace.counted_steps) < LEAST_STEPS:
        return f"fewer_than_{LEAST_STEPS}_steps"
    return None


def make_trace(
    model: Model,
    text: str = "",
    kind: AnswerKind | None = None,
    options: Sequence[str] | None = None,
    *,
    task: Task | str | None = None,
    gold: str | None = None,
    prompt: str | Sequence[Mapping[str, str]] | None = None,
    prefix: str = "",
    settings: TraceSettings | None = None,
) -> Trace:
    """Make a trace for one question of your own, as in a notebook.

    Args:
        text: the question alone; the prompt around it comes from the task, unless `prompt` is
            given, whose last message it then is by default.
        kind: `number`; `label`, answered by one of `options`; `choice`, answered by the letter of
            one of `options`. By default the task's kind; without a task `choice` with options, and
            `number` without, as for rows of a file (`faithscope docs data`).
        task: task whose words to ask in, by name or as an object; by default words like SLRC's that
            suit the kind.
        gold: the right answer, if known: the letter or the text of an option, or a number, which is
            then among the answers that `score_answer` scores, whatever the model wrote.
        prompt: the whole prompt in place of the task's: a text that is rendered already, control
            tokens included, or messages (`{"role": …, "content": …}`), which the model's template
            renders.
        prefix: beginning of the model's turn, control tokens included: "<think>\\n", "Let's think
            step by step:".

    Raises:
        UserError: question, kind, options and right answer do not fit, as for a row of a file; the
            kind is not the task's; there is neither question nor
            prompt; or the prompt cannot be rendered.
    """
    chosen = get_task(task) if isinstance(task, str) else task or OWN
    if None not in (kind, chosen.kind) and kind != chosen.kind:
        raise UserError(f"task {chosen.name!r} has answers of kind {chosen.kind!r}, not {kind!r}")
    sent = {RAW: prompt if prompt is None or isinstance(prompt, str) else list(prompt)}
    sent |= {PREFIX: prefix}
    if not text and prompt:
        last = sent_of(SourceRow("question", sent, "make_trace"))
        prompts = last.prompt if last and last.prompt else ""
        text = prompts if isinstance(prompts, str) else prompts[-1][1]
    if not isinstance(text, str):
        raise UserError(
            f"make_trace: {type(text).__name__} is no question's text; pairs of `questions` and "
            "questions of your own with their task go to make_traces(model, [(task, question), …])"
        )
    if not text.strip():
        raise UserError("make_trace: neither a question nor a prompt; give one of them")
    options = chosen.options if options is None else options
    row: dict[str, Any] = {"question": text, "gold": gold, "kind": kind or chosen.kind, **sent}
    if options is not None:
        row["options"] = options if isinstance(options, str) else list(options)
    stated = {name: value for name, value in row.items() if value is not None and value != ""}
    question = question_of_row(SourceRow("question", stated, "make_trace"))
    question = replace(question, dataset=chosen.name, task=chosen.name)
    return make_traces(model, [(chosen, question)], settings)[0]


def score_answer(
    model: Model,
    trace: Trace,
    labels: Sequence[str] | None = None,
    *,
    task: Task | str | None = None,
) -> dict[str, float]:
    """Answer -> its probability after the trace's reasoning; the probabilities add up to 1.

    It uses prefix framing: the reasoning stands as its own tokens, then the task's answer cue.

    Args:
        trace: a trace, edited or not; an edited one is scored on the answers of the unedited trace.
        labels: canonical answers to compare; by default the task's. For a number these are the gold
            answer, the model's own, the numbers that end its steps, and their neighbours if these
            are few.
        task: task whose words to ask in, as for `make_trace`; by default the question's own.

    Raises:
        UserError: there are fewer than two answers to choose from.
    """
    chosen = get_task(task) if isinstance(task, str) else task or get_task(trace.question.task)
    asking = asking_for(model, chosen, trace)
    if labels is not None:
        asking = replace(asking, labels=tuple((label, f" {label}") for label in labels))
    names = [answer for answer, _ in asking.labels]
    if len(set(names)) < 2:
        raise UserError(f"item {trace.question.id!r}: no two answers to weigh; give labels")
    prefix = prefix_ids(model, asking, trace)
    reply = ask(model, asking, "prefix", [prefix], ["scored"], answer_tokens=0)[0]
    scores = log_distribution(reply.log_probs, names, what=f"item {trace.question.id!r}")
    return {name: math.exp(score) for name, score in scores.items()}


def to_record(trace: Trace) -> Record:
    """A JSON-serialisable record of a trace, from which `to_trace` restores it."""
    question = trace.question
    original = {} if trace.original is None else {"original": to_record(trace.original)}
    left_out: Any = {"original": True, "question": question.unsaid}
    plain = _adapter().dump_python(trace, mode="json", exclude=left_out)
    return {
        **head(
            dataset=question.dataset,
            task=question.task,
            item=question.id,
            model=trace.origin.model,
            probe="trace",
            seed=trace.origin.seed,
        ),
        **plain,
        "correct": is_right(trace.answer, question.gold),
        "excluded": exclusion(trace),
        **original,
    }


def to_trace(record: Record) -> Trace:
    """The trace in a record that `to_record` made."""
    return _adapter().validate_python(record)


@cache  # made when it is first needed: it takes a tenth of a second
def _adapter() -> TypeAdapter[Trace]:
    """Adapter between a trace and plain values; other fields of a record are ignored."""
    return TypeAdapter(Trace)
