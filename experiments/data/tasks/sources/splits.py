"""Which files of a folder hold a split, by the names that the hub's data sets give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from faithscope.interp.errors import UserError

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
_ALSO = {
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
    "train": ("train", "training"),
}
"""Words for a split, as the hub knows them."""
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?:-[0-9a-f]{8,})?$")


def files_of_split(folder: Path, split: str, config: str | None = None) -> list[Path]:
    """The files of one split, in order: one file, or all shards of one.

    Tried in turn: files called `test` or `test-…`, files in a folder `test`, files with the word
    in their name (`us_4_options_test`), then the same with the split's other words (`dev`).

    Args:
        config: where several folders have the split, the one called so is read.

    Raises:
        UserError: none, several, or not every shard of it.
        OSError: the folder may not be read.
    """
    if not folder.is_dir():
        raise UserError(f"data.path: no such file or folder: {str(folder)!r}; check the path")
    next(folder.iterdir(), None)  # raises where the folder is closed; rglob passes over it
    files = sorted(f for f in folder.rglob("*") if f.suffix in SUFFIXES and f.is_file())
    inside = [(f, f.relative_to(folder)) for f in files]
    for word in dict.fromkeys((split, *_ALSO.get(split, ()))):
        of_split = _named(inside, word)
        in_config = [f for f in of_split if config in f.relative_to(folder).parts]
        of_split = in_config or of_split
        if of_split:
            return _one(folder, split, of_split)
    listed = ", ".join(str(at) for _, at in inside[:6]) or "no data file"
    raise UserError(
        f"data.path: {folder} has no file of split {split!r}; it holds {listed}. "
        "Give the file itself, or set data.split"
    )


def _named(inside: Sequence[tuple[Path, Path]], word: str) -> list[Path]:
    as_word = re.compile(rf"(?:^|[-._ \d]){re.escape(word)}(?:[-._ \d]|$)")
    for tells in (
        lambda at: at.stem == word or at.stem.startswith(f"{word}-"),
        lambda at: word in at.parts[:-1],
        lambda at: as_word.search(at.stem) is not None,
    ):
        if matching := [f for f, at in inside if tells(at)]:
            return matching
    return []


def _one(folder: Path, split: str, of_split: list[Path]) -> list[Path]:
    """`found`, if it is one file or the shards of one."""
    kinds = {(f.parent, _without_number(f), f.suffix) for f in of_split}
    if len(kinds) > 1:
        named = ", ".join(str(f.relative_to(folder)) for f in of_split[:6])
        raise UserError(
            f"data.path: {folder} holds split {split!r} several times ({named}); give one of them"
        )
    wanted = {int(m[2]) for f in of_split if (m := _SHARD.search(f.stem))}
    if wanted and wanted != {len(of_split)}:
        raise UserError(
            f"data.path: {folder} has {len(of_split)} of {max(wanted)} files of split {split!r} "
            f"({of_split[0].name}, …); fetch the others too, or give one file itself"
        )
    return of_split


def _without_number(file: Path) -> str:
    return "" if file.stem.isdigit() else _SHARD.sub("", file.stem)
