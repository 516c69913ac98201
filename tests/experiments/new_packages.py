"""Packages that `faithscope new` writes, installed in a folder of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bad_input import said_by

from faithscope.experiments.cli.new import KINDS

ROOT = Path(__file__).parents[2]
PIP = "install -q --disable-pip-version-check --no-build-isolation --no-deps --no-index --target"
MAIN = "from faithscope.experiments.cli import main; main()"


def python(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder where packages are installed in `site`."""
    paths = os.pathsep.join(map(str, (here / "site", ROOT)))
    env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=here, env=env, capture_output=True, text=True)


def faithscope(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(here, "-c", MAIN, *arguments)


def installed(here: Path, *packages: Path) -> Path:
    """The folder, with the packages installed by pip in its folder `site`."""
    done = python(here, "-m", "pip", *PIP.split(), str(here / "site"), *map(str, packages))
    assert done.returncode == 0, done.stderr
    return here


def written(here: Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """The folders of a new thing of each kind, called `my_KIND`."""
    folders = [here / f"my_{kind}" for kind in kinds]
    for kind, folder in zip(kinds, folders, strict=True):
        said = said_by("new", kind, folder.name, "--to", str(folder))
        assert said.code == 0, said.err
        assert {Path(line) for line in said.out.splitlines()} == set(folder.iterdir())
        assert f"pip install -e {folder}" in said.err
    return folders
