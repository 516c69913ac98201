"""A real model behind a real OpenAI-compatible server (`transformers serve`) on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import loopback


@contextmanager
def serving(model: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the base URL and the served name of the model, until the block ends.

    Args:
        model: a folder that transformers can load.
        folder: gets the log, and a link so that the model's name is no path.
    """
    name = model.name.removesuffix("-1")
    (folder / name).symlink_to(model)
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", name]
    command += ["--device", "cpu", "--dtype", "float32"]
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf"), "OMP_NUM_THREADS": "1"}
    with loopback.serving(command, folder / "serve.log", os.environ | quiet) as url:
        yield url, name
