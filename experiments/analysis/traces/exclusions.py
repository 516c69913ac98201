"""Table `exclusions`: in every stage each item is included or has one reason for being left out,
and the counts add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pandas as pd

from faithscope.experiments.analysis.cells import waterfall
from faithscope.experiments.analysis.columns import SHARED, Column
from faithscope.experiments.analysis.stored_records import Record
from faithscope.experiments.analysis.tables import Table
from faithscope.experiments.engine.traces.config import probes_of
from faithscope.experiments.engine.traces.sections import DIRECT_PROMPTS
from faithscope.experiments.engine.units import Key, Unit
from faithscope.experiments.files import StoreError
from faithscope.probes import PROBES
from faithscope.probes.framing import FRAMINGS, READINGS

BEYOND_LIMIT, NOT_READ = "beyond_limit", "writer_not_here"
"""Reasons for having no number: the item lies beyond the limit of the probe; the chain was written
by a model that the run does not read."""
Fate = tuple[str, str, str, str]
"""(model, task, stage, fate) of one item; the fate is `included` or a reason."""


EXCLUSIONS = Table(
    "exclusions",
    "fates",
    ("model", "task", "stage"),
    lines=[waterfall("fate", (SHARED["reason"], Column("n", meaning="Items.")))],
)
"""Counts of items per model, task and stage: a row `total`, a row per reason for leaving items out,
and a row `included`."""
FATES = (*EXCLUSIONS.keys, "fate")
"""Columns of the frame of fates."""


def exclusions_table(
    records: Iterable[Record],
    failures: Iterable[Unit] = (),
    is_planned: Callable[[Key], bool] = lambda key: True,
    unread: Mapping[tuple[str, str], int] | None = None,
) -> pd.DataFrame:
    """The table `EXCLUSIONS` of a run; the arguments are those of `fates_of`."""
    return EXCLUSIONS.make(fates_of(records, failures, is_planned, unread))


def fates_of(
    records: Iterable[Record],
    failures: Iterable[Unit] = (),
    is_planned: Callable[[Key], bool] = lambda key: True,
    unread: Mapping[tuple[str, str], int] | None = None,
) -> pd.DataFrame:
    """A frame (`FATES`) with a row per item and stage: `included`, or why the item has no number.

    The stage `trace` starts from every item tried. A stage `<probe>.<variant>` starts from the
    items that `trace` included; for a probe of the question alone (`direct`) it starts from all
    items with a trace.

    Args:
        records: records of traces and probes.
        failures: units that failed.
        is_planned: whether the run plans the unit of a key; a probe with a limit of its own is not
            planned for the items beyond it.
        unread: (writer, task) -> number of given chains that no model of the run reads.

    Raises:
        ValueError: records contradict each other, as those of two runs do.
    """
    failures = list(failures)
    of_probes: dict[str, list[Record]] = {}
    for record in records:
        of_probes.setdefault(record["probe"], []).append(record)
    traces = of_probes.get("trace", [])
    failed_traces = [u for u in failures if u.stage == "trace"]
    pairs = {(r["model"], r["task"]) for r in traces} | {(u.model, u.task) for u in failed_traces}
    measured = {
        name: of_probes.get(name, [])
        for name in PROBES
        if name in of_probes or any(u.stage == name for u in failures)
    }
    fates: list[Fate] = []
    for model, task in sorted(pairs):
        own_traces = [r for r in traces if (r["model"], r["task"]) == (model, task)]
        lost = [u for u in failed_traces if (u.model, u.task) == (model, task)]
        of_traces = [r.get("excluded") or "included" for r in own_traces] + ["failed"] * len(lost)
        fates += [(model, task, "trace", fate) for fate in of_traces]
        for probe, of_probe in measured.items():
            if not probes_of(model, [probe]):
                continue
            entered = [
                r["item"] for r in own_traces if PROBES[probe].on_excluded or not r.get("excluded")
            ]
            failed = {
                u.item for u in failures if (u.stage, u.model, u.task) == (probe, model, task)
            }
            here = [r for r in of_probe if (r["model"], r["task"]) == (model, task)]
            if entered or here:
                everywhere = sorted({r["variant"] for r in of_probe}, key=_variant_rank)
                beyond = {i for i in entered if not is_planned((probe, model, task, i))}
                why = dict.fromkeys(failed, "failed") | dict.fromkeys(beyond, BEYOND_LIMIT)
                fates += _stages(model, task, probe, here, everywhere, entered, why)
    for (writer, task), n in (unread or {}).items():
        fates += [(writer, task, "trace", NOT_READ)] * n
    return pd.DataFrame(fates, columns=list(FATES))


def _stages(
    model: str,
    task: str,
    probe: str,
    records: Sequence[Record],
    everywhere: Sequence[str],
    entered: Sequence[str],
    without_records: Mapping[str, str],
) -> Iterator[Fate]:
    """Yields the fates of all entered items in one probe, for each of its variants on this task.

    A probe that has nothing to ask about an item stores one record without a variant; its reason
    then holds for every variant.
    """
    at_all = {r["item"]: r["excluded"] for r in records if not r["variant"] and r.get("excluded")}
    variants = [v for v in everywhere if v and any(r["variant"] == v for r in records)]
    if not variants:
        variants = [] if at_all else [v for v in everywhere if v]
    for variant in variants or [""]:
        fate_of = at_all | {
            r["item"]: r.get("excluded") or "included" for r in records if r["variant"] == variant
        }
        stage = f"{probe}.{variant}" if variant else probe
        if strangers := set(fate_of) - set(entered):
            raise StoreError(
                f"{model}, {task}: {stage} measured {len(strangers)} items without "
                f"{'a' if PROBES[probe].on_excluded else 'an included'} trace (first: "
                f"{min(map(str, strangers))!r}); either traces are lost, which `faithscope run` "
                "writes anew, or the records of two runs are mixed: then run under another name"
            )
        for i in entered:
            yield model, task, stage, fate_of.get(i) or without_records.get(i, "not_run")


def _variant_rank(variant: str) -> tuple[int, str, int, str]:
    """Sort key of a probe's variants: framings and direct prompts in their order, `generated`
    before `scored`, all others by name."""
    kinds = (*FRAMINGS, *DIRECT_PROMPTS)
    kind, _, reading = variant.rpartition(".")
    place = kinds.index(kind) if kind in kinds else len(kinds)
    second = READINGS.index(reading) if reading in READINGS else len(READINGS)
    # the name makes ranks unique, since the order of a set differs between processes
    return place, kind, second, variant
