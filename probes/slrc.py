"""SLRC: whether removing a step changes the answer, and whether one step alone gives the answer.

Necessity, sufficiency and order sensitivity of every counted step (SLRC, sections 4.1 and 4.2), in
two framings and two readings. Since removal can flip an answer merely because a text with a hole is
unlike any the model has seen, a step is also corrupted, with the later text frozen or written anew.
Frozen corruption credits only the steps from which the answer is read; regeneration credits all
those it came from.

A model that continues differently after any disturbance flips under regeneration without having
read the step. So regeneration has a control: the step stays, a remark that says nothing is put
after it, and the later text is written anew.

Removing one step may change nothing because other steps say the same. So all reasoning is removed,
too: only an answer that survives that does not need the text.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from pydantic import Field, StrictBool, StrictInt, field_validator

from faithscope.interp.errors import NoRoom
from faithscope.interventions import (
    NotCorruptible,
    NotWritable,
    Trace,
    shuffles,
    truncate_after_token,
)
from faithscope.probes.floor import rounded
from faithscope.probes.framing import (
    BASELINE,
    FEWER_LABELS,
    FRAMINGS,
    READINGS,
    Arm,
    Asking,
    Framing,
    Pack,
    Reading,
    ask_arms,
    cost,
)
from faithscope.probes.probe import Branches, Size, Texts, probe
from faithscope.probes.readings import Outcome, distributions, generated_outcomes, scored_outcomes
from faithscope.probes.record import Record, is_right, numbers, record
from faithscope.probes.reference_answer import ReferenceAnswer
from faithscope.probes.regenerate import Regenerated, regenerate
from faithscope.probes.settings import Execution, Seed, Settings, Some
from faithscope.probes.slrc_edits import CHOSEN, EDITS, SURE, TEXTS, Edit, EditName
from faithscope.probes.text_model import DECLINED, NO_ROOM, TextModel

if TYPE_CHECKING:
    from faithscope.interp.model import Model

EDIT_NAMES: tuple[EditName, ...] = get_args(EditName)
EMPTIED_IN: Framing = "prefix"
"""The framing in which all reasoning is removed: a prompt cannot quote a text that is not there."""


class SlrcSettings(Settings):
    """Steps, edits and readings of Step-Level Reasoning Capacity (4.1-4.2)."""

    framings: Some[Framing] = FRAMINGS
    """Framings of the edited reasoning: as the model's own tokens, or quoted in a prompt."""
    readings: Some[Reading] = READINGS
    """Readings of the answer: greedy and parsed, or as log-probs of the labels."""
    shuffles: StrictInt = Field(default=3, ge=0, le=10_000)
    """Number of different random orders of the steps per item, seeded; of a chain with fewer other
    orders (two steps have one), all of these. The paper draws 3, of which some may be equal."""
    edits: Some[EditName] = EDIT_NAMES
    """Edits of each step, besides keeping only it; `remove` defines necessity, `control` continues
    after a step that only had a remark put after it, for comparison with `regenerate`. The last two
    run in `prefix` framing only."""
    answer_tokens: StrictInt = Field(default=24, ge=1)
    """Most tokens of a generated answer."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens in the scored reading."""
    regenerate_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens rewritten after a corrupted step; null is one and a half times those they
    replace, and 32."""
    seed: Seed = 0
    execution: Execution = "auto"

    @field_validator("edits")
    @classmethod
    def _with_removal(cls, edits: tuple[EditName, ...]) -> tuple[EditName, ...]:
        if "remove" not in edits:
            raise ValueError(
                f"must contain 'remove' (necessity is defined by it), got {list(edits)}"
            )
        if "control" in edits and "regenerate" not in edits:
            raise ValueError(
                f"'control' is the control of 'regenerate': add that, got {list(edits)}"
            )
        return edits


def _calls(size: Size, settings: SlrcSettings) -> int:
    of_steps = _of_steps(settings)
    rewritten = sum(edit.anew for edit in of_steps)
    frozen = len(of_steps) - rewritten
    calls = len(settings.framings) * (1 + size.steps * frozen + settings.shuffles)
    if EMPTIED_IN in settings.framings:
        # a text is written, then asked about, beside the baseline
        calls += 1 + (1 + 2 * rewritten * size.steps if rewritten else 0)
    return calls


def _writes(size: Size, settings: SlrcSettings) -> list[Texts]:
    of_steps = _of_steps(settings)
    rewritten = size.steps * sum(edit.anew for edit in of_steps)
    frozen = size.steps * sum(not edit.anew for edit in of_steps)
    longest = settings.regenerate_tokens or math.ceil(1.5 * size.reasoning) + 32
    answers = settings.answer_tokens if "generated" in settings.readings else 0
    texts = [Texts(1 + frozen + settings.shuffles, answers) for _ in settings.framings]
    if EMPTIED_IN in settings.framings and rewritten:
        # the later a step, the less is written after it
        texts += [Texts(rewritten, longest, 0.5), Texts(1 + rewritten, answers)]
    return [of for of in texts if of.tokens]


def _of_steps(settings: SlrcSettings) -> list[Edit]:
    """The edits that are made of each step."""
    return [e for e in EDITS if e.of_steps and (not e.chosen or e.name in settings.edits)]


def _branches(size: Size, settings: SlrcSettings) -> Branches | None:
    """The branches of all framings; None where text is written anew, of unknown length.

    A prompt that quotes a text shares as much of it as the model's own tokens do.
    """
    if "regenerate" in settings.edits:
        return None
    framings = len(settings.framings)
    return Branches(
        late=framings * size.steps * len(settings.edits),
        other=framings * settings.shuffles + 2 * (framings - 1),
        steps=framings * size.steps,
        ends=settings.framings.count(EMPTIED_IN),
    )


@probe(
    "necessity, sufficiency, order sensitivity and their edits (Step-Level Reasoning Capacity)",
    listed=1,
    papers=("slrc",),
    samples_steps=True,
    words=("cue", "labels", "reprompts"),
    reads_labels=True,
    follows_answer=True,
    calls=_calls,
    branches=_branches,
    writes=_writes,
    # a call of sufficiency quotes one step
    quoted=lambda size, s: (_calls(size, s) - size.steps) * size.steps + size.steps,
    from_outside={
        "framings": ("reprompt",),
        "readings": ("generated",),
        # the other edits let the model continue a text of its own
        "edits": tuple(edit.name for edit in CHOSEN if not edit.anew),
    },
    version=4,
)
def slrc(
    model: Model | TextModel, trace: Trace, asking: Asking, settings: SlrcSettings
) -> list[Record]:
    """All SLRC measures of one trace: a record for each framing and reading.

    `original` is the answer that the chain states, `baseline` the model's answer after the unedited
    reasoning in the record's framing and reading. A flip is a difference from `baseline`, so that
    only the edit can cause it; in the scored reading `..._log_odds` follow the chain's answer
    (`answer`, `reference`) and `..._forced_log_odds` the baseline.

    Lists have one value per counted step, in the order of `steps`, or one per shuffle; None stands
    for a step that is not in the trace's sample (`Trace.sampling`); those of
    `emptied`, the branch without any reasoning (`prefix` framing only), have one value. An answer
    that does not parse is its own value: it differs from every answer. If the baseline does not
    parse, fewer than two answers can be scored, or the reasoning leaves the model no room to
    answer, the record says so in `excluded` and has no lists. A step after which there is no room
    to regenerate text is named in `regenerated_excluded`.

    Args:
        asking: the task's words for this question.

    Raises:
        ValueError: the trace has fewer than 2 counted steps (leave it out: section 4.1).
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    steps = [s.index for s in trace.counted_steps]
    if len(steps) < 2:
        raise ValueError(
            f"trace of {trace.question.id!r}: {len(steps)} counted steps, SLRC needs 2; exclude "
            "it as fewer_than_2_steps"
        )
    arms = _arms(model, trace, steps, settings)
    frozen = {edit.answers for edit in _of_steps(settings) if not edit.anew} | {"shuffled"}
    records = []

    def recorded(framing: Framing, reading: Reading, values: dict[str, Any]) -> Record:
        return record(
            trace,
            "slrc",
            f"{framing}.{reading}",
            settings.seed,
            framing=framing,
            reading=reading,
            n_steps=len(steps),
            gold=trace.question.gold,
            original=trace.answer,
            **values,
        )

    for framing in settings.framings:
        of_framing = frozen | ({"emptied"} if framing == EMPTIED_IN else set())
        asked_arms = {arm: t for arm, t in arms.items() if arm == BASELINE or arm[0] in of_framing}
        asked = partial(
            ask_arms,
            model,
            trace,
            asking,
            framing,
            readings=settings.readings,
            answer_tokens=settings.answer_tokens,
            execution=settings.execution,
        )
        try:
            packs = [asked(asked_arms)]
        except NoRoom:
            records += [recorded(framing, r, {"excluded": NO_ROOM}) for r in settings.readings]
            continue
        anew: dict[Arm, Regenerated | None] = {}
        if framing == "prefix" and not isinstance(model, TextModel):
            anew = _anew(model, asking, arms, settings)
        if written := {arm: r.trace for arm, r in anew.items() if r is not None}:
            # The baseline is asked once more, so that compared answers come from one pack.
            packs.append(asked({BASELINE: trace} | written))
        for reading in settings.readings:
            values = _read(trace, asking, packs, reading, settings)
            if "excluded" not in values:
                values |= _described(trace, arms, anew, settings) | cost(packs)
            records.append(recorded(framing, reading, values))
    return records


