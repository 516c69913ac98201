"""Perfect chains and the items made of them: one with a broken step, four with steps left out
(C2-Faith, sections 3 and 4.1, algorithm 1).

All that is drawn for a chain is drawn from the seed and the chain's id alone, so that a limit cuts
the same list off and other chains change nothing.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from faithscope.experiments.data.given.prm800k import Solution
from faithscope.interventions.acausal import RULES, AcausalStep, Rule, acausal_step
from faithscope.interventions.region import coverage_deletion, middle_region


@dataclass(frozen=True)
class CausalItem:
    """A chain with one step replaced by an acausal variant (C2-Faith, section 3.1)."""

    id: str
    chain: str
    """Id of the chain it was made from."""
    problem: str
    steps: tuple[str, ...]
    """Steps of the perturbed chain."""
    target: int
    """Index from 0 of the replaced step."""
    original: str
    replacement: str
    method: str
    """Method of replacement: `rule:numeric`, `rule:operator`, `rule:comparator` or `llm`."""
    author: str = ""
    """Name of the model that wrote the replacement, for `llm`."""

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
    """Steps that are left of the chain."""
    removed: tuple[int, ...]
    """Indices from 0 of the removed steps in `original_steps`, ascending."""
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
    """Id of the solution or chain."""
    stage: str
    """Stage that left it out: `selection` (it is no perfect chain) or `causal` (no step of it was
    replaced)."""
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


LEAST = 5
"""Fewest steps of a perfect chain."""

Flaw = Literal[
    "unfinished",
    "empty_step",
    "not_all_positive",
    "too_short",
    "no_answer",
    "repeated",
    "problem_taken",
]
"""Why a solution is no perfect chain, the first of these that holds: its path ends where none of
several steps was chosen; a step is empty; a step is not rated +1; it has too few steps; it reaches
no answer; an earlier solution is the same, word for word; an earlier chain solves the same
problem."""


@dataclass(frozen=True)
class Chain:
    """A problem, and steps that are all rated +1."""

    id: str
    problem: str
    steps: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Hash of problem and steps."""
        return hashlib.sha256(json.dumps([self.problem, self.steps]).encode()).hexdigest()


@dataclass(frozen=True)
class Selection:
    """The perfect chains, and the reason why every other solution is none."""

    chains: tuple[Chain, ...]
    left_out: tuple[tuple[str, Flaw], ...]
    """Id and reason of every solution that is no perfect chain, in the order of the data."""

    @property
    def counts(self) -> dict[str, int]:
        """Counts of solutions by what became of them, `kept` among them; they add up to all."""
        reasons = Counter(reason for _, reason in self.left_out)
        return {"kept": len(self.chains), **dict(sorted(reasons.items()))}


def perfect(
    solutions: Iterable[Solution],
    least: int = LEAST,
    answered: bool = False,
    one_per_problem: bool = False,
) -> Selection:
    """The solutions with at least `least` steps, all of them rated +1 (C2-Faith, section 3).

    Args:
        answered: keep only those that reach an answer.
        one_per_problem: keep the first chain of a problem only. The paper speaks of 450 chains
            and of 450 unique problems, but not of how it came from one to the other.
    """
    chains, left_out = [], []
    taken: set[str] = set()
    problems: set[str] = set()
    for solution in solutions:
        chain = Chain(solution.id, solution.problem, solution.steps)
        reason = _flaw(solution, least, answered)
        if reason is None and chain.sha256 in taken:
            reason = "repeated"
        elif reason is None and one_per_problem and chain.problem in problems:
            reason = "problem_taken"
        if reason is not None:
            left_out.append((solution.id, reason))
            continue
        taken.add(chain.sha256)
        problems.add(chain.problem)
        chains.append(chain)
    return Selection(tuple(chains), tuple(left_out))


def _flaw(solution: Solution, least: int, answered: bool) -> Flaw | None:
    if not solution.complete:
        return "unfinished"
    if not all(step.strip() for step in solution.steps):
        return "empty_step"
    if any(rating != 1 for rating in solution.ratings):
        return "not_all_positive"
    if len(solution.steps) < least:
        return "too_short"
    return "no_answer" if answered and not solution.answered else None


LEVELS = (0.1, 0.3, 0.5, 0.7)
"""Deletion rates of the paper."""


@dataclass(frozen=True)
class Settings:
    """Settings that decide the items of a chain."""

    seed: int = 0
    low: float = 0.3
    high: float = 0.9
    """End of the middle region, which begins at `low`; both are shares of the chain."""
    levels: tuple[float, ...] = LEVELS
    rules: tuple[Rule, ...] = RULES
    """Rules that may rewrite a step."""

    def __post_init__(self) -> None:
        middle_region(0, self.low, self.high)
        if not self.rules or not set(self.rules) <= set(RULES):
            raise ValueError(f"rules {self.rules}: give one or more of {', '.join(RULES)}")
        if len(set(self.levels)) < len(self.levels) or not all(0 < d <= 1 for d in self.levels):
            raise ValueError(f"levels {self.levels}: give different shares over 0 and at most 1")


def targets(chain: Chain, settings: Settings) -> tuple[int, ...]:
    """Every step that may be replaced, in the order in which it is tried, indices from 0.

    The first is the paper's uniform draw from the middle region; the others are for where no
    rule can replace that one.
    """
    region = middle_region(len(chain.steps), settings.low, settings.high)
    rng = random.Random(f"c2faith-target-{settings.seed}-{chain.id}")
    return tuple(rng.sample(region, len(region)))


def causal_by_rule(
    chains: Sequence[Chain], settings: Settings
) -> tuple[tuple[CausalItem, ...], tuple[LeftOut, ...]]:
    """Causal items by rule, one for each chain, and the chains in which no step can be replaced."""
    items, left_out = [], []
    for chain in chains:
        order = targets(chain, settings)
        replaced = acausal_step(
            chain.steps, order, f"{settings.seed}-{chain.id}", chain.problem, settings.rules
        )
        if isinstance(replaced, AcausalStep):
            method = f"rule:{replaced.replacement.rule}"
            items.append(causal_item(chain, replaced.target, replaced.replacement.text, method))
            continue
        passed_over = ", ".join(f"step {i}: {reason}" for i, reason in sorted(replaced.passed_over))
        reason = "no_rule_applies" if order else "no_middle"
        left_out.append(LeftOut(chain.id, "causal", reason, passed_over))
    return tuple(items), tuple(left_out)


def coverage_items(chains: Sequence[Chain], settings: Settings) -> tuple[CoverageItem, ...]:
    """The chains with steps left out, every chain at every level, levels drawn independently."""
    items = []
    for chain in chains:
        for level in settings.levels:
            seed = f"{settings.seed}-{chain.id}"
            cut = coverage_deletion(chain.steps, level, seed, settings.low, settings.high)
            items.append(
                CoverageItem(
                    f"{chain.id}.coverage-{level}",
                    chain.id,
                    chain.problem,
                    cut.steps,
                    cut.removed,
                    level,
                    cut.n_middle,
                    chain.steps,
                )
            )
    return tuple(items)
