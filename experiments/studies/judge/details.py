"""Explorer details of given chains: each chain's steps and labels, and every judgement on it."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from faithscope.experiments.analysis.comparison.details import Detail, Details
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.engine.models.judges import READINGS
from faithscope.experiments.engine.units import Key
from faithscope.experiments.studies.judge.chains import JudgedChain
from faithscope.experiments.studies.judge.results import JudgeResults, results
from faithscope.experiments.studies.judge.scores import place
from faithscope.experiments.studies.judge.show import chain_block, judgement_block


def details(run: Run) -> Details:
    read = run.once(results)
    keys: dict[str, list[Key]] = defaultdict(list)
    for key in run.index:
        if key[0] in READINGS and run.index.is_whole(key):
            keys[key[3]].append(key)
    for chain in read.chains.values():
        yield tuple(place(chain).values()), partial(_detail, read, chain, keys[chain.id])


def _detail(read: JudgeResults, chain: JudgedChain, keys: list[Key]) -> Detail:
    records = [record for key in keys for record in read.run.index.records(key)]
    blocks = [chain_block(read, chain), *map(judgement_block, records)]
    return Detail(chain.question, chain.answer, None, chain.steps, blocks)
