"""Arrays of a run: raw numbers per layer, head or token, too long for a line of JSON.

While a run works, the arrays of a unit are appended as one safetensors blob to a file beside its
record file. The unit's line, which is written afterwards, says where the blob lies, so a killed
worker leaves at worst a blob that no line names. When tables are written, all blobs of a probe are
packed into one ordinary file, `arrays/<probe>.safetensors`, that any safetensors reader can load.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from safetensors.numpy import load, save

from faithscope.experiments.engine.index import Entry, Index, beside
from faithscope.experiments.engine.units import Key, Unit
from faithscope.experiments.files import StoreError, make_folder, remove, unwritable
from faithscope.probes.record import ARRAYS

Arrays = dict[str, np.ndarray]
"""Name -> array, for one unit."""


def take_arrays(records: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Arrays]:
    """The records without their arrays, and the arrays by name (`variant/name` for records of a
    variant)."""
    arrays = {
        f"{r['variant']}/{name}" if r["variant"] else name: array
        for r in records
        for name, array in r.get(ARRAYS, {}).items()
    }
    return [{k: v for k, v in r.items() if k != ARRAYS} for r in records], arrays


def to_blob(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The arrays of one unit as safetensors bytes."""
    return save(dict(arrays))


def read_blob(file: BinaryIO, place: tuple[int, int, int], path: Path) -> bytes:
    """The blob of one unit's arrays.

    Args:
        file: the file of arrays, open for reading.
        place: offset, size and CRC-32 of the blob.
        path: path of the file, for the error.

    Raises:
        StoreError: the blob is damaged.
    """
    offset, size, _ = place
    file.seek(offset)
    return _whole(file.read(size), place, path)


Blob = TypeVar("Blob", bytes, memoryview)


def _whole(blob: Blob, place: tuple[int, int, int], path: Path) -> Blob:
    offset, _, crc = place
    if zlib.crc32(blob) != crc:
        raise StoreError(
            f"{path}: the arrays at byte {offset} are damaged; faithscope repair drops the line "
            "that names them, and the next run redoes its item"
        )
    return blob


def each(index: Index, stage: str) -> Iterator[tuple[Key, Arrays]]:
    """Yields (key, arrays) for every unit of a stage that has arrays, sorted by key.

    The arrays are views of the files: numbers take memory only while they are read, and what is
    written to them reaches no file. So the arrays of all units may be held at once, and one part of
    each be read.
    """
    maps: dict[Path, memoryview] = {}
    with index.reader() as read:
        for key, unit, path in _with_arrays(index, stage, read):
            if path not in maps:
                with path.open("rb") as file:
                    maps[path] = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
            assert unit.arrays is not None
            offset, size, _ = unit.arrays
            yield key, _views(_whole(maps[path][offset : offset + size], unit.arrays, path))


def _views(blob: memoryview) -> Arrays:
    """The arrays in a safetensors blob, without a copy of their numbers."""
    described, body = _parts(blob)
    arrays = {}
    for name, tensor in described.items():
        start, _ = tensor["data_offsets"]
        array = np.ndarray(tensor["shape"], DTYPES[tensor["dtype"]], body, start)
        arrays[name] = array if array.flags.aligned else array.copy()
    return arrays


DTYPES: Mapping[str, Any] = {
    **{f"F{8 * n}": np.dtype(f"<f{n}") for n in (2, 4, 8)},
    **{f"{kind}{8 * n}": np.dtype(f"<{kind.lower()}{n}") for kind in "IU" for n in (1, 2, 4, 8)},
    "BOOL": np.dtype(bool),
}
"""Type of numbers in safetensors -> that of numpy, for all that `to_blob` writes."""


def of_unit(index: Index, key: Key) -> Arrays:
    """The arrays of one unit; empty where the unit is not stored, failed or has no arrays."""
    entry = index.get(key)
    if entry is None or entry.failed is not None or not entry.arrays:
        return {}
    with index.reader() as read:
        unit = read(entry)
    assert unit.arrays is not None
    path = beside(entry.path)
    with path.open("rb") as file:
        return load(read_blob(file, unit.arrays, path))


def pack(run_dir: Path, index: Index, stage: str) -> Path | None:
    """Write `arrays/<stage>.safetensors` with one tensor per array, named `model|task|item|array`.

    Only one unit at a time is held in memory. Returns the path, or None if the stage has no arrays;
    an older file is then removed.
    """
    path = run_dir / "arrays" / f"{stage}.safetensors"
    tensors: dict[str, Any] = {"__metadata__": {"format": "np"}}
    end = 0
    for key, blob in _blobs(index, stage):
        described, body = _parts(blob)
        for name, tensor in described.items():
            offsets = [end + at for at in tensor["data_offsets"]]
            tensors["|".join((*key[1:], name))] = tensor | {"data_offsets": offsets}
        end += len(body)
    if not end:
        remove(path)
        return None
    header = json.dumps(tensors).encode()
    header += b" " * (-len(header) % 8)
    make_folder(path.parent)
    half = path.with_name(f".{path.name}.writing")
    try:
        with half.open("wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            for _, blob in _blobs(index, stage):
                file.write(_parts(blob)[1])
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise unwritable(path, error) from error
    return path


def _blobs(index: Index, stage: str) -> Iterator[tuple[Key, bytes]]:
    with ExitStack() as stack, index.reader() as read:
        files: dict[Path, BinaryIO] = {}
        for key, unit, path in _with_arrays(index, stage, read):
            if path not in files:
                files[path] = stack.enter_context(path.open("rb"))
            assert unit.arrays is not None
            yield key, read_blob(files[path], unit.arrays, path)


def _with_arrays(
    index: Index, stage: str, read: Callable[[Entry], Unit]
) -> Iterator[tuple[Key, Unit, Path]]:
    """Yields key, unit and file of arrays of every unit of a stage that has some."""
    places = ((k, e) for k, e in index.places([stage]) if e.arrays and e.failed is None)
    for key, entry in sorted(places, key=lambda place: place[0]):
        yield key, read(entry), beside(entry.path)


def _parts(blob: Blob) -> tuple[dict[str, Any], Blob]:
    """The header of a safetensors blob (tensor name -> description), and the tensors' bytes."""
    begin = 8 + struct.unpack("<Q", blob[:8])[0]
    described = json.loads(bytes(blob[8:begin]))
    described.pop("__metadata__", None)
    return described, blob[begin:]
