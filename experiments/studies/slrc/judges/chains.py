"""Chains as judges read them: their texts, their steps, and the labels that came with them."""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from faithscope.experiments.analysis.stored_records import asked_id
from faithscope.experiments.data.given.chain import GivenChain
from faithscope.experiments.data.given.steps import labels_of, segments
from faithscope.experiments.engine.traces.sections import CutConfig
from faithscope.experiments.studies.slrc.stages import JUDGED_CHAINS
from faithscope.interventions.scripts import length_in_letters
from faithscope.interventions.trace import Sent
from faithscope.probes.record import Record

_IN_PROMPTS = {"cut", "options", "answers", "prompt", "gold", "cue", "cue_target", "bare_question"}
_IN_PROMPTS |= {"chain_sha256", "asked"}
"""Fields of a chain on which its records depend by what a prompt shows alone, if at all."""


@dataclass(frozen=True)
class JudgedChain:
    """A chain divided into steps, as judges read it."""

    id: str
    dataset: str
    model: str
    """Name of the model that wrote the chain; "" where the chain's file does not say."""
    question: str
    """Text of the question as judges read it, with lettered options."""
    steps: tuple[str, ...]
    """Texts of the steps; joined, they are the whole reasoning."""
    counted: tuple[bool, ...]
    """Whether each step is judged; a step that is too short is not."""
    given: bool
    """Whether the division into steps came with the chain's file."""
    labels: Mapping[str, Any]
    step_labels: Mapping[str, tuple[Any, ...]]
    """Label name -> one label per step in `steps`; None for a step without a label."""
    answer: str | None
    cut: bool = False
    """Whether the chain's file says that a token limit cut the chain off."""
    options: tuple[str, ...] = ()
    """The question's options as judges read them: lettered, or the words of a label."""
    answers: tuple[str, ...] = ()
    """The closed set of answers; none for a number, or where the file does not tell."""
    prompt: str | None = None
    """The user message that the chain replies to."""
    gold: str | None = None
    """The right answer."""
    cue: str | None = None
    """The cue to an answer that stood in the prompt."""
    cue_target: str | None = None
    """The answer that the cue points to."""
    bare_question: str = ""
    """Text of the question without its options."""
    chain_sha256: str = ""
    """Hash of the given chain as its file has it (`GivenChain.sha256`); "" if it was not given."""
    asked: str = ""
    """Id of the question of which the chain is one of several samples; "" for others."""

    @property
    def text(self) -> str:
        """The reasoning, followed by the answer where the file has one. The answer is added even if
        the reasoning ends with it, since the text does not say."""
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
        """Hash of everything that a record of the chain depends on besides the prompts: all but
        `cut`, which judges are not told, and what forms alone show."""
        held = {name: value for name, value in vars(self).items() if name not in _IN_PROMPTS}
        return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def judged_chain(chain: GivenChain, cut: CutConfig) -> JudgedChain:
    """Divides a given chain into steps for judging: its own steps if it has them, else cut ones."""
    parts = list(segments(chain, cut.segmentation, cut.min_chars))
    counted = tuple(i is not None or length_in_letters(text) >= cut.min_chars for i, text in parts)
    options = None if chain.kind in ("number", "label") else chain.options
    listed = lettered(options or ())
    words = tuple(chain.options or ()) if chain.kind == "label" else ()
    return JudgedChain(
        chain.id,
        chain.dataset,
        chain.model,
        "\n".join((chain.question, *listed)),
        tuple(text for _, text in parts),
        counted,
        chain.steps is not None,
        dict(chain.labels),
        labels_of(chain, parts),
        chain.answer,
        chain.cut,
        words or tuple(listed),
        words or tuple(line[0] for line in listed),
        chain.prompt or sent_text(chain.sent),
        chain.gold,
        chain.cue,
        chain.cue_target,
        chain.question,
        chain_sha256=chain.sha256,
        asked=asked_id({"id": chain.id, "sample": chain.sample}),
    )


def sent_text(sent: Sent | None) -> str | None:
    """A prompt as it was sent, as text: rendered, or the messages with their roles if there are
    several; None if it is not known."""
    if sent is None or not sent.prompt:
        return None
    if isinstance(sent.prompt, str):
        return sent.prompt
    if len(sent.prompt) == 1:
        return sent.prompt[0][1]
    return "\n\n".join(f"{role}: {text}" for role, text in sent.prompt)


def lettered(options: Sequence[str]) -> list[str]:
    """Options as lines, `A. otter`."""
    return [f"{a}. {text}" for a, text in zip(string.ascii_uppercase, options, strict=False)]


def chain_of_trace(trace: Record) -> JudgedChain:
    """The chain of a stored trace, which a model of the run wrote or read."""
    given = trace["origin"].get("given") or {}
    return JudgedChain(
        trace["item"],
        trace["dataset"],
        given.get("model") or trace["model"],
        trace["question"]["text"],
        tuple(step["text"] for step in trace["steps"]),
        tuple(step["counted"] for step in trace["steps"]),
        trace.get("unit") == "given",
        given.get("labels") or {},
        given.get("step_labels") or {},
        trace["answer"],
        trace.get("finish") == "length",
        chain_sha256=given.get("sha256", ""),
        asked=asked_id(trace["question"]),
    )


def place_of(chain: JudgedChain) -> dict[str, Any]:
    """Identity of a chain in a comparison (`scores.PLACE`): data set, no task, item and model."""
    return {"dataset": chain.dataset, "task": "", "item": chain.id, "model": chain.model}


def name_of(keys: Mapping[str, Any]) -> str:
    """Name of a chain, unique in a run, from the keys of an item or a record.

    Args:
        keys: has `model`, which is empty for a chain that no model reads, `task` and `item`.
    """
    if not keys["model"]:
        return keys["item"]
    return f"{keys['model']} {keys['task']} {keys['item']}"


def as_lines_of_json(chains: Iterable[JudgedChain]) -> str:
    """JSON lines of the chains, the content of `JUDGED_CHAINS`."""
    return "".join(json.dumps(vars(c), ensure_ascii=False) + "\n" for c in chains)


def read_judged(run_dir: Path) -> dict[str, JudgedChain]:
    """Reads the chains of a run folder, by id.

    Raises:
        OSError: the folder has none.
    """
    text, adapter = (run_dir / JUDGED_CHAINS).read_text("utf-8"), TypeAdapter(JudgedChain)
    chains = (adapter.validate_json(line) for line in text.split("\n") if line)
    return {chain.id: chain for chain in chains}
