"""Providers of API judges: their names, and what each needs before the first call."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from urllib.parse import SplitResult, unquote, urlsplit

from faithscope.interp.errors import UserError, did_you_mean

INSTALL = "pip install 'faithscope[judge]'"


@dataclass(frozen=True)
class Provider:
    """Requirements of one service that Inspect AI can call."""

    keys: tuple[str, ...] = ()
    """Environment variables of which one must hold a key; none if the server asks for no key."""
    module: str = "openai"
    """The Python package that Inspect needs for the service."""
    schema: bool = False
    """Whether every current model of the service can be held to a JSON schema."""
    url: str = ""
    """The environment variable that may hold the address, if there is no fixed one."""
    install: str = INSTALL


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(("OPENAI_API_KEY",), schema=True),
    "openai/azure": Provider(
        ("AZUREAI_OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
        schema=True,
        url="AZUREAI_OPENAI_BASE_URL",
    ),
    "anthropic": Provider(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "anthropic"),
    "google": Provider(("GOOGLE_API_KEY", "GEMINI_API_KEY"), "google.genai", schema=True),
    "groq": Provider(("GROQ_API_KEY",), "groq"),
    "together": Provider(("TOGETHER_API_KEY",)),
    "fireworks": Provider(("FIREWORKS_API_KEY",)),
    "deepseek": Provider(("DEEPSEEK_API_KEY",)),
    "openrouter": Provider(("OPENROUTER_API_KEY",)),
    "mistral": Provider(
        ("MISTRAL_API_KEY",), "mistralai", schema=True, install="pip install mistralai"
    ),
    "grok": Provider(("XAI_API_KEY", "GROK_API_KEY"), "xai_sdk", install="pip install xai-sdk"),
    "vllm": Provider(schema=True, url="VLLM_BASE_URL"),
    "sglang": Provider(schema=True, url="SGLANG_BASE_URL"),
    "ollama": Provider(),
    "openai-api": Provider(),
}
"""First part of a judge's name -> its provider."""

KINDS = (
    "openai/MODEL, openai/azure/DEPLOYMENT, anthropic/MODEL, google/MODEL, groq/MODEL, "
    "together/MODEL, vllm/MODEL; any other OpenAI-compatible server as openai-api/SERVICE/MODEL, "
    "with its base URL and its key in SERVICE_API_KEY"
)

NO_KEY = "no-key"
"""Key sent to a server on this machine if none is set, since clients insist on one."""


@dataclass(frozen=True)
class Service:
    """One judge's provider, with all that is known before a call."""

    provider: Provider
    name: str
    """The judge's name in Inspect's form."""
    keys: tuple[str, ...]
    api_key: str | None
    """`NO_KEY` or None: a real key stays in the environment, where the client reads it."""


def service(name: str, base_url: str | None) -> Service:
    """The service of the judge `name`; everything that would fail at the first call fails here.

    Raises:
        UserError: an unknown provider, a missing client, key or address, or a key in the address.
    """
    first, _, model = name.partition("/")
    if first not in PROVIDERS or not model:
        guess = "" if first in PROVIDERS else did_you_mean(first, PROVIDERS)
        raise UserError(f"model {name!r}: no such provider{guess or f'; known: {KINDS}'}")
    if model.startswith("azure/"):
        first, model = f"{first}/azure", model.removeprefix("azure/")
    provider = PROVIDERS[first]
    keys, url = provider.keys, provider.url
    if first == "openai-api":
        server, _, model = model.partition("/")
        prefix = re.sub(r"\W", "_", server).upper()
        keys, url = (f"{prefix}_API_KEY",), f"{prefix}_BASE_URL"
    if not model:
        raise UserError(f"model {name!r}: names no model; known: {KINDS}")
    _check_client(name, provider)
    _check_address(name, base_url, url)
    return Service(provider, name, keys, _placeholder(name, keys, base_url or os.getenv(url)))


