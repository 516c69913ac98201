"""Edits of steps that a judge writes, and the subject's answers after the mistakes and paraphrases
(FaithCoT-Bench, C.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from faithscope.experiments.data.tasks import Task
from faithscope.experiments.data.traces import asking_for
from faithscope.experiments.engine.forms.tasks import ItemPrompt
from faithscope.experiments.engine.models.judging import Judging, Stages
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.detectors.units import EDITS, edit_prompts, settings_of
from faithscope.experiments.studies.slrc.judges.asking import about_of, shown_question, trace_of
from faithscope.experiments.studies.slrc.stages import EDITED, WRITTEN
from faithscope.experiments.studies.slrc.units import ChainItem
from faithscope.interventions import Step, Trace, replace_step
from faithscope.probes.floor import BASELINE, Arm
from faithscope.probes.framing import Asking, ask_arms
from faithscope.probes.judge.form import Writing
from faithscope.probes.paraphrase import ids_of
from faithscope.probes.readings import generated_outcomes
from faithscope.probes.record import Record, record
from faithscope.probes.regenerate import Regenerated, regenerate
from faithscope.probes.text_model import DECLINED, TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model

ANSWER_TOKENS = 24
EMPTY, SAME, NOT_WRITABLE, NO_ROOM = "empty", "unchanged", "not_writable", "no_room"
"""Reasons why a written edit is not used; a reply that is no text has its outcome as the reason."""
UNPARSED, NOT_READ = "baseline_unparsed", "answer_unparsed"


def writing(config: RunConfig) -> Judging[ChainItem]:
    """What the judge that writes edits is asked about every chain."""
    assert config.judges is not None
    assert config.writer is not None
    # An edited step is plain text, whatever format verdicts are requested in.
    how = config.judges.model_copy(update={"structured": "prompt"})
    stages: Stages = {config.writer: {WRITTEN: "generated"}}
    asks = lambda index, item, judge, stage: writings(item, trace_of(index, item), config)  # noqa: E731
    return Judging(how, config.seed, stages, asks, about_of)


def drawn_steps(trace: Trace, n: int, seed: int) -> list[Step]:
    """The steps to edit, drawn with the seed, in chain order."""
    steps = list(trace.counted_steps)
    rng = random.Random(f"edits-{seed}-{trace.question.task}-{trace.question.id}")
    return sorted(rng.sample(steps, min(n, len(steps))), key=lambda step: step.index)


def writings(item: ChainItem, trace: Trace, config: RunConfig) -> list[ItemPrompt]:
    """Requests for all edits of a chain."""
    asks = []
    for step in drawn_steps(trace, settings_of(config).edits.steps, config.seed):
        before = trace.reasoning_text[: step.chars[0]].strip() or "(nothing yet)"
        places = {"context": before, "step": step.text.strip()}
        for edit in EDITS:
            prompt = edit_prompts()[edit].format(question=shown_question(trace.question), **places)
            name = f"{item.model} {item.task} {item.item} {edit} {step.index}"
            about = {"variant": edit, "step": step.index, "was": step.text.strip()}
            asks.append(ItemPrompt(Writing(name, prompt), about))
    return asks


def substituted(model: Any, trace: Trace, edit: Record) -> Trace | str:
    """The trace with a written edit in place of its step and all other tokens kept, or the reason
    why there is none. White space around the step stays."""
    step = next(s for s in trace.steps if s.index == edit["step"])
    if edit["outcome"] != "parsed":
        return str(edit["outcome"])
    text = edit["text"].strip().strip('"“”').strip()
    if not text:
        return EMPTY
    if text.casefold().split() == step.text.casefold().split():
        return SAME
    encoded = ids_of(model, trace, step, text)
    if encoded is None:
        return NOT_WRITABLE
    ids, pieces = encoded
    return replace_step(trace, step.index, ids, pieces, kind=str(edit["variant"]))


def edited_answers(
    model: Model | TextModel, task: Task, trace: Trace, edits: Sequence[Record], seed: int
) -> list[Record]:
    """One record per kind of edit with the subject's generated answer after every edited chain; all
    edits and the unedited chain are answered in one pack.

    A model here goes on in place (`prefix`): after a mistake it writes the later text anew, as the
    authors' code has it; after a paraphrase or a distortion the later text stays as it was. A model
    behind an API reads the chain quoted (`reprompt`), its later text as it was in all of them.

    Lists have a value per edit: `steps`, `answers`, `flips` (whether the answer is another; None
    without an edit, or an answer that can be read), `reasons` (why there is no flip).

    Raises:
        Unanswered: a model behind an API has still to be asked.
    """
    asking = asking_for(model, task, trace)
    reasons: dict[Arm, str | None] = {}
    arms: dict[Arm, Trace] = {BASELINE: trace}
    for i, edit in enumerate(edits):
        edited = substituted(model, trace, edit)
        reasons[str(edit["variant"]), i] = edited if isinstance(edited, str) else None
        if isinstance(edited, Trace):
            arms[str(edit["variant"]), i] = edited
    if not isinstance(model, TextModel):
        for arm, continued in _anew(model, asking, arms).items():
            if continued is None:
                reasons[arm] = NO_ROOM
                del arms[arm]
            else:
                arms[arm] = continued.trace
    framing = "reprompt" if isinstance(model, TextModel) else "prefix"
    how = {"readings": ("generated",), "answer_tokens": ANSWER_TOKENS}
    pack = ask_arms(model, trace, asking, framing, arms, **how)
    there = BASELINE in pack.replies
    outcomes = generated_outcomes(pack.replies) if there else {}
    baseline = pack.baseline.answer if there else None
    records = []
    for kind in EDITS:
        own = [((kind, i), e) for i, e in enumerate(edits) if e["variant"] == kind]
        if not own:
            continue
        lost = {arm: DECLINED for arm, _ in own if arm in arms and arm not in outcomes}
        lost |= {arm: NOT_READ for arm, _ in own if arm in outcomes and not outcomes[arm].answer}
        values: dict[str, Any] = {
            "framing": framing,
            "baseline": baseline,
            "steps": [e["step"] for _, e in own],
            "answers": [outcomes[a].answer if a in outcomes else None for a, _ in own],
            "flips": [
                outcomes[a].flips if a in outcomes and outcomes[a].answer else None for a, _ in own
            ],
            "reasons": [reasons[a] or lost.get(a) for a, _ in own],
        }
        if baseline is None:
            values["excluded"] = UNPARSED if there else DECLINED
        records.append(record(trace, EDITED, kind, seed, **values, **pack.cost))
    return records


def _anew(model: Model, asking: Asking, arms: Mapping[Arm, Trace]) -> dict[Arm, Regenerated | None]:
    """Continues each chain with a mistake: the model rewrites the text after it."""
    wrong = [arm for arm in arms if arm[0] == "mistake"]
    cue = len(model.encode(asking.answer_cue)) + len(asking.closer_ids)
    traces = [arms[arm] for arm in wrong]
    continued = regenerate(model, traces, asking.closer_ids, reserve=cue + ANSWER_TOKENS)
    return dict(zip(wrong, continued, strict=True))
