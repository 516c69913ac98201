"""Encodes user text without ever producing special tokens.

A question that contains `<|im_end|>` or `</think>` would end the turn, or the reasoning,
of the model it is given to. Here such strings become the ordinary tokens that spell them.

`split_special_tokens=True` alone does not do it: tokenizers obey it only for tokens marked
special, and Qwen3's `<think>`, `</think>` and tool tags are not. Nor does encoding a text
by itself: SentencePiece-style tokenizers put a space before the first word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from weakref import WeakKeyDictionary

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerBase

from faithscope.interp.errors import UserError
from faithscope.interp.formats import TAGS, template_of

Before = Literal["nothing", "token", "text"]

_ANCHOR = "\U000f5a1c"
"""A private-use character that stands for the control token before a text."""
_STAND_INS = range(0xF0000, 0xF5A00)


@dataclass(frozen=True)
class Controls:
    """The control tokens of one tokenizer, and an encoder of text that obeys none of them."""

    ids: dict[str, int]
    """String -> id of every control token: the special ones, the reasoning tags, and the
    added tokens that the chat template names."""
    size: int
    template: str | None
    unknown: int | None
    backend: Tokenizer | None
    """The fast tokenizer's backend; None for a slow tokenizer."""
    prefixes_space: bool
    """Whether the first word of a text is encoded as if a space stood before it."""
    normalises: bool
    """Whether control tokens are looked for in a text that a normalizer has changed, in which
    `＜think＞` may be `<think>`."""

    def spelled_in(self, tokenizer: PreTrainedTokenizerBase, text: str) -> list[str]:
        """The strings in `text` that the tokenizer would take for control tokens, as spelled
        there."""
        spelled = dict.fromkeys(self.pattern.findall(text))
        if self.normalises:
            encoded: Any = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
            control = set(self.ids.values()) - {self.unknown}
            pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
            spelled |= dict.fromkeys(text[a:b].strip() for i, (a, b) in pairs if i in control)
        return [s for s in spelled if s]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.ids, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    @cached_property
    def _plain(self) -> Tokenizer | None:
        if self.backend is None:
            return None
        content = json.loads(self.backend.to_str())
        content |= {"post_processor": None, "truncation": None, "padding": None}
        for token in content["added_tokens"]:
            token["special"] |= token["content"] in self.ids
        plain = Tokenizer.from_str(json.dumps(content))
        plain.encode_special_tokens = True
        plain.add_tokens([AddedToken(_ANCHOR, normalized=False, special=False)])
        return plain

    def spell(self, text: str, before: Before) -> list[int] | None:
        """Ids of `text` with no control token among them; None without a fast tokenizer."""
        plain = self._plain
        if plain is None:
            return None
        if _ANCHOR in text:
            raise UserError(
                f"a text contains the private-use character U+{ord(_ANCHOR):X}, which is kept for "
                "marking control tokens; remove it from the text"
            )
        if before == "nothing":
            ids = plain.encode(text, add_special_tokens=False).ids
        else:

            def after_token(t: str) -> list[int]:
                return plain.encode(_ANCHOR + t, add_special_tokens=False).ids[1:]

            continues = before == "text" and self.prefixes_space
            ids = _after_newline(after_token, text) if continues else after_token(text)
        obeyed = set(self.ids.values()).intersection(ids) - {self.unknown}
        spelled = [t for t, i in self.ids.items() if i in obeyed]
        if [t for t in spelled if self.normalises or t in text]:
            raise UserError(
                f"{spelled[0]!r} in a text cannot be encoded without becoming the control token "
                "itself with this tokenizer; remove it from the text"
            )
        return ids


def _after_newline(encode: Callable[[str], list[int]], text: str) -> list[int]:
    """Ids of a text inside a line: SentencePiece puts its space before the line break."""
    newline, ids = encode("\n"), encode("\n" + text)
    return ids[len(newline) :] if ids[: len(newline)] == newline else encode(text)


_known: WeakKeyDictionary[PreTrainedTokenizerBase, Controls] = WeakKeyDictionary()


def controls(tokenizer: PreTrainedTokenizerBase) -> Controls:
    """The control tokens of `tokenizer`, kept until its vocabulary or template changes."""
    known = _known.get(tokenizer)
    template = template_of(tokenizer)
    if known is None or (known.size, known.template) != (len(tokenizer), template):
        backend = getattr(tokenizer, "backend_tokenizer", None)
        ids = {
            token.content: i
            for i, token in tokenizer.added_tokens_decoder.items()
            if token.special or _named(token.content, template)
        }
        unknown: Any = tokenizer.unk_token_id
        first = tokenizer.tokenize("a", add_special_tokens=False)
        space = bool(first) and first[0][0] in "▁Ġ"
        known = Controls(
            ids, len(tokenizer), template, unknown, backend, space, _normalises(backend, ids)
        )
        _known[tokenizer] = known
    return known


