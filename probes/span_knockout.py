"""Knockout between spans: the answer when some tokens cannot attend to others, whose text stays.

A cut names the tokens that cannot look (`queries`) and those that they cannot look at (`keys`), by
span (`probes.spans`). `answer x prompt` takes the prompt from what follows the reasoning: what is
left of the answer came through the reasoning, and what is lost is the direct effect of the prompt.
`later x cue` takes a cue from every token after it. The probe `knockout` cuts off each step in
turn, beside removal of its text.

All edges of a cut are removed at once, in all layers, in windows of layers, and in windows of heads
if asked; the softmax is over the rest (attention knockout: Geva et al. 2023, arXiv 2304.14767). No
model was trained on such attention: an answer that changes may have lost more than what the keys
say. One that does not change did not need this path, and may have another that says the same: cut
both to see.

With `writes`, cuts also hold while the model writes (`probes.cut_writing`), and what it then
answers stands beside what it answers from the same place without the cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.interp.errors import did_you_mean
from faithscope.interventions import Trace
from faithscope.probes.cut_writing import begins, written_under
from faithscope.probes.edited import Run, beside_whole, scored, windows
from faithscope.probes.floor import BASELINE, Arm, baseline_of, rounded
from faithscope.probes.framing import FEWER_LABELS, Asking, prefix_ids
from faithscope.probes.graded import divergence
from faithscope.probes.knockout import NO_KNOCKOUT
from faithscope.probes.probe import Branches, Size, probe
from faithscope.probes.record import Record, record
from faithscope.probes.settings import Execution, Seed, Some
from faithscope.probes.spans import Found, Span, TakesSpans, find

if TYPE_CHECKING:
    from faithscope.interp.edits import Knockout
    from faithscope.interp.model import Model

Edge = tuple[tuple[int, int | None], Span]
"""Queries, without an end where they reach the answer and what follows, and their keys."""
_OF_WRITING = ("writes", "samples", "temperature", "max_new_tokens", "seed")
LATER = "later"
"""Queries: every token after the keys."""
NO_EDGE = "nothing_to_cut"
"""Why a cut is left out: none of its queries before the answer stands after one of its keys."""
_ALL = "all"
_EDGES = re.compile(r"(\S.*?) +[x×] +(.*\S)")
_NAME = re.compile(r"[A-Za-z0-9_][\w-]*")


class Cut(BaseModel):
    """Attention edges that are cut together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: StrictStr
    queries: Some[StrictStr]
    """Spans whose tokens cannot look at the keys; `later` is every token after each key."""
    keys: Some[StrictStr]
    """Spans that cannot be looked at."""

    @property
    def sides(self) -> dict[str, str]:
        """Queries and keys as fields of a record."""
        return {"queries": " + ".join(self.queries), "keys": " + ".join(self.keys)}

    def __str__(self) -> str:
        return f"{self.name}: {' x '.join(self.sides.values())}"


def _cuts(values: Any) -> Any:
    """
    Raises:
        ValueError: a cut has no name, or is neither `QUERIES x KEYS` nor a mapping with both.
    """
    if isinstance(values, Mapping):
        values = [
            {"name": name, **(of if isinstance(of, Mapping) else {"edges": of})}
            for name, of in values.items()
        ]
    if not isinstance(values, list | tuple):
        raise ValueError(
            "give a mapping from names to QUERIES x KEYS, such as {direct: answer x prompt}"
        )
    return [value if isinstance(value, Cut) else _cut(value) for value in values]


