"""What the plan of a run says of its detectors: labels, and what is left to ask besides probes and
judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from faithscope.experiments.config.api import API
from faithscope.experiments.data.given.reading import read_chains
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.prices import spending_lines
from faithscope.experiments.engine.planfile import missing
from faithscope.experiments.studies.slrc.config import RunConfig
from faithscope.experiments.studies.slrc.detectors.units import EDITS, reordered, settings_of
from faithscope.experiments.studies.slrc.judges.asking import trace_of
from faithscope.experiments.studies.slrc.stages import EDITED, SHUFFLED
from faithscope.experiments.studies.slrc.units import ChainItem
from faithscope.probes.judge.form import Ask, Writing

LABELS = "labels.jsonl"
"""Name of the file in the run folder with the labels given by `labels.path`."""


def labels_of(config: RunConfig) -> list[Mapping[str, Any]] | None:
    """Labels read from `labels.path`, one entry per labelled chain; None if no path is given.

    Raises:
        UserError: labels that cannot be used.
    """
    if config.labels.path is None:
        return None
    # Labels refer to a model's answer to an item, as the records of the run do.
    read = read_chains(Path(config.labels.path).expanduser(), "fine_cot", own_ids=False)
    return [
        {
            "dataset": c.dataset,
            "item": c.id,
            "model": c.model,
            "labels": dict(c.labels),
            "step_labels": {name: list(of) for name, of in c.step_labels.items()},
        }
        for c in read.chains
    ]


def lines(config: RunConfig, index: Index, items: Sequence[ChainItem]) -> Iterator[str]:
    """Dry-run lines on what is left to ask for detectors, besides probes and judges."""
    stages = {
        "chains asked again with shuffled options": SHUFFLED,
        "chains to be answered with written edits": EDITED,
    }
    for what, stage in stages.items():
        planned = [item for item in items if stage in item.units]
        if planned:
            left = sum(stage in missing(index, item) for item in planned)
            yield f"{what}: {len(planned)}, left {left}"
    asks: dict[str, list[Ask | Writing]] = {}
    for item in items:
        if not item.model.startswith(API):
            continue
        mine, lacking = asks.setdefault(item.model, []), missing(index, item)
        if SHUFFLED in lacking:
            question = reordered(item.question, config).question
            mine.append(Writing(f"{item.item} s", item.of.cot_prompt(question)))
        if EDITED in lacking:
            text = item.of.necessity_prompt(item.question, trace_of(index, item).reasoning_text)
            n = 1 + len(EDITS) * settings_of(config).edits.steps
            mine += [Writing(f"{item.item} {i}", text) for i in range(n)]
    yield from spending_lines(asks, config.api, config.spend, "subject, besides")