def _normalises(backend: Tokenizer | None, ids: Mapping[str, int]) -> bool:
    if backend is None or backend.normalizer is None:
        return False
    added = backend.get_added_tokens_decoder()
    return any(token.normalized for i, token in added.items() if i in set(ids.values()))


def _named(token: str, template: str | None) -> bool:
    """Whether an added token is a control token of the chat although it is not marked special.

    White space and plain words (Gemma adds its line breaks as tokens) are ordinary text.
    """
    word = token.isspace() or token.isalnum()
    return token in TAGS or (template is not None and token in template and not word)


def control_token_at_an_end(tokenizer: PreTrainedTokenizerBase, text: str) -> str | None:
    """The control token of this tokenizer that begins or ends a text, marks of reasoning aside;
    None if there is none. A text that was rendered by a chat template begins and ends so."""
    text = text.strip()
    tokens = (t for t in controls(tokenizer).ids if t.strip() and t not in TAGS)
    return next((t for t in tokens if text.startswith(t) or text.endswith(t)), None)


def encode_text(
    tokenizer: PreTrainedTokenizerBase, text: str, before: Before = "text"
) -> tuple[int, ...]:
    """Ids of plain text: nothing added, no control token in it obeyed.

    Args:
        before: what the ids will stand after. After `text`, no space is put before the first word;
            after a `token` or `nothing`, the tokenizer's own rule holds.

    Raises:
        UserError: the tokenizer encodes some control string of the text as the control token
            itself.
    """
    if not text:
        return ()
    known = controls(tokenizer)

    def encode(t: str) -> list[int]:
        return tokenizer(t, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    # Building the tokenizer that spells control strings takes seconds for a large vocabulary.
    ids = None
    if before == "token" or known.spelled_in(tokenizer, text):
        ids = known.spell(text, before)
    if ids is None:
        ids = (
            _after_newline(encode, text)
            if known.prefixes_space and before == "text"
            else encode(text)
        )
    return tuple(ids)


def encode_marks(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    """Ids of our own text (openers and closers), whose control tokens are obeyed."""
    if controls(tokenizer).pattern.match(text):
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    return encode_text(tokenizer, text)


@dataclass(frozen=True)
class Masks:
    """Private-use characters that replace control strings while a template is rendered.

    The template then sees, trims and tests everything else as it is, and control tokens that it
    wrote itself can be told from those that the data spelled.
    """

    characters: dict[str, str]
    """Control string -> the private-use character that replaces it."""

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> Masks:
        used = set().union(*texts)
        known = controls(tokenizer)
        spelled = dict.fromkeys(m for text in texts for m in known.spelled_in(tokenizer, text))
        free = (chr(c) for c in _STAND_INS if chr(c) not in used)
        return cls(dict(zip(spelled, free, strict=False)))

    def put(self, text: str, keep: Sequence[str] = ()) -> str:
        """`text` with its control strings masked, except those in `keep`, which are obeyed."""
        longest_first = sorted(self.characters, key=len, reverse=True)
        pattern = "|".join(map(re.escape, longest_first)) or r"(?!)"
        return re.sub(pattern, lambda m: m[0] if m[0] in keep else self.characters[m[0]], text)

    def lift(self, text: str) -> str:
        return text.translate({ord(c): token for token, c in self.characters.items()})

    def hides(self, text: str) -> bool:
        return any(c in text for c in self.characters.values())


def encode_masked(tokenizer: PreTrainedTokenizerBase, text: str, masks: Masks) -> tuple[int, ...]:
    """Ids of a rendered prompt: the template's control tokens obeyed, masked ones spelled.

    A text without masks is tokenised as usual. Around a mask, only the stretch between the two
    nearest control tokens is encoded anew, as one text: tokenizers cut text at control tokens
    anyhow, so no new join between tokens arises.

    Raises:
        UserError: the text holds a mask and the tokenizer is a slow one, which gives no character
            offsets.
    """
    if not masks.hides(text):
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UserError(
            f"a message spells the control token {next(iter(masks.characters))!r} and "
            f"{type(tokenizer).__name__} has no fast tokenizer to encode it as plain text; "
            "remove it from the message or load the fast tokenizer"
        )
    out: list[int] = []
    for token, ids, stretch in _stretches(tokenizer, text):
        if token is not None:
            out.append(token)
        if masks.hides(stretch):
            ids = encode_text(tokenizer, masks.lift(stretch), "token" if out else "nothing")
        out += ids
    return tuple(out)


def _stretches(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> Iterator[tuple[int | None, Sequence[int], str]]:
    """(control token, ids up to the next one, their text), from the start of `text` on."""
    encoded: Any = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    control = set(controls(tokenizer).ids.values())
    at = [i for i, token in enumerate(ids) if token in control]
    for a, b in zip([-1, *at], [*at, len(ids)], strict=True):
        start = offsets[a][1] if a >= 0 else 0
        end = offsets[b][0] if b < len(ids) else len(text)
        yield (ids[a] if a >= 0 else None), ids[a + 1 : b], text[start:end]
