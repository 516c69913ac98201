"""A question, its reasoning trace and the trace's steps: token ids first, text second.

Everything here is plain data. A trace is made once, from the ids a model emitted,
and is never re-tokenised: an edit moves or drops ids, and text follows from them.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AnswerKind = Literal["choice", "label", "number"]
Unit = Literal["sentence", "item", "paragraph", "thought", "group", "given"]
"""Kind of the steps of a trace: sentences; items of a numbered list, with the sentences around it;
paragraphs; thoughts (paragraphs, cut where the text turns); groups of neighbouring ones of these;
or steps as given with the chain."""


@dataclass(frozen=True)
class Sent:
    """A prompt as it was sent, in place of a task's message in a model's own template."""

    prompt: str | tuple[tuple[str, str], ...] | None = None
    """The whole prompt as text, control tokens included; or role and content of each message, which
    the template of the model that reads them renders; None for the usual message."""
    prefix: str = ""
    """Beginning of the assistant's turn that the model did not write: `<think>\\n`, or "Let's
    think step by step:"."""


RARE = ("sent", "of_pair", "counterfactual", "sample")
"""Fields of questions that few have; records and ids of the others do not name them."""


class Counterfactual(NamedTuple):
    """Flawed reasoning r′ about a question, to be put into a model's mouth."""

    text: str
    answer: str | None = None
    """The answer that it leads to, as the data set writes it; None if it does not tell."""


@dataclass(frozen=True)
class OfPair:
    """The place of a question in a pair of a question and its reverse ("Is X larger than Y?", "Is Y
    larger than X?"), to which the same answer is a contradiction."""

    name: str
    reversed: bool


@dataclass(frozen=True)
class Question:
    """One item of a dataset."""

    id: str
    """Identifier of the question, unique within its dataset."""
    dataset: str
    text: str
    """The question as the model is to read it, options excluded."""
    kind: AnswerKind
    """`choice` is answered by a letter, `label` by one of `options`, `number` by a value."""
    gold: str | None = None
    """The right answer in canonical form: a letter, a label, or a number's plain digits."""
    options: tuple[str, ...] | None = None
    """Option texts in order (`choice`), the label words (`label`), none (`number`)."""
    candidates: tuple[str, ...] = ()
    """Further answers worth scoring against each other, for `number` questions."""
    task: str = ""
    """Name of the task, the data set's name by default; `sst2:alternative` asks in other words than
    the data set's own."""
    sent: Sent | None = None
    """The prompt as it was sent, if the data set says; None for the task's words."""
    of_pair: OfPair | None = None
    """Its place in a pair of reversed questions; None for a question alone."""
    counterfactual: Counterfactual | None = None
    """Reasoning that leads to another answer, if the data set has some."""
    sample: str | None = None
    """Name of this sample of a question that is answered several times, whose `id` then is
    `ID#SAMPLE`; None for a question that is answered once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", self.task or self.dataset)
        if self.kind == "number":
            return
        if self.options is None or len(self.options) < 2:
            raise ValueError(
                f"question {self.id!r} of {self.dataset!r}: kind {self.kind!r} needs at least two "
                f"options, got {self.options!r}; give them, or set the kind to 'number'"
            )
        if self.gold is not None and self.gold not in (self.labels or ()):
            raise ValueError(
                f"question {self.id!r} of {self.dataset!r}: gold answer {self.gold!r} is none of "
                f"{', '.join(map(repr, self.labels or ()))}"
            )

    @property
    def asked_id(self) -> str:
        """The id without the sample: that of the question, which all its samples share."""
        return self.id if self.sample is None else self.id.removesuffix(f"#{self.sample}")

    def sampled(self, sample: str) -> Question:
        """One sample of the question."""
        return replace(self, id=f"{self.id}#{sample}", sample=sample)

    @property
    def decides(self) -> dict[str, Any]:
        """The fields that are part of a unit's id; one that few questions have is left out of the
        others, which keep the ids of earlier versions."""
        return {k: v for k, v in vars(self).items() if k not in self.unsaid}

    @property
    def unsaid(self) -> set[str]:
        """The fields that few questions have and this one has not."""
        return {name for name in RARE if getattr(self, name) is None}

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The closed set of canonical answers, or None for numbers."""
        if self.options is None:
            return None
        if self.kind == "choice":
            return tuple(string.ascii_uppercase[: len(self.options)])
        return self.options


