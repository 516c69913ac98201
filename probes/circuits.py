"""Circuits: how much of the answer's attribution graph passes each step.

An attribution graph (Ameisen et al. 2025, transformer-circuits.pub/2025/attribution-graphs) says
for one text what each feature of a model, each token and what no feature explains directly add to
each other and to the logits of the next token. Here that token is the first by which the chain's
answer differs from the others, after chain and cue, and the graph is circuit-tracer's. Followed
back from the answer, every path ends at a token or at an error (a part of an MLP's output that the
transcoders do not explain); its weight is the product of the shares that its edges have of all that
comes into their targets, in absolute values, as the authors prune graphs.

Three shares of all paths are told of each step. `through`: those with a node at the step's tokens,
so that a path from the question by the step to the answer counts for the step. It is what would be
lost if no path could pass the step, the counterpart of a knockout from all later tokens; a path
that passes two steps counts for both. `tokens`: those that begin at the step's own words. `errors`:
those that begin at the step and are not explained; what lies behind them is not known, so that
earlier steps have at least their shares. The rest of `through` is `carried`: it comes from before
the step and is worked on at its tokens.

Attention patterns and norms are fixed in a graph: which tokens a head looks at is no part of it, so
a step that only directs attention has no share. What speaks for the answer and what against it
count alike.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, StrictInt, StrictStr, model_validator

from faithscope.interventions import Trace
from faithscope.probes.framing import Asking, label_ids, naming, prefix_ids
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import Record, number, numbers, record
from faithscope.probes.settings import Execution, Settings

if TYPE_CHECKING:
    from faithscope.interp.circuits import Graph
    from faithscope.interp.model import Model

NOT_SET, NO_ANSWER = "no_transcoders", "answer_unparsed"
NO_GRAPH, OTHER_TOKENS, NO_LOGIT = "no_graph_file", "graph_of_other_tokens", "answer_not_in_graph"
SHARED = "shared_first_token"
OTHER_MODEL, NO_PATHS = "graph_of_another_model", "no_effect_on_answer"
APART = 0.05
"""Most by which the answer's probability may differ between graph and model: dtypes differ less."""


class CircuitsSettings(Settings):
    """Shares of each step in the answer's attribution graph, by circuit-tracer."""

    transcoders: StrictStr | None = None
    """Transcoders of the measured model, as a name on the hub or a folder that circuit-tracer
    reads, such as `mwhanna/qwen3-0.6b-transcoders-lowl0`; with them graphs are computed."""
    graphs: StrictStr | None = None
    """Instead, a folder with graphs that were computed elsewhere (`Graph.to_pt`, `*.pt`); that of
    an item is the one of its tokens, whatever its name."""
    python: StrictStr | None = None
    """Python of the environment that has circuit-tracer; null is the one that runs this."""
    max_nodes: StrictInt | None = Field(default=7500, ge=1)
    """Most features of a graph, those with the most influence; null takes all that are active."""
    batch_size: StrictInt = Field(default=64, ge=1)
    """Rows of a graph that are computed at once."""
    offload: Literal["cpu", "disk"] | None = None
    """Where weights that are not in use wait; null leaves them on the device."""
    backend: Literal["transformerlens", "nnsight"] = "transformerlens"
    """Library that runs the model for circuit-tracer; Gemma 3 needs `nnsight`."""
    execution: Execution = "auto"

    @model_validator(mode="after")
    def _one_source(self) -> CircuitsSettings:
        if self.transcoders is not None and self.graphs is not None:
            raise ValueError(
                "transcoders computes graphs, and graphs reads those that are there; set one"
            )
        return self

    def lacks(self) -> Mapping[str, str]:
        if self.transcoders is None and self.graphs is None:
            return {"transcoders": "mwhanna/qwen3-0.6b-transcoders-lowl0"}
        return {}


