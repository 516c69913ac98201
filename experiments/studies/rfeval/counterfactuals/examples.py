"""The items that the writer of r′ is shown as examples."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from faithscope.experiments.config.base import ConfigError
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.data import read_rfeval
from faithscope.experiments.studies.rfeval.items import Item


class Examples:
    """Finds, for an item, the first others that fit: of its source, then of its task.

    So all items of a source see the same few, but for those few themselves: the paper has three
    hand-made ones for each data set.
    """

    def __init__(self, pool: Sequence[Item], shots: int, where: str) -> None:
        """
        Args:
            pool: only those with r′ and an explanation of its flaw count.
            where: what messages call it.
        """
        self.shots, self.where = shots, where
        self._of_source: dict[tuple[str, str], list[Item]] = defaultdict(list)
        self._of_task: dict[str, list[Item]] = defaultdict(list)
        for item in pool:
            if item.r_prime and item.explanation:
                self._of_source[item.task, item.source].append(item)
                self._of_task[item.task].append(item)

    @classmethod
    def of_config(cls, config: RFEvalConfig) -> Examples:
        """Those that a run's config names; also those of the data past `data.limit`.

        Raises:
            UserError: the file of examples, or the data, cannot be used.
        """
        c, d = config.counterfactual, config.data
        if not c.shots:
            return cls([], 0, "")
        if c.examples is not None:
            path = Path(c.examples).expanduser()
            found, _ = read_rfeval(path, key="counterfactual.examples")
            return cls(found, c.shots, f"{path} has")
        path = None if d.path is None else Path(d.path).expanduser()
        found, _ = read_rfeval(path, d.tasks or None, None, d.repository, bare=True)
        return cls(found, c.shots, "the data has")

    def of(self, item: Item) -> list[Item]:
        """As many as are wanted, none of them the item's own problem.

        Raises:
            ConfigError: there are too few.
        """
        others = (o for o in self._of_task[item.task] if o.source != item.source)
        candidates = itertools.chain(self._of_source[item.task, item.source], others)
        fit = (o for o in candidates if o.id != item.id and _problem(o) != _problem(item))
        found = list(itertools.islice(fit, self.shots))
        if len(found) < self.shots:
            raise ConfigError(
                [
                    f"counterfactual.shots: {self.shots} examples wanted for {item.id!r}, and "
                    f"{self.where} {len(found)} other items of task {item.task!r} with r_prime and "
                    "explanation; give a file of some as counterfactual.examples, or fewer shots"
                ]
            )
        return found


def _problem(item: Item) -> tuple[str, str, tuple[str, ...]]:
    """What makes two items the same one, whatever their ids in different files."""
    return item.question, item.context, item.options
