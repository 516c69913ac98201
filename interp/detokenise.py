"""The text that each token adds, so that spans of text map to spans of ids exactly."""

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
