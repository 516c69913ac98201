"""Cells that hold a prompt as it was sent (`prompt_raw`, `assistant_prefix`), and reasoning that is
to be put into a model's mouth (`counterfactual`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from faithscope.experiments.data.tasks.sources.gold import LEADS_TO
from faithscope.experiments.data.tasks.sources.json_text import NotJson, json_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, cell, has, usable
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Counterfactual, Sent

RAW, PREFIX = "prompt_raw", "assistant_prefix"
R_PRIME = "counterfactual"
ROLES = ("system", "user", "assistant")


def sent_of(row: SourceRow) -> Sent | None:
    """The prompt as it was sent and the beginning of the reply, by a row's columns `prompt_raw` and
    `assistant_prefix`; None if it has neither.

    `prompt_raw` holds a text, which is the whole prompt as rendered, or a list of messages (JSON
    text in a table), which the template of the model that reads them renders.

    Raises:
        UserError: the row has another prompt, too, or its messages do not end with the user's.
    """
    prompt: str | tuple[tuple[str, str], ...] | None = None
    if has(row, RAW):
        if other := next((n for n in ("prompt", "messages") if has(row, n)), None):
            raise UserError(
                f"{row.where}: {RAW!r} is the whole prompt, and {other!r} another one; keep one"
            )
        prompt = _prompt(cell(row, RAW), row)
    prefix = cell(row, PREFIX) if has(row, PREFIX) else ""
    if prefix:
        usable(prefix, repr(PREFIX), row)
        prefix = str(prefix)
    return Sent(prompt, prefix) if prompt or prefix else None


def counterfactual_of(row: SourceRow) -> Counterfactual | None:
    """The reasoning r′ of a row's column `counterfactual`, with the answer that it leads to
    (`counterfactual_answer`); None without one.

    Raises:
        UserError: a cell is no text, or there is an answer without the reasoning.
    """
    answer = usable(cell(row, LEADS_TO), repr(LEADS_TO), row) if has(row, LEADS_TO) else None
    if not has(row, R_PRIME):
        if answer is not None:
            raise UserError(
                f"{row.where}: {LEADS_TO!r} is the answer of {R_PRIME!r}, which is not there; give "
                "the reasoning, or leave both out"
            )
        return None
    usable(cell(row, R_PRIME), repr(R_PRIME), row)
    return Counterfactual(str(cell(row, R_PRIME)), answer)


def _prompt(value: Any, row: SourceRow) -> str | tuple[tuple[str, str], ...]:
    where = f"{row.where}: {RAW!r}"
    if isinstance(value, str) and re.match(r"\s*\[\s*\{", value):
        try:
            value = json_of(value, where)
        except NotJson as error:
            raise UserError(
                f"{where} begins like a list of messages, and is no JSON ({error}); repair it"
            ) from error
    if isinstance(value, str):
        usable(value, repr(RAW), row)
        return value
    if not isinstance(value, list) or not value:
        raise UserError(f"{where} is a {type(value).__name__}; give a text, or a list of messages")
    turns = tuple(_turn(message, i, row) for i, message in enumerate(value))
    if (last := turns[-1][0]) != "user":
        raise UserError(
            f"{where} ends with a message of the {last}; end it with the user's: what the model "
            f"went on from is {PREFIX!r}, and its reply 'reasoning'"
        )
    return turns


def _turn(message: Any, i: int, row: SourceRow) -> tuple[str, str]:
    what = f"{RAW}[{i}]"
    if not isinstance(message, Mapping):
        raise UserError(f"{row.where}: {what} is a {type(message).__name__}; give an object")
    role = message.get("role")
    role = "system" if role == "developer" else role
    if role not in ROLES or (role == "system" and i > 0):
        raise UserError(
            f"{row.where}: {what} has the role {role!r}; there are user and assistant, and system "
            "for the first message"
        )
    content = message.get("content")
    usable(content, f"{what}.content", row)
    return str(role), str(content)
