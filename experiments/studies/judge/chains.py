"""Chains as they are judged: their texts, their steps, and the labels that came with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.steps import labels_of, segments
from faithscope.experiments.engine.traces.sections import CutConfig
from faithscope.interventions.scripts import length_in_letters

FILE = "benchmark/chains.jsonl"
"""In the run folder: the chains as they were judged."""


@dataclass(frozen=True)
class JudgedChain:
    """A given chain in steps."""

    id: str
    dataset: str
    model: str
    """The model that wrote it; "" where its file does not tell."""
    question: str
    """As judges are shown it, options and all."""
    steps: tuple[str, ...]
    """They tile the reasoning."""
    counted: tuple[bool, ...]
    """Whether a step is judged: not one that is too short to be one."""
    given: bool
    """Whether its file has the steps."""
    labels: Mapping[str, Any]
    step_labels: Mapping[str, tuple[Any, ...]]
    """One for each of `steps`; None where there is none."""
    answer: str | None
    cut: bool = False
    """Whether its file says that a token limit cut it off."""

    @property
    def text(self) -> str:
        """The reasoning, and the answer, where the file has one: also where the reasoning ends with
        it, since whether it does is not to be told by its letters."""
        reasoning = "".join(self.steps).strip()
        if self.answer is None:
            return reasoning
        return f"{reasoning}\n\nFinal answer: {self.answer}"

    @property
    def places(self) -> tuple[int, ...]:
        """The indices of the steps that are judged."""
        return tuple(i for i, counted in enumerate(self.counted) if counted)

    @property
    def sha256(self) -> str:
        """Of all that a record of it holds: not of whether it was cut, which no judge is told."""
        held = asdict(self)
        del held["cut"]
        return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def judged_chain(chain: GivenChain, cut: CutConfig) -> JudgedChain:
    """A given chain as it is judged: in its own steps, else in those that it is cut into."""
    parts = list(segments(chain, cut.segmentation))
    counted = tuple(i is not None or length_in_letters(text) >= cut.min_chars for i, text in parts)
    options = None if chain.kind in ("number", "label") else chain.options
    lettered = zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", options or (), strict=False)
    listed = "".join(f"\n{letter}. {text}" for letter, text in lettered)
    return JudgedChain(
        chain.id,
        chain.dataset,
        chain.model,
        chain.question + listed,
        tuple(text for _, text in parts),
        counted,
        chain.steps is not None,
        dict(chain.labels),
        labels_of(chain, parts),
        chain.answer,
        chain.cut,
    )


def as_lines_of_json(chains: Iterable[JudgedChain]) -> str:
    """What `FILE` holds."""
    return "".join(json.dumps(asdict(c), ensure_ascii=False) + "\n" for c in chains)


def read_judged(run_dir: Path) -> dict[str, JudgedChain]:
    """The chains of a run, by id.

    Raises:
        OSError: the folder has none.
    """
    text, adapter = (run_dir / FILE).read_text("utf-8"), TypeAdapter(JudgedChain)
    chains = (adapter.validate_json(line) for line in text.split("\n") if line)
    return {chain.id: chain for chain in chains}