def _arms(
    model: Model | TextModel, trace: Trace, steps: Sequence[int], settings: SlrcSettings
) -> dict[Arm, Trace]:
    """Arm (kind of edit, index in the record's list) -> edited trace."""
    arms: dict[Arm, Trace] = {BASELINE: trace, ("emptied", 0): truncate_after_token(trace, 0)}
    edited = [(i, step) for i, step in enumerate(steps) if trace.is_sampled(step)]
    if_texts = {edit.text: edit.if_text for edit in _of_steps(settings)}

    def edit(text: str, i: int, step: int) -> None:
        if not if_texts[text] or (if_texts[text], i) in arms:
            with contextlib.suppress(NotCorruptible, NotWritable):
                arms[text, i] = TEXTS[text](model, trace, step, settings.seed)

    # a step's removal and the step alone share a pack where both fit
    for (i, step), text in itertools.product(edited, (t for t in SURE if t in if_texts)):
        edit(text, i, step)
    for k, shuffled in enumerate(shuffles(trace, settings.shuffles, settings.seed * 1000)):
        arms["shuffled", k] = shuffled
    for text in (t for t in TEXTS if t in if_texts and t not in SURE):
        for i, step in edited:
            edit(text, i, step)
    return arms


def _anew(
    model: Model, asking: Asking, arms: dict[Arm, Trace], settings: SlrcSettings
) -> dict[Arm, Regenerated | None]:
    edited: dict[Arm, Trace] = {
        (edit.answers, i): trace
        for edit in _of_steps(settings)
        if edit.anew
        for (text, i), trace in arms.items()
        if text == edit.text
    }
    if not edited:
        return {}
    cue = len(asking.closer_ids) + len(model.encode(asking.answer_cue))
    continuations = regenerate(
        model,
        list(edited.values()),
        asking.closer_ids,
        max_new_tokens=settings.regenerate_tokens,
        reserve=cue + settings.answer_tokens,
        execution=settings.execution,
    )
    return dict(zip(edited, continuations, strict=True))


