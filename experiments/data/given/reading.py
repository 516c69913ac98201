"""Reading of files of given chains: detection of the layout, and chains with unique ids."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.bonafide import BONAFIDE
from faithscope.experiments.data.given.chain import GivenChain, Reader, rows_of_file
from faithscope.experiments.data.given.chainscope import CHAINSCOPE
from faithscope.experiments.data.given.chat import CHAT
from faithscope.experiments.data.given.columns import (
    KEY,
    Columns,
    columns_problem,
    line_of,
    proposed,
    renamed,
    stored,
    stored_beside,
)
from faithscope.experiments.data.given.edits import with_edits
from faithscope.experiments.data.given.fine_cot import FINE_COT
from faithscope.experiments.data.given.inspect_log import INSPECT
from faithscope.experiments.data.given.pairs import PAIRS
from faithscope.experiments.data.given.prm800k import PRM800K
from faithscope.experiments.data.given.processbench import PROCESSBENCH
from faithscope.experiments.data.given.rollouts import ROLLOUTS
from faithscope.experiments.data.given.rows import ROWS
from faithscope.experiments.data.given.rules import ReadingRules, reading_by
from faithscope.experiments.data.tasks.sources.files import readable
from faithscope.experiments.data.tasks.sources.json_text import check_depth
from faithscope.experiments.data.tasks.sources.rows import NO_CHARACTER, begin_file, folded
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interp.extensions import extensions, why_broken
from faithscope.interp.turns import refusal_of, rendered_sign

AUTO, RUN_FOLDER = "auto", "run"
"""Values of `traces.format` that name no reader of files: the layout is detected, or a run is
read."""
_SHIPPED = (
    ROWS,
    PAIRS,
    PROCESSBENCH,
    PRM800K,
    BONAFIDE,
    FINE_COT,
    CHAT,
    INSPECT,
    CHAINSCOPE,
    ROLLOUTS,
)
READERS: tuple[Reader, ...] = (
    *_SHIPPED,
    *extensions("readers", Reader, taken={AUTO, RUN_FOLDER, *(r.name for r in _SHIPPED)}).values(),
)
"""Readers of all layouts, those of installed packages last."""


@dataclass(frozen=True)
class Chains:
    """The chains of one file or folder."""

    file: str
    format: str
    chains: tuple[GivenChain, ...]
    total: int
    """Number of chains in the file, including those that a limit leaves out."""
    columns_from: str = ""
    """The file beside it whose mapping of columns was used; "" if there is none."""
    notes: tuple[str, ...] = ()
    """How chains are read where the columns do not say it outright."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why samples of the file are no chains -> their number."""


def format_problem(name: str, readers: Iterable[Reader] = READERS) -> str | None:
    """Why `name` is no value of `traces.format`; None if it is one."""
    if problem := why_broken(name, "readers"):
        return problem
    known = [AUTO, *(reader.name for reader in readers)]
    if name in known:
        return None
    guess = did_you_mean(name, known) or f"; known: {', '.join(known)}"
    return f"unknown format {name!r}{guess}"


def read_chains(
    source: Path | Sequence[Mapping[str, Any]],
    format: str = AUTO,
    limit: int | None = None,
    readers: Sequence[Reader] = READERS,
    own_ids: bool = True,
    writers: Mapping[str, str] | None = None,
    seed: int = 0,
    columns: Columns | None = None,
    rules: ReadingRules | None = None,
    edits: Path | None = None,
) -> Chains:
    """The chains of a file, of a folder, or of given rows.

    Args:
        format: name of a reader; `auto` detects the layout by the path, else by the first row.
        limit: number of chains, drawn from all with the seed and left in their order; a greater
            limit draws these and more. The first `limit` chains might all have one writer or one
            label, if the file is sorted by these.
        own_ids: whether to make ids unique among all chains (`with_own_ids`); if not, they stay as
            in the file, unique only within model and data set.
        columns: a reader's column -> the file's (`columns.Columns`); those of a mapping stored
            beside the file hold for columns that are not in it.
        rules: what the user says of the file that its columns do not tell.
        edits: file of edits of the chains that were made elsewhere (`edits.with_edits`).

    Raises:
        UserError: no reader or several readers know the layout, a row does not fit its reader, or
            no row has a column that is mapped.
    """
    if problem := format_problem(format, readers):
        raise UserError(f"traces.format: {problem}")
    if columns and (problem := columns_problem(columns)):
        raise UserError(f"{KEY}: {problem}")
    columns_from = ""
    by_name = {reader.name: reader for reader in readers}
    if isinstance(source, Path):
        if not source.exists():
            raise UserError(f"traces.path: no such file or folder: {str(source)!r}; check the path")
        named = next((r for r in readers if r.owns(source)), None)
        reader = named if format == AUTO else by_name[format]
        # files that a reader opens in its own way are recognised by their path alone
        with readable(source):
            rows = (reader or ROWS).rows(source)
        file = str(source)
        beside = stored(source)
        columns_from = str(stored_beside(source)) if beside else ""
        columns = {**beside, **(columns or {})}
        if columns and reader is not None and reader.rows is not rows_of_file:
            raise UserError(
                f"{columns_from or KEY}: {file} is read as {reader.name}, which has no columns to "
                "name; take the mapping away"
            )
    else:
        reader = None if format == AUTO else by_name[format]
        file = "rows"
        for i, row in enumerate(source):
            check_depth(row, f"row {i}")
        read = begin_file(file)
        rows = [read.row(f"row-{i}", row, f"row {i}") for i, row in enumerate(source)]
    if not rows:
        raise UserError(f"{file}: holds no rows; give some")
    if columns:
        rows = renamed(rows, columns, file)
    # detection looks at all columns, which must not count as asked for
    reader = reader or _recognised(file, rows[0].cells.plain, readers)
    named = writers or {}
    with reading_by(rules or ReadingRules()) as noted:
        chains = [replace(c, model=named.get(c.model, c.model)) for c in reader.chains(rows)]
    if not chains and noted.left_out:
        why = ", ".join(noted.left_out)
        raise UserError(f"{file}: every sample is left out ({why}); give a file with others, too")
    chains = [c if c.sample is None else replace(c, id=f"{c.id}#{c.sample}") for c in chains]
    for chain in chains:
        _check_prompt(chain)
        _check_labels(chain)
    chains = chains if edits is None else with_edits(chains, edits)
    chains = with_own_ids(chains) if own_ids else _once(chains)
    drawn = random.Random(f"chains-{seed}").sample(range(len(chains)), len(chains))[:limit]
    kept = tuple(chains[i] for i in sorted(drawn))
    notes = tuple(f"{text}: {n:,} of {len(chains):,} chains" for text, n in noted.notes.items())
    return Chains(file, reader.name, kept, len(chains), columns_from, notes, noted.left_out)


