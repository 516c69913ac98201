"""The causal items as a model reads them from inside (`probes.broken_step`)."""

from __future__ import annotations

from experiments.c2faith.items import CausalItem
from experiments.c2faith.prm800k import ANSWER
from probes.broken_chain import BrokenChain


def broken_chain(item: CausalItem, dataset: str = "c2faith") -> BrokenChain:
    """The chain, the step that was put in its place, and the answer its last step states."""
    return BrokenChain(
        item=item.id,
        chain=item.chain,
        dataset=dataset,
        prompt=item.problem,
        steps=item.original_steps,
        target=item.target,
        replacement=item.replacement,
        answer=stated_answer(item.steps[-1]),
    )


def stated_answer(step: str) -> str | None:
    """What stands under the last "# Answer" of a step; None where there is none."""
    _, mark, after = step.rpartition(ANSWER)
    return after.strip() or None if mark else None
