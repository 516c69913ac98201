"""Checks of what a chat template does with a question, made before any measurement."""

from __future__ import annotations

from transformers import PreTrainedTokenizerBase

from faithscope.interp import prompts
from faithscope.interp.errors import UserError
from faithscope.interp.formats import ReasoningFormat, template_of

_LONG = 6_000
"""Length in characters of the question that is tried: longer than most that are asked."""


def check_template(
    name: str, tokenizer: PreTrainedTokenizerBase, fmt: ReasoningFormat
) -> tuple[str, ...]:
    """Cautions about a chat template that changes what the model is asked, a line each.

    Raises:
        UserError: the template does not render a question, or leaves out or changes a part of it.
    """
    if template_of(tokenizer) is None:
        return ()
    question = "zq7x " + "Is 2 + 2 < 5 & is it so?\n\n  (A) yes\n" * (_LONG // 40) + "qz9x"
    try:
        text = prompts.render(tokenizer, fmt, [{"role": "user", "content": question}]).text
    except UserError as error:
        raise UserError(f"model {name!r}: {error}") from error
    if (times := text.count("zq7x")) > 1:
        return (f"its chat template writes the question {times} times into every prompt",)
    return ()
