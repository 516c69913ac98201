"""A second measurement of a run's items: one by one, in float32, held against what is stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pandas as pd

from faithscope.experiments.config.api import API
from faithscope.experiments.data.traces import to_trace
from faithscope.experiments.engine.folder import existing_run, read_config
from faithscope.experiments.engine.index import Index
from faithscope.experiments.engine.run import plan
from faithscope.experiments.engine.traces.config import TracesConfig
from faithscope.experiments.engine.traces.units import TRACE, Item, measure
from faithscope.experiments.engine.units import ARRAYS, storable
from faithscope.experiments.files import write_atomically
from faithscope.experiments.numerals import significant
from faithscope.interp.errors import UserError
from faithscope.interventions.trace import Trace
from faithscope.probes.record import COST, Record

if TYPE_CHECKING:
    from faithscope.interp.model import Model

WAYS = {
    "one by one": "every branch is run by itself, to verify what was measured in packs",
    "in packs": None,
}
"""Way of measuring again -> why no packs are run, if none are. Probes that read or cut attention
need packs; float32 is then all that is other."""
PLACE = ("model", "task", "item")
KEYS = ("probe", "variant", "framing", "reading")
LEFT_OUT = {*PLACE, "dataset", "judge", "seed", *COST, ARRAYS}
"""Fields of a record that name it, or say how it was measured and not what."""
FILE = "verified.csv"


def verify(
    run: str | Path, n: int, say: Callable[[str], None] = lambda line: None
) -> tuple[Path, list[dict[str, Any]]]:
    """Measure `n` random items of each model of a run over traces again, and write down how far the
    numbers are from the stored ones.

    The stored traces are kept: a model writes nothing but what a probe asks it for. Weights are in
    float32 and every branch is a forward of its own under transformers' own attention (`how` is
    `one by one`; probes that read or cut attention run `in packs`), so that differences show what
    dtype and packs do. The draw depends on the run's seed.

    Returns:
        The path of `verified.csv` in the run folder, and its rows: one per item, probe, variant and
        field, with the number of values (`values`), the number of texts, answers and booleans that
        differ (`differ`), and the greatest difference between numbers (`max_abs`) beside the
        greatest stored number (`largest`).

    Raises:
        UserError: the run is not over traces, or no item of a model with weights is measured.
    """
    folder = existing_run(run)
    config = read_config(folder, must_be=TracesConfig)
    index = Index.of(folder)
    drawn = drawn_items(plan(config).items, index, n, config.seed)
    if not drawn:
        raise UserError(
            f"{folder}: no item of a model with weights is measured; `faithscope status {folder}` "
            "shows how far the run is"
        )
    rows: list[dict[str, Any]] = []
    for name, items in drawn.items():
        model = _load(config, name)
        for number, item in enumerate(items, start=1):
            say(f"{name}: item {number} of {len(items)}, {item.task} {item.item}")
            trace = to_trace(index.records(item.key(TRACE))[0])
            for probe in _probes(index, item):
                stored = index.records(item.key(probe))
                place = dict(zip(PLACE, (name, item.task, item.item), strict=True))
                how, again = _again(model, probe, item, trace, config)
                rows += [place | {"how": how} | row for row in differences(stored, again)]
    path = folder / FILE
    write_atomically(path, pd.DataFrame(rows).to_csv(index=False))
    return path, rows


def _again(
    model: Model, probe: str, item: Item, trace: Trace, config: TracesConfig
) -> tuple[str, list[Record]]:
    """The way in which a probe could be measured, and its records."""
    for way, reason in WAYS.items():
        model.tree_reason = reason
        again = _stored(measure(probe, model, item.of, trace, config))
        if reason is None or not any(r.get("excluded") for r in again):
            return way, again
    raise AssertionError(WAYS)


def _stored(records: Sequence[Record]) -> list[Record]:
    """Records without their arrays, as they read once stored."""
    flat = [{k: v for k, v in r.items() if k != ARRAYS} for r in records]
    return json.loads(json.dumps(storable(flat)))


def drawn_items(
    items: Sequence[Item], index: Index, n: int, seed: int
) -> Mapping[str, Sequence[Item]]:
    """Model -> at most `n` of its items that a probe has measured, at random; no API models."""
    measured: dict[str, list[Item]] = {}
    for item in items:
        if not item.model.startswith(API) and _probes(index, item):
            measured.setdefault(item.model, []).append(item)
    return {
        model: Random(f"verify-{seed}-{model}").sample(of, min(n, len(of)))
        for model, of in measured.items()
    }


def _probes(index: Index, item: Item) -> list[str]:
    """The probes of an item that are stored and not excluded."""
    return [
        probe
        for probe in item.probes
        if index.is_done(item.key(probe), item.units[probe]) and not index.excluded(item.key(probe))
    ]


def _load(config: TracesConfig, name: str) -> Model:
    # Not at the top: it imports torch, which `faithscope --help` need not wait for.
    from faithscope import interp

    how = config.model
    return interp.load(
        name,
        dtype="float32",
        device=how.device,
        revision=how.revision,
        quantize=how.quantize,
        device_map=how.device_map,
        marks=how.marks,
    )


def differences(stored: Sequence[Record], again: Sequence[Record]) -> Iterator[dict[str, Any]]:
    """A row per record and field: how far values measured again are from the stored ones.

    A field whose values are not as many as before counts each missing or added one as differing.
    """
    of_again = {_key(r): r for r in again}
    for before in stored:
        after = of_again.get(_key(before), {})
        for field, value in before.items():
            if field in LEFT_OUT or field in KEYS:
                continue
            pairs = list(_pairs(value, after.get(field)))
            numbers = [(a, b) for a, b in pairs if _is_number(a) and _is_number(b)]
            others = [(a, b) for a, b in pairs if not (_is_number(a) and _is_number(b))]
            if pairs:
                yield {key: before.get(key, "") for key in KEYS} | {
                    "field": field,
                    "values": len(pairs),
                    "differ": sum(a != b for a, b in others),
                    "max_abs": max((abs(a - b) for a, b in numbers), default=math.nan),
                    "largest": max((abs(a) for a, _ in numbers), default=math.nan),
                }


def _key(record: Record) -> tuple[Any, ...]:
    return tuple(record.get(key, "") for key in KEYS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The single values of two nested lists or mappings, side by side; what only one of them has is
    beside `...`."""
    if isinstance(one, list) and isinstance(other, list):
        for i in range(max(len(one), len(other))):
            a = one[i] if i < len(one) else ...
            b = other[i] if i < len(other) else ...
            yield from _pairs(a, b)
    elif isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _pairs(one.get(key, ...), other.get(key, ...))
    else:
        yield one, other


def summary(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line per model and probe: values compared, those that differ, and the greatest
    difference."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["probe"], row["how"]), []).append(row)
    lines = []
    for (model, probe, how), of in groups.items():
        counts = f"{len({r['item'] for r in of})} items, {sum(r['values'] for r in of)} values"
        numbers = ""
        if numeric := [r for r in of if not math.isnan(r["max_abs"])]:
            worst = max(numeric, key=lambda r: r["max_abs"])
            numbers = (
                f"; numbers by at most {significant(worst['max_abs'])} ({worst['field']}, of which "
                f"the largest stored is {significant(worst['largest'])})"
            )
        lines.append(
            f"{model} · {probe}, {how}: {counts}; {sum(r['differ'] for r in of)} answers, texts "
            f"and yes-or-no values differ{numbers}"
        )
    return lines
