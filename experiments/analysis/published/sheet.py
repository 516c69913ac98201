"""A printed table with our numbers beside it, in the paper's layout: as text, and as files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from faithscope.experiments.analysis.published.comparison import (
    NO_MEASURE,
    NOT_COMPARABLE,
    NOT_MEASURED,
    OUTSIDE,
    POOLED,
    RULE,
    UNCHECKED,
    WITHIN,
    is_missing,
)
from faithscope.experiments.analysis.published.layout import (
    decimals_of,
    in_layout,
    ours_text,
    with_unit,
)
from faithscope.experiments.analysis.published.runs import Beside
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown
from faithscope.experiments.analysis.tidy import only, rows
from faithscope.experiments.files import make_folder, write_atomically
from faithscope.experiments.numerals import interval

WIDE = 0.5
"""Share of the other printed numbers from which on a range that meets them is called wide."""


UNMEASURED = (NOT_MEASURED, NO_MEASURE, POOLED)
"""Reasons of cells of which no number of ours is."""


class Score(NamedTuple):
    """Counts of the printed cells of one or several tables."""

    cells: int
    measured: int
    within: int
    wide: int
    """Cells within whose range also meets `WIDE` or more of the others under the same heading."""
    outside: int
    unchecked: int
    """Cells within whose run read data from a file that nothing checks."""
    reasons: Mapping[str, int]
    """Reason why cells are not comparable -> their number."""

    @property
    def incomparable(self) -> int:
        """Number of measured cells that are neither within nor outside."""
        return self.measured - self.within - self.outside

    @property
    def lines(self) -> list[str]:
        """The counts as two sentences: how many cells were measured, and what came out of them."""
        missing = [f"{n:,} {why}" for why, n in self.reasons.items() if why in UNMEASURED]
        others = [f"{n:,} {why}" for why, n in self.reasons.items() if why not in UNMEASURED]
        first = f"{self.measured:,} of {self.cells:,} published cells measured"
        wide = f"{self.wide:,} by a range so wide that it meets half or more of the other numbers "
        but = [f"{wide}under the same heading"] if self.wide else []
        but += [f"{self.unchecked:,} on {UNCHECKED}"] if self.unchecked else []
        doubts = f" ({'; '.join(but)})" if but else ""
        second = f"{self.within:,} within{doubts}, {self.outside:,} outside, "
        second += f"{self.incomparable:,} not comparable"
        second += f" ({', '.join(others)})" if others else ""
        first += f"; the others: {', '.join(missing)}" if missing else ""
        return [first, f"of the {self.measured:,} measured: {second}"][: 1 + bool(self.measured)]


def score(tables: Iterable[Beside]) -> Score:
    """Counts of the printed cells of tables; rows that only we have are not counted."""
    counted = ("verdict", "reason", "meets_others", "data")
    every = [line for table in tables for line in rows(only(table.cells, counted))]
    lines = [line for line in every if is_printed(line)]
    verdicts = Counter(line["verdict"] for line in lines)
    reasons = Counter(line["reason"] for line in lines if line["verdict"] == NOT_COMPARABLE)
    return Score(
        len(lines),
        sum(line["reason"] not in UNMEASURED for line in lines),
        verdicts[WITHIN],
        sum(is_wide(line) for line in lines),
        verdicts[OUTSIDE],
        sum((line["verdict"], line["data"]) == (WITHIN, UNCHECKED) for line in lines),
        dict(reasons.most_common()),
    )


def is_printed(line: Mapping[str, Any]) -> bool:
    """Whether a row of a comparison is a cell of the paper, not a row of ours alone."""
    return isinstance(line["verdict"], str)


def is_wide(line: Mapping[str, Any]) -> bool:
    """Whether a cell is within by a range that meets much else, too."""
    return line["verdict"] == WITHIN and line["meets_others"] >= WIDE


def doubts(line: Mapping[str, Any]) -> list[str]:
    """Words beside `within` or `outside`: a wide range, and data that nothing checks."""
    words = ["wide" if is_wide(line) else "", line["data"]]
    return [word for word in words if isinstance(word, str) and word]


def text(line: Mapping[str, Any]) -> str:
    """One cell: `8.4 | 10.3 [7.1, 13.9] within, n 20 of 24`."""
    ours = ours_text(line)
    printed = published_text(line)
    if ours == "–":
        return f"{printed} | –"
    said = line["verdict"] if is_printed(line) else ""
    if said == NOT_COMPARABLE:
        said = f"{said} ({line['reason']})"
    elif said and (words := doubts(line)):
        said = f"{said} ({', '.join(words)})"
    spread = range_text(line)
    beside = f"{ours}{f' [{spread}]' if spread else ''}{f' {said}' if said else ''}"
    return f"{printed} | {beside}{cases(line)}"


def published_text(line: Mapping[str, Any]) -> str:
    """The printed number with its unit; `?` where it is lost, a dash where the paper has none."""
    value: Any = line.get("published")
    if is_missing(value):
        return "?" if is_printed(line) else "–"
    return str(value) if isinstance(value, str) else with_unit(value, line, int(line["decimals"]))


def range_text(line: Mapping[str, Any]) -> str:
    """The range that the verdict is of, or else our interval; empty without either."""
    for names in (("range_low", "range_high"), ("low", "high")):
        low, high = (float(line[name]) for name in names)
        if low < high:
            return interval(low, high, decimals_of(line)).strip("[]")
    return ""


def cases(line: Mapping[str, Any]) -> str:
    """Our number of cases, of how many planned; empty where unknown."""
    if is_missing(line["n"]):
        return ""
    of = "" if is_missing(line["planned"]) else f" of {int(line['planned'])}"
    theirs = line.get("published_n")
    paper = "" if is_missing(theirs) else f", paper {int(theirs or 0)}"
    return f", n {int(line['n'])}{of}{paper}"


def notes(table: Beside) -> list[str]:
    """Everything that a reader of the table must know, a line each."""
    lines = list(score([table]).lines)
    for run in table.runs:
        lines += [f"{run.run} DEVIATES: {d.line}" for d in run.deviations if d.decides]
        if not run.decides:
            lines.append(
                f"{run.run}: nothing that decides a number differs from the paper's config"
            )
        lines += [f"{run.run} differs: {d.line}" for d in run.deviations if not d.decides]
    lines += [f"measured of {line}" for line in table.tallies]
    lines += [f"no number for this table from {line}" for line in table.nothing]
    lines += whys(table)
    lines += [f"beyond the config: {sentence}" for sentence in table.published.differs]
    lines += [CHOICE] if len(table.runs) > 1 else []
    return [*lines, RULE, CASES]


CASES = (
    "n a of b: cases behind the number, of the items that the run planned for this model and task; "
    "the rest was left out or cut off, or is not finished, as the lines of each run say."
)
"""What `n a of b` in a cell means."""
CHOICE = (
    "where several runs measure a cell, the one shown has no deviation that decides, and then the "
    "most cases; the verdict has no part in the choice"
)
"""Rule by which one of several runs is chosen for a cell."""


def whys(table: Beside) -> list[str]:
    """A line for each reason that cells with a number of ours are not comparable."""
    counts = Counter(
        (line["reason"], line["why"])
        for line in rows(table.cells)
        if line["verdict"] == NOT_COMPARABLE and line["reason"] != NOT_MEASURED
    )
    return [f"{n} not comparable ({reason}): {why}" for (reason, why), n in counts.items()]


def aligned(table: Iterable[Sequence[str]]) -> list[str]:
    """Rows of texts as lines with aligned columns, for a terminal."""
    lines = list(table)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def printed(table: Beside) -> list[str]:
    """The table and its notes as lines for a terminal."""
    laid_out = in_layout(table.published, table.cells, text)
    grid = aligned([list(map(str, laid_out.columns)), *laid_out.to_numpy().tolist()])
    return [f"{table.name}: {table.published.title}", "", *grid, "", *notes(table)]


def write_files(table: Beside, folder: Path) -> Path:
    """Write `PAPER_TABLE.csv` (a row per cell), `.md` and `.tex` (the paper's layout, with notes
    in Markdown); returns the path of the CSV file."""
    path = make_folder(folder) / f"{table.name.replace('.', '_')}.csv"
    laid_out = in_layout(table.published, table.cells, text)
    bullets = "".join(f"- {line}\n" for line in notes(table))
    title = f"# {table.name}: {table.published.title}\n\n"
    write_atomically(path, to_csv(table.cells))
    write_atomically(path.with_suffix(".md"), f"{title}{to_markdown(laid_out)}\n{bullets}")
    write_atomically(path.with_suffix(".tex"), to_latex(laid_out))
    return path
