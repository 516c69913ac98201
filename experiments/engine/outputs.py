"""Fingerprint of a run's outputs (tables, figures, page), which tells whether they are up to date.

The file `outputs.json` says what the outputs were made from: the code, the libraries, and every
other file of the run folder by size and time. If none of this changed and no output is missing or
edited, a finished run that is started again has nothing to do.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faithscope.experiments.engine.cluster import FOLDER
from faithscope.experiments.engine.environment import source, version
from faithscope.experiments.files import write_atomically

FILE = "outputs.json"
"""File of the fingerprint, in the run folder."""
DIRECTIONS = "directions"
"""Folder of the directions in hidden states that tables fitted."""
OUTPUTS = ("arrays", DIRECTIONS, "figures", "report.html", "tables")
"""Files and folders of a run folder that are outputs; outputs are made from everything else in
it."""
REPRODUCED = "reproduced"
"""Folder of printed tables beside the run's numbers, which is made by reading the finished run."""
EXPORTS = "exports"
"""Folder of what is written for other programs, by reading the run."""
_MAKERS = ("faithscope", "matplotlib", "numpy", "pandas", "scikit-learn", "scipy")
"""Packages whose versions may change the bytes of outputs."""


def sources(run_dir: Path) -> dict[str, Any]:
    """Fingerprint of everything that outputs made now would be made from."""
    made_of = {
        "code": source(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _MAKERS},
    }
    files = (
        path
        for path in run_dir.iterdir()
        if path.name not in (*OUTPUTS, REPRODUCED, EXPORTS, FILE, FOLDER)
        and not path.name.startswith(".")
    )
    return made_of | {"files": dict(_files(run_dir, files))}


def keep(run_dir: Path, made_of: dict[str, Any]) -> None:
    """Store that the present outputs were made from `made_of` (what `sources` returned before)."""
    text = json.dumps({"from": made_of, "outputs": _outputs(run_dir)}, indent=1)
    write_atomically(run_dir / FILE, text + "\n")


def is_current(run_dir: Path) -> bool:
    """Whether all outputs are as they were written, and would be made from the same sources now."""
    try:
        made = json.loads((run_dir / FILE).read_text("utf-8"))
        known, made_of = made["outputs"], made["from"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    there = _outputs(run_dir)
    # files that someone else put beside the outputs do not count
    return all(there.get(p) == known[p] for p in known) and made_of == sources(run_dir)


def _outputs(run_dir: Path) -> dict[str, list[int]]:
    return dict(_files(run_dir, (run_dir / name for name in OUTPUTS)))


def _files(run_dir: Path, paths: Iterator[Path]) -> Iterator[tuple[str, list[int]]]:
    """Yields (path in the run folder, [size, time of last change]) for files and for the content of
    folders."""
    for path in sorted(paths):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                at = file.stat()
                yield file.relative_to(run_dir).as_posix(), [at.st_size, at.st_mtime_ns]
