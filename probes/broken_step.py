"""A broken step seen from inside: signals of each step of a chain, in a model that reads it.

The white-box counterpart of a judge's detection and localisation (C2-Faith, section 3.3). The chain
is given, and one of its steps was replaced by one that does not follow. Both chains, `perturbed`
and `control` (as it was written), are read by one model in place of its own reasoning
(`probes.broken_chain`), and each signal gives every step a number. **Higher is more suspicious, in
every signal**; the directions were fixed before any chain was read:

    surprisal         mean of -log p(token | all before it) over the step's tokens, nats: a step
                      that does not follow is unexpected
    peak_surprisal    the greatest of them: a changed number is one token of many
    excess_surprisal  mean of -log p minus the entropy of the next-token distribution: how much
                      more surprised than it expected to be, which takes out that some steps
                      (the first) are open to many words
    answer_tracing    log p(answer) before the step minus after it, nats per answer token: a step
                      that does not follow leads away from the chain's answer
    necessity         log p(answer) without the step minus with it, the rest left as it is, per
                      answer token: the necessity of the step in log-probs, its sign turned, as
                      a chain does better without a step that is wrong
    information_flow  minus the cosine of the step's mean state and the answer token's, in one
                      layer: less of a step that does not belong comes to the answer

The last step states the answer. It is read as a step, but left out when the answer is asked for, so
`answer_tracing`, `necessity` and `information_flow` have no number for it.

A signal's **score** is the number of the step in question minus the median of the chain's other
steps, since chains differ in how surprising they are; its **prediction** is the step with the
greatest number, the first of equals. The raw numbers are kept beside both.

Expected biases: surprisal tends to fall along a chain and the cosine to rise, so that their
predictions lean to early steps; and the step after the broken one may surprise more than the broken
step, since it continues the text that was taken out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from faithscope.interventions import Trace, remove_step, truncate_after_step, truncate_after_token
from faithscope.probes.broken_chain import BrokenChain, Condition, read_both, without_last
from faithscope.probes.flow import curves, flow_branch
from faithscope.probes.framing import Arm, Asking, ask_arms, naming
from faithscope.probes.record import Record, number, record

if TYPE_CHECKING:
    from jaxtyping import Float

    from faithscope.interp.model import Model

SURPRISALS = ("surprisal", "peak_surprisal", "excess_surprisal")
ANSWERS = ("answer_tracing", "necessity")
FLOW = "information_flow"
SIGNALS = (*SURPRISALS, *ANSWERS, FLOW)


@dataclass(frozen=True)
class BrokenStepSettings:
    """Everything but model and chain that determines the records."""

    signals: tuple[str, ...] = SIGNALS
    """Names of the signals to measure; `necessity` costs the most by far."""
    join: str = "\n"
    """Text put after every step but the last."""
    answer_cue: str = "The final answer is"
    """Text put after the steps when the answer is asked for."""
    layer: int | None = None
    """Layer of `information_flow`, 1..L as the residual streams are counted; None for the middle
    one, L // 2. All layers are stored."""
    thinking: bool | None = None
    """Whether a hybrid model reads the chain as its thinking; None leaves it to the template."""
    execution: Literal["auto", "packed", "dense", "loop"] = "auto"

    def __post_init__(self) -> None:
        if unknown := [s for s in self.signals if s not in SIGNALS] or not self.signals:
            raise ValueError(
                f"broken_step settings: signals {unknown or self.signals!r}; give some of "
                f"{', '.join(SIGNALS)}"
            )


_Found = tuple[dict[str, NDArray[np.float64]], dict[str, np.ndarray]]
"""Readings of one condition: signal -> a number per step, NaN if a step has none; and arrays."""
_Measured = tuple[dict[Condition, _Found], Mapping[str, Any]]
"""Condition -> the readings of one pack, and the pack's cost."""


