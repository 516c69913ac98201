"""Units of work, each stored as one line of JSON with a checksum.

A line begins with the CRC-32 of the rest, so damage is found. The key and state of the unit stand
before the records, so a reader can index a line without parsing its records.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from faithscope.probes.judge.secrets import one_line
from faithscope.probes.record import ARRAYS, KEYS

Key = tuple[str, str, str, str]
"""Key of a unit, (stage, model, task, item); units made with different settings may share it.
`model` is the one that does the work, which may be a judge; `item` distinguishes several prompts on
one item. What a record is about stands in its `probes.record.KEYS`."""

API_REPLIES = "api_replies"
"""Stage of single replies of API models, stored as they come. No plan names its units, because each
prompt depends on earlier replies."""

_CRC = b'{"crc": "'
_BODY = len(_CRC) + 8 + len(b'", ')
_RECORDS = b', "records": '
"""Bytes between the head and the records of a line. Quotes inside a JSON string are escaped, so the
text of a model cannot contain them."""


class UnitIds:
    """Maker of unit ids; an id is a hash of everything that determines the unit's result.

    What many units share (config, weights) is given once, to save time.
    """

    def __init__(self, **shared: Any) -> None:
        self._shared = _fragments(shared)

    def of(self, **own: Any) -> str:
        """The id of the unit that the shared values and `own` determine, in whatever order."""
        parts = sorted((self._shared | _fragments(own)).items())
        text = "{" + ", ".join(f'"{name}": {value}' for name, value in parts) + "}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def versions(**of: int) -> dict[str, int]:
    """The versions of measures and parsers as parts of a unit id.

    Raising a version after a change of code makes units be measured again instead of mixed with old
    ones. A version of 1 is left out, so ids from before there were versions stay valid.
    """
    return {f"version_of_{name}": version for name, version in of.items() if version > 1}


_ENCODE = json.JSONEncoder(sort_keys=True, ensure_ascii=True, default=str).encode


def _fragments(values: dict[str, Any]) -> dict[str, str]:
    return {name: _ENCODE(value) for name, value in values.items()}


class Head(NamedTuple):
    """Head of a stored line: everything but the records.

    It is a tuple, which is fast to make, since a resume makes one for every stored line.
    """

    unit: str
    """Id of the unit."""
    key: Key
    session: int
    """Number of the start of the run that wrote the line (`Unit.session`)."""
    failed: str | None
    """Why the unit failed (`Unit.failed`); None if it did not."""
    excluded: str | None
    """Why the unit measures nothing (`Unit.excluded`); None if it does."""
    arrays_end: int = 0
    """Minimum size in bytes of the file of arrays if it holds those of the unit."""


@dataclass(frozen=True)
class Unit:
    """One unit of work, as one stored line."""

    unit: str
    """Id of the unit (`UnitIds`)."""
    stage: str
    model: str
    task: str
    item: str
    session: int
    """Number of the start of the run that wrote the unit; of two units with one key the later
    counts."""
    records: list[dict[str, Any]] = field(default_factory=list)
    failed: str | None = None
    """Why the unit failed, so that it has no records; None if it did not."""
    arrays: tuple[int, int, int] | None = None
    """Place of the unit's arrays in the file of arrays: offset, size and CRC-32."""

    def __post_init__(self) -> None:
        if not isinstance(self.records, list) or not isinstance(self.session, int):
            raise TypeError("not a unit of work")

    @property
    def key(self) -> Key:
        """The key (stage, model, task, item) of the unit."""
        return (self.stage, self.model, self.task, self.item)

    @property
    def excluded(self) -> str | None:
        """Why the unit measures nothing: the most frequent reason of its records (for a trace, why
        it is not probed), or `NOTHING_ASKED` without records; None if some record holds a value or
        the unit failed."""
        reasons = [without_value(record) for record in self.records]
        if not reasons:
            return None if self.failed else NOTHING_ASKED
        return None if None in reasons else Counter(reasons).most_common(1)[0][0]

    @property
    def head(self) -> Head:
        """The head of the unit's line."""
        end = _end(self.arrays)
        return Head(self.unit, self.key, self.session, self.failed, self.excluded, end)

    def to_line(self) -> bytes:
        """The line as it is stored, with its newline.

        Raises:
            ValueError: a record holds a NaN or an infinity.
        """
        named = {name: getattr(self, name) for name in _NAMED}
        about = {**named, "excluded": self.excluded, "failed": self.failed}
        head = json.dumps(about if self.arrays is None else about | {"arrays": self.arrays})
        records = json.dumps(self.records, allow_nan=False)
        body = head[1:-1].encode() + _RECORDS + records.encode() + b"}"
        return sealed(body)


