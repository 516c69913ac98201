"""Steering: the model writes anew while a direction is added to its activations, or removed.

A linear probe, or a difference of means, finds a direction in a model's activations. Whether the
model uses that direction is another question: here it is added in several doses, and under each the
model writes its reasoning and answer several times. A push may move an answer by what the direction
means, or by breaking the text. So seeded random directions of the same length are added as well,
and each dose is set beside the damage that it does to the chain's own text. Addition: Turner et al.
2023 (arXiv 2308.10248), Rimsky et al. 2023 (arXiv 2312.06681); removal: Arditi et al. 2024 (arXiv
2406.11717).

A coefficient c adds c · d to the activation, with the direction d as its file holds it, its own
length included: of a difference of two means, c = 1 moves one mean onto the other. Or d is made as
long as an activation is on average (`unit`). Without a file only random directions of that length
are added; this shows what a push of its size does by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self, cast

import numpy as np
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from faithscope.interp.errors import NoRoom, UserError, did_you_mean
from faithscope.interp.hook_names import SITES, Place, Site, beyond, edited_place
from faithscope.interventions import Trace
from faithscope.probes.cues import mentions
from faithscope.probes.framing import Asking, Cue
from faithscope.probes.probe import Size, probe
from faithscope.probes.record import NO_STREAM, Record, is_right, mean_of_steps, number, record
from faithscope.probes.resample import continuation
from faithscope.probes.settings import ADDED, ModelFacts, Seed, Some, without_repeats
from faithscope.probes.spans import NOT_FOUND, How, TakesSpans, find, how_of, problem_of

if TYPE_CHECKING:
    from faithscope.interp.directions import Direction
    from faithscope.interp.edits import Steer
    from faithscope.interp.generation import Generation
    from faithscope.interp.model import Model

DIRECTION, CONTROL = "direction", "control"
WORDS = ("reasoning", "all", "answer")
"""Words of `positions` for all tokens from a place on."""
NOT_WRITTEN = "span_not_written"
"""Why a chain is left out: its span is in the reasoning, which is written anew; a record's reason
adds the name."""
Spans = tuple[tuple[int, int | None], ...]
"""Half-open spans of positions, rising, none of which meet; without an end where tokens that are
written are among them."""
_READ = 64
"""Most tokens of a chain over which the length of an activation is averaged."""
_RESERVE = 64

Layer = Annotated[StrictInt, Field(ge=1)]
Coefficient = Annotated[StrictFloat | StrictInt, AllowInfNan(False)]


def _site(name: str) -> str:
    """
    Raises:
        ValueError: it is neither a site nor the hook name of a place that an edit reaches.
    """
    if name in SITES:
        return name
    if "." not in name:
        there = f"there are {', '.join(SITES)}, and hook names (model.hook_names())"
        raise ValueError(f"unknown site {name!r}; {there}{did_you_mean(name, SITES)}")
    edited_place(name)
    return name


SiteName = Annotated[StrictStr, AfterValidator(_site)]
"""A site, or TransformerLens' name of a place that an edit reaches."""


def _one_or_several(value: Any) -> Any:
    """
    Raises:
        ValueError: a list is empty or has a name twice.
    """
    if not isinstance(value, list | tuple):
        return value
    if not value:
        raise ValueError("an empty list names no tokens; name a span, or leave the key out")
    return value[0] if len(value) == 1 else without_repeats(tuple(value))


