"""A saved benchmark: files of rows, and a manifest that says what they were made of.

The manifest is written last, so that a folder that has one is whole; it names the sha256 of every
file, so that a changed benchmark is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from faithscope.experiments.files import make_folder, write_atomically
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError

FORMAT = 1
MANIFEST = "manifest.json"
T = TypeVar("T")


@dataclass(frozen=True)
class SavedBenchmark:
    """The files of a benchmark, and the inputs that decided them."""

    files: Mapping[str, str]
    """File name -> content."""
    made_of: Mapping[str, Any]
    """Everything that decided the items, as plain JSON values."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Counts of the items, for people to read."""

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest: what the benchmark was made of, its counts, and the sha256 of each file."""
        return {
            "format": FORMAT,
            "made_of": self.made_of,
            "counts": self.counts,
            "files": {
                name: {"sha256": _sha256(text.encode()), "rows": text.count("\n")}
                for name, text in self.files.items()
            },
        }

    @property
    def texts(self) -> dict[str, str]:
        """File name -> content of every file as it is written, the manifest last."""
        manifest = json.dumps(self.manifest, indent=1, ensure_ascii=False)
        return {**self.files, MANIFEST: f"{manifest}\n"}

    def save(self, folder: Path) -> None:
        """Write every file, the manifest last.

        Raises:
            StoreError: a file cannot be written.
        """
        make_folder(folder)
        for name, text in self.texts.items():
            write_atomically(folder / name, text)

    @classmethod
    def load(cls, folder: Path) -> SavedBenchmark:
        """Load a saved benchmark, and check each file against the manifest.

        Raises:
            UserError: there is no manifest, it has another format, or a file is missing or changed;
                the message names the file and the difference.
        """
        manifest = _manifest(folder / MANIFEST)
        texts = {name: _checked(folder / name, about) for name, about in manifest["files"].items()}
        return cls(texts, manifest["made_of"], manifest["counts"])


def json_lines(rows: Iterable[Any]) -> str:
    """Rows, or dataclasses, as JSON lines."""
    plain = (
        asdict(row) if is_dataclass(row) and not isinstance(row, type) else row for row in rows
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in plain)


def rows_of(kind: type[T], text: str, path: Path) -> tuple[T, ...]:
    """The dataclasses that `json_lines` wrote, with JSON's lists as tuples.

    Raises:
        UserError: a line has other fields, as written by another version.
    """
    items = []
    names = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    for number, line in enumerate(filter(None, text.split("\n")), start=1):
        values = json.loads(line)
        if values.keys() != names:
            raise UserError(
                f"{path}, line {number}: has the fields {', '.join(values)}, expected "
                f"{', '.join(sorted(names))}; build the benchmark again"
            )
        items.append(kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}))
    return tuple(items)


def differing(before: Any, now: Any, at: str = "") -> list[str]:
    """Differences between what two benchmarks are made of, one line per value."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [
            line
            for key in dict.fromkeys((*before, *now))
            for line in differing(before.get(key), now.get(key), f"{at}.{key}" if at else key)
        ]
    return [] if before == now else [f"{at} was {before!r} and is {now!r}"]


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json_of(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); give the folder of a saved benchmark"
        ) from error
    except ValueError as error:
        raise UserError(f"{path}: is damaged ({error}); build the benchmark again") from error
    known = manifest.get("format") if isinstance(manifest, dict) else None
    if known != FORMAT or not {"made_of", "counts", "files"} <= manifest.keys():
        raise UserError(
            f"{path}: has format {known!r}, this version reads {FORMAT}; build the benchmark again"
        )
    return manifest


def _checked(path: Path, written: Mapping[str, Any]) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}), but {MANIFEST} names it; restore the file "
            "or build the benchmark again"
        ) from error
    if (digest := _sha256(data)) != written["sha256"]:
        n = data.count(b"\n")
        raise UserError(
            f"{path}: is not what was written: {n} rows with sha256 {digest[:12]}…, {MANIFEST} "
            f"says {written['rows']} rows with {written['sha256'][:12]}…; restore the file or "
            "build the benchmark again"
        )
    return data.decode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
