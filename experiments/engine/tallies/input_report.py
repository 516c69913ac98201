"""Input report of a run: the rows of its data that a limit left out, and the columns that were not
read. It is known once a plan is made, and is stored in the run folder for the page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from faithscope.experiments.engine.tallies.reasons import in_words
from faithscope.experiments.files import StoreError

if TYPE_CHECKING:
    from faithscope.experiments.data.tasks.sources.rows import FileRead

FILE = "input_report.json"
"""Name of the file in the run folder that holds the input report."""
NO_LIMIT = "data.limit=null"
MOST_NAMES = 12
"""Most columns of a file that are named on one line."""


@dataclass(frozen=True)
class Truncation:
    """A set of rows, chains or items of which only some are in a run."""

    what: str
    """Description of the set: `rows of my.jsonl`."""
    taken: int
    of: int
    because: str
    """Config key, or other reason, that cut the set: `data.limit=1`."""
    do: str = ""
    """Config setting with which all are taken."""

    @property
    def line(self) -> str:
        return f"{self.taken:,} of {self.of:,} {self.what} ({self.because})"


def truncated_by(
    what: str, taken: int, reasons: Iterable[str], do: str = ""
) -> tuple[Truncation, ...]:
    """The truncation by the items left out for `reasons`; empty if there are none.

    Args:
        reasons: the reason of each item that is left out.
    """
    counts = Counter(reasons)
    because = ", ".join(f"{n:,} {in_words(reason)}" for reason, n in counts.most_common())
    cut = Truncation(what, taken, taken + counts.total(), f"left out: {because}", do)
    return (cut,) if counts else ()


@dataclass(frozen=True)
class InputReport:
    """The parts of its data that a run used, and those that it did not."""

    cuts: tuple[Truncation, ...] = ()
    unused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """File -> its columns with values that no reader asked for."""
    notes: tuple[str, ...] = ()
    """Further notes on the data, such as the number of questions without a right answer."""
    asked: tuple[str, ...] = ()
    """Config keys by which the user, and not a shipped config, asked for measures."""
    readers: str = ""
    """Writers of given chains and the config's default models that read them, in words, where the
    user named no model; the first line of a tally says so."""
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Data set -> item -> group of items that are not independent, the unit of intervals and tests
    (`data.question_groups`)."""

    def lines(self) -> list[str]:
        """A line for each limit, then for each note and each file with unused columns."""
        lines = [*(cut.line for cut in self.cuts), *self.notes]
        for file, names in self.unused.items():
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            lines.append(f"columns not used: {', '.join(names[:MOST_NAMES])}{more} ({file})")
        return lines

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def of(cls, run_dir: Path) -> InputReport:
        """The input report stored in a run folder; an empty one for a folder without it.

        Raises:
            StoreError: the file is damaged.
        """
        path = run_dir / FILE
        if not path.is_file():
            return cls()
        try:
            return TypeAdapter(cls).validate_json(path.read_bytes())
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = ".".join(map(str, first["loc"]))
            raise StoreError(
                f"{path}: is damaged ({at + ': ' if at else ''}{first['msg']}); "
                "faithscope repair puts it aside"
            ) from error


def unused_columns(files: Sequence[FileRead]) -> dict[str, tuple[str, ...]]:
    """File -> its columns that no reader asked for, for files whose rows were used."""
    asked: dict[str, set[str]] = {}
    filled: dict[str, dict[str, None]] = {}
    for file in files:
        # several tasks may read one file, and ask for different columns
        asked.setdefault(file.name, set()).update(file.asked)
        filled.setdefault(file.name, {}).update(file.filled)
    unused = {f: tuple(n for n in names if n not in asked[f]) for f, names in filled.items()}
    return {file: names for file, names in unused.items() if names and asked[file]}