class SteeringSettings(TakesSpans):
    """Writing while a direction is added to activations, or removed from them."""

    direction: StrictStr | dict[StrictStr, StrictStr] | None = None
    """Safetensors file of directions (`faithscope docs steering`), or a mapping from model to file.
    With null only random directions are added, each as long as an activation is on average."""
    name: StrictStr | None = None
    """Name of the direction in its file; null if the file holds one."""
    of_any_model: StrictBool = False
    """Whether a direction that says it is of another model is added all the same, as one of a base
    model to its adapters."""
    layers: Some[Layer] | None = None
    """Layers at which it is added, one at a time: l is the stream after layer l, from 1. null is
    the direction's own layer, or the middle one of a model without a direction."""
    sites: Some[SiteName] | None = None
    """Places in a layer, one at a time: `residual`, or the output of `attention` or `mlp`. Or
    places with their layers, by TransformerLens' names (`blocks.11.hook_resid_post`), without
    `layers`. null is the direction's own."""
    positions: Annotated[StrictStr | tuple[StrictStr, ...], BeforeValidator(_one_or_several)] = (
        "reasoning"
    )
    """Tokens at which it is added: from the last token of the prompt on, so that every written
    token is computed under it (`reasoning`); those of the prompt as well (`all`); or from the last
    token of the chain's reasoning on, which stays as it is and only the answer is written
    (`answer`). Or the tokens of a span (`faithscope docs spans`), such as `cue`; several in a
    list."""
    writes: Annotated[Literal["reasoning", "answer"] | None, ADDED] = None
    """What is written anew: the reasoning with its answer, or the answer alone, after the chain's
    reasoning as it stands. null is `answer` if that is among `positions`, else `reasoning`. Of a
    reasoning that is written anew there are no spans."""
    coefficients: Some[Coefficient] = (-1.0, 0.0, 1.0)
    """Factors of the direction, in units of `unit`; 0 must be among them."""
    unit: Literal["direction", "stream"] = "direction"
    """Length that a coefficient of 1 adds: that of the direction in its file, or the mean length of
    the activations that it is added to, on the chain's own text. The weights of a linear classifier
    have no length of their own that would mean something."""
    ablate: StrictBool = False
    """Whether the direction is also removed: the activations' part along it, at the same tokens."""
    samples: StrictInt = Field(default=4, ge=1)
    """Number of texts written under each dose. The samples of one number draw the same random
    numbers under every dose."""
    temperature: Annotated[StrictFloat, Field(ge=0)] = 1.0
    """Temperature of the texts; 0 writes the likeliest one, and takes `samples: 1`."""
    max_new_tokens: StrictInt | None = Field(default=None, ge=1)
    """Most tokens of a text; null is twice those of the chain's response, and 64."""
    controls: StrictInt = Field(default=1, ge=0)
    """Number of seeded random directions of the same length that are added as well."""
    seed: Seed = 0

    @model_validator(mode="after")
    def _something_is_compared(self) -> Self:
        if 0 not in self.coefficients:
            raise ValueError("coefficients: 0 is missing; every dose is compared with it")
        if self.direction is None and not self.controls:
            raise ValueError("controls: 0 without a direction leaves nothing to add; give one")
        if self.temperature == 0 and self.samples > 1:
            raise ValueError("temperature: at 0 all samples are alike; set samples to 1")
        if self.hooks and (self.layers is not None or len(self.hooks) < len(self.sites or ())):
            raise ValueError(
                f"sites: {self.hooks[0]} has its layer in its name; name no other sites and leave "
                "layers out, or give sites and layers"
            )
        if self.writes == "reasoning" and "answer" in self.at:
            raise ValueError(
                "positions: where the answer begins is not known while the reasoning is written; "
                "leave writes out, or name other positions"
            )
        return self

    @property
    def at(self) -> tuple[str, ...]:
        """The positions as a list."""
        return (self.positions,) if isinstance(self.positions, str) else self.positions

    @property
    def changed(self) -> str:
        """The positions in words."""
        written = "" if self.writes is None else f", {self.writes} written"
        return " + ".join(self.at) + written

    @property
    def keeps_reasoning(self) -> bool:
        """Whether the chain's reasoning stays as it is, and its answer alone is written."""
        return "answer" in (self.writes, *self.at)

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(name for name in self.at if name not in WORDS)

    def misfit_of_positions(self) -> str | None:
        """Why no chain has the positions, as "setting: what is wrong"; None if some may."""
        for name in self.at:
            if name in WORDS and name in self.spans:
                return (
                    f"spans: {name!r} is a word of steering.positions, and a span that is declared "
                    "here; give the span another name"
                )
        for name in self.named:
            if problem := problem_of(name, self.spans):
                return f"positions: {problem}"
            if not self.keeps_reasoning and _is_reasoning(how_of(name, self.spans)):
                return (
                    f"positions: {name!r} is in the reasoning, which is written anew and not there "
                    "yet; set steering.writes to answer to leave the reasoning as it is, or name a "
                    "span of the prompt"
                )
        return None

    @property
    def hooks(self) -> tuple[str, ...]:
        """The sites that are hook names."""
        return tuple(name for name in self.sites or () if name not in SITES)

    def places(self, direction: Direction | None, n_layers: int) -> list[Place]:
        """The places at which a direction is added, each once; layers from 0."""
        if self.hooks:
            return list(dict.fromkeys(map(edited_place, self.hooks)))
        sites, layers = self.sites, self.layers
        if sites is None:
            sites = ("residual" if direction is None else direction.site,)
        if layers is None:
            own = None if direction is None else direction.layer
            layers = ((n_layers + 1) // 2 if own is None else own,)
        return [Place(cast("Site", site), layer - 1) for site in sites for layer in layers]

    def file_of(self, model: str) -> str | None:
        """The file with the direction of a model; None without one."""
        return self.direction.get(model) if isinstance(self.direction, dict) else self.direction

    def direction_of(self, model: str) -> Direction | None:
        """The direction of a model; None without a file.

        Raises:
            UserError: the file cannot be read, or has no such direction.
        """
        file = self.file_of(model)
        if file is None:
            return None
        # Not at the top: it brings torch, which listing the probes need not wait for.
        from faithscope.interp.directions import load_direction

        return load_direction(file, self.name)

    def decides(self) -> dict[str, Any]:
        """Every setting that decides the numbers, with a digest of each direction: one found anew
        under its name is another direction."""
        models = self.direction if isinstance(self.direction, dict) else [""]
        digests = {}
        for model in models:
            try:
                d = self.direction_of(model)
            except UserError:
                # the plan says what is wrong with it
                continue
            if d is not None:
                held = repr((d.layer, d.site)).encode() + d.vector.numpy().tobytes()
                digests[model] = hashlib.sha256(held).hexdigest()
        return super().decides() | ({"digests": digests} if digests else {})

    def misfits(self, models: tuple[str, ...]) -> list[str]:
        files = self.direction if isinstance(self.direction, dict) else {}
        return super().misfits(models) + [
            f"direction: {model!r} is no model of this run; it has {', '.join(models)}"
            for model in files
            if model not in models
        ]

    def misfit_with(self, model: ModelFacts) -> str | None:
        if problem := self.misfit_of_positions():
            return problem
        if model.quantised:
            return (
                f"direction: {model.name} is quantised, so that its activations are not those that "
                "directions are found in; load it without model.quantize, or take its "
                "full-precision weights"
            )
        if model.one_by_one is not None:
            return (
                f"direction: {model.name} runs one by one and cannot be steered "
                f"({model.one_by_one}); take another model, or leave the probe out"
            )
        if isinstance(self.direction, dict) and model.name not in self.direction:
            return f"direction: no file for {model.name}; add one, or take the model out"
        try:
            d = self.direction_of(model.name)
        except UserError as error:
            return f"direction: {error}"
        if d is not None and model.width not in (None, len(d.vector)):
            return (
                f"direction: {d.name!r} of {self.file_of(model.name)} has width {len(d.vector)}, "
                f"{model.name} has width {model.width}; take a direction of this model"
            )
        made_of = None if d is None else d.about.get("model")
        if made_of not in (None, model.name) and not self.of_any_model:
            return (
                f"direction: {self.file_of(model.name)} is of {made_of}, not of {model.name}; take "
                "a direction of this model, or set steering.of_any_model to true"
            )
        if d is not None and d.layer is None and self.layers is None and not self.hooks:
            return (
                f"layers: {self.file_of(model.name)} does not say which layer {d.name!r} is of; "
                "give layers"
            )
        if (n := model.n_layers) is None:
            return None
        if problem := beyond(self.hooks, n):
            return f"sites: {problem}"
        too_deep = [x.layer + 1 for x in self.places(d, n) if x.layer >= n]
        return f"layers: {model.name} has layers 1 to {n}, not {too_deep[0]}" if too_deep else None


def _is_reasoning(how: How) -> bool:
    """Whether a span, if a chain has it, is in the chain's reasoning."""
    if isinstance(how, str):
        return "step" in how
    return "tag" in how or how["in"] == "reasoning"


def _doses(settings: SteeringSettings) -> int:
    """Number of ways in which one direction is added or removed at one place."""
    return sum(c != 0 for c in settings.coefficients) + settings.ablate


def _calls(size: Size, settings: SteeringSettings) -> int:
    places = len(settings.layers or (0,)) * len(settings.sites or (0,))
    directions = settings.controls + (settings.direction is not None)
    # under each dose the texts are written and the chain is read; once more for its activations
    return (settings.samples + 1) * (1 + places * directions * _doses(settings)) + 1


Steers = tuple["Steer", ...]


@dataclass(frozen=True)
class Dose:
    """One way in which activations are changed."""

    site: Site
    layer: int
    """From 1."""
    kind: str
    control: int | None
    """Number of the random direction, from 1; None for the direction itself."""
    length: float
    """Length that a coefficient of 1 adds."""
    stream: float
    """Mean length of the activations that are changed, on the chain's own text."""
    edit: str
    coefficient: float | None
    """None where the direction is removed."""
    steers: Steers
    """Edits, one for each span of positions; none for a coefficient of 0."""


@probe(
    "the model writes anew while a direction is added to its activations, or removed from them",
    words=(),
    calls=_calls,
)
def steering(
    model: Model, trace: Trace, asking: Asking, settings: SteeringSettings
) -> list[Record]:
    """A record for each direction (the given one, and each random one), place and dose.

        kind         `direction` or `control`, a random direction of the same length; `control` is
                     then its number
        direction    name of the direction; `length`, what a coefficient of 1 adds; `stream_length`,
                     the mean length of the changed activations on the chain's own text
        site, layer  place; layer from 1
        positions    the changed tokens, as in the settings, with `writes` if that is set: `cue +
                     step 2, answer written`
        edit         `added`, times `coefficient`, or `removed`
        kept         share of the samples whose answer is the chain's; `right`, the right one;
                     `changed`, another than that of the same sample at coefficient 0. All are of
                     the samples with a known answer; None if none has one
        stated       share of the samples that state an answer before their token limit
        n_tokens     mean number of tokens written; `cut`, share that the token limit ended
        nll          mean negative log-probability per token of the chain's own text (its reasoning,
                     or what follows it with positions `answer`) under the edit, in nats; its
                     exponential is the perplexity. None if there is no such text
        followed     of a given chain with a cue: share of the known answers that the cue points to;
                     `mentioned`, share of the texts whose reasoning mentions it
        answers      the answer of every sample; `text`, the reasoning of the first

    A chain without one of the spans is left out with the reason and the name (`span_not_found:
    cue`; `span_not_written: cue` where it stands in a reasoning that is written anew).

    Raises:
        NoRoom: no position is left to write in.
        FloatingPointError: the model's logits are not finite.
        UserError: the direction cannot be read, or does not fit the model; the model cannot be
            steered.
    """
    if model.structure.unknown is not None:
        return [record(trace, "steering", "", settings.seed, excluded=NO_STREAM)]
    if problem := settings.misfit_with(ModelFacts.of(model)):
        raise UserError(f"steering.{problem}")
    spans = _spans(model, trace, asking, settings)
    if isinstance(spans, str):
        return [record(trace, "steering", "", settings.seed, excluded=spans)]
    chain = _Chain(trace, settings.keeps_reasoning, spans)
    direction = settings.direction_of(model.name)
    doses = _all_doses(model, chain, direction, settings)
    edits = list(dict.fromkeys([(), *(dose.steers for dose in doses)]))
    texts = _written(model, chain, edits, settings)
    at = len(trace.reasoning_ids) if settings.keeps_reasoning else 0
    draws = {
        steers: [_draw(model, trace, asking, at, text) for text in of_steers]
        for steers, of_steers in texts.items()
    }
    nll = chain.nll(model, edits)
    return [
        record(
            trace,
            "steering",
            f"{dose.kind}{dose.control or ''}.{dose.site}{dose.layer}"
            f".{dose.edit if dose.coefficient is None else f'{dose.coefficient:g}'}",
            settings.seed,
            kind=dose.kind,
            control=dose.control,
            direction=None if direction is None else direction.name,
            site=dose.site,
            layer=dose.layer,
            n_layers=model.n_layers,
            edit=dose.edit,
            coefficient=dose.coefficient,
            length=number(dose.length),
            stream_length=number(dose.stream),
            positions=settings.changed,
            own=trace.answer,
            gold=trace.question.gold,
            samples=settings.samples,
            **_outcomes(trace, draws[dose.steers], draws[()]),
            n_tokens=number(np.mean([len(text.ids) for text in texts[dose.steers]])),
            cut=number(np.mean([text.finish == "length" for text in texts[dose.steers]])),
            nll=nll[dose.steers],
            text=draws[dose.steers][0].text,
            dtype=model.dtype,
        )
        for dose in doses
    ]


@dataclass(frozen=True)
class _Chain:
    """The chain whose text is written anew, and the tokens at which activations are changed."""

    trace: Trace
    keeps_reasoning: bool
    spans: Spans

    @cached_property
    def prefix(self) -> tuple[int, ...]:
        """What the model writes on from."""
        reasoning = self.trace.reasoning_ids if self.keeps_reasoning else ()
        return (*self.trace.prompt_ids, *reasoning)

    @cached_property
    def own(self) -> tuple[int, ...]:
        """The chain's own text after the prefix."""
        return self.trace.tail_ids if self.keeps_reasoning else self.trace.reasoning_ids

    def lengths(self, model: Model, sites: Sequence[Site]) -> dict[Site, list[float]]:
        """Mean length of the changed activations on the chain's own text, layer by layer."""
        from faithscope.interp.forest import Branch

        ids = (*self.prefix, *self.own)
        changed = [i for a, b in self.spans for i in range(a, len(ids) if b is None else b)]
        n, first = min(_READ, len(changed)), changed[0]
        at = np.linspace(first, first + len(changed) - 1, n).round().astype(int) - first
        ask = [changed[i] for i in at]
        outputs: list[Site] = [site for site in sites if site != "residual"]
        residual = "residual" in sites
        run = model.run([Branch(ids, tuple(ask))], residuals=residual, sites=outputs, logits=False)
        (read,) = run.branches
        states = dict(read.outputs)
        if read.residuals is not None:
            states["residual"] = read.residuals[:, 1:]
        return {site: x.float().norm(dim=-1).mean(0).tolist() for site, x in states.items()}

    def nll(self, model: Model, edits: Sequence[Steers]) -> dict[Steers, float | None]:
        """Mean negative log-probability per token of the chain's own text under each dose."""
        ids = (*self.prefix, *self.own)
        starts = [len(self.prefix)] * len(edits)
        scores = model.likelihood([ids] * len(edits), starts, edits=edits).sequences
        return {
            steers: number(-of.log_probs.mean()) if self.own else None
            for steers, of in zip(edits, scores, strict=True)
        }


def _spans(model: Model, trace: Trace, asking: Asking, settings: SteeringSettings) -> Spans | str:
    """The positions that are changed; or why a chain has none of them."""
    n, keeps = len(trace.prompt_ids), settings.keeps_reasoning
    begins = {"all": 0, "reasoning": n - 1, "answer": n + len(trace.reasoning_ids) - 1}
    # what stands before the written text, and nothing after it, has spans
    there = trace if keeps else replace(trace, reasoning_ids=(), pieces=(), steps=())
    found = find(model, there, asking, settings.named, settings.spans)
    for name, reason in found.missing.items():
        if not keeps and reason.startswith(NOT_FOUND):
            later = find(model, trace, asking, [name], settings.spans)
            reason = f"{NOT_WRITTEN}: {name}" if name in later.spans else reason
        return reason
    ends = {a: None for name, a in begins.items() if name in settings.at}
    return _joined([*(span for of in found.spans.values() for span in of), *ends.items()])


def _joined(spans: Sequence[tuple[int, int | None]]) -> Spans:
    """Spans that hold the same positions, each once."""
    joined: list[tuple[int, int | None]] = []
    for a, b in sorted(spans, key=lambda span: span[0]):
        if joined and ((last := joined[-1][1]) is None or a <= last):
            end = None if last is None or b is None else max(last, b)
            joined[-1] = joined[-1][0], end
        else:
            joined.append((a, b))
    return tuple(joined)


class _Draw(NamedTuple):
    """A text that the model wrote."""

    text: str
    """The reasoning in it."""
    answer: str | None
    """The answer that it states in canonical form; None also if the token limit ended it."""


def _draw(model: Model, trace: Trace, asking: Asking, at: int, text: Generation) -> _Draw:
    pieces, end, answer = continuation(model, trace, asking, at, text)
    return _Draw("".join(pieces[:end]), answer)


class _Vector(NamedTuple):
    """A direction, or a random one in its place."""

    kind: str
    control: int | None
    values: np.ndarray
    """(D,) as it is added at a coefficient of 1."""


def _all_doses(
    model: Model, chain: _Chain, direction: Direction | None, settings: SteeringSettings
) -> list[Dose]:
    """Every dose at every place; those of a coefficient of 0 change nothing."""
    import torch

    from faithscope.interp.edits import Steer

    places, doses = settings.places(direction, model.n_layers), []
    lengths = chain.lengths(model, list(dict.fromkeys(place.site for place in places)))
    width = model.hf.config.get_text_config().hidden_size
    for site, layer in places:
        stream = lengths[site][layer]
        own = None if direction is None else direction.vector.numpy()
        size = stream
        if direction is not None and settings.unit == "direction":
            size = direction.norm
        elif direction is not None and own is not None:
            own = own * np.float32(stream / direction.norm)
        vectors = [] if own is None else [_Vector(DIRECTION, None, own)]
        for i in range(1, settings.controls + 1):
            drawn = np.random.default_rng([settings.seed, i]).standard_normal(width)
            drawn *= size / np.linalg.norm(drawn)
            vectors.append(_Vector(CONTROL, i, drawn.astype(np.float32)))
        for kind, control, values in vectors:
            of = partial(Dose, site, layer + 1, kind, control, size, stream)
            x = torch.from_numpy(values)
            edits = [(c, False) for c in map(float, settings.coefficients)]
            edits += [(None, True)] if settings.ablate else []
            for c, ablate in edits:
                at = () if c == 0 else chain.spans
                steers = tuple(Steer(site, layer, x, c, span, ablate) for span in at)
                doses.append(of("removed" if ablate else "added", c, steers))
    return doses


def _written(
    model: Model, chain: _Chain, edits: Sequence[Steers], settings: SteeringSettings
) -> dict[Steers, list[Generation]]:
    """The texts under each dose, all written in lockstep."""
    k, trace = settings.samples, chain.trace
    most = settings.max_new_tokens or 2 * (len(chain.own) + len(trace.tail_ids)) + _RESERVE
    if (room := model.max_positions) is not None:
        most = min(most, room - len(chain.prefix))
        if most < 1:
            raise NoRoom(
                f"trace of {trace.question.id!r}: {len(chain.prefix)} tokens before the text leave "
                f"none of the model's {room} positions; leave the item out"
            )
    seeds = [_seed_of(settings.seed, trace, i) for i in range(k)]
    texts = model.generate(
        [chain.prefix] * (k * len(edits)),
        most,
        temperature=settings.temperature,
        seed=seeds * len(edits),
        edits=[steers or None for steers in edits for _ in range(k)],
    )
    return {steers: texts[i * k : (i + 1) * k] for i, steers in enumerate(edits)}


def _seed_of(seed: int, trace: Trace, sample: int) -> int:
    """The seed of a sample, the same under every dose."""
    text = f"steering\n{seed}\n{trace.question.task}\n{trace.question.id}\n{sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _outcomes(trace: Trace, draws: Sequence[_Draw], free: Sequence[_Draw]) -> dict[str, Any]:
    """Shares of the samples under one dose; `free` are the samples without an edit."""
    answers = [draw.answer for draw in draws]

    def share(values: Sequence[bool | None]) -> float | None:
        known = mean_of_steps([None if v is None else float(v) for v in values])
        return None if known is None else number(known)

    def equal_to(answer: str | None) -> float | None:
        return share([is_right(a, answer) for a in answers])

    same = [is_right(draw.answer, plain.answer) for draw, plain in zip(draws, free, strict=True)]
    given = trace.origin.given
    target = None if given is None else given.cue_target
    cue = Cue("", "", None if given is None else given.cue_mention)
    return {
        "answers": answers,
        "stated": share([a is not None for a in answers]),
        "kept": equal_to(trace.answer),
        "right": equal_to(trace.question.gold),
        "changed": share([None if x is None else not x for x in same]),
        "target": target,
        "followed": equal_to(target),
        "mentioned": share([mentions(cue, draw.text, trace.question.id) for draw in draws]),
    }