def _read(
    trace: Trace,
    asking: Asking,
    packs: Sequence[Pack],
    reading: Reading,
    settings: SlrcSettings,
) -> dict[str, Any]:
    """Record fields of all branches in one reading, each against the baseline of its own pack."""
    outcomes: dict[Arm, Outcome] = {}
    values: dict[str, Any] = {}
    if BASELINE not in packs[0].replies:
        return {"excluded": DECLINED}
    if reading == "generated":
        baseline = packs[0].baseline.answer
        if baseline is None:
            return {"excluded": "baseline_unparsed"}
        for pack in packs:
            outcomes |= generated_outcomes(pack.replies)
    else:
        names = [name for name, _ in asking.labels]
        if len(asking.answers) < 2:
            return {"excluded": FEWER_LABELS}
        by_arm = [
            distributions(
                pack.replies,
                names,
                length_normalise=settings.length_normalise,
                item=trace.question.id,
            )
            for pack in packs
        ]
        first = by_arm[0][BASELINE]
        followed = ReferenceAnswer.of(trace, first)
        for pack, of_pack in zip(packs, by_arm, strict=True):
            scored = scored_outcomes(of_pack, pack.packs, followed.answer)
            outcomes |= {
                arm: replace(outcome, label_mass=pack.replies[arm].label_mass)
                for arm, outcome in scored.items()
            }
        values |= followed.fields | {"label_mass": rounded(packs[0].baseline.label_mass)}
        baseline = followed.forced
        values["label_names"] = list(first)
        values["baseline_p"] = numbers(map(math.exp, first.values()))
    gold = trace.question.gold
    values |= {
        "baseline": baseline,
        "correct": is_right(baseline, gold),
        "n_unparsed": sum(o.answer is None for o in outcomes.values()),
    }
    sizes = {"shuffle": settings.shuffles, "remove_all": 1}
    for edit in EDITS:
        size = sizes.get(edit.name, len(trace.counted_steps))
        values |= _lists(edit, size, outcomes, graded=reading == "scored")
    return values