NOTHING_ASKED = "nothing_asked"
"""Reason of exclusion of a unit without records."""


def without_value(record: Mapping[str, Any]) -> str | None:
    """Why a record holds no value (it is excluded, or a judgement without a verdict); None if it
    holds one."""
    if record.get("excluded"):
        return str(record["excluded"])
    judged = "verdict" in record and "outcome" in record
    lost = judged and record["verdict"] is None and record["outcome"] != "parsed"
    return str(record["outcome"]) if lost else None


def sealed(body: bytes) -> bytes:
    """A line that begins with the checksum of `body`, which is the inside of a JSON object."""
    return _CRC + b'%08x", ' % zlib.crc32(body) + body + b"\n"


def why_failed(error: Exception) -> str:
    """Text of `Unit.failed` for an error: one short line that can be stored and shown anywhere."""
    return f"{type(error).__name__}: {one_line(str(error))[:300]}"


_PARSED = json.JSONDecoder().raw_decode
_NAMED = ("unit", "stage", "model", "task", "item", "session")


def read_head(line: bytes) -> Head:
    """The head of a stored line; its records are not parsed.

    Raises:
        ValueError, TypeError, KeyError: the line is damaged, or no unit.
    """
    fields, _ = _PARSED(str(b"{%b}" % checked(line).partition(_RECORDS)[0], "utf-8"))
    key = (fields["stage"], fields["model"], fields["task"], fields["item"])
    if not isinstance(fields["session"], int):
        raise TypeError("not a unit of work")
    end = _end(fields.get("arrays"))
    return Head(fields["unit"], key, fields["session"], fields["failed"], fields["excluded"], end)


def _end(arrays: Sequence[int] | None) -> int:
    return 0 if arrays is None else arrays[0] + arrays[1]


def read_unit(line: bytes) -> Unit:
    """The unit of a stored line.

    Raises:
        ValueError, TypeError: the line is damaged, or no unit.
    """
    values = json.loads(str(b"{%b" % checked(line), "utf-8"))
    del values["excluded"]
    if values.get("arrays") is not None:
        values["arrays"] = tuple(values["arrays"])
    return Unit(**values)


def checked(line: bytes) -> bytes:
    """The body of a line that `sealed` made.

    Raises:
        ValueError: the line has no checksum, or one that does not match.
    """
    body = line[_BODY:].rstrip(b"\n")
    if not line.startswith(_CRC):
        raise ValueError("it does not begin with a checksum")
    if line[len(_CRC) : len(_CRC) + 8] != b"%08x" % zlib.crc32(body):
        raise ValueError("it is not as it was written: its checksum differs")
    return body


def check_heads(records: list[dict[str, Any]]) -> None:
    """Check that every record has `probes.record.KEYS`, by which records are joined.

    Raises:
        ValueError: a record lacks keys; names them.
    """
    for record in records:
        if missing := [key for key in KEYS if key not in record]:
            raise ValueError(
                f"a record lacks {', '.join(missing)}; make it with probes.record.head"
            )


def storable(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`records` unchanged, if JSON can hold them.

    Raises:
        ValueError: a field holds a value that JSON cannot express, such as a NaN or an infinity;
            names the field.
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
