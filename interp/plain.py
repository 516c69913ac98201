"""Text from elsewhere (a model, a server, a file) as it may be shown to a person."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """`text` with every character that steers a terminal or reorders a line made visible.

    Line feeds and tabs stay, CR LF becomes LF. C0 controls show as their pictures (␛), other
    controls, bidirectional overrides and lone surrogates as ⟨U+202E⟩.
    """
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """`text` made `visible`, on one line."""
    return visible(" ".join(text.split()))


def _visible(char: str) -> str:
    code = ord(char)
    if char in "\n\t":
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    steers = 0x200E <= code <= 0x200F or 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    if steers or unicodedata.category(char) in ("Cc", "Cs"):
        return f"⟨U+{code:04X}⟩"
    return char