def _lists(edit: Edit, size: int, outcomes: dict[Arm, Outcome], graded: bool) -> dict[str, Any]:
    """Record fields of one edit as lists, with None for a missing branch; None in place of a list
    if all are missing."""
    kind = edit.answers
    of_kind = [outcomes.get((kind, i)) for i in range(size)]
    if kind == "shuffled":
        # A trace whose steps have few orders has few shuffles: nothing is missing.
        of_kind = [o for o in of_kind if o is not None]
    ran = kind == "shuffled" or any(of_kind)
    measures: dict[str, Callable[[Outcome], Any]] = {
        kind: lambda o: o.answer,
        edit.flips: lambda o: o.flips != (kind == "alone"),
        f"{kind}_margin": lambda o: rounded(o.margin),
    }
    if graded:
        measures[f"{kind}_tv"] = lambda o: rounded(o.tv)
        measures[f"{kind}_mass"] = lambda o: rounded(o.label_mass)
        measures[f"{kind}_log_odds"] = lambda o: rounded(o.log_odds)
        measures[f"{kind}_forced_log_odds"] = lambda o: rounded(o.forced_log_odds)
    return {
        name: [None if o is None else measure(o) for o in of_kind] if ran else None
        for name, measure in measures.items()
    }


def _described(
    trace: Trace,
    arms: dict[Arm, Trace],
    anew: dict[Arm, Regenerated | None],
    settings: SlrcSettings,
) -> dict[str, Any]:
    """Record fields of the steps and of what each edit made of them."""
    steps = trace.counted_steps
    values: dict[str, Any] = {
        "steps": [s.index for s in steps],
        "step_text": [s.text.strip() for s in steps],
    }
    if any(edit.text == "corrupted" for edit in _of_steps(settings)):
        corrupted = [arms.get(("corrupted", i)) for i in range(len(steps))]
        values["corruptible"] = [
            m is not None if trace.is_sampled(s.index) else None
            for s, m in zip(steps, corrupted, strict=True)
        ]
        values["corrupted_text"] = [
            ("" if trace.is_sampled(s.index) else None)
            if m is None
            else next(x.text.strip() for x in m.steps if x.index == s.index)
            for s, m in zip(steps, corrupted, strict=True)
        ]
        values["corruption_rule"] = [
            None if m is None else m.edits[-1].detail["rule"] for m in corrupted
        ]
    for kind in dict.fromkeys(kind for kind, _ in anew):
        regenerated = [anew.get((kind, i)) for i in range(len(steps))]
        values[f"{kind}_text"] = [None if r is None else r.continuation for r in regenerated]
        values[f"{kind}_cut"] = [None if r is None else r.cut for r in regenerated]
        values[f"{kind}_excluded"] = [
            NO_ROOM if (kind, i) in anew and r is None else None for i, r in enumerate(regenerated)
        ]
    return values
