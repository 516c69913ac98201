"""The real `inspect` command in a process that sees this checkout's entry points."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_METADATA = "import sys; from setuptools import build_meta as b; " + (
    "print(b.prepare_metadata_for_build_wheel(sys.argv[1]))"
)


def metadata(folder: Path) -> Path:
    """Metadata of this checkout as an editable installation has it, in a folder for the path of
    imports: what is installed may be older than the entry points in pyproject.toml."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", _METADATA, str(folder)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    url = {"url": ROOT.as_uri(), "dir_info": {"editable": True}}
    (folder / made.stdout.split()[-1] / "direct_url.json").write_text(json.dumps(url))
    for twin in folder.glob("*.egg-info"):
        shutil.rmtree(twin)
    return folder


def inspect(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `inspect` with this environment."""
    own = {"NO_COLOR": "1"}
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (here, ROOT)))}
    main = "from inspect_ai._cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", main, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | own | paths | {"OMP_NUM_THREADS": "1"},
        cwd=here,
    )
