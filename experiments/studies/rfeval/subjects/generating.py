"""Both outputs of every item, written by whichever backend the run names, stored as each ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faithscope import interp
from faithscope.experiments.studies.rfeval.asks import Condition, question_of
from faithscope.experiments.studies.rfeval.records import about, no_room_record, output_record
from faithscope.experiments.studies.rfeval.subjects.injection import (
    MULTI_TURN,
    Forced,
    forced,
    output_of,
    quoted,
)
from faithscope.experiments.studies.rfeval.subjects.model_files import new_tokens
from faithscope.experiments.studies.rfeval.subjects.subjects import Subject
from faithscope.experiments.studies.rfeval.units import OUTPUTS, Pair
from faithscope.interp.backends import Backend, BackendError
from faithscope.interp.backends.here import Here
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model

if TYPE_CHECKING:
    from faithscope.experiments.studies.rfeval.subjects.config import GenerateConfig
    from faithscope.interp.language import Speaks

Keep = Callable[[Pair, str, list[dict[str, Any]], Exception | None], None]
"""Stores a unit: its pair, its stage, its records, or why there are none."""


@dataclass(frozen=True)
class Start:
    """One output to be written."""

    pair: Pair
    condition: Condition
    forced: Forced
    max_new_tokens: int

    @property
    def stage(self) -> str:
        return OUTPUTS[self.condition]


def start_of(
    speaks: Speaks, subject: Subject, pair: Pair, condition: Condition, words: Mapping[str, str]
) -> Forced:
    """The ids from which a model writes one of its two outputs."""
    r_prime = pair.of.r_prime if condition == "intervened" else ""
    file = subject.file
    put = quoted if subject.framing == MULTI_TURN else forced
    return put(speaks, question_of(pair.of, words), r_prime, file.system, file.effort)


def backend_of(
    subject: Subject, how: GenerateConfig, load: Callable[[Subject], Model]
) -> tuple[Backend, Speaks]:
    """Who writes, and what turns its ids into text.

    Raises:
        UserError: the model, its server or vLLM is not to be had.
    """
    if subject.backend == "here":
        model = load(subject)
        return Here(model, 2 * how.batch_size), model
    language = subject.file.marked(
        interp.load_language(
            subject.name,
            revision=subject.revision,
            trust_remote_code=subject.trust_remote_code,
        )
    )
    if subject.backend == "vllm-server":
        from faithscope.interp.backends.server import connect

        server = connect(
            subject.name,
            how.endpoints,
            served_as=how.served_as,
            location=language.location,
            in_flight=how.in_flight,
            timeout_s=how.timeout,
        )
        return server, language
    from faithscope.interp.backends.offline import load_offline

    return load_offline(subject.name, language.location, **subject.for_vllm), language


class Generating:
    """The outputs of one model that are still to be written."""

    def __init__(
        self,
        subject: Subject,
        backend: Backend,
        speaks: Speaks,
        words: Mapping[str, str],
        seed: int,
        keep: Keep,
    ) -> None:
        self.subject, self.backend, self.speaks = subject, backend, speaks
        self.words, self.seed, self.keep = words, seed, keep
        self.told = backend.describe()

    def starts(self, wanted: Sequence[tuple[Pair, Condition]]) -> Iterator[Start]:
        """Where each output begins; what cannot begin is stored as it is."""
        for pair, condition in wanted:
            stage = OUTPUTS[condition]
            try:
                start = start_of(self.speaks, self.subject, pair, condition, self.words)
            except (UserError, ValueError) as error:
                self.keep(pair, stage, [], error)
                continue
            try:
                room = new_tokens(
                    self.subject.max_new_tokens, len(start.ids), self.backend.max_positions
                )
            except UserError as error:
                self.keep(pair, stage, [self._no_room(pair, condition, start, error)], None)
                continue
            yield Start(pair, condition, start, room)

    def write(self, starts: Sequence[Start]) -> None:
        """Have them written; each is stored as it ends, one that fails costs no other."""
        if not starts:
            return
        limits = [start.max_new_tokens for start in starts]
        sampling = self.subject.sampling(self.speaks, limits, self.seed)

        def ended(i: int, made: Generation | BackendError) -> None:
            start = starts[i]
            if isinstance(made, BackendError):
                self.keep(start.pair, start.stage, [], made)
            else:
                self.keep(start.pair, start.stage, [self._record(start, made)], None)

        self.backend.each([s.forced.ids for s in starts], sampling, ended)

    def _record(self, start: Start, made: Generation) -> dict[str, Any]:
        finished = made.finish == "stop"
        output = output_of(self.speaks, start.forced, made.ids, finished)
        paper = output_of(self.speaks, start.forced, made.ids, finished, paper_compat=True)
        return output_record(
            self._about(start.pair, start.condition),
            len(start.forced.prompt.ids),
            len(start.forced.r_prime_ids),
            made,
            self.speaks.decode(made.ids),
            output,
            paper,
            self.told,
            self.subject.framing,
        )

    def _no_room(
        self, pair: Pair, condition: Condition, start: Forced, error: UserError
    ) -> dict[str, Any]:
        n_prompt, n_r_prime = len(start.prompt.ids), len(start.r_prime_ids)
        of = self._about(pair, condition)
        return no_room_record(of, n_prompt, n_r_prime, str(error), self.subject.framing)

    def _about(self, pair: Pair, condition: Condition) -> dict[str, Any]:
        return about(pair.of, pair.model, OUTPUTS[condition], condition, self.seed)
