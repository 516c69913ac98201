"""Ask for answers after many prefixes: score labels whole, decode continuations.

Labels and continuations of all prefixes come from one packed cache, so every arm of a
comparison shares its batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from faithscope.interp import answer_runs, execute
from faithscope.interp.answered import Answered
from faithscope.interp.edit_checks import check
from faithscope.interp.edits import Edit
from faithscope.interp.errors import UserError
from faithscope.interp.execute import Execution
from faithscope.interp.forest import Ids, id_array
from faithscope.interp.generation import each_of
from faithscope.interp.loaded import LoadedModel
from faithscope.interp.lockstep import Stop
from faithscope.interp.read import choose_execution, fitting, groups
from faithscope.interp.requested_positions import RequestedPositions
from faithscope.interp.scoring import Scoring, scorings

Boundary = Literal["number"]
T = TypeVar("T")


def ask(
    model: LoadedModel,
    prefixes: Sequence[Ids],
    labels: Sequence[Sequence[Sequence[int]]] | None = None,
    max_new_tokens: int | Sequence[int] = 0,
    *,
    stop: Stop | Sequence[Stop] | None = None,
    boundary: Boundary | None = None,
    edits: Sequence[Sequence[Edit]] | None = None,
    repeat: Sequence[int] = (),
    execution: Execution = "auto",
) -> list[Answered]:
    """Score labels and decode an answer after every prefix, from one packed cache.

    Args:
        prefixes: token ids up to where the answer begins.
        labels: per prefix, the ids of each label, scored whole: every token counts.
        max_new_tokens: longest greedy continuation, of all prefixes or of each; 0 for none.
        stop: ends a continuation when true of its text so far; one for all prefixes, or one for
            each, which is then called with the growing text of that prefix alone.
        boundary: `number` adds the log-prob that the number at a label's end is complete there, so
            that "70" gets no credit for "700", "70,000", "70.5", "70^3", "70 million", "70 to 80"
            or "70 * 2". The probabilities of different labels are then those of mutually exclusive
            events, and may be added up.
        edits: per prefix, the edits of the model while it runs that prefix; they also hold for
            tokens of labels and continuations if they reach beyond the prefix.
        repeat: indices of the prefixes that others are compared with. Where the token budget splits
            the pack, they are run in every part, so that an arm can be compared with the baseline
            of its own part; and once more alone, which tells how far the shape of a pack alone
            moves an answer (`interp.floor`).

    Raises:
        UserError: a prefix does not fit the model's positions, the execution is not possible,
            or an edit is not possible in this model or this execution.
        ValueError: an edit names a position, layer or head that is not there.
    """
    request = Request(
        prefixes,
        labels,
        max_new_tokens,
        stop=stop,
        boundary=boundary,
        edits=edits,
        repeat=repeat,
        execution=execution,
    )
    return ask_all(model, [request])[0]


@dataclass(frozen=True)
class Request:
    """The arguments of one call of `ask`, which documents them."""

    prefixes: Sequence[Ids]
    labels: Sequence[Sequence[Sequence[int]]] | None = None
    max_new_tokens: int | Sequence[int] = 0
    _: KW_ONLY
    stop: Stop | Sequence[Stop] | None = None
    boundary: Boundary | None = None
    edits: Sequence[Sequence[Edit]] | None = None
    repeat: Sequence[int] = ()
    execution: Execution = "auto"


def ask_all(model: LoadedModel, requests: Sequence[Request]) -> list[list[Answered]]:
    """The answers of several calls of `ask`, run in one pack where the token budget allows.

    The prefixes of a request stand in the same packs as they would if it were made alone, besides
    those of other requests.
    """
    return ended(asking(model, requests))


Steps = Generator[None, None, T]
"""Work on the device that stops before each wait of the host, and what comes of it."""


def ended(steps: Steps[T]) -> T:
    """What comes of steps that nothing else is done between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def asking(model: LoadedModel, requests: Sequence[Request]) -> Steps[list[list[Answered]]]:
    """`ask_all` in steps, between which the host may do something else while the device runs."""
    every = [_Arms.of(model, request) for request in requests]
    copies: list[list[list[Answered]]] = [[[] for _ in arms.prefixes] for arms in every]
    for series in _packs(model, every):
        in_order = iter(series)
        for answers in _run(model, every, series):
            if answers is None:
                yield
                continue
            parts = next(in_order)
            places = [(at, i, number) for at, number, group in parts for i in group]
            for (at, i, number), answer in zip(places, answers, strict=True):
                pack = 0 if every[at].how == "loop" else number
                copies[at][i].append(replace(answer, pack=pack))
    _repeat_alone(model, every, copies)
    return [[of_prefix[0] for of_prefix in of_arms] for of_arms in copies]


