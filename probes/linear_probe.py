"""Linear probes: hidden states from which a classifier may read the answer, place by place.

Can a linear classifier read the answer from hidden states before the reasoning, during it, or only
after it? Alain & Bengio, "Understanding intermediate layers using linear classifier probes" (2016).
A classifier is fitted over items, so this probe of one item only stores its states;
`experiments.analysis.statistics.classifiers` fits. Any other label of chains or steps is read off
the same states (`labels`, `step_labels`).

The places, in the order of the text:

- `before`: the last token of the prompt. The question, and a hint in it, has been read, and no
  reasoning is written.
- `during i/K`, i = 1..K: counted step ceil(i·T/K) of T, the last of them the reasoning's last:
  its last token, or with `step_state="mean"` the mean over its tokens. Full stops need not hold
  what a step says: in `planted:faithful` the end of the last step does not tell the answer, its
  mean does. In a trace of fewer than K steps several are one place.
- `after`: the last token of the answer cue, whose logits give the answer's first token. The
  reasoning stands as its own tokens, closed, before it.

Layers are counted as residual streams are: l is the stream after layer l of L, before the final
norm.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, StrictBool, StrictInt, model_validator

from faithscope.interventions import Step, Trace
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.label_settings import ReadsLabels
from faithscope.probes.probe import Branches, Size, Stored, probe
from faithscope.probes.record import NO_STREAM, Record, record
from faithscope.probes.settings import ADDED, Execution

if TYPE_CHECKING:
    from faithscope.interp.model import Model


class LinearProbeSettings(ReadsLabels):
    """Classifiers that read the answer, or any label, from hidden states, fitted over items."""

    positions: StrictInt = Field(default=4, ge=1)
    """Number of places along the reasoning (K), besides one before and one after it."""
    layers: StrictInt | None = Field(default=8, ge=1)
    """Most layers that are read, evenly spaced, the last included; null reads all."""
    step_state: Literal["end", "mean"] = "end"
    """State that represents a step: that of its last token, or the mean over its tokens."""
    each_step: Annotated[StrictBool, ADDED] = False
    """Whether the states of every counted step are stored, too, as labels of steps need."""
    precision: Literal["float16", "float32"] = "float16"
    """Precision of the stored states: (positions + 2) × layers × width numbers per item, 0.4 MB for
    K = 4, 8 layers and a width of 4096 in float16; with `each_step` as many more for each step."""
    execution: Execution = "auto"

    @model_validator(mode="after")
    def _steps_have_states(self) -> Self:
        if self.step_labels and not self.each_step:
            raise ValueError(
                "step_labels: the states of every step are not stored; set each_step to true"
            )
        return self


def _stored(size: Size, settings: LinearProbeSettings) -> Stored:
    n = settings.positions + 2 + (size.steps if settings.each_step else 0)
    of_step = size.tokens if settings.step_state == "mean" else 1
    layers = min(size.layers, settings.layers or size.layers)
    width = 4 if settings.precision == "float32" else 2
    return Stored(n * layers * size.width * width, 2 + (n - 2) * of_step)


@probe(
    "whether a linear classifier reads the answer from hidden states, before, during and after",
    listed=8,
    words=("cue",),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
    stored=_stored,
)
def linear_probe(
    model: Model, trace: Trace, asking: Asking, settings: LinearProbeSettings
) -> list[Record]:
    """One record: the hidden states of one item at the chosen places, with the labels to predict.

    `answer` is the model's own final answer, `gold` the right one. `group` is a digest of the
    prompt's ids: items with the same prompt must not be on both sides of a split. `positions` names
    the places, `steps` the index of the step of each `during`, `layers` the layers.

    Array `states`: (positions, layers, D). With `each_step` there are the array `step_states`,
    (counted steps, layers, D), and `all_steps`, the index of each of these steps.

    Raises:
        ValueError: the trace has no steps.
        FloatingPointError: a state is not finite in the stored precision; the message names the
            item.
    """
    if model.structure.unknown is not None:
        return [record(trace, "linear_probe", "", None, excluded=NO_STREAM)]
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.forest import Branch

    steps = trace.counted_steps
    if not steps:
        raise ValueError(
            f"trace of {trace.question.id!r} has no steps; exclude it as fewer_than_2_steps"
        )
    ids = prefix_ids(model, asking, trace)
    start, k = len(trace.prompt_ids), settings.positions
    chosen = [steps[-(-i * len(steps) // k) - 1] for i in range(1, k + 1)]

    def tokens(step: Step) -> range:
        first, end = step.tokens
        return range(start + (first if settings.step_state == "mean" else end - 1), start + end)

    at = [range(start - 1, start), *map(tokens, chosen), range(len(ids) - 1, len(ids))]
    at += map(tokens, steps) if settings.each_step else ()
    branch = Branch(ids, ask=tuple(i for place in at for i in place))
    ran = model.run([branch], residuals=True, logits=False, execution=settings.execution)
    (read,) = ran.branches
    assert read.residuals is not None
    layers = chosen_layers(model.n_layers, settings.layers)
    asked = read.residuals[:, list(layers)].float().split([len(place) for place in at])
    full = np.stack([x.mean(0).cpu().numpy() for x in asked])
    states = finite(full, trace.question.id, "linear_probe", model, settings.precision)
    of_places, of_steps = np.split(states, [k + 2])
    return [
        record(
            trace,
            "linear_probe",
            "",
            None,
            arrays={
                "states": of_places,
                **({"step_states": of_steps} if settings.each_step else {}),
            },
            answer=trace.answer,
            gold=trace.question.gold,
            group=prompt_group(trace),
            positions=places(k),
            steps=[s.index for s in chosen],
            n_steps=len(steps),
            layers=layers,
            n_layers=model.n_layers,
            execution=ran.execution,
            tree_reason=ran.reason,
            **({"all_steps": [s.index for s in steps]} if settings.each_step else {}),
        )
    ]


def prompt_group(trace: Trace) -> str:
    """Digest of the prompt's ids: items with one prompt must not be on both sides of a split."""
    return hashlib.sha256(repr(trace.prompt_ids).encode()).hexdigest()[:16]


def finite(states: np.ndarray, item: str, probe: str, model: Model, precision: str) -> np.ndarray:
    """States in the precision in which they are stored.

    Raises:
        FloatingPointError: one is not finite; the message names the item and the remedy.
    """
    with np.errstate(over="ignore"):
        stored = states.astype(precision)
    if not np.isfinite(stored).all():
        lost, remedy = precision, f"set {probe}.precision to float32"
        if not np.isfinite(states).all():
            lost, remedy = model.dtype, "set model.dtype to float32, or check the checkpoint"
        raise FloatingPointError(
            f"item {item!r}, {probe}: {model.name}: a hidden state is not finite in {lost}; "
            f"{remedy}"
        )
    return stored


def places(k: int) -> tuple[str, ...]:
    """The names of the places, in the order of the text."""
    return ("before", *(f"during {i}/{k}" for i in range(1, k + 1)), "after")


def chosen_layers(n_layers: int, most: int | None) -> tuple[int, ...]:
    """At most `most` of the layers 1..L, evenly spaced, the last included."""
    if most is None or most >= n_layers:
        return tuple(range(1, n_layers + 1))
    return tuple(round(n_layers * (i + 1) / most) for i in range(most))
