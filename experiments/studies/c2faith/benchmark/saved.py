"""The benchmark on disk: items, the account of what gave none, and what they were made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faithscope.experiments.data.saved import (
    MANIFEST,
    SavedBenchmark,
    differing,
    json_lines,
    rows_of,
)
from faithscope.experiments.studies.c2faith.benchmark.items import (
    CausalItem,
    CoverageItem,
    LeftOut,
)
from faithscope.interp.errors import UserError

KINDS = {"causal": CausalItem, "coverage": CoverageItem, "left_out": LeftOut}
"""Part of a benchmark, which names its file, too -> type of its rows."""


@dataclass(frozen=True)
class Benchmark:
    """All items, and the account of the solutions and chains that gave none."""

    causal: tuple[CausalItem, ...]
    coverage: tuple[CoverageItem, ...]
    left_out: tuple[LeftOut, ...]
    made_of: dict[str, Any]
    """Settings, sources, chains and how steps were replaced, as plain JSON values (`Basis`)."""

    @property
    def saved(self) -> SavedBenchmark:
        """Files and manifest of the benchmark, byte for byte."""
        files = {f"{name}.jsonl": json_lines(getattr(self, name)) for name in KINDS}
        counts = {
            "causal": _counted(item.method for item in self.causal),
            "coverage": _counted(str(item.level) for item in self.coverage),
            "left_out": _counted(f"{o.stage}:{o.reason}" for o in self.left_out),
        }
        return SavedBenchmark(files, self.made_of, counts)

    @classmethod
    def load(cls, folder: Path) -> Benchmark:
        """A saved benchmark, checked against its manifest.

        Raises:
            UserError: no manifest there, another format, a file that is missing or is not what was
                written; names the file and what differs.
        """
        saved = SavedBenchmark.load(folder)
        names = {name: f"{name}.jsonl" for name in KINDS}
        if missing := [file for file in names.values() if file not in saved.files]:
            raise UserError(f"{folder / MANIFEST}: does not name {missing[0]}; build it again")
        parts = {
            name: rows_of(KINDS[name], saved.files[file], folder / file)
            for name, file in names.items()
        }
        benchmark = cls(**parts, made_of=dict(saved.made_of))
        if lines := differing(saved.manifest, benchmark.saved.manifest):
            raise UserError(
                f"{folder / MANIFEST}: does not fit its files: {lines[0]}; build it again"
            )
        return benchmark


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def first_chains(benchmark: Benchmark, n: int | None) -> Benchmark:
    """The benchmark of the first `n` chains, with the other chains accounted for; all of it for
    None."""
    chains = list(dict.fromkeys(i.chain for i in (*benchmark.coverage, *benchmark.causal)))
    if n is None or n >= len(chains):
        return benchmark
    first, beyond = set(chains[:n]), chains[n:]
    left_out = (
        *(o for o in benchmark.left_out if o.id not in beyond),
        *(LeftOut(chain, "selection", "limit") for chain in beyond),
    )
    described = benchmark.made_of | {
        "chains": {"n": n, "first_of": benchmark.made_of["chains"]},
    }
    return Benchmark(
        tuple(i for i in benchmark.causal if i.chain in first),
        tuple(i for i in benchmark.coverage if i.chain in first),
        left_out,
        described,
    )


def differences(saved: Benchmark, built: Benchmark) -> list[str]:
    """What sets a saved benchmark apart from one built now, a line each; none if it is the same.

    Settings, sources and chains first, then which items are missing, new or changed.
    """
    lines = differing(saved.made_of, built.made_of)
    for name in KINDS:
        before = {i.id: i for i in getattr(saved, name)}
        now = {i.id: i for i in getattr(built, name)}
        for what, ids in (
            ("gone", before.keys() - now.keys()),
            ("added", now.keys() - before.keys()),
            ("changed", {i for i in before.keys() & now.keys() if before[i] != now[i]}),
        ):
            if ids:
                shown = ", ".join(sorted(ids)[:3]) + (", …" if len(ids) > 3 else "")
                lines.append(f"{name}: {len(ids)} {what} ({shown})")
    return lines