def _cut(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or "name" not in value:
        raise ValueError(f"{value!r}: a cut of a list has name, queries and keys")
    name, of = value["name"], {k: v for k, v in value.items() if k != "name"}
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot name a cut; use letters, digits, '_' and '-'")
    if set(of) == {"edges"}:
        said = _EDGES.fullmatch(of["edges"]) if isinstance(of["edges"], str) else None
        if said is None:
            raise ValueError(f"{name}: {of['edges']!r} is not of the form QUERIES x KEYS")
        return {"name": name, "queries": said[1], "keys": said[2]}
    if unknown := [key for key in of if key not in ("queries", "keys")]:
        guess = did_you_mean(unknown[0], ("queries", "keys"))
        raise ValueError(f"{name}: unknown key {unknown[0]!r}{guess}; a cut has queries and keys")
    if len(of) < 2:
        raise ValueError(
            f"{name}: a cut has queries and keys, not only {', '.join(of) or 'a name'}"
        )
    return {"name": name, **of}


def _different(cuts: tuple[Cut, ...]) -> tuple[Cut, ...]:
    if late := [cut.name for cut in cuts if LATER in cut.keys]:
        raise ValueError(f"{late[0]}: {LATER!r} stands for queries alone; name what is cut off")
    names = [cut.name for cut in cuts]
    if twice := [n for i, n in enumerate(names) if n in names[:i]]:
        raise ValueError(f"two cuts have the name {twice[0]!r}; name each differently")
    return cuts


class SpanKnockoutSettings(TakesSpans):
    """Spans that others cannot look at: which path the answer takes."""

    cuts: Annotated[
        tuple[Cut, ...], BeforeValidator(_cuts), AfterValidator(_different), Field(min_length=1)
    ] = (Cut(name="direct", queries=("answer",), keys=("prompt",)),)
    """Cuts by name, `NAME: QUERIES x KEYS`, or `NAME: {queries: …, keys: …}` with one span or
    several; `later` as queries is every token after the keys (`faithscope docs spans`)."""
    windows: StrictInt = Field(default=3, ge=0)
    """Windows of layers that are also cut one at a time; 0 cuts all layers at once only."""
    heads: StrictInt = Field(default=0, ge=0)
    """Windows of heads that are also cut one at a time, in each window of layers; 0 cuts all heads
    at once only."""
    length_normalise: StrictBool = False
    """Divide a label's log-prob by its number of tokens."""
    writes: StrictBool = False
    """Whether cuts whose queries are `later` or `answer` also hold while the model writes, in all
    layers: from where the cut begins, beside the same without it."""
    samples: StrictInt = Field(default=1, ge=1)
    """Texts written under each cut, and as many without; several need a temperature."""
    temperature: StrictFloat = Field(default=0.0, ge=0)
    """Temperature at which texts are sampled; 0 writes the likeliest token."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a text; null is twice those that the chain has after the place, and 64."""
    seed: Seed = 0
    execution: Execution = "auto"

    @model_validator(mode="after")
    def _draws_differ(self) -> Self:
        if self.samples > 1 and not self.temperature:
            raise ValueError(f"samples: {self.samples} texts at temperature 0 are one; raise it")
        return self

    def decides(self) -> dict[str, Any]:
        values = super().decides()
        unused = () if self.writes else _OF_WRITING
        return {name: x for name, x in values.items() if name not in unused}

    @property
    def named(self) -> tuple[str, ...]:
        every = (name for cut in self.cuts for name in (*cut.queries, *cut.keys))
        return tuple(name for name in every if name != LATER)


def _layers(n_layers: int, parts: int) -> dict[str, tuple[int, int]]:
    """Name of a window of layers -> its half-open span of indices, all layers first."""
    of = windows(n_layers, parts)
    # a single window equals all layers
    parted = {f"{a + 1}-{b}": (a, b) for a, b in of if len(of) > 1}
    return {_ALL: (0, n_layers), **parted}


def _grid(size: Size, settings: SpanKnockoutSettings) -> int:
    """Number of windows of heads that a cut is made in, over all windows of layers."""
    of_layers = len(_layers(size.layers, settings.windows))
    return max(1, of_layers - 1) * len(windows(size.heads, settings.heads))


def _calls(size: Size, settings: SpanKnockoutSettings) -> int:
    of_layers = len(_layers(size.layers, settings.windows))
    # cuts that begin at one place share the texts without a cut
    texts = settings.writes * 2 * settings.samples
    return 1 + len(settings.cuts) * (of_layers + _grid(size, settings) + texts)


def _branches(size: Size, settings: SpanKnockoutSettings) -> Branches | None:
    if settings.writes:
        return None
    each = len(_layers(size.layers, settings.windows)) + _grid(size, settings)
    ends = sum(cut.queries == ("answer",) for cut in settings.cuts)
    return Branches(other=each * (len(settings.cuts) - ends), ends=each * ends)


@probe(
    "some spans kept from looking at others, such as the answer at the prompt: its direct effect",
    listed=11,
    words=("cue", "labels"),
    reads_labels=True,
    follows_answer=True,
    calls=_calls,
    branches=_branches,
)
def span_knockout(
    model: Model, trace: Trace, asking: Asking, settings: SpanKnockoutSettings
) -> list[Record]:
    """A record for each cut and window of layers, in `prefix` framing, variants `direct.all`,
    `direct.1-10`, …, by layers from 1:

        knocked     the likeliest answer under the cut
        flips       whether it is another than without the cut
        tv, kl      total variation, and KL(whole || cut) in nats, of the distributions over the
                    task's answers; `kl` is None where infinite
        log_odds    drop of the log-odds of `answer`, the chain's, in nats; None where infinite.
                    `forced_log_odds`: of the forced choice
        margin      by how much the closer of the two answers was decided, in nats: a flip by no
                    more than `noise_floor` is within the dtype's noise
        knocked_mass  what all labels together have of the model's probability; `label_mass`,
                    without the cut
        n_queries, n_keys  number of tokens before the answer itself that cannot see a key, and of
                    keys

    The record of all layers also has arrays with `heads`: `tv` and `kl` (windows of layers, windows
    of heads), `layers` and `heads` (windows, 2), first and last from 1. A cut whose span a chain
    has not is left out with the reason (`span_not_found: cue`).

    With `writes`, a record `direct.written` for each cut, of `reading` `generated`, with the fields
    of `cut_writing.written_under`; it needs no labels.

    Raises:
        UserError: a cut names a span that is neither declared nor a role.
        FloatingPointError: a label's log-probability is NaN; the message names item and branch.
    """
    few = len(asking.answers) < 2
    if few and not settings.writes:
        return [record(trace, "span_knockout", "", None, excluded=FEWER_LABELS)]
    if not model.supports_tree:
        return [record(trace, "span_knockout", "", None, excluded=NO_KNOCKOUT)]
    ids = prefix_ids(model, asking, trace)
    found = find(model, trace, asking, settings.named, settings.spans)
    edges = {cut.name: edges_of(cut, found, len(ids)) for cut in settings.cuts}
    records = _written(model, trace, asking, edges, settings) if settings.writes else []
    if few:
        return [record(trace, "span_knockout", "", None, excluded=FEWER_LABELS), *records]
    layers = _layers(model.n_layers, settings.windows)
    n_heads = model.hf.config.get_text_config().num_attention_heads
    of_heads = windows(n_heads, settings.heads)
    parted = [of for name, of in layers.items() if name != _ALL] or [(0, model.n_layers)]
    runs: dict[Arm, Run] = {BASELINE: trace}
    for cut, of in edges.items():
        if isinstance(of, str):
            continue
        for window, (a, b) in layers.items():
            runs[f"{cut}.{window}", 0] = (ids, knockouts(of, range(a, b)))
        for i, ((a, b), (first, last)) in enumerate(product(parted, of_heads)):
            runs[f"{cut}.heads", i] = (ids, knockouts(of, range(a, b), range(first, last)))
    pack = scored(model, trace, asking, runs, settings) if len(runs) > 1 else None
    for cut in settings.cuts:
        of = edges[cut.name]
        if pack is None or isinstance(of, str):
            records += [
                record(
                    trace,
                    "span_knockout",
                    f"{cut.name}.{window}",
                    None,
                    cut=cut.name,
                    excluded=of,
                )
                for window in layers
            ]
            continue

        def kl(arm: Arm) -> float | None:
            whole = baseline_of(pack.arms, pack.packs[arm])
            return rounded(divergence(whole, pack.arms[arm]))

        arrays: dict[str, np.ndarray] = {}
        if of_heads:
            arms = [(f"{cut.name}.heads", i) for i in range(len(parted) * len(of_heads))]
            values = {
                "tv": [pack.outcomes[arm].tv for arm in arms],
                "kl": [kl(arm) for arm in arms],
            }
            shape = len(parted), len(of_heads)
            arrays = {k: np.array(x, dtype=np.float32).reshape(shape) for k, x in values.items()}
            spans = {"layers": parted, "heads": of_heads}
            arrays |= {name: np.array([(a + 1, b) for a, b in x]) for name, x in spans.items()}
        queries = {p for q, _ in of for p in range(q[0], len(ids) if q[1] is None else q[1])}
        for window, (first, last) in layers.items():
            arm = f"{cut.name}.{window}", 0
            records.append(
                record(
                    trace,
                    "span_knockout",
                    arm[0],
                    None,
                    arrays=arrays if window == _ALL else None,
                    cut=cut.name,
                    **cut.sides,
                    window=window,
                    first_layer=first + 1,
                    last_layer=last,
                    n_layers=model.n_layers,
                    n_queries=len(queries),
                    n_keys=len({p for _, k in of for p in range(*k)}),
                    **beside_whole(trace, pack),
                    **pack.single("knocked", "", arm[0]),
                    kl=kl(arm),
                    **pack.cost,
                )
            )
    return records


def _written(
    model: Model,
    trace: Trace,
    asking: Asking,
    edges: Mapping[str, list[Edge] | str],
    settings: SpanKnockoutSettings,
) -> list[Record]:
    """A record of what is written under each cut."""
    why: dict[str, str] = {}
    under: dict[str, tuple[int, tuple[Knockout, ...]]] = {}
    for name, of in edges.items():
        edits = () if isinstance(of, str) else knockouts(of, range(model.n_layers))
        at = of if isinstance(of, str) else begins(trace, edits)
        if isinstance(at, str):
            why[name] = at
        else:
            under[name] = at, edits
    fields = {}
    if under:
        draws = {name: getattr(settings, name) for name in _OF_WRITING if name != "writes"}
        fields = written_under(model, trace, asking, under, **draws)
    records = []
    for cut in settings.cuts:
        of_cut: dict[str, Any] = {"excluded": why.get(cut.name)}
        if cut.name not in why:
            of_cut = {**cut.sides, "gold": trace.question.gold, **fields[cut.name]}
            of_cut |= {"dtype": model.dtype}
        about: dict[str, Any] = {"cut": cut.name, "reading": "generated"} | of_cut
        records.append(
            record(trace, "span_knockout", f"{cut.name}.written", settings.seed, **about)
        )
    return records


def edges_of(cut: Cut, found: Found, length: int) -> list[Edge] | str:
    """Spans of queries, without an end where they reach the answer, each with the keys that it
    cannot see; or why nothing is cut.

    Args:
        length: number of tokens before the answer itself.
    """
    for name in (*cut.keys, *cut.queries):
        if name in found.missing:
            return found.missing[name]
    edges: list[Edge] = []
    for key in (span for name in cut.keys for span in found.spans[name]):
        for name in cut.queries:
            for a, b in ((key[1], length),) if name == LATER else found.spans[name]:
                # a token never sees those after it, and always sees itself
                first = max(a, key[0] + 1)
                if first < b:
                    edges.append(((first, None if b == length else b), key))
    return edges or NO_EDGE


def knockouts(
    edges: Sequence[Edge], layers: range, heads: range | None = None
) -> tuple[Knockout, ...]:
    """The edits of a cut, in layers and heads by index from 0; None for all heads."""
    # Not at the top: it brings torch, which listing the probes need not wait for.
    from faithscope.interp.edits import Knockout

    of_heads = None if heads is None else tuple(heads)
    return tuple(Knockout(queries, keys, tuple(layers), of_heads) for queries, keys in edges)
