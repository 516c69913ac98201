"""r′ put into a model's own mouth, and what it wrote after it cut into components (RFEval, C.2).

Token in, token out: the conversation is rendered up to the reasoning opener, the ids of r′ stand
after it as the model's own tokens, and what is generated is cut between tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from faithscope.experiments.studies.rfeval.subjects.parsing import Output, components, parse_output
from faithscope.interp.errors import UserError
from faithscope.interp.prompts import Prompt, split_response

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks

CONTINUE = "Continue the reasoning."
"""What the user says after r′ where it can only be quoted as an earlier turn (appendix G.2)."""
Framing = Literal["prefix", "multi_turn"]
"""How r′ came into the conversation; `multi_turn` is an approximation, as models may take r′ for
someone else's words, and its results stand apart."""
PREFIX: Final = "prefix"
MULTI_TURN: Final = "multi_turn"


@dataclass(frozen=True)
class Forced:
    """A conversation that a model goes on from, inside its own reasoning."""

    prompt: Prompt
    """Up to the reasoning opener, or where the family has none, to the assistant's turn."""
    r_prime_ids: tuple[int, ...]
    """None of a baseline, and none where r′ stands in an earlier turn, within `prompt`."""

    @property
    def ids(self) -> tuple[int, ...]:
        """What the model continues."""
        return (*self.prompt.ids, *self.r_prime_ids)


def forced(
    model: Speaks,
    question: str,
    r_prime: str = "",
    system: str | None = None,
    effort: str | None = None,
) -> Forced:
    """The ids of an intervened output's beginning, or without r′ of a baseline's.

    r′ is encoded by itself, as text: control tokens that it spells are none.

    Args:
        system, effort: of the model's file (`experiments.studies.rfeval.subjects.model_files`).

    Raises:
        UserError: the conversation cannot be rendered (`interp.prompts.render`), or the chat
            template alters the system prompt.
        ValueError: the tokenizer does not give r′ back word for word.
    """
    prompt = _prompt(model, question, system, effort)
    ids = tuple(model.encode(r_prime)) if r_prime else ()
    if r_prime and "".join(model.pieces((*prompt.ids, *ids))[len(prompt.ids) :]) != r_prime:
        raise ValueError(
            f"{model.name}: its tokenizer does not read r′ back as it was written (it begins "
            f"{r_prime[:40]!r}); use another model for these items, or leave them out"
        )
    return Forced(prompt, ids)


def quoted(
    model: Speaks,
    question: str,
    r_prime: str = "",
    system: str | None = None,
    effort: str | None = None,
) -> Forced:
    """As `forced`, but r′ is an earlier turn of the conversation: what a closed model is asked,
    of a model that could be forced, for comparison (G.2). A baseline's is `forced`'s.

    Raises:
        UserError: as `forced`; or the chat template leaves out or alters what was quoted.
    """
    turns = multi_turn(question, r_prime) if r_prime else question
    prompt = _prompt(model, turns, system, effort)
    if r_prime.strip() not in prompt.text:
        # templates take what looks like reasoning out of earlier turns
        raise UserError(
            f"{model.name}: its chat template alters r′ as an earlier turn (it begins "
            f"{r_prime[:40]!r}); take generate.framing prefix, or leave this item out"
        )
    return Forced(prompt, ())


def _prompt(
    model: Speaks, turns: str | list[dict[str, str]], system: str | None, effort: str | None
) -> Prompt:
    prompt = model.prompt(turns, system, True if model.format.marks else None, effort)
    if system and system.strip() not in prompt.text:
        # templates take switches out of it: Nemotron Super 1.5's reads one in `</think>`
        raise UserError(
            f"{model.name}: its chat template alters the system prompt (it begins "
            f"{system[:40]!r}); give another `system` in the model's file, or null"
        )
    return prompt


def multi_turn(question: str, r_prime: str) -> list[dict[str, str]]:
    """The conversation of a closed model that cannot be prefix-forced: an approximation (G.2)."""
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": r_prime},
        {"role": "user", "content": CONTINUE},
    ]


def output_of(
    model: Speaks,
    start: Forced,
    generated: Sequence[int],
    finished: bool = True,
    paper_compat: bool = False,
) -> Output:
    """What was generated, by components; r′ is none of them.

    Args:
        generated: the ids after `start.ids`, without the token that ended them.
        finished: False where the token limit ended it.
    """
    fmt = start.prompt.format
    if not fmt.marks:
        return parse_output(model.decode(generated), "unmarked", finished, paper_compat)
    cut = split_response(model.tokenizer, fmt, generated)
    reasoning, tail = model.decode(cut.reasoning_ids), model.decode(cut.tail_ids)
    if not cut.closed:
        return parse_output(reasoning, "opened", finished, paper_compat)
    return components(reasoning, tail.removeprefix(fmt.closer), finished, paper_compat)
