"""A model's language side: tokenizer, reasoning format, end tokens. It needs no weights.

For a model that runs in another process (a vLLM server): prompts become ids here, replies text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faithscope.interp import control, detokenise, prompts
from faithscope.interp.formats import ReasoningFormat

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Speaks:
    """Conversion between text and token ids for one model: prompts to it, and texts of it."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    format: ReasoningFormat
    end_ids: frozenset[int]
    revision: str | None
    cautions: tuple[str, ...]

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text: nothing added, control tokens in it not obeyed."""
        return control.encode_text(self.tokenizer, text)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, control tokens included."""
        return detokenise.decode(self.tokenizer, ids)

    def pieces(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text each id adds; see `interp.detokenise.pieces`."""
        return detokenise.pieces(self.tokenizer, ids)

    def prompt(
        self,
        user: str | Sequence[dict[str, str]],
        system: str | None = None,
        thinking: bool | None = None,
        effort: str | None = None,
        prefix: str = "",
    ) -> prompts.Prompt:
        """Render one user turn (or a list of messages) up to where the model goes on, after a
        `prefix` of its turn if there is one."""
        messages = [{"role": "user", "content": user}] if isinstance(user, str) else list(user)
        if system is not None:
            messages = [{"role": "system", "content": system}, *messages]
        return prompts.render(self.tokenizer, self.format, messages, thinking, effort, prefix)

    def raw_prompt(
        self, text: str, prefix: str = "", thinking: bool | None = None
    ) -> prompts.Prompt:
        """A prompt that is rendered already, token for token (`interp.prompts.render_raw`)."""
        return prompts.render_raw(self.tokenizer, self.format, text, prefix, thinking)


@dataclass(frozen=True)
class Language(Speaks):
    """A model without its weights. Made by `interp.load_language`."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    format: ReasoningFormat
    end_ids: frozenset[int]
    location: str
    """A hub id or a folder, for a process that loads the weights elsewhere."""
    revision: str | None = None
    max_positions: int | None = None
    """The most positions that the model's config admits; a server may take fewer."""
    cautions: tuple[str, ...] = ()
    """Cautions for a reader of the model's numbers, as in `LoadedModel.cautions`."""