@dataclass(frozen=True)
class _Arms:
    """A request that was checked, and how it is run."""

    prefixes: Sequence[Ids]
    scored: list[Scoring]
    under: list[tuple[Edit, ...]]
    limits: list[int]
    stops: Sequence[Stop | None]
    repeat: Sequence[int]
    how: Literal["packed", "dense", "flex", "loop"]

    @classmethod
    def of(cls, model: LoadedModel, request: Request) -> _Arms:
        prefixes, labels, edits = request.prefixes, request.labels, request.edits
        per = [[] for _ in prefixes] if labels is None else [list(x) for x in labels]
        if len(per) != len(prefixes):
            raise ValueError(f"{len(prefixes)} prefixes but labels for {len(per)} of them")
        under = [()] * len(prefixes) if edits is None else [tuple(e) for e in edits]
        if len(under) != len(prefixes):
            raise ValueError(f"{len(prefixes)} prefixes but edits for {len(under)} of them")
        for prefix, prefix_edits in zip(prefixes, under, strict=True):
            check(model, prefix_edits, len(prefix), grows=True)
        limits = each_of(request.max_new_tokens, len(prefixes))
        how, reason = choose_execution(model, prefixes, request.execution, room=limits)
        if how == "loop" and any(n and of for n, of in zip(limits, under, strict=True)):
            raise UserError(
                f"{model.name}: an edited prefix cannot be continued one by one ({reason}); score "
                "labels instead, or shorten the text"
            )
        ends = model.number_ends if request.boundary == "number" else None
        scored = scorings(model, per, ends)
        stop, n = request.stop, len(prefixes)
        stops = [stop] * n if stop is None or callable(stop) else list(stop)
        arrays: list[Ids] = [id_array(prefix) for prefix in prefixes]
        return cls(arrays, scored, under, limits, stops, request.repeat, how)

    @property
    def tails(self) -> list[Sequence[Sequence[int]]]:
        return [x.tails for x in self.scored]

    def groups(self, model: LoadedModel) -> list[list[int]]:
        return groups(model, self.prefixes, self.how, self.under, self.tails, self.repeat)


class _Part(NamedTuple):
    """A pack of one request, alone or in a larger pack."""

    request: int
    number: int
    """Index of the part among those of its request."""
    prefixes: list[int]


Series = list[list[_Part]]
"""Packs that follow each other, each of which takes over what it shares with the one before."""


def _packs(model: LoadedModel, every: Sequence[_Arms]) -> Iterator[Series]:
    """The parts that run together: those of requests that fit one pack, else each alone."""
    whole: dict[tuple[str, bool], list[_Part]] = {}
    for at, arms in enumerate(every):
        parts = [_Part(at, k, group) for k, group in enumerate(arms.groups(model))]
        if len(parts) > 1 or arms.how == "loop":
            yield [[part] for part in parts]
        else:
            # FlexAttention may take no pack in which attention is edited
            apart = model.flex_cut_reason is not None and any(arms.under)
            whole.setdefault((arms.how, apart), []).extend(parts)
    for (how, _), parts in whole.items():
        of = [every[part.request] for part in parts]
        own = [(x.prefixes, x.under, x.tails) for x in of]
        for together in fitting(model, how, own):
            yield [[parts[i] for i in together]]


