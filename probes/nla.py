"""NLA: what the state at the end of each step says, put into words by a second model.

A natural-language autoencoder (Fraser-Taliente et al. 2026, transformer-circuits.pub/2026/nla) is a
pair of models: a verbaliser that writes what an activation stands for, and a reconstructor that
turns the words back into one. Here the residual stream at the last token of every counted step is
described. If the description names the answer before any step does, the model may have had it
before it reasoned to it; if the words are turned back into much the same vector, the description
has what the vector has.

A description is the text of another model. It may name what the context makes likely, and not what
the state holds: so `says_other` has how often the other options are named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StrictInt, StrictStr, field_validator

from faithscope.interp.errors import UserError
from faithscope.interventions import Trace
from faithscope.probes.framing import Asking, prefix_ids
from faithscope.probes.patterns import matched, pattern_problem
from faithscope.probes.probe import Branches, probe
from faithscope.probes.record import NO_STREAM, Record, number, record
from faithscope.probes.settings import Execution, ModelFacts, Settings

if TYPE_CHECKING:
    from faithscope.interp.model import Model

NOT_SET = "no_verbaliser"
"""Why nothing is measured: no verbaliser is named."""


class NlaSettings(Settings):
    """Descriptions of the state at the end of each step, by a natural-language autoencoder."""

    verbaliser: StrictStr | None = None
    """Folder, or name on the hub, of the verbaliser of the measured model, such as
    `kitft/nla-qwen2.5-7b-L20-av`; without one nothing is measured."""
    reconstructor: StrictStr | None = None
    """The reconstructor that belongs to it (`…-ar`); null leaves out the cosines."""
    layer: Annotated[StrictInt, Field(ge=1)] | None = None
    """Layer whose stream is described, from 1; null is the one that the verbaliser's files say (one
    more than their `layer_index`, which counts blocks from 0)."""
    pattern: StrictStr | None = None
    """Regular expression that is looked for in every description, in any case."""
    max_new_tokens: StrictInt = Field(default=200, ge=1)
    """Most tokens of a description."""
    execution: Execution = "auto"

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None and (problem := pattern_problem(pattern)):
            raise ValueError(problem)
        return pattern

    @property
    def other_models(self) -> tuple[str, ...]:
        return tuple(name for name in (self.verbaliser, self.reconstructor) if name)

    def lacks(self) -> Mapping[str, str]:
        return {"verbaliser": "kitft/nla-qwen2.5-7b-L20-av"} if self.verbaliser is None else {}

    def misfit_with(self, model: ModelFacts) -> str | None:
        if self.layer is None or model.n_layers is None or self.layer <= model.n_layers:
            return None
        return f"layer: {self.layer} is not there; the model has layers 1 to {model.n_layers}"


@probe(
    "the state at the end of each step in words, by a natural-language autoencoder",
    words=("cue",),
    calls=lambda size, s: 1,
    branches=lambda size, s: Branches(repeated=False, scored=False),
)
def nla(model: Model, trace: Trace, asking: Asking, settings: NlaSettings) -> list[Record]:
    """One record, with lists that have a value per counted step:

        steps           indices of the steps in the chain
        descriptions    what the verbaliser writes of the stream at the step's last token
        cut             whether it reached its limit
        cosines         cosine of that state and the one that the reconstructor makes of the
                    description; None without a reconstructor
        says_answer     whether the description has the chain's answer as a word; None without one
        told            whether the chain's text has it by the end of the step
        early           says_answer of the steps by whose end it is not told; None for others
        says_other      share of the other options that it has; None without options
        matches         whether `settings.pattern` is found; None without one

    Raises:
        FloatingPointError: a state is not finite, naming the item.
        UserError: verbaliser or reconstructor cannot be loaded, or do not fit the model.
    """
    if settings.verbaliser is None:
        return [record(trace, "nla", "", None, excluded=NOT_SET)]
    if model.structure.unknown is not None:
        return [record(trace, "nla", "", None, excluded=NO_STREAM)]
    # Not at the top: they bring torch, which listing the probes need not wait for.
    from faithscope.interp.forest import Branch
    from faithscope.interp.verbalise import cosines, load_reconstructor, load_verbaliser

    how = model.dtype, str(model.device)
    verbaliser = load_verbaliser(settings.verbaliser, *how)
    layer = settings.layer or verbaliser.layer
    if layer is None or layer > model.n_layers:
        said = "say no layer" if layer is None else f"say layer {layer} of {model.n_layers}"
        raise UserError(
            f"nla.layer: the files of {settings.verbaliser} {said}; set the layer that it was "
            "trained on, from 1"
        )
    steps = trace.counted_steps
    start = len(trace.prompt_ids)
    ends = tuple(start + step.tokens[1] - 1 for step in steps)
    ran = model.run(
        [Branch(prefix_ids(model, asking, trace), ask=ends)],
        residuals=True,
        logits=False,
        execution=settings.execution,
    )
    read = ran.branches[0].residuals
    assert read is not None
    states = read[:, layer]
    try:
        made = verbaliser.describe(states, settings.max_new_tokens)
    except FloatingPointError as error:
        raise FloatingPointError(f"item {trace.question.id!r}, nla: {error}") from None
    texts = [one.text for one in made]
    answer, item = trace.answer, trace.question.id
    others = [name for name in trace.question.labels or () if name != answer]
    upto = [trace.reasoning_text[: step.chars[1]] for step in steps]
    says = [_has(text, answer) if answer else None for text in texts]
    told = [_has(text, answer) if answer else None for text in upto]
    cosine: list[float | None] = [None] * len(steps)
    if settings.reconstructor is not None:
        again = load_reconstructor(settings.reconstructor, *how).reconstruct(texts)
        cosine = [number(x) for x in cosines(again, states)]
    matches: list[bool | None] = [None] * len(steps)
    if (pattern := settings.pattern) is not None:
        found = [
            matched(pattern, text, "nla.pattern", item, any_case=True, first=True) for text in texts
        ]
        matches = [bool(spans) for spans in found]
    return [
        record(
            trace,
            "nla",
            "",
            None,
            answer=answer,
            layer=layer,
            n_layers=model.n_layers,
            n_steps=len(steps),
            steps=[step.index for step in steps],
            descriptions=texts,
            cut=[one.cut for one in made],
            cosines=cosine,
            matches=matches,
            says_answer=says,
            told=told,
            early=[
                None if known is not False else said for said, known in zip(says, told, strict=True)
            ],
            says_other=[
                number(sum(_has(text, name) for name in others) / len(others)) if others else None
                for text in texts
            ],
            execution=ran.execution,
            tree_reason=ran.reason,
        )
    ]


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
