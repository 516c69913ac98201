"""The stored judgements step by step of a run, as rows of its frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from faithscope.experiments.studies.rfeval.asks import LOCATION, Condition
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.judging.stepwise import (
    NOT_ASKED,
    TOO_MANY,
    n_steps,
    parts_of,
    step_rows,
    why_not,
)
from faithscope.experiments.studies.rfeval.metrics.steps import LEFT, SCORED, STEPS
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.experiments.studies.rfeval.units import STEPS as STAGES

PairKey = tuple[str, str]
"""(model, item id)."""
COUNTED = ("calls", "input_tokens", "output_tokens", "reasoning_tokens", "cached_tokens")
_KEPT = ("model", "condition", "place", "part", "kind", "outcome", "verdict", LOCATION)


@dataclass
class StepJudgements:
    """What is stored of them, without the texts."""

    asked: dict[tuple[str, PairKey], list[dict[str, Any]]] = field(default_factory=dict)
    """Stage and pair -> its records, none of a pair that nothing was asked about."""
    usage: dict[tuple[str, str], dict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: dict.fromkeys(("n", *COUNTED), 0))
    )
    """Judge and form -> asks, and what they used."""

    def add(self, stage: str, key: PairKey, records: Iterable[Mapping[str, Any]]) -> None:
        """Take the records of a unit of `plan.steps_stage`."""
        kept = self.asked[stage, key] = []
        for r in records:
            # records of a judge that was not asked for the words have none
            kept.append({name: r[name] for name in _KEPT if name != LOCATION or name in r})
            used = self.usage[r["judge"], r["variant"]]
            used["n"] += 1
            for name in COUNTED:
                used[name] += r[name]

    def frames(
        self,
        stages: Mapping[str, str],
        items: Mapping[str, Item],
        planned: set[str],
        outputs: Mapping[PairKey, Mapping[Condition, Output]],
        tested: Mapping[PairKey, Mapping[Condition, str]],
        most_steps: int,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The rows of `metrics.steps.STEPS`, and the pairs without any (`metrics.steps.LEFT`).

        Args:
            stages: of this run -> the name of the reader (`reader_of`).
            planned: the ids of the items that are judged step by step.
            tested: the stances that tests gave.
        """
        rows, left = [], []
        for stage, reader in stages.items():
            for key, of in outputs.items():
                model, item = key[0], items[key[1]]
                if item.id not in planned:
                    continue
                records = self.asked.get((stage, key))
                why = NOT_ASKED if not records else why_not(records)
                usable = len(of) == 2 and all(output.usable for output in of.values())
                if not records and usable and n_steps(parts_of(item, of)) > most_steps:
                    why = TOO_MANY
                if why:
                    left.append(
                        dict(zip(LEFT, (reader, model, item.task, item.id, why), strict=True))
                    )
                else:
                    rows += step_rows(reader, item, records or [], tested.get(key))
        return pd.DataFrame(rows, columns=list(STEPS)), pd.DataFrame(left, columns=list(LEFT))


def is_steps(stage: str) -> bool:
    """Whether a stage is one of `plan.steps_stage`."""
    return stage.partition(".")[0] in STAGES.values()


def reader_of(judge: str, reading: str) -> str:
    """A judge whose log-probs are read is a reader of its own."""
    return f"{judge}{SCORED}" if reading == "scored" else judge
