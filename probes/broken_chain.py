"""A given chain of reasoning, as written and with one step broken, as a model reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from faithscope.interventions import Origin, Question, Trace, from_steps, truncate_after_step
from faithscope.probes.framing import Asking

if TYPE_CHECKING:
    from faithscope.interp.model import Model

Condition = Literal["perturbed", "control"]
CONDITIONS: tuple[Condition, ...] = ("perturbed", "control")
FEWEST_STEPS = 3
BROKEN_STEP = 2
"""Version of `probes.broken_step`; see `probes.probe.Probe.version`."""

NotMeasurable = Literal["too_few_steps", "last_step_replaced"]
"""Why a chain cannot be measured: the target step has too few other steps to be compared with, or
it is the last step, which states the answer and is followed by none."""


def not_measurable(n_steps: int, target: int) -> NotMeasurable | None:
    """Why a chain of `n_steps` with step `target` exchanged cannot be measured; None if it can."""
    if n_steps < FEWEST_STEPS:
        return "too_few_steps"
    return "last_step_replaced" if target == n_steps - 1 else None


@dataclass(frozen=True)
class BrokenChain:
    """One item: a chain, and the step that replaces one of its steps."""

    item: str
    chain: str
    """Id of the chain that the item was made of; several items may share a chain."""
    dataset: str
    task: str
    """Name of the task in records."""
    prompt: str
    """The user message that the chain replies to."""
    steps: tuple[str, ...]
    """The steps as they were written; the last states the answer."""
    target: int
    """0-based index of the step that is replaced, never the last."""
    replacement: str
    answer: str | None = None
    """The chain's final answer as text; without one `answer_tracing` and `necessity` are not
    measured."""

    def __post_init__(self) -> None:
        if len(self.steps) < FEWEST_STEPS:
            raise ValueError(
                f"chain {self.chain!r} has {len(self.steps)} steps; give three or more, so that "
                "the target has others to be compared with"
            )
        if not 0 <= self.target < len(self.steps) - 1:
            raise ValueError(
                f"item {self.item!r}: target {self.target} of {len(self.steps)} steps; give the "
                f"0-based index of a step before the last, 0 to {len(self.steps) - 2}"
            )
        if self.answer is not None and not self.answer.strip():
            raise ValueError(f"item {self.item!r}: answer {self.answer!r} is empty; give None")

    def told(self, condition: Condition) -> tuple[str, ...]:
        """The steps that the model reads in `condition`."""
        if condition == "control":
            return self.steps
        return (*self.steps[: self.target], self.replacement, *self.steps[self.target + 1 :])


def read_both(
    model: Model, chain: BrokenChain, *, join: str, answer_cue: str, thinking: bool | None
) -> tuple[dict[Condition, Trace], Asking]:
    """Both chains as traces in the model's tokens, in place of its own reasoning, and how to ask
    for the answer.

    Args:
        join: text put after every step but the last.
        answer_cue: text put after the steps when the answer is asked for.
        thinking: whether a hybrid model reads the chain as its thinking.

    Raises:
        NotWritable: the tokenizer has no ids for a step.
    """
    # Not at the top: it imports torch, which a list of the probes need not wait for.
    from faithscope.interp.control import encode_marks

    prompt = model.prompt(chain.prompt, thinking=thinking)
    question = Question(chain.item, chain.dataset, chain.prompt, "number", task=chain.task)
    origin = Origin(
        model=model.name,
        revision=model.revision,
        dtype=model.dtype,
        template_hash=prompt.template_hash,
    )
    traces: dict[Condition, Trace] = {}
    for condition in CONDITIONS:
        *most, last = chain.told(condition)
        texts = [*(f"{text}{join}" for text in most), last]
        traces[condition] = from_steps(
            question, prompt.ids, texts, model.encode, model.pieces, origin=origin
        )
    answer = chain.answer or ""
    gap = "" if answer_cue[-1:].isspace() else " "
    asking = Asking(
        answer_cue=answer_cue,
        labels=((answer, f"{gap}{answer}"),),
        parse=lambda _: None,
        necessity_prompt=str,
        sufficiency_prompt=str,
        # "1/7" must get no credit for "1/70"
        kind="number" if answer[-1:].isdigit() else "label",
        closer_ids=encode_marks(model.tokenizer, prompt.closer) if prompt.closer else (),
    )
    return traces, asking


def without_last(trace: Trace) -> Trace:
    """The chain without its last step, which states the answer."""
    return truncate_after_step(trace, trace.steps[-2].index)