@probe(
    "shares of each step in the answer's attribution graph, by circuit-tracer",
    words=("cue", "labels"),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
)
def circuits(
    model: Model, trace: Trace, asking: Asking, settings: CircuitsSettings
) -> list[Record]:
    """One record. Lists have a value per counted step, shares of all paths to the answer:

        steps      indices of the steps in the chain
        through    paths with a node at the step's tokens
        tokens     paths that begin at the step's tokens
        errors     paths that begin there at what no feature explains
        carried    through − tokens − errors: paths from before that pass the step

    `chain_…` are the same of the whole chain; `question` is the share that begins at the prompt's
    tokens, `past` that of these paths which no token of the chain has a part in, and `unexplained`
    the share that begins at errors, anywhere. `target` is the answer's token, `probability` what
    the model gives it, and `graph_probability` what the graph's file says.

    Raises:
        UserError: circuit-tracer is missing or fails, or a file is no graph.
        FloatingPointError: an effect is not finite, naming the item.
    """

    def left_out(reason: str) -> list[Record]:
        return [record(trace, "circuits", "", None, excluded=reason)]

    if settings.lacks():
        return left_out(NOT_SET)
    asked = attributed(model, asking, trace)
    if isinstance(asked, str):
        return left_out(asked)
    ids, target = asked
    # Not at the top: they bring torch, which listing the probes need not wait for.
    from faithscope.interp.circuits import before, shares
    from faithscope.interp.forest import Branch

    ran = model.run([Branch(ids)], execution=settings.execution)
    probability = float(ran.branches[0].logits[0].double().softmax(-1)[target])
    graph = _graph(model, trace, ids, target, settings)
    if isinstance(graph, str):
        return left_out(graph)
    more = before(graph.tokens, ids)
    assert more is not None
    if target not in graph.targets:
        return left_out(NO_LOGIT)
    place = graph.targets.index(target)
    of_graph = graph.probabilities[place]
    if not abs(probability - of_graph) <= APART:
        return left_out(OTHER_MODEL)
    start = more + len(trace.prompt_ids)
    steps = trace.counted_steps
    chain = (start, start + len(trace.reasoning_ids))
    spans = [(start + step.tokens[0], start + step.tokens[1]) for step in steps]
    with naming(f"item {trace.question.id!r}, circuits"):
        of = shares(graph, place, [*spans, chain, (0, start), (0, len(graph.tokens))])
    if of is None:
        return left_out(NO_PATHS)
    carried = [max(a - b - c, 0) for a, b, c in zip(of.through, of.tokens, of.errors, strict=True)]
    n = len(steps)
    lists = {"through": of.through, "tokens": of.tokens, "errors": of.errors, "carried": carried}
    values: dict[str, Any] = {name: numbers(of_span[:n]) for name, of_span in lists.items()}
    values |= {f"chain_{name}": number(of_span[n]) for name, of_span in lists.items()}
    return [
        record(
            trace,
            "circuits",
            "",
            None,
            answer=trace.answer,
            target=model.decode([target]),
            probability=number(probability),
            graph_probability=number(of_graph),
            transcoders=graph.transcoders,
            n_features=len(graph.at),
            n_steps=n,
            steps=[step.index for step in steps],
            **values,
            question=number(of.tokens[n + 1]),
            past=number(of.past[n]),
            unexplained=number(of.errors[n + 2]),
            execution=ran.execution,
            tree_reason=ran.reason,
        )
    ]


def attributed(model: Model, asking: Asking, trace: Trace) -> tuple[tuple[int, ...], int] | str:
    """The tokens that a graph of the trace is about, and the token whose logit it explains; a
    reason if there are none.

    That token is the first by which the chain's answer differs from the others; what all answers
    begin with (a blank before a number) stands before it. Without others it is its first token. Of
    an answer's labels the first counts.
    """
    labels: dict[str, tuple[int, ...]] = {}
    for (answer, _), ids in zip(asking.labels, label_ids(model, asking, "prefix"), strict=True):
        labels.setdefault(answer, ids)
    if trace.answer not in labels:
        return NO_ANSWER
    own, others = labels.pop(trace.answer), [*labels.values()]
    alike = [bool(theirs) and {*theirs} == {x} for x, *theirs in zip(own, *others, strict=False)]
    n = [*alike, False].index(False)
    mine, *theirs = (ids[n : n + 1] for ids in (own, *others))
    if not mine or mine in theirs or () in theirs:
        return SHARED
    return (*prefix_ids(model, asking, trace), *own[:n]), own[n]


def _graph(
    model: Model, trace: Trace, ids: tuple[int, ...], target: int, settings: CircuitsSettings
) -> Graph | str:
    """The item's graph, computed or read; a reason if there is none of its tokens."""
    from faithscope.interp.circuits import before, find_graph, load_tracer

    if settings.graphs is not None:
        folder = Path(settings.graphs).expanduser()
        if (found := find_graph(folder, ids)) is not None:
            return found
        return OTHER_TOKENS if (folder / f"{trace.question.id}.pt").is_file() else NO_GRAPH
    assert settings.transcoders is not None
    tracer = load_tracer(
        settings.python or sys.executable,
        model.name,
        settings.transcoders,
        settings.backend,
        str(model.device),
        model.dtype,
        settings.max_nodes,
        settings.batch_size,
        settings.offload,
    )
    # the file stays readable once it is deleted, as long as its matrix is in use
    with tempfile.TemporaryDirectory() as folder:
        graph = tracer.graph(ids, target, Path(folder) / "graph.pt")
    return OTHER_TOKENS if before(graph.tokens, ids) is None else graph