def _check_prompt(chain: GivenChain) -> None:
    """Check that the prompt of a chain is the user's message, and no prompt that was rendered.

    Raises:
        UserError: it is one that was rendered.
    """
    as_sent = chain.sent is not None and chain.sent.prompt is not None
    for what, said in (("prompt", chain.prompt), ("question", chain.question)):
        if said is not None and not as_sent and (sign := rendered_sign(said)):
            raise UserError(f"{chain.where}: {refusal_of(sign, what)}")


def _check_labels(chain: GivenChain) -> None:
    """Check that labels have names and texts that a table can hold.

    Raises:
        UserError: one has half of a surrogate pair in it.
    """
    of_steps = ((name, v) for name, values in chain.step_labels.items() for v in values)
    for name, value in (*chain.labels.items(), *of_steps):
        for text in (name, value):
            if isinstance(text, str) and (bad := NO_CHARACTER.search(text)):
                raise UserError(
                    f"{chain.where}: the label {ascii(name)[1:-1]!r} holds the character "
                    f"{bad[0]!a}, which is none by itself; take it out"
                )


def _recognised(file: str, row: Mapping[str, Any], readers: Sequence[Reader]) -> Reader:
    fitting = [reader for reader in readers if reader.recognises(row)]
    if len(fitting) == 1:
        return fitting[0]
    columns = ", ".join(map(str, row)) or "none"
    if fitting:
        raise UserError(
            f"{file}: its columns ({columns}) are of the formats "
            f"{' and '.join(r.name for r in fitting)}; say which: traces.format: {fitting[0].name}"
        )
    meant = proposed(row)
    have = {*map(folded, map(str, row)), *meant}
    meant = meant if {"reasoning", "steps"} & have else {}  # it holds no chains
    lacks = [] if "question" in have else ["no question"]
    lacks += [] if {"reasoning", "steps"} & have else ["no reasoning"]
    seen = f", and nothing in it is named like one: {' and '.join(lacks)}" if lacks else ""
    say = f"say what they hold, as in {line_of(meant)}" if meant else f"map its columns ({KEY})"
    raise UserError(
        f"{file}: its columns ({columns}) are of no known format{seen}; {say}, or say which format "
        f"it is (traces.format: {', '.join(r.name for r in readers)}; faithscope docs given)"
    )


def with_own_ids(chains: Iterable[GivenChain]) -> list[GivenChain]:
    """Chains with unique ids: if data sets or models share some, ids name both.

    Raises:
        UserError: two chains of one model and data set have the same id.
    """
    chains = list(chains)
    n = Counter(chain.id for chain in chains)
    named = [_named(chain) for chain in chains]
    pairs = zip(_once(chains), named, strict=True)
    return [c if n[c.id] == 1 else replace(c, id=name) for c, name in pairs]


def _named(chain: GivenChain) -> str:
    """The id of a chain with its data set and model; a sample's name stays at the end, where it is
    told from the question's (`Question.asked_id`)."""
    sample = "" if chain.sample is None else f"#{chain.sample}"
    return f"{chain.dataset}/{chain.id.removesuffix(sample)} by {chain.model or 'unknown'}{sample}"


def _once(chains: Sequence[GivenChain]) -> Sequence[GivenChain]:
    """`chains`, once checked that each id is unique within its model and data set.

    Raises:
        UserError: two chains have the same id.
    """
    seen: dict[tuple[str, str, str], str] = {}
    for chain in chains:
        key = (chain.model, chain.dataset, chain.id)
        if key in seen:
            remedy = (
                "if they are samples of one question, name the column that numbers them 'sample' "
                "(--set 'traces.columns={sample: COLUMN}'); else give each chain an id of its own"
            )
            if chain.sample is not None:
                remedy = "the name of a sample is unique among those of its question and model"
            raise UserError(f"{chain.where}: id {chain.id!r} is that of {seen[key]}; {remedy}")
        seen[key] = chain.where
    return chains
