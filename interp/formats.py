"""The format of a model's reasoning: its opener and closer, read from the chat template."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.utils.chat_template_utils import render_jinja_template

from faithscope.interp.errors import UserError
from faithscope.interp.marks import (
    MARKS,
    NO_MARKS,
    Marks,
    StatedMarks,
    marks_problem,
    unknown_marks,
    unknown_openers,
)
from faithscope.interp.resource_limits import bounded


@dataclass(frozen=True)
class ReasoningFormat:
    """The marks around a model's reasoning; all empty for a model that reasons in plain prose."""

    name: str
    opener: str
    """The text that opens the reasoning, white space included."""
    closer: str
    """The text that ends the reasoning, before the answer."""
    answer_opener: str = ""
    """The text that opens an answer without reasoning before it, in families that mark it."""
    nests: bool = True
    """Whether a block may hold another block, which then ends before the outer one."""

    @property
    def marks(self) -> bool:
        """Whether reasoning is marked at all."""
        return bool(self.closer)


NONE = ReasoningFormat(NO_MARKS, "", "")
OWN = "own"
"""Name of a format whose marks the user states."""
TAGS = tuple(t for m in MARKS if m.name != "harmony" for t in (m.opener.strip(), m.closer))
"""Reasoning tags; control tokens wherever a tokenizer has them as tokens of their own."""
TAIL = 80
"""Number of characters at the end of a rendered prompt in which marks of reasoning are looked
for."""
_SECONDS, _BYTES = 2.0, 1024**3
"""Bounds on a chat template that is rendered to see how its prompts end; templates take
milliseconds."""


def format_of(marks: Marks, template: str = "") -> ReasoningFormat:
    """The format of known marks.

    Args:
        template: a chat template, which may show whether a line break follows the opener.
    """
    marks = marks.written_in(template)
    opener = marks.opener
    shows_break = f"{opener}\\n" in template or f"{opener}\n" in template
    if shows_break if opener in template else marks.breaks_line:
        opener += "\n"
    return ReasoningFormat(marks.name, opener, marks.closer, marks.answer_opener, marks.nests)


BY_NAME = {m.name: format_of(m) for m in MARKS}
"""Name -> format of known marks, without what a template would tell."""


def stated_format(
    tokenizer: PreTrainedTokenizerBase, marks: StatedMarks, name: str = "this model"
) -> ReasoningFormat:
    """The format of marks that a user states, over what the chat template shows.

    Args:
        marks: a name of `interp.marks.MARKS`, `none`, or opener and closer as the model writes
            them, white space included.
        name: the model's, for messages.

    Raises:
        UserError: `marks` are no marks, or the tokenizer has no chat template.
    """
    if problem := marks_problem(marks):
        raise UserError(f"{name}: {problem}")
    if marks == NONE.name:
        return NONE
    if template_of(tokenizer) is None:
        raise UserError(
            f"{name}: its tokenizer has no chat template, so that it would be asked in plain text, "
            f"without the marks that are stated (marks: {marks}); give a folder with its weights, "
            "a tokenizer.json and a chat template as the name, or leave marks out, for plain text"
        )
    if isinstance(marks, str):
        return BY_NAME[marks]
    opener, closer = marks
    return ReasoningFormat(OWN, opener, closer)


def template_of(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The chat template's text; None for a base model."""
    return tokenizer.get_chat_template() if tokenizer.chat_template else None


def with_template(tokenizer: PreTrainedTokenizerBase, template: str) -> PreTrainedTokenizerBase:
    """A tokenizer of the same tokens that renders conversations by another chat template (Jinja, as
    `tokenizer_config.json` holds it); the one given is left as it is."""
    other = copy.copy(tokenizer)
    other.chat_template = template
    return other


def detect_format(
    tokenizer: PreTrainedTokenizerBase,
    model_type: str = "",
    marks: StatedMarks | None = None,
    name: str = "",
) -> ReasoningFormat:
    """The marks of this model's reasoning, read off the chat template: those that its generation
    prompt ends with, else those that its text names.

    The template decides, not the vocabulary: the Qwen3 instruct models that never think
    carry `<think>` in their vocabulary too, and the older DeepSeek-R1 templates, which
    leave the opener to the model, still name the closer in order to strip it. Without a
    template (a base model) nothing is marked. Of several pairs that a template names the first
    of `interp.marks.MARKS` counts.

    Think tags are opened with a line break after them, as Qwen3, DeepSeek-R1 and SmolLM3
    write them, unless the template writes `<think>` and never breaks the line after it.

    Args:
        marks: marks that the user states instead (`stated_format`).
        name: the model's, for messages.

    Raises:
        UserError: a harmony template over a tokenizer without harmony's tokens; the channels
            would be spelled out as text, and no answer would ever be found. Or the template
            names marks of reasoning that are not known, so that thinking would be read as prose.
    """
    named = name or model_type or "this model"
    if marks is not None:
        return stated_format(tokenizer, marks, named)
    template = template_of(tokenizer)
    if template is None:
        return NONE
    ends = generation_ends(tokenizer, template)
    rendered = "\n".join(ends)
    # a text that strips marks of other families may stand beside the prompt that opens its own
    known = next((m for m in MARKS if m.written_in(rendered).opener in rendered), None)
    if known is None and not unknown_openers(rendered):
        known = next((m for m in MARKS if m.shown_in(template)), None)
    if known is None:
        if unknown := unknown_marks(template) or unknown_openers(rendered):
            raise UserError(
                f"{named}: its chat template names {', '.join(unknown)}, as if its reasoning "
                "was marked in a way that is not known here; say how it is (marks: [OPENER, "
                "CLOSER]; model.marks in a config), or that it is not (marks: none)"
            )
        return NONE
    if known.name == "harmony":
        needed = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>"}
        missing = needed - {token.content for token in tokenizer.added_tokens_decoder.values()}
        if missing:
            raise UserError(
                f"{named}: its chat template writes harmony channels but its "
                f"tokenizer has no token {', '.join(sorted(missing))}; load the tokenizer that "
                "belongs to the model"
            )
    return format_of(known, f"{template}\n{rendered}")


def generation_ends(tokenizer: PreTrainedTokenizerBase, template: str) -> list[str]:
    """The last characters (`TAIL`) of what a chat template writes for one user's message, as it is
    and with thinking switched on; none where it cannot be rendered (`prompts.render` says why)."""
    tokens: dict[str, Any] = dict(getattr(tokenizer, "special_tokens_map", {}))
    ends = []
    on = dict.fromkeys(("enable_thinking", "thinking", "reasoning"), True)
    for switches in ({}, on):
        given: dict[str, Any] = tokens | switches
        try:
            with bounded(_SECONDS, _BYTES):
                ends += render_jinja_template(
                    [[{"role": "user", "content": "a"}]],
                    chat_template=template,
                    add_generation_prompt=True,
                    **given,
                )[0]
        except Exception:  # a template is a program, and may raise any error
            return []
    return [text[-TAIL:] for text in dict.fromkeys(ends)]
