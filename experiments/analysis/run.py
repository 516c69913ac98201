"""`Run`: an opened run folder, with its config, records, frames, tables and API calls.

This file knows no study. A study's `Report` says which frames its runs have and how their tables
are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pandas as pd

from faithscope.experiments.analysis.failures import Failures
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.stored_records import Place, Record
from faithscope.experiments.config.base import FolderConfig
from faithscope.experiments.config.study import study_of
from faithscope.experiments.engine import arrays
from faithscope.experiments.engine.exclusions import Exclusions, exclusions_of
from faithscope.experiments.engine.folder import existing_run, read_config, stored_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.models.account import calls_of
from faithscope.experiments.engine.provenance import made_by
from faithscope.experiments.engine.tallies.chain_faults import WORDS as FAULTS
from faithscope.experiments.engine.tallies.input_report import InputReport
from faithscope.experiments.engine.tallies.reasons import WORDS, in_words
from faithscope.experiments.engine.units import Key, Unit
from faithscope.experiments.garbage import gc_paused
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.judge.spend import Call
from faithscope.probes.record import ARRAYS, KEYS

if TYPE_CHECKING:
    from faithscope.experiments.analysis.columns import Columns
    from faithscope.experiments.analysis.comparison.scores import Scores
    from faithscope.experiments.analysis.item_view import Items
    from faithscope.experiments.analysis.page import Block, Page
    from faithscope.experiments.analysis.picture import Picture
    from faithscope.experiments.analysis.published.layout import PaperTable
    from faithscope.experiments.engine.traces.measured import Measured

T = TypeVar("T")
LABEL = "label_"
"""Prefix of frame columns that hold labels which came with the data."""
GROUP = "question_group"
"""Column of frames of records, after the keys, where a run has groups of items that are not
independent: the group of the item, or the item itself."""


@dataclass(frozen=True)
class Frame:
    """Declaration of a frame, which users get as `load_run(...).<name>`."""

    name: str
    meaning: str
    """One line of meaning, which begins with what a row is."""
    columns: Collection[str]
    """Column names in order; a mapping gives the meaning of each. Rows of records have the columns
    `probes.record.KEYS` before these, and may have labels (`LABEL`) after them."""
    rows: Callable[[Record], Iterable[Mapping[str, Any]]] = lambda record: (record,)
    """Maps one stored record, excluded or not, to the rows of this frame."""
    stages: tuple[str, ...] = ()
    """Stages whose records the frame holds; `rf_judged` covers `rf_judged.JUDGE` of all judges."""
    make: Callable[[Run], pd.DataFrame] | None = None
    """Makes the frame from the whole run, for rows that combine records. `rows` is then unused, and
    `columns` are those that it makes; without `stages` it is made to see whether it has rows."""


class Named(dict[str, Any]):
    """Tables by name; one that is not there is named with what was probably meant."""

    def __missing__(self, name: str) -> Any:
        known = did_you_mean(name, self) or f"; there are {', '.join(self)}"
        raise UserError(f"no table {name!r}{known}")


class Run:
    """One run folder, read lazily; neither models nor data are needed.

    Beside the attributes below it has the frames of its study as attributes (`frames` lists them),
    each a tidy DataFrame:

        run = faithscope.load_run("runs/rfeval")
        run.pairs.groupby(["model", "task"])["behaviour"].value_counts()

    Frames of records begin with the columns `probes.record.KEYS`, on which any two runs join.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._once: dict[Callable[[Run], Any], Any] = {}

    @cached_property
    def config(self) -> FolderConfig:
        """The resolved config of the run."""
        return read_config(self.path)

    @cached_property
    def index(self) -> Index:
        """Index of the stored units: where in the files the valid line of each is."""
        return self.exclusions.index

    @cached_property
    def exclusions(self) -> Exclusions:
        """Why stored records are in no table, and the faults of the chains that they are about."""
        return exclusions_of(self.path)

    @cached_property
    def failures(self) -> list[Unit]:
        """The units that failed and did not succeed later."""
        return self.index.failures()

    @cached_property
    def calls(self) -> list[Call]:
        """Every call to an API, including those without a usable reply."""
        return calls_of(self.path)

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """Data set -> item -> group of items that are not independent, the unit of intervals and
        tests."""
        return InputReport.of(self.path).groups

    def bootstrap(self, seed: int, resamples: int) -> Bootstrap:
        """Bootstrap settings that draw the groups of this run's items."""
        return Bootstrap(seed, resamples, of_items=self.groups)

    @property
    def frames(self) -> dict[str, str]:
        """Frame -> its line of meaning, for every frame that this run has records for."""
        stored = {key[0].partition(".")[0] for key in self.index}
        return {
            name: frame.meaning
            for name, frame in self._frames.items()
            if (stored & set(frame.stages) if frame.stages else len(getattr(self, name)))
        }

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Every table by its file name; made from the records, so also of a run still going."""
        return Named(self._report.tables(self.once(self._report.results)))

    @cached_property
    def overview(self) -> Sequence[Block]:
        """The finding of the run in a sentence and a picture; empty where its study has none."""
        return self._report.overview(self.once(self._report.results))

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings of the run's page: chains that were cut off, few items, mixed devices."""
        page = self._report.page(self.once(self._report.results), ())
        return [*page.warnings, *made_by(self.path)]

    def columns(self, frame: str) -> dict[str, str]:
        """Column -> meaning, for the columns of a frame; "" where the name says enough."""
        declared = self._frames[frame]
        known = declared.columns if isinstance(declared.columns, Mapping) else {}
        own = {name: known.get(name, "") for name in declared.columns}
        return own if declared.make else KEYS | own

    def records(self, *stages: str) -> Iterator[dict[str, Any]]:
        """The stored records of some stages, in an order that does not depend on the run's
        history. A record that the tables leave out says why in `excluded`; its values stay."""
        named = {key[0] for key in self.index if key[0].partition(".")[0] in stages}
        with gc_paused():
            units = sorted(self.exclusions.units(named), key=lambda unit: unit.key)
        for unit in units:
            yield from self.exclusions.marked(unit)

    def records_of(self, key: Key) -> list[dict[str, Any]]:
        """The records of one unit as `records` gives them; none if it is not stored, or failed."""
        entry = self.index.get(key)
        if entry is None or entry.failed is not None:
            return []
        with self.index.reader() as read:
            return list(self.exclusions.marked(read(entry)))

    def said_of(self, at: Place) -> list[str]:
        """Phrases on what the tables do not count of an item, and why: the faults of its chain, and
        a phrase for each stage, or variant of one, that has no value of it.

        Args:
            at: model, task and item of its units.
        """
        faults = self.exclusions.faults(at)
        found = [f"chain {words}" for fault, words in FAULTS.items() if fault in faults]
        reasons: dict[str, list[str]] = {}
        for key in self._of_place.get(at, ()):
            entry = self.index.get(key)
            if entry is None or not self.exclusions.stage(key[0]).measures:
                continue
            with self.index.reader() as read:
                outcomes = self.exclusions.outcomes(key, partial(read, entry))
            if entry.failed is not None:
                outcomes = {"": "failed"}
            elif len(outcomes) > 1 and len(set(outcomes.values())) == 1:
                outcomes = {"": next(iter(outcomes.values()))}
            for variant, why in outcomes.items():
                if why is not None:
                    reasons.setdefault(why, []).append(".".join(filter(None, (key[0], variant))))
        words = self._report.reasons if set(reasons) - set(WORDS) else {}
        return found + [
            f"not measured by {', '.join(names)}: {words.get(why) or in_words(why)}"
            for why, names in reasons.items()
        ]

    @cached_property
    def _of_place(self) -> dict[Place, list[Key]]:
        """Model, task and item -> keys of their stored units."""
        of: dict[Place, list[Key]] = {}
        for key in self.index:
            of.setdefault(key[1:], []).append(key)
        return of

    def arrays(self, stage: str) -> Iterator[tuple[Place, arrays.Arrays]]:
        """Yields ((model, task, item), named arrays) for each item that the stage measured.

        Numbers are taken from the disk when they are read, so the arrays of all items may be kept
        and a part of each be used: `arrays["states"][0, 3]`. The file `arrays/<stage>.safetensors`
        in the run folder, written with the tables, holds the same arrays.
        """
        for key, of_item in arrays.each(self.index, stage):
            yield key[1:], of_item

    def item(self, probe: str, item: str, model: str | None = None) -> Measured:
        """The records of one probe of one item, with their arrays and trace, as
        `faithscope.measure` returns them; of a run of several models, name one.

        Raises:
            UserError: the run has no such records, or those of several models or tasks.
        """
        keys = [k for k in self.index if k[0] == probe and k[3] == item and model in (None, k[1])]
        if len(keys) != 1:
            of = ", ".join(" on ".join(k[1:3]) for k in keys)
            known = sorted({k[0] for k in self.index})
            why = f"several ({of}); name the model" if keys else f"none; it has {', '.join(known)}"
            raise UserError(f"{self.path}: records of {probe!r} about item {item!r}: {why}")
        # imported here because they take time that no other method needs
        from faithscope.experiments.data.traces import to_trace
        from faithscope.experiments.engine.traces.measured import Measured

        by_name, found = arrays.of_unit(self.index, keys[0]), self.records_of(keys[0])
        for record in found:
            before = f"{record['variant']}/" if record["variant"] else ""
            record[ARRAYS] = {
                name.removeprefix(before): x
                for name, x in by_name.items()
                if name.startswith(before)
            }
        (trace,) = self.records_of(("trace", *keys[0][1:]))
        return Measured(found, to_trace(trace))

    def once(self, make: Callable[[Run], T]) -> T:
        """`make(run)`, computed once per run and then remembered."""
        if make not in self._once:
            self._once[make] = make(self)
        return self._once[make]

    @cached_property
    def _report(self) -> Report:
        """The `Report` of the run's study."""
        return study_of(stored_config(self.path)).report()

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        return {frame.name: frame for frame in self._report.frames}

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._frames})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> pd.DataFrame: ...
    else:

        def __getattr__(self, name):
            if hasattr(type(self), name):
                # a property that raised an AttributeError of its own, which is the one to tell
                return object.__getattribute__(self, name)
            frame = None if name.startswith("_") else self._frames.get(name)
            if frame is None:
                known = "" if name.startswith("_") else f"; it has {', '.join(self._frames)}"
                raise AttributeError(f"this run has no frame {name!r}{known}")
            self.__dict__[name] = table = frame.make(self) if frame.make else self.rows_of(frame)
            return table

    def rows_of(self, frame: Frame) -> pd.DataFrame:
        """The rows that `Frame.rows` makes of the stored records, as a frame of its columns."""
        rows = [
            {key: record[key] for key in KEYS} | dict(row)
            for record in self.records(*frame.stages)
            for row in frame.rows(record)
        ]
        own = self.columns(frame.name)
        labels = dict.fromkeys(
            n for row in rows for n in row if n.startswith(LABEL) and n not in own
        )
        table = pd.DataFrame(rows, columns=[*own, *labels])
        if self.groups:
            table.insert(len(KEYS), GROUP, self.bootstrap(0, 0).units(table))
        return table

    def __repr__(self) -> str:
        lines = [self._head(), *(f"  .{name}: {meaning}" for name, meaning in self.frames.items())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        # imported here because the page's template needs jinja and matplotlib, which frames do not
        from faithscope.experiments.analysis.exports.notebook import html_of
        from faithscope.experiments.analysis.html import markup, table_of
        from faithscope.experiments.analysis.page import Bullets, Fold, Grid
        from faithscope.experiments.engine.tallies.tally import tally_of_run

        lines = [(f".{name}", meaning) for name, meaning in self.frames.items()]
        frames = Grid(table_of(("frame", "meaning"), lines), "Frames of the run")
        tables = [
            Fold(markup('Table <code>.table("{}")</code>', name), self.table(name).blocks(15))
            for name in self.tables
        ]
        tally = Bullets(tally_of_run(self.path).lines(), "account leads")
        below = [Fold(f"{len(tables)} tables", tables)] if tables else []
        return html_of([*self.overview, self._head(), tally, frames, *below])

    def table(self, name: str) -> ShownTable:
        """A table of the run that draws itself in a notebook: with the headings, units and
        meanings of the page. Its numbers are the frame `tables[name]`.

        Raises:
            UserError: the run has no such table.
        """
        if name not in self.tables:
            known = did_you_mean(name, self.tables) or f"; it has {', '.join(self.tables)}"
            raise UserError(f"{self.path}: has no table {name!r}{known}")
        return ShownTable(name, self.tables[name], self._report.columns_of_table(name))

    def _head(self) -> str:
        study = study_of(stored_config(self.path)).name
        failed = f", {len(self.failures)} failed" if self.failures else ""
        n_units = sum(1 for _ in self.index)
        return f"Run {str(self.path)!r} of {study}: {n_units} units{failed}; its frames:"


@dataclass(frozen=True)
class ShownTable:
    """A table that draws itself in a notebook."""

    name: str
    frame: pd.DataFrame
    columns: Columns
    """Labels, units and meanings of its columns."""

    def blocks(self, most_rows: int) -> list[Block]:
        """The table as blocks of a page; of a longer table only the first rows."""
        from faithscope.experiments.analysis.html import html_table
        from faithscope.experiments.analysis.page import Grid, Paragraph

        n = len(self.frame)
        shown = Grid(html_table(self.frame.head(most_rows), self.columns), self.name)
        rest = f"{most_rows} of {n:,} rows; all are in the frame tables[{self.name!r}]."
        return [shown, *([Paragraph(rest, "quiet")] if n > most_rows else [])]

    def __repr__(self) -> str:
        return f"{self.name}\n{self.frame}"

    def _repr_html_(self) -> str:
        from faithscope.experiments.analysis.exports.notebook import html_of

        return html_of(self.blocks(len(self.frame)))


class Outputs(NamedTuple):
    """What was written of a run's outputs."""

    page: Path
    """Path of the page."""
    failed: list[str]
    """A sentence per table, figure and section that could not be made."""


@dataclass(frozen=True)
class Report:
    """Outputs of a study's runs, as the study declares them: frames, tables, figures and page.

    Most fields are functions of the study's results, which `results` computes from a run.
    """

    results: Callable[[Run], Any]
    """Computes the results of a run, from which tables, figures and page are made; called once per
    run (`Run.once`)."""
    frames: Sequence[Frame]
    """Frames that users get as attributes of a `Run`."""
    page: Callable[[Any, Sequence[Picture]], Page]
    """Makes the page from the results and the drawn figures."""
    columns: Columns
    """Declarations of the columns in the study's tables (`tables.declared`)."""
    items: Items
    """The items, for `faithscope show` and for the explorer of a comparison."""
    tables: Callable[[Any], dict[str, pd.DataFrame]] = attrgetter("tables")
    """Returns every table by its file name; by default the attribute `tables` of the results."""
    columns_of: Mapping[str, Columns] = field(default_factory=dict)
    """Table name -> declarations of columns that this table declares differently from `columns`."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reason of exclusion -> its text for readers, for reasons that only this study has."""
    papers: Callable[[Any], Sequence[PaperTable]] = lambda results: ()
    """Returns the tables in the layout of a paper."""
    figures: Callable[[Any], Sequence[Picture]] = lambda results: ()
    """Draws the figures from the results; none by default."""
    overview: Callable[[Any], Sequence[Block]] = lambda results: ()
    """Returns the finding of the results in a sentence and a picture, for a notebook and for
    `faithscope show`; none by default."""
    arrays: Sequence[str] = ()
    """Stages whose arrays are packed into `arrays/<stage>.safetensors` when tables are written."""
    write_extra: Callable[[Any], None] = lambda results: None
    """Writes further files that only this study has."""
    failed: Callable[[Any], Failures] = lambda results: Failures()
    """Returns what could not be made of the results so far (`analysis.failures`)."""
    scores: Callable[[Run], Scores] | None = None
    """Returns the scores and labels of each trace for comparisons; None for a study that measures
    no traces."""

    def write(self, run_dir: Path) -> Outputs:
        """Write tables, figures and page from the stored records.

        Tables are written first. A table or figure of a measure, or a section of the page, that
        cannot be made is named in the result and on the page; all others are written.
        """
        # imported here because it imports matplotlib, which frames alone do not need
        from faithscope.experiments.analysis.axes import of_width
        from faithscope.experiments.analysis.exports.tracking import track
        from faithscope.experiments.analysis.write import write_figures, write_page, write_tables

        run = load_run(run_dir)
        for stage in self.arrays:
            arrays.pack(run_dir, run.index, stage)
        results, tables = run.once(self.results), run.tables
        failed = self.failed(results)
        papers = self.papers(results)
        printed = {paper.name: paper.printed for paper in papers}
        tables = tables | {paper.name: paper.data for paper in papers}
        write_tables(run_dir, tables, self.columns_of_table, printed)
        # a study without a section `report` has figures of the usual width
        width = getattr(getattr(run.config, "report", None), "figure_width", "page")
        with of_width(width):
            drawn = write_figures(run_dir, self.figures(results), failed)
        self.write_extra(results)
        page = self.page(results, drawn)
        warnings = [*page.warnings, *made_by(run_dir)]
        path = write_page(replace(page, failed=failed, warnings=warnings))
        track(run.config.model_dump(mode="json"), run.tables)
        return Outputs(path, failed.lines())

    def columns_of_table(self, table: str) -> Columns:
        """Labels, units and meanings of the columns of one table."""
        return {**self.columns, **self.columns_of.get(table, {})}


def load_run(path: str | Path) -> Run:
    """Open a run folder of any study.

        faithscope.load_run("runs/quickstart").items
        faithscope.load_run("runs/c2faith").judgements
        faithscope.load_run("runs/rfeval").pairs

    Raises:
        UserError: `path` is no run folder, or its config names an unknown study.
    """
    run = Run(existing_run(path))
    study_of(stored_config(run.path))
    return run
