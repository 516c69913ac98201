"""One unit of work as one line of JSON, which tells by itself whether it is whole.

A line begins with the CRC-32 of all that follows it, and names what it is about before the
records, so that a reader can check it and pass over the records without parsing them.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faithscope.probes.judge.replies import one_line
from faithscope.probes.record import ARRAYS, KEYS

Key = tuple[str, str, str, str]
"""(stage, model, task, item): what a unit is about, whatever settings made it. `model` is the one
that does the work, a judge among others; `item` tells the asks of one item apart. Records say what
they are about in `probes.record.KEYS`."""

API_REPLIES = "api_replies"
"""The stage of single replies of models behind APIs, stored as they come. No plan has them: what
is asked shows only with what was answered before."""

_CRC = b'{"crc": "'
_BODY = len(_CRC) + 8 + len(b'", ')
_RECORDS = b', "records": '
"""Inside a JSON string the quotes would be escaped, so this occurs in no text of a model's."""


class UnitIds:
    """Ids of units that share much of what determines them, which is written out once.

    An id is a hash of everything that determines the unit's result.
    """

    def __init__(self, **shared: Any) -> None:
        self._shared = _fragments(shared)

    def of(self, **own: Any) -> str:
        """The id of the unit determined by what is shared and by `own`; their order is nothing."""
        parts = sorted((self._shared | _fragments(own)).items())
        text = "{" + ", ".join(f'"{name}": {value}' for name, value in parts) + "}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def versions(**of: int) -> dict[str, int]:
    """What an id holds of the versions of the measures and parsers that make a unit, so that what
    changed code would give otherwise is measured anew and never mixed with what there is.

    A first version is not in it: ids from before there were versions stand.
    """
    return {f"version_of_{name}": version for name, version in of.items() if version > 1}


_ENCODE = json.JSONEncoder(sort_keys=True, ensure_ascii=True, default=str).encode


def _fragments(values: dict[str, Any]) -> dict[str, str]:
    return {name: _ENCODE(value) for name, value in values.items()}


class Head(NamedTuple):
    """What a stored line is about. A tuple: a resume makes one of every line that there is."""

    unit: str
    key: Key
    session: int
    failed: str | None
    excluded: str | None
    """As of `Unit`."""
    arrays_end: int = 0
    """How long the file of its arrays has to be."""


@dataclass(frozen=True)
class Unit:
    """One stored line."""

    unit: str
    stage: str
    model: str
    task: str
    item: str
    session: int
    """Which start of the run wrote it: of two lines about one thing the later counts."""
    records: list[dict[str, Any]] = field(default_factory=list)
    failed: str | None = None
    """Why there are no records."""
    arrays: tuple[int, int, int] | None = None
    """Where its arrays lie in the file of them: offset, size and CRC-32."""

    def __post_init__(self) -> None:
        if not isinstance(self.records, list) or not isinstance(self.session, int):
            raise TypeError("not a unit of work")

    @property
    def key(self) -> Key:
        return (self.stage, self.model, self.task, self.item)

    @property
    def excluded(self) -> str | None:
        """Why the unit measures nothing: of a trace why it is not probed, of another stage what
        most of its records say that hold no value; None where some record holds one."""
        reasons = [_without_value(record) for record in self.records]
        if not reasons:
            return None if self.failed else NOTHING_ASKED
        return None if None in reasons else Counter(reasons).most_common(1)[0][0]

    @property
    def head(self) -> Head:
        end = _end(self.arrays)
        return Head(self.unit, self.key, self.session, self.failed, self.excluded, end)

    def to_line(self) -> bytes:
        """The line, its newline included.

        Raises:
            ValueError: a NaN or an infinity among the records.
        """
        named = {name: getattr(self, name) for name in _NAMED}
        about = {**named, "excluded": self.excluded, "failed": self.failed}
        head = json.dumps(about if self.arrays is None else about | {"arrays": self.arrays})
        records = json.dumps(self.records, allow_nan=False)
        body = head[1:-1].encode() + _RECORDS + records.encode() + b"}"
        return sealed(body)


NOTHING_ASKED = "nothing_asked"
"""Why a unit without records measures nothing."""


def _without_value(record: Mapping[str, Any]) -> str | None:
    """Why a record holds no value: it is excluded, or is a judgement without a verdict."""
    if record.get("excluded"):
        return str(record["excluded"])
    judged = "verdict" in record and "outcome" in record
    lost = judged and record["verdict"] is None and record["outcome"] != "parsed"
    return str(record["outcome"]) if lost else None


def sealed(body: bytes) -> bytes:
    """A line that begins with the checksum of `body`: the inside of a JSON object."""
    return _CRC + b'%08x", ' % zlib.crc32(body) + body + b"\n"


def why_failed(error: Exception) -> str:
    """What `Unit.failed` says of an error, as it may be written and shown anywhere."""
    return f"{type(error).__name__}: {one_line(str(error))[:300]}"


_NAMED = ("unit", "stage", "model", "task", "item", "session")


def read_head(line: bytes) -> Head:
    """What a line is about, its records passed over.

    Raises:
        ValueError, TypeError, KeyError: not a line of ours, or not as it was written.
    """
    fields = json.loads(b"{" + checked(line).partition(_RECORDS)[0] + b"}")
    key = (fields["stage"], fields["model"], fields["task"], fields["item"])
    if not isinstance(fields["session"], int):
        raise TypeError("not a unit of work")
    end = _end(fields.get("arrays"))
    return Head(fields["unit"], key, fields["session"], fields["failed"], fields["excluded"], end)


def _end(arrays: Sequence[int] | None) -> int:
    return 0 if arrays is None else arrays[0] + arrays[1]


def read_unit(line: bytes) -> Unit:
    """The unit of a line.

    Raises:
        ValueError, TypeError: not a line of ours, or not as it was written.
    """
    values = json.loads(b"{" + checked(line))
    del values["excluded"]
    if values.get("arrays") is not None:
        values["arrays"] = tuple(values["arrays"])
    return Unit(**values)


def checked(line: bytes) -> bytes:
    """The body of a line of `sealed`.

    Raises:
        ValueError: not a line of ours, or not as it was written.
    """
    body = line[_BODY:].rstrip(b"\n")
    if not line.startswith(_CRC):
        raise ValueError("it does not begin with a checksum")
    if line[len(_CRC) : len(_CRC) + 8] != b"%08x" % zlib.crc32(body):
        raise ValueError("it is not as it was written: its checksum differs")
    return body


def check_heads(records: list[dict[str, Any]]) -> None:
    """See that every record begins with what joins it to others (`probes.record.KEYS`).

    Raises:
        ValueError: names the keys that one lacks.
    """
    for record in records:
        if missing := [key for key in KEYS if key not in record]:
            raise ValueError(
                f"a record lacks {', '.join(missing)}; make it with probes.record.head"
            )


def storable(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`records`, if a line can hold them.

    Raises:
        ValueError: something JSON has no word for, a NaN or an infinity among others.
    """
    for record in records:
        for name, value in record.items():
            if name == ARRAYS:
                continue
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"record field {name!r} cannot be stored: {error}") from error
    return records
