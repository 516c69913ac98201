"""Traces that the planted models write themselves, and the words for asking about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from faithscope import interp
from faithscope.experiments.data.planted.data import ANSWER_CUE, DIGITS, parse_answer
from faithscope.experiments.data.planted.plants import path
from faithscope.experiments.data.planted.questions import questions
from faithscope.experiments.data.tasks.planted import cues
from faithscope.interventions import Origin, Trace, from_ids, split_conclusion
from faithscope.probes import Asking, Record

ITEMS = 16
ASKING = Asking(
    answer_cue=ANSWER_CUE,
    labels=tuple((d, f" {d}") for d in DIGITS),
    parse=parse_answer,
    necessity_prompt="{}".format,
    sufficiency_prompt="{}".format,
    kind="label",
)


def asking_of(trace: Trace) -> Asking:
    """`ASKING` with the words for asking again about a trace's own question."""
    question = trace.question
    return replace(ASKING, asked=question.text, spoken=False, own_cues=partial(cues, question))


@cache
def planted(name: str) -> tuple[interp.Model, list[Trace]]:
    """A planted model, and its own reasoning on `ITEMS` questions."""
    model = interp.load(str(path(name)))
    asked = questions(name, ITEMS, seed=0)
    prompts = [model.prompt(q.text).ids for q in asked]
    traces = []
    for question, prompt, said in zip(asked, prompts, model.generate(prompts, 64), strict=True):
        pieces = model.pieces(said.ids)
        cut = split_conclusion(pieces)
        trace = from_ids(
            question,
            prompt,
            said.ids[:cut],
            pieces[:cut],
            tail_ids=said.ids[cut:],
            answer=parse_answer("".join(pieces)),
            origin=Origin(model=name),
        )
        traces.append(trace)
    return model, traces


PER_STEP = 7
"""Tokens of a planted step: "So 3 + 4 makes 7 ."."""


def misled(model: interp.Model, trace: Trace) -> Trace:
    """The chain whose last step is first written with a wrong result, as r′, and then as it was."""
    ids, wrong = trace.reasoning_ids, str((int(trace.answer or 0) + 3) % 10)
    claim = (*ids[:-2], *model.encode(f" {wrong}"), ids[-1])
    reasoning = (*claim, *ids[-PER_STEP:])
    return replace(
        trace,
        reasoning_ids=reasoning,
        pieces=tuple(model.pieces(reasoning)),
        steps=(),
        origin=replace(trace.origin, prefilled=len(claim)),
    )


def of_planted(
    probe: Callable[..., list[Record]],
    settings: Any,
    asking: Callable[[Trace], Asking] = lambda trace: ASKING,
    most: int = ITEMS,
) -> Callable[[str], list[Record]]:
    """A function from the name of a planted model to a probe's records of its own reasoning.

    Args:
        most: largest number of traces of a model.
    """

    @cache
    def records(name: str) -> list[Record]:
        model, traces = planted(name)
        return [r for trace in traces[:most] for r in probe(model, trace, asking(trace), settings)]

    return records


def by(field: str, records: list[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record[field], []).append(record)
    return groups
