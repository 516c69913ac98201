"""Building of the whole benchmark: chains to items, with the account of everything left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from faithscope.experiments.studies.c2faith.benchmark.items import (
    CausalItem,
    Chain,
    LeftOut,
    Selection,
    Settings,
    causal_by_rule,
    coverage_items,
)
from faithscope.experiments.studies.c2faith.benchmark.prm800k import Source
from faithscope.experiments.studies.c2faith.benchmark.saved import Benchmark


@dataclass(frozen=True)
class Basis:
    """The chains that a benchmark is made of, and what decides its items."""

    selection: Selection
    sources: Sequence[Source] = ()
    """The files that the chains came from, for the manifest."""
    settings: Settings = field(default_factory=Settings)
    limit: int | None = None
    """Number of chains that are taken, the first of `selection`; None takes all."""

    @property
    def chains(self) -> tuple[Chain, ...]:
        return self.selection.chains[: self.limit]

    def by_rule(self) -> Benchmark:
        """The benchmark with steps replaced by rule: no model needed."""
        return self.benchmark(*causal_by_rule(self.chains, self.settings), {"by": "rule"})

    def benchmark(
        self,
        causal: tuple[CausalItem, ...],
        left_out: tuple[LeftOut, ...],
        replacement: Mapping[str, Any],
    ) -> Benchmark:
        """The benchmark with these causal items.

        Args:
            left_out: the chains that gave none.
            replacement: how steps were replaced, as plain values, for the manifest.
        """
        chains = self.chains
        digest = hashlib.sha256("\n".join(c.sha256 for c in chains).encode()).hexdigest()
        account = (
            *(LeftOut(name, "selection", reason) for name, reason in self.selection.left_out),
            *(LeftOut(c.id, "selection", "limit") for c in self.selection.chains[len(chains) :]),
            *left_out,
        )
        made_of = {
            "settings": asdict(self.settings),
            "sources": [{**asdict(s), "as_released": s.as_released} for s in self.sources],
            "chains": {"n": len(chains), "sha256": digest},
            "selection": {**self.selection.counts, "limit": self.limit},
            "replacement": replacement,
        }
        coverage = coverage_items(chains, self.settings)
        return Benchmark(causal, coverage, account, json.loads(json.dumps(made_of)))
