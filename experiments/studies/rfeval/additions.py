"""What a package can add to RFEval; `config.study.Addition.load` returns one of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faithscope.experiments.data.saved import SavedBenchmark
from faithscope.experiments.engine.plan import PreparingPlan
from faithscope.experiments.engine.tallies.input_report import Truncation
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.items import Item


@dataclass(frozen=True)
class BuiltItems:
    """Items that were built for a run."""

    items: tuple[Item, ...]
    benchmark: SavedBenchmark
    """The items as files, with what they were made of."""
    prompts: Mapping[str, str]
    """File name -> content of the prompts that models were asked with to build them."""
    cuts: tuple[Truncation, ...]
    """Counts of the problems that became no item."""


@dataclass(frozen=True)
class RfAddition:
    """What a package adds to RFEval."""

    build: Callable[[RFEvalConfig, Path], BuiltItems | PreparingPlan[RFEvalConfig, Any]]
    """Builds the items that a config asks for (`counterfactual.written`), given the folder in which
    an earlier start has kept them; or plans the requests that are pending before they are whole."""
