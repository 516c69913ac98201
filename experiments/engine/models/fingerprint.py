"""Fingerprints that tell weights from others of the same name, whose results must not be mixed."""

from __future__ import annotations

from pathlib import Path

from faithscope.interp.fingerprint import folder_fingerprint
from faithscope.interp.sources import PACKAGED


def fingerprint(model: str, revision: str | None) -> str | None:
    """A fingerprint of a model's weights, made without reading them all; None for an API model."""
    scheme, _, rest = model.partition(":")
    if scheme == "api":
        # the provider may change an API model unseen
        return None
    if scheme == "bundled" and rest in PACKAGED:
        return PACKAGED[rest].sha256
    if scheme == "planted":
        from faithscope.experiments.data.planted.plants import path as planted_path

        return folder_fingerprint(planted_path(rest))
    path = Path(model).expanduser()
    return folder_fingerprint(path) if path.exists() else revision
