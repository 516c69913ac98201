"""Text of token ids: of all, of all so far, and of each id, so that spans map to ids exactly."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

_INCOMPLETE = "�"


def decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """The text of `ids`, special tokens included, white space as it stands."""
    text = tokenizer.decode(
        list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
    )
    assert isinstance(text, str)
    return text


class GrowingText:
    """The text of token ids that arrive one at a time.

    Equals `decode` of all ids so far without decoding all of them at every step: the last few are
    enough, unless a token leaves a character incomplete or changes how the tokens before it read.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._text = ""
        self._read = 0
        """The number of ids up to which characters are complete."""
        self._known = ""
        """The text of all ids up to `_read`."""
        self._window = 0
        self._before = ""
        """The text of the ids from `_window` to `_read` by themselves."""

    def add(self, token: int) -> str:
        """The whole text after one more token."""
        self._ids.append(token)
        after = decode(self._tokenizer, self._ids[self._window :])
        whole = not after.endswith(_INCOMPLETE)
        if whole and after.startswith(self._before):
            self._text = self._known + after[len(self._before) :]
        else:
            self._text = decode(self._tokenizer, self._ids)
        if whole:
            newest = decode(self._tokenizer, self._ids[self._read :])
            # A newest blank that the decoder strips cannot tell whether the text reads the same.
            self._window, self._before = (self._read, newest) if newest else (self._window, after)
            self._read, self._known = len(self._ids), self._text
        return self._text


def pieces(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    """One string per id; joined, they are the text of all of them.

    A character spread over several tokens belongs to the token that completes it; the tokens before
    it add nothing. Uses `decode` alone, hence works for any tokenizer: a token adds what the text
    of a short window grows by.
    """
    out: list[str] = []
    window, read = 0, 0
    before = ""
    for i in range(len(ids)):
        after = decode(tokenizer, ids[window : i + 1])
        if after.endswith(_INCOMPLETE) and i + 1 < len(ids):
            out.append("")
            continue
        out.append(after[len(before) :])
        window, read = read, i + 1
        before = decode(tokenizer, ids[window:read])
    return tuple(out)
