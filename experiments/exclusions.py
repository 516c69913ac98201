"""Where every item went: a waterfall that adds up, or an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from experiments.outcomes import FRAMINGS, READINGS, Record
from experiments.store import Unit


def exclusions_table(records: Iterable[Record], failures: Iterable[Unit] = ()) -> pd.DataFrame:
    """Where every item went.

    Per model, task and stage a row `total`, a row per reason, a row `included`. The stage
    `trace` starts from every item tried; each `slrc.<framing>.<reading>` from the items
    that `trace` included.

    Raises:
        ValueError: a stage that does not add up: records that contradict each other.
    """
    records, failures = list(records), list(failures)
    traces = [r for r in records if r["probe"] == "trace"]
    failed_traces = [u for u in failures if u.stage == "trace"]
    pairs = {(r["model"], r["dataset"]) for r in traces} | {
        (u.model, u.task) for u in failed_traces
    }
    variants = sorted({r["variant"] for r in records if r["probe"] == "slrc"}, key=_variant_rank)
    rows = []
    for model, task in sorted(pairs):
        mine = [r for r in traces if (r["model"], r["dataset"]) == (model, task)]
        lost = [u for u in failed_traces if (u.model, u.task) == (model, task)]
        fates = [r.get("excluded") or "included" for r in mine] + ["failed"] * len(lost)
        rows += _waterfall(model, task, "trace", fates)
        included = [r["item"] for r in mine if not r.get("excluded")]
        failed = {u.item for u in failures if (u.stage, u.model, u.task) == ("slrc", model, task)}
        for variant in variants if included else []:
            fate_of = {
                r["item"]: r.get("excluded") or "included"
                for r in records
                if r["probe"] == "slrc"
                and (r["model"], r["dataset"], r["variant"]) == (model, task, variant)
            }
            if strangers := set(fate_of) - set(included):
                raise ValueError(
                    f"{model}, {task}: {variant} measured {len(strangers)} items without an "
                    f"included trace (first: {min(map(str, strangers))!r}); the records of two "
                    "runs are mixed: run again under another name"
                )
            fates = [
                fate_of.get(item, "failed" if item in failed else "not_run") for item in included
            ]
            rows += _waterfall(model, task, f"slrc.{variant}", fates)
    table = pd.DataFrame(rows, columns=["model", "task", "stage", "reason", "n"])
    check_adds_up(table)
    return table


def check_adds_up(exclusions: pd.DataFrame) -> None:
    """Every item is counted once in every stage.

    Raises:
        ValueError: names the first stage that does not add up.
    """
    for _, stage in exclusions.groupby(["model", "task", "stage"], sort=False):
        n = dict(zip(stage["reason"], stage["n"], strict=True))
        total = n.pop("total")
        if total != sum(n.values()):
            where = ", ".join(str(stage[name].iloc[0]) for name in ("model", "task", "stage"))
            raise ValueError(f"{where}: {total} items, but {n} are accounted for")


def _variant_rank(variant: str) -> tuple[int, int]:
    framing, _, reading = variant.partition(".")
    return FRAMINGS.index(framing), READINGS.index(reading)


def _waterfall(model: str, task: str, stage: str, fates: Sequence[str]) -> list[dict[str, Any]]:
    counts = Counter(fates)
    included = counts.pop("included", 0)
    reasons = [("total", len(fates)), *sorted(counts.items()), ("included", included)]
    where = {"model": model, "task": task, "stage": stage}
    return [where | {"reason": reason, "n": n} for reason, n in reasons]
