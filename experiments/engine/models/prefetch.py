"""Brings what a config needs into the caches of this machine, so that jobs need no network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from faithscope.experiments.config.api import API
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.engine.models.at_hand import is_of_hub, models_of, settings_of
from faithscope.experiments.numerals import decimal
from faithscope.interp import hub, sources
from faithscope.interp.errors import UserError


def bring_models(config: FolderConfig) -> Iterator[str]:
    """Download and convert every model of a config; yields a line for each once it is here.

    Raises:
        UserError: a model cannot be had.
    """
    revisions = {
        str(value) for key, value in settings_of(config) if key == ("model", "revision") and value
    }
    revision = revisions.pop() if revisions else None
    subjects = {str(v) for key, v in settings_of(config) if key[-2:] == ("model", "name")}
    for name in models_of(config):
        if name.startswith(API):
            yield f"{name}: is asked over the network"
        elif is_of_hub(name):
            folder = hub.bring(name, revision if name in subjects else None)
            size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
            yield f"{name}: {decimal(size / 1e9)} GB at {folder}"
        else:
            yield f"{name}: {sources.resolve(name).location}"


def check_offline(arguments: Sequence[str]) -> None:
    """Check that a run can be planned without the hub, by a dry run in another process.

    Args:
        arguments: the config and the overrides, as for `faithscope run`.

    Raises:
        UserError: it cannot; says what is missing.
    """
    command = [sys.executable, "-m", "faithscope.experiments.cli", "run", *arguments, "--dry-run"]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(
        command, env=offline, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if ended.returncode == 2:
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        raise UserError("without the hub the run cannot be planned: " + "; ".join(errors))


def cache_settings() -> str:
    """The line of a profile by which jobs use the caches of this machine and no network."""
    from huggingface_hub import constants

    folders = {"HF_HOME": Path(constants.HF_HOME), "FAITHSCOPE_CACHE": sources.cache_dir()}
    words = [f"{name}={folder}" for name, folder in folders.items()]
    return f"export {' '.join(words)} HF_HUB_OFFLINE=1"
