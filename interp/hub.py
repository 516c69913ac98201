"""A check that the Hugging Face hub answers, made once in a process before anything is read.

The hub's clients try each file six times over half a minute. If the hub cannot be reached, they are
told to read their cache alone, so that cached files still load and all others fail at once.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from faithscope.interp.errors import UserError

SECONDS = 10.0
"""Timeout of the one request, in seconds."""


@cache
def unreachable() -> str | None:
    """Why nothing can be got from the hub, in words; None if the hub answers.

    Once the hub was found unreachable, only caches are read.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.HF_HUB_OFFLINE:
        return "the hub is not asked (HF_HUB_OFFLINE)"
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception as error:  # whatever the network, a proxy or the client come up with
        _read_caches_alone()
        return f"{constants.ENDPOINT} cannot be reached ({type(error).__name__})"
    return None


def _read_caches_alone() -> None:
    from huggingface_hub import constants

    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = True
    if datasets := sys.modules.get("datasets"):
        datasets.config.HF_HUB_OFFLINE = True


def is_cached(name: str, revision: str | None = None) -> bool:
    """Whether the config of a model lies in the cache, so that it may load without the hub."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str)


OTHER_FORMATS = ("*.gguf", "*.onnx", "*.pth", "*.pt", "*.h5", "*.msgpack", "original/*")
"""Files of a repository that hold the same weights in formats that are not read here."""


def bring(name: str, revision: str | None = None) -> Path:
    """Download what a model is loaded from (weights, tokenizer, configs) into the cache; returns
    its folder.

    Raises:
        UserError: the hub cannot be reached or refuses; says why.
    """
    from huggingface_hub import HfApi, snapshot_download

    try:
        files = HfApi().list_repo_files(name, revision=revision)
        # many repositories hold the same weights in both formats
        old = ["*.bin"] if any(f.endswith(".safetensors") for f in files) else []
        ignored = [*OTHER_FORMATS, *old]
        return Path(snapshot_download(name, revision=revision, ignore_patterns=ignored))
    except Exception as error:  # whatever the network, a proxy or the client come up with
        why = " ".join(str(error).split())[:300]
        raise UserError(
            f"model {name!r} cannot be downloaded: {type(error).__name__}: {why}"
        ) from error
