"""The items that the writer of r′ is shown as examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item


def examples_of(config: RFEvalConfig) -> Callable[[Item], list[Item]]:
    """Finds, for an item, the first others that fit: of its source, then of its task; from the
    file of examples, or from the data, also past `data.limit`.

    So all items of a source see the same few, but for those few themselves: the paper has three
    hand-made ones for each data set. What it gives raises a ConfigError where there are too few.

    Raises:
        UserError: the file of examples, or the data, cannot be used.
    """
    c, d = config.counterfactual, config.data
    if not c.shots:
        return lambda item: []
    if c.examples is not None:
        path = Path(c.examples).expanduser()
        pool, _ = read_rfeval(path, key="counterfactual.examples")
        where = f"{path} has"
    else:
        pool, _ = read_rfeval(d.file, d.tasks or None, None, d.repository, bare=True)
        where = "the data has"
    of_source, of_task = defaultdict[tuple[str, str], list[Item]](list), defaultdict(list)
    for other in (o for o in pool if o.r_prime and o.explanation):
        of_source[other.task, other.source].append(other)
        of_task[other.task].append(other)

    def examples(item: Item) -> list[Item]:
        elsewhere = (o for o in of_task[item.task] if o.source != item.source)
        candidates = chain(of_source[item.task, item.source], elsewhere)
        fit = (o for o in candidates if o.id != item.id and _problem(o) != _problem(item))
        first = list(islice(fit, c.shots))
        if len(first) < c.shots:
            raise ConfigError(
                [
                    f"counterfactual.shots: {c.shots} examples wanted for {item.id!r}, and "
                    f"{where} {len(first)} other items of task {item.task!r} with r_prime and "
                    "explanation; give a file of some as counterfactual.examples, or fewer shots"
                ]
            )
        return first

    return examples


def _problem(item: Item) -> tuple[str, str, tuple[str, ...]]:
    """What makes two items the same one, whatever their ids in different files."""
    return item.question, item.context, item.options
