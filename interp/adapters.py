"""Adapters: small weights, in a folder as PEFT writes it, that change a base model.

`load` takes such a folder as a model's name. This module reads the folder without weights;
`interp.adapted` puts the adapter on its base model.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faithscope.interp import documents
from faithscope.interp.errors import UserError

FILE = "adapter_config.json"
"""File that makes a folder an adapter."""
BASE = "base_model_name_or_path"
"""Key of the adapter's config that names the base model."""
TRAINED_ON = "base_model.json"
"""File of an adapter that faithscope trained: `weights` is the fingerprint of its base model."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def adapter_folder(name: str) -> Path | None:
    """The folder of an adapter, if `name` is one; None for every other model."""
    folder = Path(name).expanduser()
    is_adapter = (folder / FILE).is_file() and not (folder / "config.json").is_file()
    return folder if is_adapter else None


def json_of(path: Path) -> dict[str, Any]:
    """The JSON object in a file of an adapter.

    Raises:
        UserError: the file cannot be read, holds no object, or has a key twice.
    """
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        twice.extend(key for key in keys if keys.count(key) > 1)
        return dict(pairs)

    try:
        value = documents.json_of(path.read_text(encoding="utf-8"), object_pairs_hook=once)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); get the file again") from error
    if twice:
        raise UserError(
            f"{path}: the key {twice[0]!r} stands twice in one object; keep one of them"
        )
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object; get the file again")
    return value


def base_of(folder: Path) -> str:
    """The name of the base model, as `load` takes it.

    Raises:
        UserError: the adapter's config cannot be read, or names no base model.
    """
    base = json_of(folder / FILE).get(BASE)
    if not isinstance(base, str) or not base:
        raise UserError(f"{folder / FILE} names no base model; write its name under the key {BASE}")
    if adapter_folder(base) is not None:
        raise UserError(
            f"{folder / FILE}: the base model {base!r} is itself an adapter; merge that one into "
            "its base model first (PEFT's merge_and_unload), and name the merged folder"
        )
    return base


def revision_of(folder: Path, asked: str | None) -> str | None:
    """The revision of the base model on the hub: the one asked for, or the one that the adapter's
    config names.

    Raises:
        UserError: the config names a commit, and another revision is asked for.
    """
    recorded = json_of(folder / FILE).get("revision")
    if Path(base_of(folder)).expanduser().exists() or not isinstance(recorded, str):
        return asked
    if asked not in (None, recorded) and _COMMIT.fullmatch(recorded):
        raise UserError(
            f"adapter {str(folder)!r} was trained on commit {recorded} of {base_of(folder)}, and "
            f"revision {asked!r} is asked for; leave the revision out"
        )
    return asked or recorded


def tokenizer_of(folder: Path) -> Path | None:
    """The adapter's folder, if a tokenizer was saved with it: it may add tokens or a chat template
    to that of the base model."""
    return folder if (folder / "tokenizer_config.json").is_file() else None


def check_patterns(folder: Path, modules: Iterable[str]) -> None:
    """Check that every regular expression in the adapter's config can be matched in bounded time.

    A program of its own matches them, since Python cannot stop a match.

    Args:
        modules: names of the base model's modules, with which PEFT matches the expressions.

    Raises:
        UserError: matching takes longer than `_PATIENCE` seconds.
    """
    patterns = [text for text in _texts(json_of(folder / FILE)) if re.search("[*+{]", text)]
    if not patterns:
        return
    given = json.dumps([patterns, list(modules)])
    try:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCHES], input=given, text=True, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"{folder / FILE}: matching its patterns ({', '.join(patterns)[:200]}) with the names "
            f"of the base model's modules takes more than {_PATIENCE} s; list the names instead"
        ) from error


_PATIENCE = 20
"""Longest time (s) that matching the patterns of a config may take."""
_MATCHES = r"""
import json, re, sys
patterns, modules = json.load(sys.stdin)
for p in patterns:
    # the ways in which PEFT matches target_modules, rank_pattern, modules_to_save, layers_pattern
    for way in (p, rf"(.*\.)?({p})$", rf"(^|.*\.){p}($|\..*)", rf"(?:^|.*?\.){p}\.(\d+)\."):
        try:
            way = re.compile(way)
        except re.error:
            continue  # PEFT refuses it by itself
        for name in modules:
            way.match(name), way.fullmatch(name)
"""


def _texts(value: Any) -> Iterator[str]:
    """All strings in a JSON value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(part)


@contextmanager
def without_deprecations() -> Iterator[None]:
    """A context without the warnings that PEFT and transformers have for each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def import_peft(what: str) -> Any:
    """The module `peft`.

    Raises:
        UserError: it is not installed; the message begins with `what` (`what needs PEFT`).
    """
    try:
        import peft
    except ImportError as error:
        raise UserError(f"{what} needs PEFT: pip install 'faithscope[train]'") from error
    return peft