def broken_step(
    model: Model, chain: BrokenChain, settings: BrokenStepSettings | None = None
) -> list[Record]:
    """Measure the signals of this module; two records, `perturbed` and `control` in `variant`.

    Both chains are branches of one pack: what comes before the target is computed once, and each
    step is tokenised by itself, so that nothing but the target's tokens differs.

    Fields of every signal: `steps_…`, a number per step, None if a step has none; `score_…`, of the
    target; `predicted_…`, a 0-based index. `rows` puts them in long form.

    Arrays: `spans` (steps, 2), each step's tokens; `surprisal`, `entropy` (tokens,);
    `answer_log_prob` (steps,), log p per answer token after 0, 1, … steps, and `removed_log_prob`
    (steps - 1,), without each; `flow` (L+1, steps - 1), the cosines of all layers, embeddings
    first, since picking the best layer is a choice made after seeing the data.

    Raises:
        UserError: the chain does not fit the model's positions.
        NotWritable: the tokenizer has no ids for a step.
        ValueError: the model has no such layer.
        FloatingPointError: logits or states are not finite; the message names the item.
    """
    settings = settings or BrokenStepSettings()
    layer = _layer(model, settings)
    traces, asking = read_both(
        model,
        chain,
        join=settings.join,
        answer_cue=settings.answer_cue,
        thinking=settings.thinking,
    )
    packs: list[_Measured] = []
    with naming(f"item {chain.item!r}, broken_step"):
        if set(settings.signals) & set(SURPRISALS):
            packs.append(_surprisals(model, traces, settings))
        if set(settings.signals) & set(ANSWERS) and chain.answer is not None:
            packs.append(_answers(model, traces, asking, settings))
        if FLOW in settings.signals and model.structure.unknown is None:
            packs.append(_flow(model, traces, asking, settings, layer))
    counts = ("trie_tokens", "naive_tokens")
    records = []
    for condition, trace in traces.items():
        values: dict[str, NDArray[np.float64]] = {}
        arrays: dict[str, np.ndarray] = {"spans": np.array([s.tokens for s in trace.steps])}
        for of_conditions, _ in packs:
            values |= of_conditions[condition][0]
            arrays |= of_conditions[condition][1]
        records.append(
            record(
                trace,
                "broken_step",
                condition,
                None,
                arrays=arrays,
                chain=chain.chain,
                condition=condition,
                target=chain.target,
                n_steps=len(chain.steps),
                n_tokens=len(trace.reasoning_ids),
                answer=chain.answer,
                layer=layer,
                n_layers=model.n_layers,
                **_of_signals(values, chain.target, settings.signals),
                **{count: sum(cost[count] for _, cost in packs) for count in counts},
            )
        )
    return records


def rows(found: Record) -> list[dict[str, Any]]:
    """A record in long form, a row per signal: `model, signal, item, chain, condition, score`,
    `target, predicted, n_steps`, and `candidates`, the steps that have a number: the prediction
    is one of those. Signals that were not measured have no row."""
    same = ("model", "item", "chain", "condition", "target", "n_steps")
    return [
        {name: found[name] for name in same}
        | {"signal": s, "score": found[f"score_{s}"], "predicted": found[f"predicted_{s}"]}
        | {"candidates": [i for i, x in enumerate(found[f"steps_{s}"]) if x is not None]}
        for s in SIGNALS
        if f"score_{s}" in found
    ]


def score(values: Float[NDArray[np.float64], " steps"], step: int) -> float:
    """A step's number minus the median of the other steps' numbers."""
    return float(values[step] - np.nanmedian(np.delete(values, step)))


def predicted(values: Float[NDArray[np.float64], " steps"]) -> int:
    """Index of the step with the greatest number, the first of equals."""
    return int(np.nanargmax(values))


def _layer(model: Model, settings: BrokenStepSettings) -> int:
    layer = model.n_layers // 2 if settings.layer is None else settings.layer
    if not 1 <= layer <= model.n_layers:
        raise ValueError(
            f"broken_step settings: layer = {layer}; {model.name} has 1 to {model.n_layers}"
        )
    return layer


