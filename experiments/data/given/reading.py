"""Files of given chains: which layout one has, and the chains in it under ids of their own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faithscope.experiments.data.given.bonafide import BONAFIDE
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.chat import CHAT
from faithscope.experiments.data.given.fine_cot import FINE_COT
from faithscope.experiments.data.given.inspect_log import INSPECT
from faithscope.experiments.data.given.prm800k import PRM800K
from faithscope.experiments.data.given.processbench import PROCESSBENCH
from faithscope.experiments.data.given.rows import ROWS
from faithscope.experiments.data.tasks.sources.json_text import check_depth
from faithscope.experiments.data.tasks.sources.rows import begin_file
from faithscope.interp.errors import UserError, did_you_mean

AUTO = "auto"
READERS = (ROWS, PROCESSBENCH, PRM800K, BONAFIDE, FINE_COT, CHAT, INSPECT)


@dataclass(frozen=True)
class Chains:
    """The chains of one file or folder."""

    file: str
    format: str
    chains: tuple[GivenChain, ...]
    total: int
    """How many there are, those that a limit leaves out among them."""


def format_problem(name: str, readers: Iterable[Reader] = READERS) -> str | None:
    """Why `name` is no value of `traces.format`, or None if it is one."""
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
) -> Chains:
    """The chains of a file, a folder, or of rows at hand.

    Args:
        format: a reader's name; `auto` tells by the path, else by the first row.
        limit: so many, drawn from all with the seed and left in their order; a greater limit draws
            these and more. The first so many would be of one writer or one label where a file goes
            by these.
        own_ids: let ids be unique in all (`with_own_ids`); else each is as the file has it, unique
            for its model and data set alone.

    Raises:
        UserError: the layout is of no reader or of several, or a row is not as its reader wants.
    """
    if problem := format_problem(format, readers):
        raise UserError(f"traces.format: {problem}")
    by_name = {reader.name: reader for reader in readers}
    if isinstance(source, Path):
        if not source.exists():
            raise UserError(f"traces.path: no such file or folder: {str(source)!r}; check the path")
        named = next((r for r in readers if r.owns(source)), None)
        reader = named if format == AUTO else by_name[format]
        # what each reader opens in its own way is told apart by its path alone
        rows = (reader or ROWS).rows(source)
        file = str(source)
    else:
        reader = None if format == AUTO else by_name[format]
        file = "rows"
        for i, row in enumerate(source):
            check_depth(row, f"row {i}")
        read = begin_file(file)
        rows = [read.row(f"row-{i}", row, f"row {i}") for i, row in enumerate(source)]
    if not rows:
        raise UserError(f"{file}: holds no rows; give some")
    # a layout is told by looking at all columns, which asks for none
    reader = reader or _recognised(file, rows[0].cells.plain, readers)
    named = writers or {}
    chains = [replace(c, model=named.get(c.model, c.model)) for c in reader.chains(rows)]
    chains = with_own_ids(chains) if own_ids else _once(chains)
    drawn = random.Random(f"chains-{seed}").sample(range(len(chains)), len(chains))[:limit]
    return Chains(file, reader.name, tuple(chains[i] for i in sorted(drawn)), len(chains))


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
    raise UserError(
        f"{file}: its columns ({columns}) are of no known format; say which it is "
        f"(traces.format: {', '.join(r.name for r in readers)}), or give the columns question and "
        "reasoning (docs/given.md)"
    )


def with_own_ids(chains: Iterable[GivenChain]) -> list[GivenChain]:
    """Chains under ids that are unique: where data sets or models share some, both are named.

    Raises:
        UserError: two chains of one model and data set have the same id.
    """
    chains = list(chains)
    n = Counter(chain.id for chain in chains)
    named = [f"{c.dataset}/{c.id} by {c.model or 'unknown'}" for c in chains]
    pairs = zip(_once(chains), named, strict=True)
    return [c if n[c.id] == 1 else replace(c, id=name) for c, name in pairs]


def _once(chains: Sequence[GivenChain]) -> Sequence[GivenChain]:
    """The chains, each of which has an id of its own among those of its model and data set.

    Raises:
        UserError: two have the same.
    """
    seen: dict[tuple[str, str, str], str] = {}
    for chain in chains:
        key = (chain.model, chain.dataset, chain.id)
        if key in seen:
            raise UserError(
                f"{chain.where}: id {chain.id!r} is that of {seen[key]}; give each chain an id of "
                "its own"
            )
        seen[key] = chain.where
    return chains
