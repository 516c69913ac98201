"""Counts of how often the machine killed a worker for lack of memory.

Such a kill leaves the worker no time to write anything. Whoever sees it (the shell of a cluster's
job, or a scheduler) adds a line to the worker's file; the worker then starts with a smaller token
budget, instead of being killed at the same place again.
"""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.files import make_folder

FOLDER = "killed_for_memory"
"""Folder below the run folder with a file per killed worker, which has a line per kill."""


def n_kills(run_dir: Path, worker: str) -> int:
    """Number of times that a worker was killed for lack of memory."""
    return len(_lines(run_dir, worker))


def add_kill(run_dir: Path, worker: str, kill: str) -> bool:
    """Count a kill of a worker, once; returns whether it was not counted before.

    Args:
        kill: one word that no other kill of the worker has, such as the id of its job.
    """
    if kill in _lines(run_dir, worker):
        return False
    with (make_folder(run_dir / FOLDER) / worker).open("a", encoding="utf-8") as file:
        file.write(f"{kill}\n")
    return True


def _lines(run_dir: Path, worker: str) -> list[str]:
    path = run_dir / FOLDER / worker
    return path.read_text("utf-8").split() if path.is_file() else []
