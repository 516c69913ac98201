"""Information flow: similarity of the reasoning's hidden states to the answer token's, by layer.

SLRC paper, section 2.7. The reasoning stands as its own tokens, closed, then the cue; the
answer token is the cue's last, whose logits give the answer's first token.

Layers are counted as the residual streams are: 0 is the embeddings, l the stream after layer l of
L, before the final norm. The peak is taken over 1..L; its depth is layer / L (the paper's layer 26
of 28 is 93 %). A cosine is high if all states share a direction, which they do in most models: read
the shape of the curve, not its height.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from faithscope.interventions import Trace
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import NO_STREAM, Record, number, numbers, record
from faithscope.probes.settings import Execution, Settings

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from faithscope.interp.forest import Branch
    from faithscope.interp.model import Model


class FlowSettings(Settings):
    """Cosine between reasoning states and the answer token's, by layer (2.7)."""

    execution: Execution = "auto"


@probe(
    "cosine between reasoning states and the answer token's, by layer (2.7)",
    listed=7,
    papers=("slrc",),
    words=("cue",),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
)
def flow(model: Model, trace: Trace, asking: Asking, settings: FlowSettings) -> list[Record]:
    """One record: cosines between reasoning and answer token, and the layer of the greatest.

    `cosine`, a value per layer 1..L: cosine of the reasoning's mean state with the answer token's
    state, at the same layer. `token_cosine`: the mean over the reasoning's tokens of their own
    cosines, the other reading of the paper's words. `peak_layer`, `peak_depth` and `peak_value` are
    those of `cosine`, the first of equals. `step_peak_layers`: per counted step, the peak of its
    own mean state.

    Arrays, embeddings first: `cosine` (L+1,), `steps` (L+1, counted steps) of the steps' mean
    states, `tokens` (L+1, reasoning tokens).

    The streams of the whole reasoning are held at once, tokens × (L+1) × D in the model's dtype,
    and twice while they are joined: 0.7 GB for 2,000 tokens at L = 28, D = 1536 in float32.

    Raises:
        ValueError: the trace has no reasoning.
        FloatingPointError: a state is zero or not finite; the message names the item.
    """
    if model.structure.unknown is not None:
        return [record(trace, "flow", "", None, excluded=NO_STREAM)]
    branch = flow_branch(model, trace, asking)
    ran = model.run([branch], residuals=True, logits=False, execution=settings.execution)
    (read,) = ran.branches
    assert read.residuals is not None
    cosine_curves = curves(model, trace, read.residuals)
    whole, steps, tokens = cosine_curves.whole, cosine_curves.steps, cosine_curves.tokens
    n_layers, n_tokens = len(whole) - 1, len(trace.reasoning_ids)
    peak = 1 + int(whole[1:].argmax())
    return [
        record(
            trace,
            "flow",
            "",
            None,
            arrays={
                name: x.astype(np.float32)
                for name, x in (("cosine", whole), ("steps", steps), ("tokens", tokens))
            },
            n_layers=n_layers,
            n_tokens=n_tokens,
            cosine=numbers(whole[1:]),
            token_cosine=numbers(tokens[1:].mean(1)),
            peak_layer=peak,
            peak_depth=peak / n_layers,
            peak_value=number(whole[peak]),
            steps=[s.index for s in trace.counted_steps],
            step_peak_layers=[1 + int(i) for i in steps[1:].argmax(0)],
            execution=ran.execution,
            tree_reason=ran.reason,
        )
    ]


@dataclass(frozen=True)
class Curves:
    """Cosines with the answer token's state at the same layer, embeddings first."""

    whole: Float[NDArray[np.float64], " L+1"]
    """The cosine of the mean state over the reasoning."""
    steps: Float[NDArray[np.float64], "L+1 S"]
    """The cosine of the mean state over each counted step."""
    tokens: Float[NDArray[np.float64], "L+1 T"]
    """The cosine of each reasoning token's state."""


def flow_branch(model: Model, trace: Trace, asking: Asking) -> Branch:
    """The branch of closed reasoning and cue, read at the answer token, then at the reasoning's
    tokens.

    Raises:
        ValueError: the trace has no reasoning.
    """
    # Not at the top: it imports torch, which a list of the probes need not wait for.
    from faithscope.interp.forest import Branch

    if not trace.reasoning_ids:
        raise ValueError(
            f"trace of {trace.question.id!r} has no reasoning; exclude it as empty_generation"
        )
    ids = prefix_ids(model, asking, trace)
    start = len(trace.prompt_ids)
    asked = (len(ids) - 1, *range(start, start + len(trace.reasoning_ids)))
    return Branch(ids, ask=asked)


def curves(model: Model, trace: Trace, residuals: Float[Tensor, "A L+1 D"]) -> Curves:
    """The cosines in the residual streams that a run of `flow_branch` read.

    Raises:
        FloatingPointError: a state is zero or not finite; the message names the item.
    """
    answer = residuals[0].double().cpu().numpy()
    result = Curves(
        whole=np.empty(len(answer)),
        steps=np.empty((len(answer), len(trace.counted_steps))),
        tokens=np.empty((len(answer), len(trace.reasoning_ids))),
    )
    for layer in range(len(answer)):
        # One layer at a time: float64 states of all layers would be larger than the model itself.
        states = residuals[1:, layer].double().cpu().numpy()
        result.tokens[layer] = cosines(states, answer[layer])
        result.whole[layer] = cosines(states.mean(0, keepdims=True), answer[layer])[0]
        for i, step in enumerate(trace.counted_steps):
            mean = states[slice(*step.tokens)].mean(0, keepdims=True)
            result.steps[layer, i] = cosines(mean, answer[layer])[0]
    if not all(np.isfinite(x).all() for x in (result.tokens, result.steps, result.whole)):
        raise FloatingPointError(
            f"item {trace.question.id!r}, flow: {model.name}: a hidden state is zero or not finite "
            f"in {model.dtype}; set model.dtype to float32, or check the checkpoint"
        )
    return result


def cosines(states: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Cosines of (n, D) states with one (D,) state: (n,) in [-1, 1]; NaN if either is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        norms = np.linalg.norm(states, axis=-1) * np.linalg.norm(answer)
        return np.clip(states @ answer / norms, -1, 1)
