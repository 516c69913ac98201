"""Arrays of a run: raw numbers per layer, head or token, too long for a line of JSON.

While a run works, the arrays of a unit are appended as one safetensors blob to a file beside its
record file. The unit's line, which is written afterwards, says where the blob lies, so a killed
worker leaves at worst a blob that no line names. When tables are written, all blobs of a probe are
packed into one ordinary file, `arrays/<probe>.safetensors`, that any safetensors reader can load.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import load, save

from faithscope.experiments.engine.index import Index, beside
from faithscope.experiments.engine.units import Key
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
    offset, size, crc = place
    file.seek(offset)
    blob = file.read(size)
    if zlib.crc32(blob) != crc:
        raise StoreError(
            f"{path}: the arrays at byte {offset} are damaged; faithscope repair drops the line "
            "that names them, and the next run redoes its item"
        )
    return blob


def each(index: Index, stage: str) -> Iterator[tuple[Key, Arrays]]:
    """Yields (key, arrays) for every unit of a stage that has arrays, sorted by key."""
    for key, blob in _blobs(index, stage):
        yield key, load(blob)


def of_unit(index: Index, key: Key) -> Arrays:
    """The arrays of one unit; empty where the unit is not stored, failed or has no arrays."""
    entry = index.get(key)
    if entry is None:
        return {}
    with index.reader() as read:
        unit = read(entry)
    if unit.arrays is None or unit.failed is not None:
        return {}
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
        for key, entry in sorted(index.places([stage]), key=lambda place: place[0]):
            unit = read(entry)
            if unit.arrays is not None and unit.failed is None:
                path = beside(entry.path)
                if path not in files:
                    files[path] = stack.enter_context(path.open("rb"))
                yield key, read_blob(files[path], unit.arrays, path)


def _parts(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors blob (tensor name -> description), and the tensors' bytes."""
    begin = 8 + struct.unpack("<Q", blob[:8])[0]
    described = json.loads(blob[8:begin])
    described.pop("__metadata__", None)
    return described, blob[begin:]
