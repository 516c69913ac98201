"""Judgements on chains: what judges and labels say of each step, and every reply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.item_view import (
    Item,
    ItemView,
    Part,
    judgement_card,
    unit_part,
)
from faithscope.experiments.analysis.page import Block, Fold, Step, level_of
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.slrc.judges.chains import JudgedChain, name_of
from faithscope.experiments.studies.slrc.judges.results import JudgeResults
from faithscope.experiments.studies.slrc.judges.verdicts import wrong
from faithscope.probes.record import Record


def parts_of(read: JudgeResults) -> dict[str, list[Part]]:
    """Name of a chain -> the judgements on it, by judge and form."""
    parts: dict[str, list[Part]] = defaultdict(list)
    card = partial(_card, read)
    for key in read.run.index:
        if key[0] in read.stages:
            _, judge, form = read.stages[key[0]]
            part = unit_part(read.run.index, read.run.records_of, key, [key[3]], card)
            parts[key_name(key)].append(part._replace(model=judge, task=form))
    return parts


def unread_items(read: JudgeResults) -> Iterator[Item]:
    """Every chain that no model of the run reads, with the judgements on it."""
    parts = parts_of(read)
    for name, of in read.known.items():
        yield Item(partial(chain_view, read, name), parts[name], lambda at=of.place: at)


def chain_view(read: JudgeResults, name: str) -> ItemView:
    """A chain with what judges and labels say of each of its steps."""
    chain = read.chains[name]
    flags: dict[int, list[bool]] = defaultdict(list)
    has: dict[int, list[str]] = defaultdict(list)
    for row in read.steps:
        if row["chain"] == name and row["flag"] is not None:
            flags[row["step"]].append(row["flag"])
        elif row["chain"] == name and row["holds"] is not None:
            has[row["step"]].append(f"{row['form']}: {'yes' if row['holds'] else 'no'}")
    steps = []
    for i, text in enumerate(chain.steps):
        n = f"flagged by {sum(flags[i])} of {len(flags[i])} judgements"
        said = n if flags[i] else "; ".join(has[i]) or "not judged"
        labels = {name: of_steps[i] for name, of_steps in chain.step_labels.items()}
        blocks: list[Block] = [f"{said}."]
        blocks += [f"Its label {k} is {label}." for k, label in labels.items() if label is not None]
        number = i if chain.counted[i] else None
        steps.append(Step(text, number, level_of(flags[i]), said, blocks=blocks))
    said = [] if read.has_readers else read.run.said_of(("", chain.dataset, chain.id))
    answer = [] if chain.answer is None else [markup("answered <strong>{}</strong>", chain.answer)]
    return ItemView(
        " · ".join(filter(None, (chain.id, chain.model))),
        chain.question,
        chain.answer,
        facts=[*answer, *(_labels(read, chain) or ["no labels"]), *said],
        steps=steps,
    )


def key_name(key: Key) -> str:
    """Name of the chain that a unit is about."""
    return name_of(dict(zip(("model", "task", "item"), key[1:], strict=True)))


def _labels(read: JudgeResults, chain: JudgedChain) -> list[str]:
    meanings = {None: "", True: " (wrong)", False: " (all is well)"}
    return [
        markup("label {}: <strong>{}</strong>{}", name, value, meanings[is_wrong])
        for name, value in chain.labels.items()
        for is_wrong in [wrong(name, value, read.good)]
    ]


def _card(read: JudgeResults, record: Record) -> Fold:
    """One judgement with its prompt and reply."""
    parts = [record["judge"], record["variant"], READINGS[record["probe"]], record["item"]]
    if record["step"] is not None:
        parts.append(f"step {record['step']}")
    field = read.forms[record["variant"]].form.verdict_field
    return judgement_card(record, parts, low=field.low or 0)
