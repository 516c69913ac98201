"""Ways of damaging a run folder, and what a run that is gone on with makes of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from bad_input import copied, outputs, said_by, write

OUTPUTS = ("tables/tracing.csv", "figures/tracing.csv", "report.html", ".locks/main.lock")
RECORDS = ("records/traces.main.jsonl", "records/tracing.main.jsonl")
FILES = (
    "config.yaml",
    "plan.jsonl",
    "environment.json",
    "input_report.json",
    *RECORDS,
    "records/tracing.main.arrays",
    "timing.main.jsonl",
)
PROBES = {"probes": ["slrc", "tracing"]}


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _changed(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return damage


def _digit(lines: list[bytes]) -> list[bytes]:
    """Still JSON, and still wrong."""
    at = lines[1].rindex(b"1")
    return [lines[0], lines[1][:at] + b"2" + lines[1][at + 1 :], *lines[2:]]


ANY: dict[str, Callable[[Path], None]] = {
    "is gone": Path.unlink,
    "is empty": lambda path: _write(path, b""),
    "lacks its second half": lambda p: _write(p, p.read_bytes()[: p.stat().st_size // 2]),
    "has one bit changed": _changed,
    "holds []": lambda path: _write(path, b"[]"),
    "holds no text": lambda path: _write(path, b"\xff\xfe\0" * 9),
    "is a folder": _as_folder,
}
OF_RECORDS: dict[str, Callable[[Path], None]] = {
    "has another digit": _lines(_digit),
    "has a torn last line": _lines(lambda lines: [*lines[:-1], lines[-1][:-9]]),
    "has a line twice": _lines(lambda lines: [*lines, lines[0]]),
    "has its lines in reverse": _lines(lambda lines: lines[::-1]),
    "has a line of nothing": _lines(lambda lines: [lines[0], b"\n", *lines[1:]]),
    "has line ends of another system": _lines(lambda ls: [x[:-1] + b"\r\n" for x in ls]),
    "has a line that is no unit": _lines(lambda lines: [b"{}\n", *lines]),
}
OF_OUTPUTS = {way: ANY[way] for way in ("is gone", "has one bit changed", "is a folder")}
WAYS: dict[str, tuple[str, Callable[[Path], None]]] = {
    f"{file} {way}": (file, damage)
    for files, ways in ((FILES, ANY), (RECORDS, OF_RECORDS), (OUTPUTS, OF_OUTPUTS))
    for file in files
    for way, damage in ways.items()
}
"""Name of a damage -> the file, and the function that damages it."""
REMEDIES = ("redone", "repaired", "removed", "moved away")
"""Remedies of a damage: the same command again; `faithscope repair` first; removing the file, or
moving away the folder, that the refusal names."""
HELD = (*REMEDIES, "said")
"""Possible outcomes of a damage: a remedy works, or (`said`) the run reports that facts are lost
for good."""


class Damaged:
    """A finished run, copies of which are damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "whole"
        self.folder.mkdir()
        ended = said_by("run", write(self.folder, **PROBES))
        assert ended.code == 0, ended.err
        self.outputs = outputs(self.folder / "t")

    def after(self, way: str, folder: Path) -> str:
        """What comes of a damage: one of `HELD`, or what is wrong.

        A run makes good what is damaged, or refuses in one line that names a file of its folder;
        in the end it gives the outputs that it would have given.
        """
        file, damage = WAYS[way]
        path, run_dir = copied(self.folder, folder, **PROBES), folder / "t"
        damage(run_dir / file)
        for help in REMEDIES:
            if help == "repaired":
                ended = said_by("repair", str(run_dir))
                if ended.code != 0 and (wrong := ended.wrong(str(run_dir))):
                    return f"repair: {wrong}"
            elif help != "redone":
                _remove(run_dir / file if help == "removed" else run_dir)
            ended = said_by("run", path)
            if ended.code == 0:
                if outputs(run_dir) == self.outputs:
                    return help
                return "said" if Path(file).name in ended.err else f"{help}: silently other outputs"
            if wrong := ended.wrong(str(run_dir)):
                return f"{help}: {wrong}"
        return "nothing helps"
