"""The files of PRM800K: as released, from the hub's copy of them, or plain rows.

Files are read line by line: the largest has 456 MB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faithscope.experiments.data.given.prm800k import Solution, solution_of
from faithscope.experiments.data.tasks.sources.files import SUFFIXES, readable, rows_in, suffix_of
from faithscope.interp import hub
from faithscope.interp.errors import UserError, did_you_mean

SPLITS = ("phase1_train", "phase1_test", "phase2_train", "phase2_test")
TRAINING = ("phase1_train", "phase2_train")
"""The "training split" that C2-Faith builds on (algorithm 1)."""
REPOSITORY, REVISION = "tasksource/PRM800K", "547b19506677a59037ee888838834b65e9b1ddd4"
"""The hub's copy of the four files as they were released."""
RELEASED = {
    "phase1_train": "e9da6a73f827ffb9a8c0dc644c541d34ed76b3d4d1e4896ff5f7b37ddf5ae34d",
    "phase1_test": "f4b3bc5b095e45c816453dc4d748b755c680d61d55f9895d929a335b487c727d",
    "phase2_train": "1110237feeb51d1bc200cb37b8f965cfdc1036eac7d506094049366fe7dc1089",
    "phase2_test": "6b172efa884ac8341a946dd82e06947c135b7254109fb3f7aa907c715d98aaad",
}
"""sha256 of the released files, as their repository's Git LFS pointers state them."""


@dataclass(frozen=True)
class Source:
    """A file that solutions were read from."""

    name: str
    sha256: str
    n_rows: int

    @property
    def as_released(self) -> bool:
        """Whether the file is, byte for byte, one of OpenAI's."""
        return self.sha256 in RELEASED.values()


def read_prm800k(
    path: Path | None = None, splits: Sequence[str] = TRAINING
) -> tuple[list[Solution], list[Source]]:
    """All solutions of PRM800K, in the order of the files, and the files.

    Args:
        path: a file; or a folder that holds the files of `splits`, wherever in it, or one data
            file alone; None for the hub's copy.
        splits: of `SPLITS`; what a path to a file holds is read whatever its name.

    Raises:
        UserError: a file that is not there or cannot be read, or a row that is not of either
            format; names file, line and field.
    """
    for split in splits:
        if split not in SPLITS:
            guess = did_you_mean(split, SPLITS) or f"; there are {', '.join(SPLITS)}"
            raise UserError(f"PRM800K: unknown split {split!r}{guess}")
    solutions: list[Solution] = []
    sources = []
    seen: dict[str, str] = {}
    for file in _files(path, splits):
        before = len(solutions)
        with readable(file), file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            for row in rows_in(file):
                solution = solution_of(row)
                if solution.id in seen:
                    raise UserError(
                        f"{row.where}: id {solution.id!r} is that of {seen[solution.id]}; number "
                        "the rows of a file differently, and name files differently"
                    )
                seen[solution.id] = row.where
                solutions.append(solution)
        if len(solutions) == before:
            raise UserError(f"{file}: holds no rows; give a file with some")
        sources.append(Source(file.name, digest, len(solutions) - before))
    return solutions, sources


def _files(path: Path | None, splits: Sequence[str]) -> list[Path]:
    if path is None:
        return [_from_hub(split) for split in splits]
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UserError(f"data.path: no such file or folder: {str(path)!r}; check the path")
    data_files = sorted(f for f in path.rglob("*") if suffix_of(f) in SUFFIXES and f.is_file())
    by_split = {split: [f for f in data_files if f.stem == split] for split in splits}
    if twice := next((files for files in by_split.values() if len(files) > 1), None):
        named = ", ".join(str(f.relative_to(path)) for f in twice)
        raise UserError(f"data.path: {path} holds one split several times ({named}); give a file")
    files = [f for split in splits for f in by_split[split]]
    if len(files) == len(splits):
        return files
    if not files and len(data_files) == 1:
        return data_files
    missing = [f"{split}.jsonl" for split in splits if not by_split[split]]
    shown = ", ".join(str(f.relative_to(path)) for f in data_files[:6]) or "no data file"
    raise UserError(
        f"data.path: {path} has no {' and no '.join(missing)}; it holds {shown}. Give the file "
        "itself, or the splits that are there"
    )


def _from_hub(split: str) -> Path:
    from huggingface_hub import hf_hub_download

    problem = hub.unreachable()
    try:
        return Path(
            hf_hub_download(REPOSITORY, f"{split}.jsonl", repo_type="dataset", revision=REVISION)
        )
    except Exception as error:  # whatever the network, the hub or the disk come up with
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UserError(
            f"PRM800K: could not get {split}.jsonl of {REPOSITORY} from the hub: "
            f"{problem or reason}; give a local copy: "
            "--set data.path=FILE_OR_FOLDER"
        ) from error
