"""A benchmark on disk: JSON lines and a manifest that says what it was made of, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from faithscope.experiments.files import write_atomically
from faithscope.experiments.studies.c2faith.benchmark import Settings
from faithscope.experiments.studies.c2faith.chains import Chain
from faithscope.experiments.studies.c2faith.items import (
    CausalItem,
    CoverageItem,
    LeftOut,
    causal_counts,
)
from faithscope.experiments.studies.c2faith.prm800k import Source
from faithscope.interp.errors import UserError

FORMAT = 1
MANIFEST = "manifest.json"
CAUSAL, COVERAGE, LEFT_OUT = "causal.jsonl", "coverage.jsonl", "left_out.jsonl"
T = TypeVar("T", CausalItem, CoverageItem, LeftOut)


@dataclass(frozen=True)
class Benchmark:
    """All items, and the account of what gave none."""

    causal: tuple[CausalItem, ...]
    coverage: tuple[CoverageItem, ...]
    left_out: tuple[LeftOut, ...]
    made_of: dict[str, Any]
    """Seed, settings, sources and chains (see `made_of`), as plain JSON values."""

    @cached_property
    def files(self) -> dict[str, str]:
        """Name -> content of every file but the manifest."""
        return {
            CAUSAL: _json_lines(self.causal),
            COVERAGE: _json_lines(self.coverage),
            LEFT_OUT: _json_lines(self.left_out),
        }

    @property
    def manifest(self) -> dict[str, Any]:
        """What it was made of, what came of it, and the sha256 of each file."""
        return {
            "format": FORMAT,
            "made_of": self.made_of,
            "counts": {
                "causal": causal_counts(self.causal),
                "coverage": {
                    str(level): n
                    for level, n in sorted(Counter(i.level for i in self.coverage).items())
                },
                "left_out": {
                    f"{stage}:{reason}": n
                    for (stage, reason), n in sorted(
                        Counter((o.stage, o.reason) for o in self.left_out).items()
                    )
                },
            },
            "files": {
                name: {"sha256": _sha256(text.encode()), "rows": text.count("\n")}
                for name, text in self.files.items()
            },
        }


def made_of(
    chains: Sequence[Chain],
    sources: Sequence[Source],
    settings: Settings,
    **more: Any,
) -> dict[str, Any]:
    """What a benchmark is made of, for its manifest.

    Args:
        more: whatever else decided the items, as plain values: how chains were selected, which
            model wrote the replacements at which temperature, the sha256 of its prompt.
    """
    digest = hashlib.sha256("\n".join(c.sha256 for c in chains).encode()).hexdigest()
    described = {
        "settings": asdict(settings),
        "sources": [{**asdict(s), "as_released": s.as_released} for s in sources],
        "chains": {"n": len(chains), "sha256": digest},
        **more,
    }
    return json.loads(json.dumps(described))


def save(benchmark: Benchmark, folder: Path) -> None:
    """Write the benchmark; the manifest last, so that a folder that has one is whole.

    Raises:
        StoreError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in benchmark.files.items():
        write_atomically(folder / name, text)
    write_atomically(folder / MANIFEST, json.dumps(benchmark.manifest, indent=2) + "\n")


def load(folder: Path) -> Benchmark:
    """A saved benchmark, checked against its manifest.

    Raises:
        UserError: no manifest there, another format, a file that is missing or is not what was
            written; names the file and what differs.
    """
    manifest = _manifest(folder / MANIFEST)
    texts = {name: _checked(folder / name, manifest) for name in (CAUSAL, COVERAGE, LEFT_OUT)}
    benchmark = Benchmark(
        _items(CausalItem, texts[CAUSAL], folder / CAUSAL),
        _items(CoverageItem, texts[COVERAGE], folder / COVERAGE),
        _items(LeftOut, texts[LEFT_OUT], folder / LEFT_OUT),
        manifest["made_of"],
    )
    if told := _differing(manifest, benchmark.manifest):
        raise UserError(f"{folder / MANIFEST}: does not fit its files: {told[0]}; build it again")
    return benchmark


def first_chains(benchmark: Benchmark, n: int | None) -> Benchmark:
    """The items of its first `n` chains, the others accounted for; all of them for None."""
    chains = list(dict.fromkeys(i.chain for i in (*benchmark.coverage, *benchmark.causal)))
    if n is None or n >= len(chains):
        return benchmark
    kept, beyond = set(chains[:n]), chains[n:]
    left_out = (
        *(o for o in benchmark.left_out if o.id not in beyond),
        *(LeftOut(chain, "selection", "limit") for chain in beyond),
    )
    described = benchmark.made_of | {
        "chains": {"n": n, "first_of": benchmark.made_of["chains"]},
    }
    return Benchmark(
        tuple(i for i in benchmark.causal if i.chain in kept),
        tuple(i for i in benchmark.coverage if i.chain in kept),
        left_out,
        described,
    )


def differences(saved: Benchmark, built: Benchmark) -> list[str]:
    """What sets a saved benchmark apart from one built now, a line each; none if it is the same.

    Settings, sources and chains first, then which items are missing, new or changed.
    """
    lines = _differing(saved.made_of, built.made_of)
    for name in ("causal", "coverage", "left_out"):
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


def _differing(before: Any, now: Any, at: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        keys = dict.fromkeys((*before, *now))
        return [
            line
            for key in keys
            for line in _differing(before.get(key), now.get(key), f"{at}.{key}" if at else key)
        ]
    return [] if before == now else [f"{at} was {before!r} and is {now!r}"]


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); give the folder of a saved benchmark"
        ) from error
    except ValueError as error:
        raise UserError(f"{path}: is damaged ({error}); build the benchmark again") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT or not {"made_of", "files"} <= manifest.keys():
        raise UserError(
            f"{path}: has format {found!r}, this version reads {FORMAT}; build the benchmark again"
        )
    return manifest


def _checked(path: Path, manifest: dict[str, Any]) -> str:
    written = manifest["files"].get(path.name)
    if not isinstance(written, dict):
        raise UserError(f"{path.parent / MANIFEST}: does not name {path.name}; build it again")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}), but {MANIFEST} names it; build it again"
        ) from error
    if (found := _sha256(data)) != written.get("sha256"):
        rows = data.count(b"\n")
        raise UserError(
            f"{path}: is not what was written: {rows} rows with sha256 {found[:12]}…, {MANIFEST} "
            f"says {written.get('rows')} rows with {str(written.get('sha256'))[:12]}…; restore the "
            "file or build the benchmark again"
        )
    return data.decode()


def _items(kind: type[T], text: str, path: Path) -> tuple[T, ...]:
    items = []
    names = {f.name for f in fields(kind)}
    for i, line in enumerate(filter(None, text.split("\n")), start=1):
        values = json.loads(line)
        if values.keys() != names:
            raise UserError(
                f"{path}, line {i}: has the fields {', '.join(values)}, expected "
                f"{', '.join(sorted(names))}; build the benchmark again"
            )
        # JSON has lists only
        made: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        items.append(kind(**made))
    return tuple(items)


def _json_lines(items: Sequence[CausalItem | CoverageItem | LeftOut]) -> str:
    return "".join(json.dumps(asdict(item)) + "\n" for item in items)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