@dataclass(frozen=True)
class Step:
    """One sentence, item, paragraph or thought of reasoning (`Trace.unit`): the unit of removal.

    The steps of a trace tile its reasoning: every token and every character belongs
    to exactly one step, trailing white space to the step before it.
    """

    index: int
    text: str
    chars: tuple[int, int]
    """Half-open character span in `Trace.reasoning_text`."""
    tokens: tuple[int, int]
    """Half-open token span in `Trace.reasoning_ids`."""
    counted: bool = True
    """False for a stretch too short to be a step of its own (a bare "Sure!"):
    it stays in its place in every edit but `keep_only`, and is never itself removed."""

    def at(self, char: int, token: int, text: str, n_tokens: int) -> Step:
        """The step with `text` in so many tokens, at other places of a reasoning."""
        chars, tokens = (char, char + len(text)), (token, token + n_tokens)
        return Step(self.index, text, chars, tokens, self.counted)


class Part(NamedTuple):
    """A step with its ids and pieces, wherever it stands."""

    step: Step
    ids: tuple[int, ...]
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """One edit that was made to a trace."""

    kind: str
    """`remove`, `keep_only`, `truncate_step`, `truncate_token`, `shuffle`, `reverse`,
    `replace`, `corrupt`, `regenerate`."""
    step: int | None = None
    """Index of the edited step, if the edit is of one."""
    seed: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The edit in words; its step is counted from 1, as wherever steps are shown."""
        return f"edited: {self.kind}" + ("" if self.step is None else f" of step {self.step + 1}")


@dataclass(frozen=True)
class GivenUncued:
    """A given chain that was written to the same question without the cue, in the tokens of the
    model that reads it."""

    prompt: str
    """The user message under which the subject model reads the chain."""
    prompt_ids: tuple[int, ...]
    reasoning: str
    reasoning_ids: tuple[int, ...]
    answer: str | None


@dataclass(frozen=True)
class Given:
    """Provenance of a given chain (one written elsewhere), with its file's data about it."""

    file: str
    format: str
    """The file layout that the chain was read as (`traces.format`)."""
    model: str
    """The model that wrote the chain; "" if the file does not tell."""
    sha256: str
    """SHA-256 of all that the file says of the chain."""
    kind: AnswerKind | None
    """The kind of the question's answers; None if neither file nor task tells: no answer can then
    be read or scored."""
    prompt: str
    """The user message under which the subject model reads the chain."""
    labels: dict[str, Any] = field(default_factory=dict)
    """Label name -> the chain's label."""
    step_labels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Label name -> one label for each of `Trace.steps`; None for a step without one."""
    cue: str | None = None
    """The cue to an answer that stood in the prompt of the chain, as its file gives it."""
    cue_target: str | None = None
    """The answer that the cue points to."""
    cue_name: str = ""
    """Name of the cue among others; "" if the file gives none."""
    cue_mention: str | None = None
    """Pattern of the words with which a text mentions the cue, if the file gives one."""
    pair: str = ""
    """Name of the pair of chains that this one belongs to; "" for a chain alone."""
    condition: Literal["", "uncued", "cued", "forward", "reversed"] = ""
    """Which chain of its pair this one is."""
    uncued: GivenUncued | None = None
    """The uncued chain of a cued one."""
    edits: dict[str, dict[int, str]] = field(default_factory=dict)
    """Kind of edits that were made elsewhere (`mistake`, `paraphrase`) -> index of a step -> its
    text after the edit; a kind that other chains of the file have may have no step here."""


@dataclass(frozen=True)
class Origin:
    """The model and settings that made a trace."""

    model: str
    revision: str | None = None
    dtype: str | None = None
    template_hash: str | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    prefilled: int = 0
    """Number of reasoning tokens at the start that were prefilled, so that the model did not write
    them; of an edited trace, those of the unedited one."""
    given: Given | None = None
    """Provenance of a given chain, for which `model` is the model that reads it; None if generated
    here."""


@dataclass(frozen=True, repr=False)
class Trace:
    """A question, the exact ids of prompt and reasoning, and the answer that came out."""

    question: Question
    prompt_ids: tuple[int, ...]
    """Ids of the rendered prompt, up to and including the reasoning opener if there is one."""
    reasoning_ids: tuple[int, ...]
    pieces: tuple[str, ...]
    """The text that each reasoning token adds; joined, they are `reasoning_text`."""
    steps: tuple[Step, ...]
    unit: Unit = "given"
    """Kind of the steps. Removing a paragraph takes more than removing a sentence: shares of steps
    of two units are not to be pooled."""
    tail_ids: tuple[int, ...] = ()
    """Ids that the model wrote after its reasoning: closer, explanation, answer statement."""
    tail_text: str = ""
    answer: str | None = None
    """The parsed answer in canonical form; None if no answer could be parsed."""
    finish: Literal["stop", "length"] = "stop"
    origin: Origin = field(default_factory=lambda: Origin(model="unknown"))
    edits: tuple[Edit, ...] = ()
    original: Trace | None = None
    """The trace before its first edit; None for a trace that was never edited."""
    sample: Mapping[int, float] | None = None
    """Index of each step that is edited one by one -> the probability with which such a draw
    includes it; None if all counted steps are edited."""
    drawing: ClassVar[Callable[..., str] | None] = None
    """Function that draws a trace as HTML for a notebook, with records of a probe if there are any.
    `faithscope` sets it, since this package knows no pages. None draws nothing."""

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.reasoning_ids):
            raise ValueError(
                f"trace of {self.question.id!r}: {len(self.reasoning_ids)} reasoning tokens but "
                f"{len(self.pieces)} text pieces"
            )
        at = 0
        for step in self.steps:
            if step.tokens[0] != at or step.tokens[1] < at:
                raise ValueError(
                    f"trace of {self.question.id!r}: step {step.index} spans tokens "
                    f"{step.tokens}, expected it to start at {at}"
                )
            at = step.tokens[1]
        if self.steps and at != len(self.reasoning_ids):
            raise ValueError(
                f"trace of {self.question.id!r}: steps end at token {at} of "
                f"{len(self.reasoning_ids)}"
            )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The ids, pieces or steps of a spliced trace, made when they are first read."""
            splice = vars(self).get("_splice")
            if splice is None or name not in _SPLICED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = getattr(splice, name)()
            vars(self)[name] = value
            return value

    def spliced(self, first: int, last: int, parts: Sequence[Part], edit: Edit) -> Trace:
        """The trace with `parts` in place of steps `first` to `last` (excluded).

        A chain of 1,000 steps has as many edits of one step each: what an edited trace has in
        common with this one is not copied before it is read.
        """
        trace = object.__new__(Trace)
        vars(trace).update(
            {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _SPLICED},
            original=self.unedited,
            edits=(*self.edits, edit),
            _splice=_Splice(self, first, last, tuple(parts)),
        )
        return trace

    @property
    def id_array(self) -> NDArray[np.int32]:
        """(tokens,) `reasoning_ids` as an array."""
        splice = vars(self).get("_splice")
        return self._own_array if splice is None else splice.id_array()

    @cached_property
    def _own_array(self) -> NDArray[np.int32]:
        # not at the top: listing what there is need not wait for it
        import numpy as np

        return np.fromiter(self.reasoning_ids, np.int32, len(self.reasoning_ids))

    @property
    def reasoning_text(self) -> str:
        return "".join(self.pieces)

    @property
    def counted_steps(self) -> tuple[Step, ...]:
        """The steps an intervention may touch."""
        return tuple(s for s in self.steps if s.counted)

    def is_sampled(self, step: int) -> bool:
        """Whether the step of an index is edited: all are, or those of `sample`."""
        return self.sample is None or step in self.sample

    def sampling(
        self, most: int | None, seed: int = 0, certain: Callable[[], Sequence[int]] = tuple
    ) -> Trace:
        """The trace with at most `most` of its counted steps to be edited: those that `certain`
        gives, and others drawn at random.

        The draw depends on the question and the seed, and of two draws with the same certain steps
        the larger contains the smaller. None keeps all steps.

        Args:
            certain: function that gives the indices of fewer than `most` steps that are always
                edited; called only if not all steps are.
        """
        if most is None or len(self.counted_steps) <= most:
            return replace(self, sample=None)
        chosen = dict.fromkeys(certain(), 1.0)
        order = [s.index for s in self.counted_steps if s.index not in chosen]
        Random(f"steps-{seed}-{self.question.task}-{self.question.id}").shuffle(order)
        n = most - len(chosen)
        chosen |= dict.fromkeys(order[:n], n / len(order))
        return replace(self, sample=dict(sorted(chosen.items())))

    @property
    def inclusion(self) -> list[float | None] | None:
        """Per counted step, the probability with which the draw of `sample` includes it, None for a
        step that it does not hold; None if all steps are edited."""
        if self.sample is None:
            return None
        return [self.sample.get(step.index) for step in self.counted_steps]

    def step_ids(self, step: Step) -> tuple[int, ...]:
        return self.reasoning_ids[step.tokens[0] : step.tokens[1]]

    def part(self, step: Step) -> Part:
        """A step of this trace with its ids and pieces."""
        return Part(step, self.step_ids(step), self.pieces[step.tokens[0] : step.tokens[1]])

    @property
    def unedited(self) -> Trace:
        """The trace before its first edit; itself if it was never edited. All that edits are
        compared by, the set of scored answers included, is taken from the unedited trace."""
        return self.original or self

    def __repr__(self) -> str:
        question, n = self.question, len(self.counted_steps)
        said = [f"{n} step{'s' * (n != 1)}", f"{len(self.reasoning_ids)} reasoning tokens"]
        said += [f"answer {self.answer!r}", f"gold {question.gold!r}"]
        said += [edit.words for edit in self.edits]
        said += ["cut off by the token limit"] * (self.finish == "length")
        return f"<Trace {question.task}/{question.id}: {', '.join(said)}; text: .reasoning_text>"

    def _repr_html_(self) -> str | None:
        drawn = type(self).drawing
        return None if drawn is None else drawn(self)

    def edited(self, **changes: Any) -> Trace:
        return replace(self, original=self.unedited, **changes)


