"""Keys and passwords: taken out of texts that are kept or shown, refused in addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from faithscope.interp import plain

_SECRET = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.I)
"""Pattern of the names of environment variables that hold a key or a password."""
_PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")
"""A user name or password in an address."""


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """`text` without the value of any environment variable whose name says that it is a secret.

    A value is removed as it is and as JSON may spell it, with escapes for some of its letters.
    Values under eight characters stay: they are settings (`TOKEN_LIMIT=512`), and removing them
    would tear holes into replies.
    """
    if not text:
        return text
    named = [(environment[k], k) for k in environment if _is_secret(k)]
    secrets = [(v, k) for v, k in named if len(v) >= 8]
    for value, variable in sorted(secrets, key=lambda s: -len(s[0])):
        text = text.replace(value, f"[{variable}]")
        if "\\" in text:
            text = _escaped(value).sub(f"[{variable}]", text)
    return text


@lru_cache(maxsize=4096)
def _is_secret(variable: str) -> bool:
    return bool(_SECRET.search(variable))


@lru_cache(maxsize=256)
def _escaped(value: str) -> re.Pattern[str]:
    """A pattern of every spelling that a JSON string may have for `value`."""
    return re.compile("".join(rf"(?:\\*{re.escape(c)}|\\+u(?i:{ord(c):04x}))" for c in value))


def one_line(text: str) -> str:
    """A message that may be written anywhere: on one line, without keys, passwords in addresses or
    terminal controls."""
    return redact(_PASSWORD.sub("", plain.one_line(text)))[:500]


def address_problem(url: str) -> str:
    """Why a server's address cannot be used, as it is no address or may hold a key; empty if it
    can.

    A run folder keeps the address. A path may hold a key, too (`https://proxy/KEY/v1`): the value
    of any environment variable that `redact` takes for a key, percent-encoded or not. An address
    with such a path can be given in the environment, from where it is never written.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must be http(s)://HOST[:PORT]/PATH"
    secret = ""
    if "@" in parts.netloc or parts.query or parts.fragment:
        secret = "a user name, a password, a query or a fragment"
    elif redact(url) != url or redact(unquote(url)) != unquote(url):
        secret = "the value of an environment variable that is a key"
    # the value itself is not shown: it must not be written anywhere
    return f"holds {secret}; keys are read from the environment only" if secret else ""
