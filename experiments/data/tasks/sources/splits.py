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
        found = _named(inside, word)
        in_config = [f for f in found if config in f.relative_to(folder).parts]
        found = in_config or found
        if found:
            return _one(folder, split, found)
    held = ", ".join(str(at) for _, at in inside[:6]) or "no data file"
    raise UserError(
        f"data.path: {folder} has no file of split {split!r}; it holds {held}. "
        "Give the file itself, or set data.split"
    )


def _named(inside: Sequence[tuple[Path, Path]], word: str) -> list[Path]:
    as_word = re.compile(rf"(?:^|[-._ \d]){re.escape(word)}(?:[-._ \d]|$)")
    for tells in (
        lambda at: at.stem == word or at.stem.startswith(f"{word}-"),
        lambda at: word in at.parts[:-1],
        lambda at: as_word.search(at.stem) is not None,
    ):
        if found := [f for f, at in inside if tells(at)]:
            return found
    return []


def _one(folder: Path, split: str, found: list[Path]) -> list[Path]:
    """`found`, if it is one file or the shards of one."""
    kinds = {(f.parent, _without_number(f), f.suffix) for f in found}
    if len(kinds) > 1:
        named = ", ".join(str(f.relative_to(folder)) for f in found[:6])
        raise UserError(
            f"data.path: {folder} holds split {split!r} several times ({named}); give one of them"
        )
    wanted = {int(m[2]) for f in found if (m := _SHARD.search(f.stem))}
    if wanted and wanted != {len(found)}:
        raise UserError(
            f"data.path: {folder} has {len(found)} of {max(wanted)} files of split {split!r} "
            f"({found[0].name}, …); fetch the others too, or give one file itself"
        )
    return found


def _without_number(file: Path) -> str:
    return "" if file.stem.isdigit() else _SHARD.sub("", file.stem)
