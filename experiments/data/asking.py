"""The words in which a task asks again about an edited trace."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from faithscope.experiments.data.tasks import Task
from faithscope.interventions import Trace
from faithscope.probes.framing import Asking
from faithscope.probes.text_model import Message, TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model


def is_marked(trace: Trace) -> bool:
    """Whether the reasoning of a trace stands between marks, as its model writes them."""
    return trace.origin.sampling.get("reasoning_format", "none") != "none"


def asking_for(model: Model | TextModel | None, task: Task, trace: Trace) -> Asking:
    """The words in which `task` asks again about an edited `trace`.

    Text after a cue is parsed as its continuation, a reply without a cue as a whole response. The
    labels are those of the unedited trace for every edit.

    Args:
        model: the model that is asked; None where it is not loaded yet, and the trace has no ids.
    """
    question = trace.question
    here = not isinstance(model, TextModel)
    closer_ids: tuple[int, ...] = ()
    if here and model is not None and is_marked(trace) and model.format.closer:
        # Not at the top: it imports transformers, which a dry run need not wait for.
        from faithscope.interp.control import encode_marks

        closer_ids = encode_marks(model.tokenizer, model.format.closer)

    prompts = task.direct_prompts(question)
    given = trace.origin.given
    direct_prompts = {p.name: Message(p.user, p.system) for p in prompts}

    def parse(text: str) -> str | None:
        for cue in (task.answer_cue, task.reprompt_cue):
            if cue and text.startswith(cue):
                return task.parse_continuation(text[len(cue) :], question)
        return task.parse(text, question)

    def of_options(texts: tuple[str, ...]) -> Asking:
        rest = (question.options or ())[len(texts) :]
        other = replace(question, options=(*texts, *rest), gold=None)
        return asking_for(model, task, replace(trace, question=other))

    return Asking(
        answer_cue=task.answer_cue,
        labels=task.labels(question, trace.unedited),
        parse=parse,
        necessity_prompt=lambda reasoning: task.necessity_prompt(question, reasoning),
        sufficiency_prompt=lambda step: task.sufficiency_prompt(question, step),
        kind=question.kind,
        reprompt_cue=task.reprompt_cue if here else "",
        asked=task.cot_prompt(question) if given is None else given.prompt,
        direct_prompts=direct_prompts,
        parse_reply=lambda text: task.parse(text, question),
        spoken=bool(direct_prompts),
        own_cues=partial(task.cues, question) if task.cues else None,
        of_options=of_options if question.kind == "choice" else None,
        closer_ids=closer_ids,
    )