def _run(
    model: LoadedModel, every: Sequence[_Arms], series: Series
) -> Iterator[list[Answered] | None]:
    """The answers of each pack of a series; None before the host waits for one."""
    how = every[series[0][0].request].how

    def requested(parts: list[_Part]) -> tuple[RequestedPositions, list[Stop | None]]:
        here = [(every[at], i) for at, _, group in parts for i in group]
        asked = RequestedPositions.of(
            [of.prefixes[i] for of, i in here],
            [of.scored[i] for of, i in here],
            [of.under[i] for of, i in here],
            [of.limits[i] for of, i in here],
            watched=[k for k, (of, i) in enumerate(here) if i in of.repeat],
        )
        return asked, [of.stops[i] for of, i in here]

    if how == "loop":
        for parts in series:
            yield answer_runs.by_loop(model, *requested(parts))
        return

    def pack(parts: list[_Part]) -> answer_runs.Pack:
        asked, stops = requested(parts)
        group = parts[0].prefixes if len(parts) == 1 else list(range(len(stops)))
        here = [any(every[at].under) for at, _, of_part in parts for _ in of_part]
        return answer_runs.Pack.of(asked, group, stops, here)

    yield from answer_runs.by_forests(model, map(pack, series), execute.WAYS.get(how))


def _repeat_alone(
    model: LoadedModel, every: Sequence[_Arms], copies: Sequence[list[list[Answered]]]
) -> None:
    """Run each repeated prefix once more, without the other arms of its request: the first ones of
    all requests together, then the second ones, and so on.

    Args:
        copies: per request and prefix, its answers in all packs; the first takes over the others.
    """
    rounds: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for at, arms in enumerate(every):
        # what consists of repeated prefixes has no other shape but that of each alone
        own = at if len(set(arms.repeat)) == len(arms.prefixes) else None
        for turn, i in enumerate(arms.repeat):
            # FlexAttention may take no pack in which attention is edited
            apart = model.flex_cut_reason is not None and bool(arms.under[i])
            rounds.setdefault((turn, arms.how == "loop", apart, own), []).append((at, i))
    for (_, by_loop, *_), places in rounds.items():
        of = [every[at] for at, _ in places]
        calls = [
            (
                [x.prefixes[i]],
                [x.under[i]],
                [[*x.scored[i].tails, [x.candidate for x in copies[at][i][0].written]]],
            )
            for x, (at, i) in zip(of, places, strict=True)
        ]
        for together in fitting(model, "loop" if by_loop else "packed", calls):
            here = [places[k] for k in together]
            asked = RequestedPositions.of(
                [every[at].prefixes[i] for at, i in here],
                [every[at].scored[i] for at, i in here],
                [every[at].under[i] for at, i in here],
                [0] * len(here),
                watched=range(len(here)),
                continued=[copies[at][i][0] for at, i in here],
            )
            answers = _in_another_shape(model, asked, by_loop)
            for (at, i), alone in zip(here, answers, strict=True):
                of_arms = copies[at][i]
                of_arms[0] = replace(of_arms[0], repeats=tuple(of_arms), alone=alone)


def _in_another_shape(
    model: LoadedModel, asked: RequestedPositions, by_loop: bool
) -> list[Answered]:
    """Answers of repeated prefixes without other arms, in other batch shapes than before."""
    longest, group = max(asked.sequences, key=len), list(range(len(asked.first)))
    stops = [None] * len(group)
    if not by_loop or choose_execution(model, [longest], "auto")[0] == "packed":
        pack = answer_runs.Pack.of(asked, group, stops, [True] * len(group))
        return next(x for x in answer_runs.by_forests(model, [pack]) if x is not None)
    # a token appended to a sequence changes no earlier one, only the shapes of the computation
    behind: list[Ids] = [np.append(s, s[-1]) for s in map(id_array, asked.sequences)]
    return answer_runs.by_loop(model, replace(asked, sequences=behind), stops)
