"""Shipped files: run configs by their names, and files that configs can refer to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.errors import UserError, did_you_mean

FOLDER = Path(__file__).parents[2] / "configs"
PREFIX = "shipped:"
"""Prefix of a path in a config that is relative to `FOLDER`."""
NOT_RUNS = ("prices", "models/")
"""Beginnings of the names of files in `configs/` that are not run configs."""


def located(path: str) -> Path:
    """The file or folder that a path in a config means; `shipped:` refers to a shipped file."""
    if path.startswith(PREFIX):
        return FOLDER / path.removeprefix(PREFIX)
    return Path(path).expanduser()


def names() -> list[str]:
    """Names of the shipped run configs: `quickstart`, `paper/rfeval`, …"""
    paths = (p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.yaml"))
    return sorted((n for n in paths if not n.startswith(NOT_RUNS)), key=lambda n: ("/" in n, n))


def config_path(given: str | Path) -> Path:
    """Path of a config given as a file or, where no such file exists, by a shipped config's name.

    A path that is neither is returned as it is.

    Raises:
        UserError: it is neither, but close to the name of a shipped config.
    """
    path, name = Path(given), str(given)
    if path.is_file():
        return path
    if name in names():
        return FOLDER / f"{name}.yaml"
    if guess := did_you_mean(name, names()):
        raise UserError(f"{name}: no such file, nor a shipped config{guess}")
    return path


def is_shipped(path: Path) -> bool:
    """Whether a config lies in the shipped folder, so is not a user's own."""
    return path.resolve().is_relative_to(FOLDER.resolve())


def edited_copy(given: str | Path) -> Path | None:
    """The copy of a shipped config in the working folder, as `copy_to` names it, where a shipped
    config is given by its name and that copy differs from it."""
    copy = Path("configs", f"{given}.yaml")
    if not is_shipped(path := config_path(given)) or not copy.is_file():
        return None
    return None if copy.read_bytes() == path.read_bytes() else copy


def summary(name: str) -> str:
    """Summary of a shipped config: its first line, which is a comment."""
    with (FOLDER / f"{name}.yaml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()


def rows() -> list[tuple[str, str]]:
    """(name, summary) of every shipped run config."""
    return [(name, summary(name)) for name in names()]


def copy_to(folder: Path, wanted: Sequence[str] = ()) -> list[Path]:
    """Copy shipped run configs into a folder, for editing; returns the paths of the copies.

    A file that is already there as it would be written is left alone.

    Args:
        wanted: names of configs; none copies all.

    Raises:
        UserError: there is no such config, or a file of that name has another content.
    """
    known = names()
    for name in wanted:
        if name not in known:
            guess = did_you_mean(name, known) or "; see `faithscope list configs`"
            raise UserError(f"no shipped config {name!r}{guess}")
    copies = {folder / f"{name}.yaml": FOLDER / f"{name}.yaml" for name in wanted or known}
    for path, source in copies.items():
        if path.exists() and path.read_bytes() != source.read_bytes():
            raise UserError(
                f"{path}: is there and differs from the shipped one; move it, or give another "
                "folder"
            )
    for path, source in copies.items():
        make_folder(path.parent)
        write_atomically(path, source.read_bytes())
    return list(copies)