def _surprisals(
    model: Model, traces: Mapping[Condition, Trace], settings: BrokenStepSettings
) -> _Measured:
    ran = model.likelihood(
        [(*t.prompt_ids, *t.reasoning_ids) for t in traces.values()],
        [len(t.prompt_ids) for t in traces.values()],
        execution=settings.execution,
    )
    measured: dict[Condition, _Found] = {}
    for (condition, trace), read in zip(traces.items(), ran.sequences, strict=True):
        spans = [slice(*s.tokens) for s in trace.steps]
        surprisal = -read.log_probs
        excess = surprisal - read.entropies
        measured[condition] = (
            {
                "surprisal": np.array([surprisal[s].mean() for s in spans]),
                "peak_surprisal": np.array([surprisal[s].max() for s in spans]),
                "excess_surprisal": np.array([excess[s].mean() for s in spans]),
            },
            {
                "surprisal": surprisal.astype(np.float32),
                "entropy": read.entropies.astype(np.float32),
            },
        )
    return measured, {"trie_tokens": ran.trie_tokens, "naive_tokens": ran.naive_tokens}


def _answers(
    model: Model, traces: Mapping[Condition, Trace], asking: Asking, settings: BrokenStepSettings
) -> _Measured:
    """log p(answer) after every step and without each step, for both chains in one pack."""
    arms: dict[Arm, Trace] = {}
    for condition, trace in traces.items():
        body = without_last(trace)
        arms[f"{condition} after", 0] = truncate_after_token(body, 0)
        for i in range(len(body.steps)):
            arms[f"{condition} after", i + 1] = truncate_after_step(body, i)
            if "necessity" in settings.signals:
                arms[f"{condition} without", i] = remove_step(body, i)
    pack = ask_arms(
        model,
        traces["control"],
        asking,
        "prefix",
        arms,
        readings=("scored",),
        answer_tokens=0,
        execution=settings.execution,
    )
    per_token = {arm: r.log_probs[0] / r.lengths[0] for arm, r in pack.replies.items()}
    measured: dict[Condition, _Found] = {}
    for condition, trace in traces.items():
        n = len(trace.steps)
        after = np.array([per_token[f"{condition} after", i] for i in range(n)])
        values = {"answer_tracing": np.append(after[:-1] - after[1:], np.nan)}
        arrays = {"answer_log_prob": after.astype(np.float32)}
        if "necessity" in settings.signals:
            removed = np.array([per_token[f"{condition} without", i] for i in range(n - 1)])
            values["necessity"] = np.append(removed - after[-1], np.nan)
            arrays["removed_log_prob"] = removed.astype(np.float32)
        measured[condition] = values, arrays
    return measured, pack.cost


def _flow(
    model: Model,
    traces: Mapping[Condition, Trace],
    asking: Asking,
    settings: BrokenStepSettings,
    layer: int,
) -> _Measured:
    bodies: dict[Condition, Trace] = {
        condition: without_last(trace) for condition, trace in traces.items()
    }
    branches = [flow_branch(model, body, asking) for body in bodies.values()]
    ran = model.run(branches, residuals=True, logits=False, execution=settings.execution)
    measured: dict[Condition, _Found] = {}
    for (condition, body), read in zip(bodies.items(), ran.branches, strict=True):
        assert read.residuals is not None
        steps = curves(model, body, read.residuals).steps
        values = {FLOW: np.append(-steps[layer], np.nan)}
        measured[condition] = values, {"flow": steps.astype(np.float32)}
    return measured, {"trie_tokens": ran.trie_tokens, "naive_tokens": ran.naive_tokens}


def _of_signals(
    values: Mapping[str, NDArray[np.float64]], target: int, signals: Sequence[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in SIGNALS:
        if name not in signals or name not in values:
            continue
        of = values[name]
        if not np.isfinite(of[:-1]).all():
            raise FloatingPointError(f"{name} is not finite: {of.tolist()}")
        fields[f"steps_{name}"] = [None if math.isnan(x) else number(x) for x in of]
        fields[f"score_{name}"] = number(score(of, target))
        fields[f"predicted_{name}"] = predicted(of)
    return fields
