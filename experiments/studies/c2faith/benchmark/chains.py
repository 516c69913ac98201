"""Perfect chains: the rated solutions that C2-Faith perturbs (sections 3 and 4.1)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from faithscope.experiments.studies.c2faith.benchmark.prm800k import Solution

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
    """A problem and steps of which every one is rated +1."""

    id: str
    problem: str
    steps: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of problem and steps."""
        return hashlib.sha256(json.dumps([self.problem, self.steps]).encode()).hexdigest()


@dataclass(frozen=True)
class Selection:
    """The perfect chains, and why every other solution is none."""

    chains: tuple[Chain, ...]
    left_out: tuple[tuple[str, Flaw], ...]
    """Id and reason, in the order of the data."""

    @property
    def counts(self) -> dict[str, int]:
        """Solutions by fate, `kept` among them; sums to all that were given."""
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
    told: set[str] = set()
    problems: set[str] = set()
    for solution in solutions:
        chain = Chain(solution.id, solution.problem, solution.steps)
        reason = _flaw(solution, least, answered)
        if reason is None and chain.sha256 in told:
            reason = "repeated"
        elif reason is None and one_per_problem and chain.problem in problems:
            reason = "problem_taken"
        if reason is not None:
            left_out.append((solution.id, reason))
            continue
        told.add(chain.sha256)
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
