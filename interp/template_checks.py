"""Checks of what a chat template does with a question, made before any measurement."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from transformers import PreTrainedTokenizerBase

from faithscope.interp import prompts
from faithscope.interp.errors import UserError
from faithscope.interp.formats import ReasoningFormat, template_of

_LONG = 6_000
"""Length in characters of the question that is tried: longer than most that are asked."""


_CHAT_NAME = re.compile(r"(?i)(?<![a-z])(it|instruct|instruction|chat|sft|dpo|assistant)(?![a-z])")
"""What the names of models that were trained on chats hold as a word of its own."""
_TURN_END = re.compile(r"(?i)<\|?(im_end|eot(_id)?|end_of_turn|turn_end|eom(_id)?|assistant)\|?>")
"""Tokens that end a turn of a chat, and no text of other kinds."""


def check_template(
    name: str, tokenizer: PreTrainedTokenizerBase, fmt: ReasoningFormat, ends: Iterable[int] = ()
) -> tuple[str, ...]:
    """Cautions about a chat template that changes what the model is asked, or is missing, a line
    each.

    Args:
        ends: ids that end the model's turn.

    Raises:
        UserError: the template does not render a question, or leaves out or changes a part of it.
    """
    if template_of(tokenizer) is None:
        sign = _sign_of_chats(name, tokenizer, ends)
        if sign is None:
            return ()
        return (
            f"its files have no chat template, while {sign}: where no other template is given, "
            "questions are put to it as plain text; if it was trained on chats, add its "
            "chat_template.jinja",
        )
    question = "zq7x " + "Is 2 + 2 < 5 & is it so?\n\n  (A) yes\n" * (_LONG // 40) + "qz9x"
    try:
        text = prompts.render(tokenizer, fmt, [{"role": "user", "content": question}]).text
    except UserError as error:
        raise UserError(f"model {name!r}: {error}") from error
    if (times := text.count("zq7x")) > 1:
        return (f"its chat template writes the question {times} times into every prompt",)
    return ()


def _sign_of_chats(
    name: str, tokenizer: PreTrainedTokenizerBase, ends: Iterable[int]
) -> str | None:
    """What says that a model was trained on chats; None if nothing does."""
    for called in (name, tokenizer.name_or_path):
        if word := _CHAT_NAME.search(PurePath(called).name):
            return f"the name {PurePath(called).name!r} says {word[0]!r}"
    tokens = tokenizer.convert_ids_to_tokens(sorted(ends))
    turn = next((t for t in tokens if t is not None and _TURN_END.fullmatch(t)), None)
    return None if turn is None else f"it ends its texts with {turn}, as models trained on chats do"
