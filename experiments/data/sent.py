"""The prompt of a question or chain as it was sent, in the tokens of the model that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faithscope.interventions.trace import Question

if TYPE_CHECKING:
    from faithscope.interp.language import Speaks
    from faithscope.interp.prompts import Prompt


def sent_prompt(
    model: Speaks, question: Question, message: str, thinking: bool | None = None
) -> Prompt:
    """The prompt that stands before a reply: the question's own as it was sent, if it has one.

    Args:
        message: the user message of a question that has no prompt of its own.

    Raises:
        UserError: the prompt cannot be rendered, as for `interp.prompts`; the message names the
            question.
    """
    sent = question.sent
    if sent is None:
        return model.prompt(message, thinking=thinking)
    if isinstance(sent.prompt, str):
        return model.raw_prompt(sent.prompt, sent.prefix, thinking)
    turns = [{"role": role, "content": text} for role, text in sent.prompt or (("user", message),)]
    return model.prompt(turns, thinking=thinking, prefix=sent.prefix)
