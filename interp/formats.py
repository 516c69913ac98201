"""Where a model's reasoning begins and ends in its own tokens, found by looking."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from faithscope.interp.errors import UserError


@dataclass(frozen=True)
class ReasoningFormat:
    """The marks around a model's reasoning; all empty for one that reasons in plain prose."""

    name: str
    opener: str
    """What stands before the reasoning, white space included."""
    closer: str
    """What ends the reasoning and hands over to the answer."""
    answer_opener: str = ""
    """What opens an answer that no reasoning precedes, where the family marks that."""

    @property
    def marks(self) -> bool:
        """Whether reasoning is marked at all."""
        return bool(self.closer)


NONE = ReasoningFormat("none", "", "")
HARMONY = ReasoningFormat(
    "harmony",
    "<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>",
)
MISTRAL = ReasoningFormat("mistral_think", "[THINK]", "[/THINK]")
THINK = ReasoningFormat("think_tags", "<think>\n", "</think>")
BY_NAME = {f.name: f for f in (HARMONY, MISTRAL, THINK)}

TAGS = ("<think>", "</think>", "[THINK]", "[/THINK]")
"""Reasoning tags; control tokens wherever a tokenizer has them as tokens of their own."""


def template_of(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """The chat template's text; None for a base model."""
    return tokenizer.get_chat_template() if tokenizer.chat_template else None


def detect_format(tokenizer: PreTrainedTokenizerBase, model_type: str = "") -> ReasoningFormat:
    """How this model marks its reasoning, read off the chat template.

    The template decides, not the vocabulary: the Qwen3 instruct models that never think
    carry `<think>` in their vocabulary too, and the older DeepSeek-R1 templates, which
    leave the opener to the model, still name the closer in order to strip it. Without a
    template (a base model) nothing is marked.

    Think tags are opened with a line break after them, as Qwen3, DeepSeek-R1 and SmolLM3
    write them, unless the template writes `<think>` and never breaks the line after it.

    Raises:
        UserError: a harmony template over a tokenizer without harmony's tokens; the channels
            would be spelled out as text, and no answer would ever be found.
    """
    template = template_of(tokenizer)
    if template is None:
        return NONE
    if "<|channel|>analysis" in template:
        needed = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>"}
        missing = needed - {token.content for token in tokenizer.added_tokens_decoder.values()}
        if missing:
            raise UserError(
                f"{model_type or 'this model'}: its chat template writes harmony channels but its "
                f"tokenizer has no token {', '.join(sorted(missing))}; load the tokenizer that "
                "belongs to the model"
            )
        return HARMONY
    if "[THINK]" in template:
        return MISTRAL
    if "</think>" in template or "<think>" in template:
        broken = "<think>\\n" in template or "<think>\n" in template
        if "<think>" in template and not broken:
            return ReasoningFormat(THINK.name, "<think>", THINK.closer)
        return THINK
    return NONE