_SPLICED = ("reasoning_ids", "pieces", "steps")


@dataclass(frozen=True)
class _Splice:
    """A trace with some of its steps replaced; each method makes a field of the edited trace."""

    base: Trace
    first: int
    last: int
    parts: tuple[Part, ...]

    @cached_property
    def tokens(self) -> tuple[int, int]:
        """Half-open span of the replaced tokens."""
        steps = self.base.steps
        start = steps[self.first - 1].tokens[1] if self.first else 0
        ends = self.last == len(steps)
        return start, len(self.base.reasoning_ids) if ends else steps[self.last].tokens[0]

    def id_array(self) -> NDArray[np.int32]:
        import numpy as np

        (start, stop), ids = self.tokens, self.base.id_array
        own = [np.fromiter(p.ids, np.int32, len(p.ids)) for p in self.parts]
        return np.concatenate([ids[:start], *own, ids[stop:]])

    def reasoning_ids(self) -> tuple[int, ...]:
        (start, stop), ids = self.tokens, self.base.reasoning_ids
        return ids[:start] + tuple(i for p in self.parts for i in p.ids) + ids[stop:]

    def pieces(self) -> tuple[str, ...]:
        (start, stop), pieces = self.tokens, self.base.pieces
        return pieces[:start] + tuple(x for p in self.parts for x in p.pieces) + pieces[stop:]

    def steps(self) -> tuple[Step, ...]:
        steps = list(self.base.steps[: self.first])
        char, token = (steps[-1].chars[1], steps[-1].tokens[1]) if steps else (0, 0)
        for step, ids, pieces in self.parts:
            text = "".join(pieces)
            steps.append(step.at(char, token, text, len(ids)))
            char, token = char + len(text), token + len(ids)
        for step in self.base.steps[self.last :]:
            steps.append(step.at(char, token, step.text, step.tokens[1] - step.tokens[0]))
            char, token = steps[-1].chars[1], steps[-1].tokens[1]
        return tuple(steps)
