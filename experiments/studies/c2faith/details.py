"""Chains of a run for the explorer: what each judge wrote of a chain in one condition."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from faithscope.experiments.analysis.comparison.details import Detail, Details
from faithscope.experiments.analysis.page import Block, Fold
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.c2faith.benchmark.items import CausalItem
from faithscope.experiments.studies.c2faith.prompts_of_items import CONDITIONS
from faithscope.experiments.studies.c2faith.results import C2Results, results
from faithscope.experiments.studies.c2faith.scores import place, steps_in
from faithscope.experiments.studies.c2faith.show import inside_block, item_blocks, judgement_block
from faithscope.experiments.studies.c2faith.units import INSIDE


def details(run: Run) -> Details:
    of_run = run.once(results)
    keys: dict[str, list[Key]] = defaultdict(list)
    for key in run.index:
        if key[0] in (*READINGS, INSIDE) and run.index.is_whole(key):
            keys[key[3]].append(key)
    for item in of_run.benchmark.causal:
        for condition in CONDITIONS:
            own = [*keys[f"{item.id}.{condition}"], *keys[item.id]]
            detail = partial(_detail, of_run, item, condition, own)
            yield tuple(place(item, condition).values()), detail


def _detail(of_run: C2Results, item: CausalItem, condition: str, keys: list[Key]) -> Detail:
    blocks: list[Block] = [Fold("What was done to the chain", item_blocks(item))]
    for key in keys:
        for record in of_run.run.index.records(key):
            if key[0] != INSIDE:
                blocks.append(judgement_block(record, of_run.forms[record["variant"]]))
            elif record["condition"] == condition:
                blocks.append(inside_block(record))
    return Detail(item.problem, None, None, steps_in(item, condition), blocks)
