"""Given chains as items: their steps, their labels, and all judgements on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.item_view import (
    Item,
    Items,
    ItemView,
    judgement_card,
    unit_part,
)
from faithscope.experiments.analysis.page import Block, Fold, Step, level_of
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.results import JudgeResults, results
from faithscope.experiments.studies.judge.scores import place
from faithscope.experiments.studies.judge.verdicts import wrong
from faithscope.probes.record import Record


def items(run: Run) -> Iterator[Item]:
    """Every chain, with the judgements on it by judge and form."""
    read = run.once(results)
    keys: dict[str, list[Key]] = defaultdict(list)
    for key in run.index:
        if key[0] in READINGS:
            keys[key[3]].append(key)
    card = partial(_card, read)
    for chain in read.chains.values():
        parts = [unit_part(run.index, key, [chain.id], card) for key in keys[chain.id]]
        yield Item(partial(chain_view, read, chain), parts, partial(place, chain))


ITEMS = Items("judgements", items)


def chain_view(read: JudgeResults, chain: JudgedChain) -> ItemView:
    """A chain with what judges and labels say of each of its steps."""
    flags: dict[int, list[bool]] = defaultdict(list)
    for row in read.steps:
        if row["item"] == chain.id and row["flag"] is not None:
            flags[row["step"]].append(row["flag"])
    steps = []
    for i, text in enumerate(chain.steps):
        n = f"flagged by {sum(flags[i])} of {len(flags[i])} judgements"
        said = n if flags[i] else "not judged"
        labels = {name: of_steps[i] for name, of_steps in chain.step_labels.items()}
        blocks: list[Block] = [f"{said}."]
        blocks += [f"Its label {k} is {label}." for k, label in labels.items() if label is not None]
        number = i if chain.counted[i] else None
        steps.append(Step(text, number, level_of(flags[i]), said, blocks=blocks))
    answer = [] if chain.answer is None else [markup("answered <strong>{}</strong>", chain.answer)]
    return ItemView(
        " · ".join(filter(None, (chain.id, chain.model))),
        chain.question,
        chain.answer,
        facts=[*answer, *(_labels(read, chain) or ["no labels"])],
        steps=steps,
    )


def _labels(read: JudgeResults, chain: JudgedChain) -> list[str]:
    meanings = {None: "", True: " (wrong)", False: " (all is well)"}
    return [
        markup("label {}: <strong>{}</strong>{}", name, value, meanings[is_wrong])
        for name, value in chain.labels.items()
        for is_wrong in [wrong(name, value, read.config.good)]
    ]


def _card(read: JudgeResults, record: Record) -> Fold:
    """One judgement with its prompt and reply."""
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["item"]]
    if record["step"] is not None:
        parts.append(f"step {record['step']}")
    field = read.forms[record["variant"]].form.verdict_field
    return judgement_card(record, parts, low=field.low or 0)
