"""Whether what a run gives a reader (tables, figures, page) is what would be made of it now.

Beside the outputs lies what they were made from: the code, the libraries, and every other file of
the run folder by size and time. Where nothing of that changed and no output is missing or edited,
a finished run that is started again has nothing to do.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faithscope.experiments.engine.environment import source, version
from faithscope.experiments.files import write_atomically

FILE = "outputs.json"
OUTPUTS = ("arrays", "figures", "report.html", "tables")
"""What is made anew of a run folder; all else in it is what that is made from."""
_MAKERS = ("faithscope", "matplotlib", "numpy", "pandas", "scikit-learn", "scipy")
"""The packages that the bytes of outputs come out of."""


def sources(run_dir: Path) -> dict[str, Any]:
    """What outputs that are made now are made from."""
    made_of = {
        "code": source(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _MAKERS},
    }
    files = (
        path
        for path in run_dir.iterdir()
        if path.name not in (*OUTPUTS, FILE) and not path.name.startswith(".")
    )
    return made_of | {"files": dict(_files(run_dir, files))}


def keep(run_dir: Path, made_of: dict[str, Any]) -> None:
    """Note that the outputs as they are now were made from this."""
    text = json.dumps({"from": made_of, "outputs": _outputs(run_dir)}, indent=1)
    write_atomically(run_dir / FILE, text + "\n")


def is_current(run_dir: Path) -> bool:
    """Whether the outputs are there, as they were made, and would be made of the same now."""
    try:
        made = json.loads((run_dir / FILE).read_text("utf-8"))
        known, made_of = made["outputs"], made["from"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    there = _outputs(run_dir)
    # a file that someone put beside them is none of ours
    return all(there.get(p) == known[p] for p in known) and made_of == sources(run_dir)


def _outputs(run_dir: Path) -> dict[str, list[int]]:
    return dict(_files(run_dir, (run_dir / name for name in OUTPUTS)))


def _files(run_dir: Path, paths: Iterator[Path]) -> Iterator[tuple[str, list[int]]]:
    """Path in the run folder -> size and time of change, of files and what lies in folders."""
    for path in sorted(paths):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                at = file.stat()
                yield file.relative_to(run_dir).as_posix(), [at.st_size, at.st_mtime_ns]
