"""Text of ids: of all, of all so far, and what each adds, so that spans map to ids exactly."""

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
    """The text of ids that come one at a time.

    What `decode` gives of all of them so far, without decoding all of them at every step: of
    a token the last few are enough, unless it leaves a character incomplete or changes what
    the tokens before it read as.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._text = ""
        self._read = 0
        """The place at which the last whole character ended."""
        self._known = ""
        """The text of all ids up to `_read`."""
        self._window = 0
        self._before = ""
        """The text of the ids from `_window` to `_read` by themselves."""

    def add(self, token: int) -> str:
        """The text with one more token."""
        self._ids.append(token)
        after = decode(self._tokenizer, self._ids[self._window :])
        whole = not after.endswith(_INCOMPLETE)
        if whole and after.startswith(self._before):
            self._text = self._known + after[len(self._before) :]
        else:
            self._text = decode(self._tokenizer, self._ids)
        if whole:
            newest = decode(self._tokenizer, self._ids[self._read :])
            # A blank that a decoder strips tells nothing of whether it still reads the same.
            self._window, self._before = (self._read, newest) if newest else (self._window, after)
            self._read, self._known = len(self._ids), self._text
        return self._text


def pieces(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    """One string per id; joined, they are the text of all of them.

    A character spread over several tokens belongs to the token that completes it, the
    ones before add nothing. Works through `decode` alone, hence for any tokenizer: what a
    token adds is what the text of a short window grows by.
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