def _check_client(name: str, provider: Provider) -> None:
    for module, install in (("inspect_ai", INSTALL), (provider.module, provider.install)):
        if not _importable(module):
            raise UserError(f"model {name!r} needs {module}, which is not installed: {install}")


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _check_address(name: str, base_url: str | None, variable: str) -> None:
    if base_url is None:
        if variable and not os.getenv(variable):
            raise UserError(
                f"model {name!r} has no fixed address: give base_url, or set {variable}"
            )
        _check_environment(name, variable)
        return
    parts = _split(base_url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"model {name!r}: base_url must be http(s)://HOST[:PORT]/PATH")
    if secret := secret_in_address(base_url):
        # The value itself is not shown: it must not be written anywhere.
        raise UserError(
            f"model {name!r}: base_url holds {secret}; keys are read from the environment only"
        )


def secret_in_address(url: str) -> str:
    """Name of the part of an address that may be a key, which a run folder would keep; empty if
    none is.

    A path may hold a key, too (`https://proxy/KEY/v1`): the value of any environment variable that
    `redact` takes for a key, percent-encoded or not. An address with such a path can be given in
    the environment, from where it is never written.
    """
    parts = _split(url)
    if parts is None:
        return "something that is no address"
    # `urlsplit` puts an address without http:// into the path
    if "@" in (parts.netloc or url) or parts.query or parts.fragment:
        return "a user name, a password, a query or a fragment"
    if redact(url) != url or redact(unquote(url)) != unquote(url):
        return "the value of an environment variable that is a key"
    return ""


def _check_environment(name: str, variable: str) -> None:
    """Refuse passwords in addresses from the environment, which the client's error messages would
    show.

    `variable` is checked first; then those that Inspect reads for providers with a fixed address.
    """
    first = name.partition("/")[0].upper().replace("-", "_")
    others = (f"{first}_BASE_URL", *_ALSO_READ.get(first, ()), "INSPECT_EVAL_MODEL_BASE_URL")
    for known in dict.fromkeys((variable, *others)):
        parts = _split(os.getenv(known, "")) if known else None
        if parts is not None and "@" in parts.netloc:
            raise UserError(
                f"model {name!r}: the address in {known} holds a user name or a password, which "
                "messages of the client would show; take it out: keys have variables of their own"
            )


_ALSO_READ = {
    "GROK": ("XAI_BASE_URL",),
    "OPENAI": ("AZUREAI_OPENAI_BASE_URL", "AZURE_OPENAI_BASE_URL"),
}


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _placeholder(name: str, keys: tuple[str, ...], address: str | None) -> str | None:
    if not keys or any(os.getenv(key) for key in keys):
        return None
    if address and _is_here(urlsplit(address).hostname or ""):
        return NO_KEY
    if "AZURE_OPENAI_API_KEY" in keys and _importable("azure.identity"):
        return None
    raise UserError(f"model {name!r} needs a key: export {' or '.join(keys)}=…")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_SECRET = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.I)


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """`text` without the value of any environment variable whose name says that it is a secret.

    A value is removed as it is and as JSON may spell it, with escapes for some of its letters.
    Values under eight characters stay: they are settings (`TOKEN_LIMIT=512`), and removing them
    would tear holes into replies.
    """
    secrets = [(v, k) for k, v in environment.items() if _SECRET.search(k) and len(v) >= 8]
    for value, variable in sorted(secrets, key=lambda s: -len(s[0])):
        text = text.replace(value, f"[{variable}]")
        if "\\" in text:
            text = _escaped(value).sub(f"[{variable}]", text)
    return text


@lru_cache(maxsize=256)
def _escaped(value: str) -> re.Pattern[str]:
    """A pattern of every spelling that a JSON string may have for `value`."""
    return re.compile("".join(rf"(?:\\*{re.escape(c)}|\\+u(?i:{ord(c):04x}))" for c in value))
