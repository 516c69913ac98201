"""The items of the benchmark: chains with one broken step, and chains with steps left out."""

from __future__ import annotations

from dataclasses import dataclass

from faithscope.experiments.studies.c2faith.benchmark.chains import Chain


@dataclass(frozen=True)
class CausalItem:
    """A chain with one step replaced by an acausal variant (C2-Faith, section 3.1)."""

    id: str
    chain: str
    """Id of the chain it was made from."""
    problem: str
    steps: tuple[str, ...]
    """The perturbed chain."""
    target: int
    """Index from 0 of the replaced step."""
    original: str
    replacement: str
    method: str
    """`rule:numeric`, `rule:operator`, `rule:comparator` or `llm`."""
    author: str = ""
    """The model that wrote it, for `llm`."""

    @property
    def original_steps(self) -> tuple[str, ...]:
        """The chain as it was: the unperturbed control."""
        return (*self.steps[: self.target], self.original, *self.steps[self.target + 1 :])


@dataclass(frozen=True)
class CoverageItem:
    """A chain with middle steps left out (C2-Faith, section 3.2)."""

    id: str
    chain: str
    problem: str
    steps: tuple[str, ...]
    """What is left of it."""
    removed: tuple[int, ...]
    """Indices from 0 into `original_steps`, ascending."""
    level: float
    """The deletion rate asked for; the removed share of the middle is at least that."""
    n_middle: int
    original_steps: tuple[str, ...]

    @property
    def removed_steps(self) -> tuple[str, ...]:
        return tuple(self.original_steps[i] for i in self.removed)


@dataclass(frozen=True)
class LeftOut:
    """A solution that is no chain, or a chain that gave no causal item."""

    id: str
    """Of the solution or chain."""
    stage: str
    """`selection` (it is no perfect chain) or `causal` (no step of it was replaced)."""
    reason: str
    detail: str = ""


def causal_item(
    chain: Chain, target: int, replacement: str, method: str, author: str = ""
) -> CausalItem:
    """The chain with `replacement` for its step `target`."""
    steps = (*chain.steps[:target], replacement, *chain.steps[target + 1 :])
    original = chain.steps[target]
    name = f"{chain.id}.causal"
    return CausalItem(
        name, chain.id, chain.problem, steps, target, original, replacement, method, author
    )
