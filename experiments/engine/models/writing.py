"""Writing of texts by models: here, by vLLM in this process or on servers, or by an API model.

Each text is a unit, stored as it ends. For every backend the prompt and the result are token ids,
so that a text can be replayed token for token; only an API is asked, and answers, in words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from faithscope import interp
from faithscope.experiments.config.api import API
from faithscope.experiments.config.backend import BackendSection
from faithscope.experiments.engine.models.loading import open_backend
from faithscope.experiments.engine.models.weights import WeightSettings
from faithscope.experiments.engine.units import storable
from faithscope.experiments.engine.worker import Item, Records, Worker
from faithscope.interp.backends import Backend
from faithscope.interp.backends.here import Here
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation, Sampling, room_for, seeds_of
from faithscope.interp.language import Language, Speaks
from faithscope.probes.judge.form import Reply, Writing, no_reply

AT_ONCE = 512
"""Number of texts whose conversations with an API are in memory together."""


class Prompted(Protocol):
    """A prompt that a model continues."""

    @property
    def ids(self) -> tuple[int, ...]: ...


Prompt = TypeVar("Prompt", bound=Prompted)
Spoken = TypeVar("Spoken", interp.Model, Language)
Unit = tuple[Item, str]
"""An item and the stage in which one text of it is written."""


@dataclass(frozen=True)
class HowWritten:
    """Settings by which one model's texts are sampled, and its weights loaded."""

    weights: WeightSettings
    max_new_tokens: int
    seed: int
    temperature: float = 0.0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    trust_remote_code: bool = False
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of `interp.backends.offline.load_offline` besides those of `weights`."""


@dataclass(frozen=True)
class _At:
    """The model and backend at work."""

    model: str
    backend: Backend
    speaks: Speaks
    by: Mapping[str, str]
    """Description of the backend that writes (`Backend.describe`)."""
    how: HowWritten


@dataclass(frozen=True)
class Start(Generic[Item, Prompt]):
    """One text to be written, with its prompt and settings."""

    item: Item
    stage: str
    prompt: Prompt
    max_new_tokens: int
    seed: int


class TextWorker(Worker[Item], Generic[Item, Prompt]):
    """A worker that lets models write texts; a study defines the prompts and the records."""

    texts: Sequence[str]
    """The stages in which texts are written."""

    @abstractmethod
    def backend(self) -> BackendSection:
        """Section of the backend that writes for models whose weights are available."""

    @abstractmethod
    def how_written(self, model: str) -> HowWritten:
        """The settings of writing for a model whose weights are available."""

    @abstractmethod
    def prompt(self, speaks: Speaks, unit: Unit[Item]) -> Prompt:
        """The prompt that a model continues for one text.

        Raises:
            UserError, ValueError: the prompt cannot be made of this model's tokens.
        """

    def most_tokens(self, how: HowWritten, prompt: Prompt) -> int:
        """Most tokens of a text; the model's positions may limit it further."""
        return how.max_new_tokens

    @abstractmethod
    def text_records(
        self, speaks: Speaks, start: Start[Item, Prompt], text: Generation, by: Mapping[str, str]
    ) -> Records:
        """The records that are stored of a text.

        Args:
            by: description of the backend that wrote the text (`Backend.describe`).
        """

    @abstractmethod
    def conversation(self, unit: Unit[Item]) -> Writing:
        """The prompt of an API model for a text; its id is the unit's."""

    @abstractmethod
    def reply_records(self, unit: Unit[Item], writing: Writing, reply: Reply) -> Records:
        """The records that are stored of an API model's reply."""

    def seed_of(self, unit: Unit[Item], of_place: int) -> int:
        """Hook: the seed of a text, by default that of its place in a batch."""
        return of_place

    def no_room(self, unit: Unit[Item], prompt: Prompt, error: UserError) -> Records | Exception:
        """The records, or error, stored if a prompt fills all of a model's positions."""
        return error

    def marked(self, model: str, speaks: Spoken) -> Spoken:
        """Hook: the model with other marks of reasoning than its template's, if it needs any."""
        return speaks

    def load_subject(self, model: str) -> interp.Model:
        """Load the weights of a model that writes, or whose inside is read."""
        how = self.how_written(model)
        return self.marked(model, self.load(model, how.weights, how.trust_remote_code))

    def lacking_texts(self, items: Sequence[Item]) -> list[Unit[Item]]:
        """The texts still to be written, in order."""
        return [(i, s) for i in items for s in self.texts if s in self.missing(i)]

    def write(self, model: str, loaded: interp.Model | None = None) -> interp.Model | None:
        """Write all missing texts of a model whose weights are available.

        Args:
            loaded: the model with a writer (`interp.Model.writer`) that writes these texts, too.

        Returns:
            The model, if its weights were loaded for writing.

        Raises:
            UserError: the model, its server or vLLM is not available.
        """
        batches = self.batches[model]
        if not any(self.lacking_texts(batch) for batch in batches):
            return None
        at = self._opened(model, loaded)
        try:
            facts: dict[str, Any] = {f"generation_{k}": v for k, v in at.by.items()}
            self.store.note_model(model, facts | {"cautions": list(at.speaks.cautions)})
            if isinstance(at.speaks, interp.Model) and loaded is None:
                for batch in batches:
                    if self.lacking_texts(batch):
                        self._write_batch(at, at.speaks, batch)
                return at.speaks
            # servers and vLLM make their own batches
            everything = [item for batch in batches for item in batch]
            self._write(at, [s for s in self._starts(at, everything) if self._lacks(s)])
            return None
        finally:
            # vLLM would keep most of the device's memory from the model that is loaded here next
            if loaded is None:
                at.backend.close()

    def _opened(self, model: str, loaded: interp.Model | None) -> _At:
        section = self.backend()
        if section.backend == "vllm" and loaded is None:
            # weights that an earlier stage left on the device
            self.weights.drop_others()
        how = self.how_written(model)
        speaks: Speaks
        if loaded is not None and loaded.writer is not None:
            return _At(model, loaded.writer, loaded, dict(loaded.writer.describe()), how)
        if section.backend == "here":
            speaks = loaded = self.load_subject(model)
            backend: Backend = Here(loaded, len(self.texts) * section.batch_size)
            return _At(model, backend, speaks, dict(backend.describe()), how)
        language, backend = open_backend(
            section, model, how.weights, how.trust_remote_code, how.vllm
        )
        speaks = self.marked(model, language)
        return _At(model, backend, speaks, dict(backend.describe()), how)

    def _lacks(self, start: Start[Item, Prompt]) -> bool:
        return start.stage in self.missing(start.item)

    def _write_batch(self, at: _At, model: interp.Model, batch: Sequence[Item]) -> None:
        # the whole batch, even if some texts are stored: a batch of others could change the tokens
        starts = self._starts(at, batch)
        if any(map(self._lacks, starts)):
            self.together(
                model,
                starts,
                lambda part: self._write(at, part),
                lambda start, error: self.keep(start.item, start.stage, error),
                lambda part: list(filter(self._lacks, part)),
                fatal=(),
            )

    def _starts(self, at: _At, items: Sequence[Item]) -> list[Start[Item, Prompt]]:
        """The start of each text, also of stored ones; a text that cannot begin is stored as
        such."""
        self.begin(at.model, *self.lacking_texts(items)[0])
        units = [(i, s) for i in items for s in self.texts if s in i.units]
        # the seed depends on the place in a batch, whichever backend writes
        in_a_batch = len(self.texts) * self.backend().batch_size
        seeds = seeds_of(at.how.seed, min(len(units), in_a_batch))
        starts = []
        for place, unit in enumerate(units):
            item, stage = unit
            problem: Records | Exception
            try:
                prompt = self.prompt(at.speaks, unit)
                try:
                    most = self.most_tokens(at.how, prompt)
                    room = room_for(most, len(prompt.ids), at.backend.max_positions)
                except UserError as error:
                    problem = self.no_room(unit, prompt, error)
                else:
                    seed = self.seed_of(unit, seeds[place % len(seeds)])
                    starts.append(Start(item, stage, prompt, room, seed))
                    continue
            except (UserError, ValueError) as error:
                problem = error
            if stage in self.missing(item):
                self.keep(item, stage, problem)
        return starts

    def _write(self, at: _At, starts: Sequence[Start[Item, Prompt]]) -> None:
        """Write texts; each is stored as it ends, and one that fails does not cost the others."""
        if not starts:
            return
        sampling = Sampling(
            tuple(at.speaks.end_ids),
            max(start.max_new_tokens for start in starts),
            temperature=at.how.temperature,
            top_p=at.how.top_p,
            repetition_penalty=at.how.repetition_penalty,
            seed=tuple(start.seed for start in starts),
            limits=tuple(start.max_new_tokens for start in starts),
        )

        def ended(i: int, text: Generation | Exception) -> None:
            start = starts[i]
            if not self._lacks(start):
                return
            result: Records | Exception
            try:
                if isinstance(text, Exception):
                    raise text
                result = storable(self.text_records(at.speaks, start, text, at.by))
            except Exception as error:
                # a text that cannot be split must not cost the others
                result = error
            self.keep(start.item, start.stage, result)

        at.backend.each([start.prompt.ids for start in starts], sampling, ended)

    def write_by_api(self, model: str, items: Sequence[Item]) -> None:
        """Write the missing texts of an API model.

        Raises:
            BudgetSpent, UserError: as for `ApiJudge.ask_all`; replies so far are stored.
        """
        assert model.startswith(API), model
        lacking = self.lacking_texts(items)
        for first in range(0, len(lacking), AT_ONCE):
            part = lacking[first : first + AT_ONCE]
            by_id = {item.units[stage]: (item, stage) for item, stage in part}
            self.begin(model, *part[0])

            def keep(writing: Writing, reply: Reply, by_id=by_id) -> None:
                item, stage = unit = by_id[writing.id]
                result: Records | Exception
                try:
                    if problem := no_reply(reply):
                        raise RuntimeError(problem)
                    result = storable(self.reply_records(unit, writing, reply))
                except Exception as error:
                    result = error
                self.keep(item, stage, result)

            self.apis[model].ask_all([self.conversation(unit) for unit in part], keep)
