"""What comes with faithscope: run configs by their names, and files that configs can name."""

from __future__ import annotations

from pathlib import Path

from faithscope.interp.errors import UserError, did_you_mean

FOLDER = Path(__file__).parents[2] / "configs"
PREFIX = "shipped:"
NOT_RUNS = ("prices", "models/")
"""Of what lies there, what is no config of a run."""


def located(path: str) -> Path:
    """The file or folder that a config names; with `shipped:` before it, one that comes with us."""
    if path.startswith(PREFIX):
        return FOLDER / path.removeprefix(PREFIX)
    return Path(path).expanduser()


def names() -> list[str]:
    """The shipped run configs: `quickstart`, `paper/rfeval`, …"""
    paths = (p.relative_to(FOLDER).with_suffix("").as_posix() for p in FOLDER.rglob("*.yaml"))
    return sorted((n for n in paths if not n.startswith(NOT_RUNS)), key=lambda n: ("/" in n, n))


def config_path(given: str | Path) -> Path:
    """The config that is meant: a file, or the name of a shipped one where no such file is.

    Raises:
        UserError: neither, of a word that is nearly the name of a shipped one.
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
    """Whether a config is one that comes with us, not a user's."""
    return path.resolve().is_relative_to(FOLDER.resolve())


def summary(name: str) -> str:
    """The first line of a shipped config, a comment that says what it is."""
    with (FOLDER / f"{name}.yaml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()


def rows() -> list[tuple[str, str]]:
    """Name and summary of each."""
    return [(name, summary(name)) for name in names()]
