"""Outputs of RFEval as chains with prefilled reasoning, read inside the model that wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from faithscope.experiments.studies.rfeval.config_sections import InsideConfig
from faithscope.experiments.studies.rfeval.items import CONDITIONS, Condition, Item
from faithscope.experiments.studies.rfeval.judging.stances import gold_stance, stance_of_letter
from faithscope.experiments.studies.rfeval.subjects.subjects import Forced, output_of
from faithscope.interp.control import encode_marks
from faithscope.interp.responses import split_response
from faithscope.interventions import Origin, Question, Trace, written
from faithscope.probes.chain_parts import answer_start
from faithscope.probes.framing import Asking
from faithscope.probes.prefilled_reasoning import PrefilledReasoningSettings, read_chain
from faithscope.probes.record import ARRAYS

if TYPE_CHECKING:
    from faithscope.interp.model import Model


def output_chain(
    model: Model, item: Item, start: Forced, generated: Sequence[int], finished: bool = True
) -> Trace:
    """An output as a chain: r′ and the model's own reasoning, then what it wrote after. Options are
    stances. In a format without marks, all before the answer is reasoning.

    Args:
        generated: the ids after `start.ids`, without the token that ended them.
        finished: False where the token limit ended it.
    """
    fmt, prompt = start.prompt.format, "".join(model.pieces(start.prompt.ids))
    answer = output_of(model, start, generated, finished).answer
    if fmt.marks:
        cut = split_response(model.tokenizer, fmt, generated)
        own, tail = (*cut.opener_ids, *cut.reasoning_ids), cut.tail_ids
    else:
        at = answer_start(model.pieces(generated), answer) if answer else None
        own, tail = tuple(generated[:at]), () if at is None else tuple(generated[at:])
    reasoning = (*start.r_prime_ids, *own)
    stances = tuple(dict.fromkeys(stance_of_letter(item, letter) for letter in item.letters))
    question = Question(
        id=item.id,
        dataset="rfeval",
        text=_between(prompt, (item.question, item.context, item.lettered)),
        kind="label" if stances else "number",
        gold=gold_stance(item) if stances else item.answer.strip() or None,
        options=stances or None,
        task=item.task,
    )
    return Trace(
        question,
        start.prompt.ids,
        reasoning,
        tuple(model.pieces(reasoning)),
        steps=(),
        tail_ids=tail,
        answer=answer.strip() or None,
        origin=Origin(model.name, prefilled=len(start.r_prime_ids)),
    )


def asking_of(
    model: Model, item: Item, cue: str, by: Literal["letters", "words"], free: Iterable[str] = ()
) -> Asking:
    """The words in which a model is asked for its answer to an item.

    Args:
        by: label of an option, its letter or its words.
        free: different answers that are scored if the item has no options.
    """
    letters = zip(item.letters, item.letters if by == "letters" else item.options, strict=True)
    labels = [(stance_of_letter(item, letter), f" {label}") for letter, label in letters]
    labels = labels or [(answer, f" {answer}") for answer in free]
    # "1" is not credited with what belongs to "10"; letters are followed by anything
    numbers = not item.options and all(answer[-1].isdigit() for answer, _ in labels)
    return Asking(
        answer_cue=cue,
        labels=tuple(labels),
        parse=lambda text: None,
        necessity_prompt=str,
        sufficiency_prompt=str,
        kind="number" if numbers else "label",
        closer_ids=tuple(encode_marks(model.tokenizer, model.format.closer)),
    )


def look_inside(
    model: Model,
    item: Item,
    outputs: Mapping[Condition, tuple[Forced, Sequence[int]]],
    config: InsideConfig,
) -> list[dict[str, Any]]:
    """A record per output, with its condition as `variant` and the values and arrays of
    `probes.prefilled_reasoning.read_chain`.

    Args:
        outputs: condition -> the conversation that was continued, and the generated ids without
            the token that ended them. Both outputs are of `model`.

    Raises:
        UserError: a text does not fit the model's positions.
        ValueError: an option's label cannot be written in the model's tokens.
        FloatingPointError: a number is not finite, naming the item.
    """
    chains = {c: output_chain(model, item, *outputs[c]) for c in CONDITIONS if c in outputs}
    answers = [item.answer.strip(), *(chain.answer or "" for chain in chains.values())]
    cue = config.cue if item.options else config.free_cue
    ids = {x: written(f" {x}", model.encode(cue), model.encode, model.pieces) for x in answers}
    free = [x for x, of in ids.items() if x and of and len(of[0]) <= config.longest_answer]
    asking = asking_of(model, item, cue, config.labels, free)
    settings = PrefilledReasoningSettings(points=config.points, execution=config.execution)
    records: list[dict[str, Any]] = []
    for condition, chain in chains.items():
        values, arrays = read_chain(model, chain, asking, settings)
        records.append({"variant": condition, **values, ARRAYS: arrays})
    return records


def _between(text: str, parts: Iterable[str]) -> str:
    """The text from the first of some parts to the end of the last, each searched from the end; ""
    if the first part that is not empty is nowhere."""
    places = [(text.rfind(part), len(part)) for part in map(str.strip, parts) if part]
    if not places or places[0][0] < 0:
        return ""
    return text[min(at for at, _ in places if at >= 0) : max(at + n for at, n in places if at >= 0)]
