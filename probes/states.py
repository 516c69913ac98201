"""Stored states: hidden states of a chain at chosen spans, layers and sites, kept on disk.

Probes of labels, notebooks and tools for circuits read the same states again and again; here they
are read once. A span is a role (`question`, `cue`, `step`, `answer`, …), a pattern or the steps of
a label (`probes.spans`). The reasoning stands as its own tokens, closed, and the answer cue after
it (`prefix` framing).

A site is the residual stream after a layer, or what its attention or its MLP puts out, before any
norm after it. Layers are counted as residual streams are: l is the stream after layer l of L,
before the final norm, and 0 the embeddings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.interp.errors import UserError
from faithscope.interp.hook_names import SITES, Site, beyond, place_of
from faithscope.interventions import Trace
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.label_settings import ReadsLabels
from faithscope.probes.linear_probe import chosen_layers, finite, prompt_group
from faithscope.probes.probe import Branches, Size, Stored, probe
from faithscope.probes.record import NO_STREAM, Record, record
from faithscope.probes.settings import (
    Execution,
    ModelFacts,
    Some,
    as_several,
    without_repeats,
)
from faithscope.probes.spans import TakesSpans, find, how_of

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NO_SITE = "site_not_recognised"
"""Why a chain is left out: which part of a layer is its attention or MLP could not be told."""
USUAL = ("step", "answer")
"""Spans that are stored where none is named or declared."""
Names = Annotated[
    tuple[StrictStr, ...], BeforeValidator(as_several), AfterValidator(without_repeats)
]


class StatesSettings(TakesSpans, ReadsLabels):
    """Hidden states at spans, layers and sites, stored for later; and labels read off them."""

    at: Names = ()
    """Names of the spans, and roles, whose states are stored; with an empty list those of `spans`,
    or, if there are none, `step` and `answer`."""
    layers: (
        Annotated[StrictInt, Field(ge=1)]
        | Annotated[tuple[Annotated[StrictInt, Field(ge=1)], ...], Field(min_length=1)]
        | None
    ) = 8
    """Most layers that are stored, evenly spaced, the last included; a list of layers, from 1; or
    null for all."""
    sites: Some[Literal["residual", "attention", "mlp"]] = ("residual",)
    """The stream after a layer, or the output of its attention or its MLP."""
    hooks: Names = ()
    """Names of places as TransformerLens has them (`blocks.11.hook_resid_post`), in place of
    `layers` and `sites`."""
    pool: Literal["none", "mean", "last"] = "none"
    """State that represents a span: that of every token, their mean, or that of the last."""
    precision: Literal["float16", "float32"] = "float16"
    """Precision of the stored states."""
    execution: Execution = "auto"

    @property
    def named(self) -> tuple[str, ...]:
        return self.at or tuple(self.spans) or USUAL

    @model_validator(mode="after")
    def _hooks_are_places(self) -> Self:
        for name in self.hooks:
            try:
                place_of(name)
            except UserError as error:
                raise ValueError(f"hooks: {error}") from None
        if self.pool == "none" and (self.labels or self.step_labels):
            raise ValueError(
                "labels: are read off one state of each span; set pool to mean or last"
            )
        return self

    def places(self, n_layers: int) -> dict[Site, tuple[int, ...]]:
        """Site -> layers that are stored of a model, ascending.

        Raises:
            UserError: the model has no such layer.
        """
        of: dict[Site, set[int]] = {}
        for site, layer in map(place_of, self.hooks):
            of.setdefault(site, set()).add(layer + 1)
        if not self.hooks:
            own = self.layers
            few = chosen_layers(n_layers, own) if isinstance(own, int | None) else own
            of = {site: set(few) for site in self.sites}
        if problem := beyond(self.hooks, n_layers):
            raise UserError(f"states.hooks: {problem}")
        if too_deep := sorted({layer for own in of.values() for layer in own if layer > n_layers}):
            there = f"the model has layers 1 to {n_layers}"
            raise UserError(f"states.layers: layer {too_deep[0]} is not there; {there}")
        return {site: tuple(sorted(of[site])) for site in SITES if site in of}

    def misfit_with(self, model: ModelFacts) -> str | None:
        if model.n_layers is None:
            return None
        try:
            self.places(model.n_layers)
        except UserError as error:
            return str(error).partition(".")[2]
        return None


def _rows(size: Size, settings: StatesSettings) -> int:
    """Number of tokens in the spans; a pattern and a phrase are taken for a step."""
    roles = {"prompt": size.prompt, "template": size.prompt, "question": size.prompt}
    roles |= {"reasoning": size.reasoning, "step": size.reasoning, "answer": size.cue}
    return sum(roles.get(name, size.tokens) for name in settings.named)


def _stored(size: Size, settings: StatesSettings) -> Stored:
    tokens = _rows(size, settings)
    rows = tokens
    if settings.pool != "none":
        rows = sum(size.steps if name == "step" else 1 for name in settings.named)
    hooked = [place_of(name).layer for name in settings.hooks]
    own = settings.layers
    n = len(own) if isinstance(own, tuple) else min(size.layers, own or size.layers)
    places = len(hooked) or n * len(settings.sites)
    width = 4 if settings.precision == "float32" else 2
    return Stored(rows * places * size.width * width, tokens, len(settings.sites))


@probe(
    "hidden states at chosen spans, layers and sites, stored for probes, notebooks and other tools",
    listed=14,
    words=("cue",),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
    stored=_stored,
)
def states(model: Model, trace: Trace, asking: Asking, settings: StatesSettings) -> list[Record]:
    """A record for each span, its variant, with the states of its tokens.

        layers          the layers of each site, site after site; `sites` says how many of which:
                        `residual 1`, `residual 12`, …
        n_spans         number of stretches of tokens that have the name (`step`: all counted ones)
        n_tokens        their tokens, each counted once per stretch
        n_rows          rows of every array: tokens, or stretches if they are pooled
        all_steps       of `step`, the index of each of its stretches in the chain
        group           a digest of the prompt's ids, as of `linear_probe`

    Arrays: for each site (rows, layers, D) numbers, and `spans` (stretches, 2), first and last + 1
    token of each, counted from the prompt's first token. A chain without the span is left out with
    the reason (`span_not_found: cue`).

    The states of all tokens of the spans are held at once in every layer, tokens × (L + 1) × D in
    the model's dtype for each site, and twice while they are joined.

    Raises:
        UserError: a span is neither declared nor a role, or there is no such layer.
        FloatingPointError: a state is not finite in the stored precision; the message names the
            item.
    """
    if model.structure.unknown is not None:
        return [record(trace, "states", "", None, excluded=NO_STREAM)]
    places = settings.places(model.n_layers)
    parts = model.structure.stream
    of_parts = {"attention": parts and parts.attentions, "mlp": parts and parts.mlps}
    if any(None in (of_parts.get(site) or ()) for site in places):
        return [record(trace, "states", "", None, excluded=NO_SITE)]
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.forest import Branch

    ids = prefix_ids(model, asking, trace)
    found = find(model, trace, asking, settings.named, settings.spans)
    needed = sorted({i for of in found.spans.values() for a, b in of for i in range(a, b)})
    read, ran = None, None
    if needed:
        inner = [site for site in places if site != "residual"]
        how: dict[str, Any] = {"sites": inner, "logits": False, "execution": settings.execution}
        branch = Branch(ids, ask=tuple(needed))
        ran = model.run([branch], residuals="residual" in places, **how)
        (read,) = ran.branches
    steps = [step.index for step in trace.counted_steps]
    row_of = {token: i for i, token in enumerate(needed)}
    records = []
    for name in settings.named:
        if name in found.missing:
            records.append(record(trace, "states", name, None, excluded=found.missing[name]))
            continue
        assert read is not None
        assert ran is not None
        spans = found.spans[name]
        rows = [[row_of[i] for i in range(a, b)] for a, b in spans]
        arrays: dict[str, np.ndarray] = {"spans": np.array(spans, dtype=np.int32)}
        for site, layers in places.items():
            every = read.residuals if site == "residual" else read.outputs[site]
            assert every is not None
            # outputs begin with the first layer, streams with the embeddings
            at = [layer - (site != "residual") for layer in layers]
            kept = every[:, at].float().cpu().numpy()
            pooled = [_pooled(kept[of], settings.pool) for of in rows]
            what = trace.question.id, "states", model, settings.precision
            arrays[site] = finite(np.concatenate(pooled), *what)
        records.append(
            record(
                trace,
                "states",
                name,
                None,
                arrays=arrays,
                span=name,
                pool=settings.pool,
                sites=[f"{site} {layer}" for site, own in places.items() for layer in own],
                n_layers=model.n_layers,
                n_spans=len(spans),
                n_tokens=sum(map(len, rows)),
                n_rows=len(arrays[next(iter(places))]),
                group=prompt_group(trace),
                execution=ran.execution,
                tree_reason=ran.reason,
                **({"all_steps": steps} if how_of(name, settings.spans) == "step" else {}),
            )
        )
    return records


def _pooled(states: np.ndarray, pool: str) -> np.ndarray:
    """(tokens or 1, layers, D) what stands for one stretch of (tokens, layers, D) states."""
    if pool == "none":
        return states
    return states[-1:] if pool == "last" else states.mean(0, keepdims=True)
