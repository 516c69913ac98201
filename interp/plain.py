"""Text from elsewhere (a model, a server, a file) as it may be shown to a person."""

from __future__ import annotations

import re
import unicodedata

_BEFORE_AT = re.compile(r"(?<![^\s/@])([^\s/@]++)@(?=(\S?))")
_USER = re.compile(r"(?:\A|(?<=[=\[({,'\"]))[^=\[({,'\"]+?:")
_QUERY = re.compile(r"(://(?:(?!://)[^\s?#'\"])*)[?#][^\s'\"]*")
_FORMULA = "=+-@\t\r"


def without_passwords(text: str) -> str:
    """`text` without the parts of addresses that may hold a key: user names with passwords, queries
    and fragments."""

    def without_user(match: re.Match[str]) -> str:
        words, at = match[1], match.start()
        if text.endswith("://", 0, at):
            return "…@"
        # after a slash or another "@", only a name that white space sets off is a user's name
        begins = 0 if at == 0 or text[at - 1].isspace() else 1
        user = _USER.search(words, begins) if match[2] else None
        return f"{words[: user.start()]}…@" if user else match[0]

    return _QUERY.sub(r"\1?…", _BEFORE_AT.sub(without_user, text))


def as_cell(value: object) -> object:
    """A value as a table's cell that no spreadsheet takes for a formula: a text that begins like
    one, and is no number, gets an apostrophe before it. `from_cell` takes it off."""
    if not isinstance(value, str) or not value or value[0] not in _FORMULA or _is_number(value):
        return value
    return f"'{value}"


def from_cell(text: str) -> str:
    """The text that `as_cell` made a cell of."""
    return text[1:] if text[:1] == "'" and text[1:2] and text[1] in _FORMULA else text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", text) is not None


def visible(text: str) -> str:
    """`text` with every character that steers a terminal or reorders a line made visible.

    Line feeds and tabs stay, CR LF becomes LF. C0 controls show as their pictures (␛), other
    controls, bidirectional overrides and lone surrogates as ⟨U+202E⟩.
    """
    if text.isascii() and text.isprintable():
        return text
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
