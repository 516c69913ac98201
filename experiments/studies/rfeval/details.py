"""Items of a run for the explorer: both outputs of a model, as every reader judged them."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from faithscope.experiments.analysis.comparison.details import Detail, Details
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.results import PairKey, RfResults
from faithscope.experiments.studies.rfeval.scores import place
from faithscope.experiments.studies.rfeval.show import pair_block


def details(run: Run) -> Details:
    results = run.once(RfResults)
    pairs: dict[PairKey, list[dict[str, Any]]] = defaultdict(list)
    for pair in rows(results.tables["rf_pairs"]):
        pairs[pair["model"], pair["item"]].append(pair)
    for key in results.pairs:
        yield tuple(place(results, key).values()), partial(_detail, results, key, pairs[key])


def _detail(results: RfResults, key: PairKey, pairs: list[dict[str, Any]]) -> Detail:
    item, output = results.items[key[1]], results.outputs.get(key, {}).get("baseline")
    blocks = [pair_block(results.example(pair), results.config.paper_compat) for pair in pairs]
    parts = filter(None, (item.context, item.question, item.lettered))
    answer = output.answer if output else None
    steps = [output.reasoning] if output and output.reasoning else []
    return Detail("\n\n".join(parts), answer, item.gold, steps, blocks)
