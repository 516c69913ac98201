"""The benchmark from perfect chains: one acausal item and four coverage items each (algorithm 1).

All that is drawn for a chain is drawn from the seed and the chain's id alone, so that a limit
cuts the same list off and other chains change nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from faithscope.experiments.studies.c2faith.benchmark.chains import Chain
from faithscope.experiments.studies.c2faith.benchmark.items import (
    CausalItem,
    CoverageItem,
    LeftOut,
    causal_item,
)
from faithscope.interventions.acausal import RULES, AcausalStep, Rule, acausal_step
from faithscope.interventions.region import coverage_deletion, middle_region

LEVELS = (0.1, 0.3, 0.5, 0.7)
"""Deletion rates of the paper."""


@dataclass(frozen=True)
class Settings:
    """What decides the items of a chain."""

    seed: int = 0
    low: float = 0.3
    high: float = 0.9
    """The middle region, as shares of the chain."""
    levels: tuple[float, ...] = LEVELS
    rules: tuple[Rule, ...] = RULES
    """Of replacement by rule."""

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
    """An acausal item of each chain by rule, and the chains of which no step can be replaced."""
    items, left_out = [], []
    for chain in chains:
        order = targets(chain, settings)
        found = acausal_step(
            chain.steps, order, f"{settings.seed}-{chain.id}", chain.problem, settings.rules
        )
        if isinstance(found, AcausalStep):
            method = f"rule:{found.replacement.rule}"
            items.append(causal_item(chain, found.target, found.replacement.text, method))
            continue
        told = ", ".join(f"step {i}: {reason}" for i, reason in sorted(found.passed_over))
        reason = "no_rule_applies" if order else "no_middle"
        left_out.append(LeftOut(chain.id, "causal", reason, told))
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
