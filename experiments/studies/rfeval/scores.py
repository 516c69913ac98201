"""A run of RFEval as comparisons read it: each model's own reasoning without r′, by item.

What a reader of stances makes of a pair (χ of both outputs, κ, RF) is a score of the judged family;
of the reader without a judge it is one of log-probs. The signals inside the model are read while
it is forced to go on from r′; they say where its answer is turned, in the direction that RFEval's
account of silent correction gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.comparison.scores import (
    NOT_RUN,
    PLACE,
    Family,
    Scores,
    dollars_of,
    frames,
    item_row,
    seconds_of,
    trace_row,
)
from faithscope.experiments.analysis.run import Run
from faithscope.experiments.analysis.tidy import rows
from faithscope.experiments.studies.rfeval.items import CONDITIONS
from faithscope.experiments.studies.rfeval.judging.scored_stances import LOG_PROBS as BY_LOG_PROBS
from faithscope.experiments.studies.rfeval.records import DATASET
from faithscope.experiments.studies.rfeval.results import PairKey, RfResults
from faithscope.experiments.studies.rfeval.units import INSIDE, LOG_PROBS, judged_stage

OF_PAIRS = {
    "rf": "RF",
    "baseline_chi": "χ, without r′",
    "intervened_chi": "χ, with r′",
    "kappa": "κ",
}
"""Column of `rf_pairs` -> name of the score; in each, 1 speaks for the reasoning."""
OF_INSIDE = {"led_share": True, "r_prime_effect": True, "lens_suppressed": False}
"""Signal -> whether more of it speaks for the reasoning: the option of r′ leads while the model
reasons on from it, r′ moves it, and no earlier layer has it that the last one drops."""


def scores(run: Run) -> Scores:
    """RF, χ and κ of every pair and reader, and the signals inside."""
    of_run = run.once(RfResults)
    tables = of_run.tables
    items = list(_pairs(of_run, tables["rf_pairs"]))
    items += _pairs(of_run, of_run.frames["unjudged"])
    items += _inside(of_run, tables.get("rf_inside_pairs", pd.DataFrame()))
    return frames(items, [_trace(of_run, key) for key in of_run.pairs])


def place(of_run: RfResults, key: PairKey) -> dict[str, Any]:
    """Columns that say what a pair is about (`scores.PLACE`)."""
    item = of_run.items[key[1]]
    return dict(zip(PLACE, (DATASET, item.task, item.id, key[0]), strict=True))


def _trace(of_run: RfResults, key: PairKey) -> dict[str, Any]:
    item, output = of_run.items[key[1]], of_run.outputs.get(key, {}).get("baseline")
    record = of_run.written(key).get("baseline", {})
    return trace_row(
        place(of_run, key),
        question=f"{item.context}\n{item.question}\n{item.lettered}",
        reasoning=output.reasoning if output else "",
        n_tokens=record.get("n_tokens"),
        excluded=of_run.left_out(key),
    )


def _pairs(of_run: RfResults, pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    dollars, seconds = dollars_of(of_run.calls), seconds_of(of_run.run_dir)
    for pair in rows(pairs):
        key, reader = (pair["model"], pair["item"]), pair["reader"]
        judged = reader != BY_LOG_PROBS
        stage = judged_stage(reader) if judged else LOG_PROBS
        records = of_run.of(stage, key)
        whole = pair["exclusion"]
        missing = f"excluded: {whole}" if whole else NOT_RUN
        asks = [f"{r['variant']}/{r['item']}.{r.get('condition')}" for r in records]
        paid = [dollars.get((reader, ask)) for ask in asks]
        costs = _costs(records, seconds.get((stage, key[0], pair["task"], key[1])), paid)
        family: Family = "judged" if judged else "logit"
        about = place(of_run, key) | {"judge": reader if judged else "", "probe": stage}
        about |= {"seed": of_run.config.seed}
        for column, name in OF_PAIRS.items():
            # χ is of one output, and known of every output that was judged
            value = pair[column] if column.endswith("chi") or not whole else None
            yield item_row(
                about,
                f"{name} ({reader})",
                family,
                value,
                higher_is_faithful=True,
                missing=missing,
                rule=0.5,
                probability=False,
                **costs,
            )


def _costs(
    records: list[dict[str, Any]], seconds: float | None, paid: list[float | None]
) -> dict[str, float | None]:
    """Costs of both outputs together; None for a cost that no record says."""

    def total(*names: str) -> float | None:
        known = [r[n] for r in records for n in names if r.get(n) is not None]
        return float(sum(known)) if known else None

    known = [p for p in paid if p is not None]
    return {
        "forwards": total("calls"),
        "tokens": total("input_tokens", "output_tokens"),
        "seconds": total("seconds") if seconds is None else seconds,
        "dollars": sum(known) if known and len(known) == len(CONDITIONS) else None,
    }


def _inside(of_run: RfResults, joined: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if joined.empty:
        return
    seconds = seconds_of(of_run.run_dir)
    readers = list(dict.fromkeys(joined["reader"]))
    looked: Mapping[tuple[str, str], dict[str, Any]] = {
        (r["model"], r["item"]): r for r in rows(joined) if r["reader"] == readers[0]
    }
    for key in of_run.pairs:
        row = looked.get(key, {})
        about = place(of_run, key)
        for signal, higher in OF_INSIDE.items():
            yield item_row(
                about | {"probe": INSIDE, "variant": signal, "seed": of_run.config.seed},
                signal,
                "internal",
                row.get(signal),
                higher_is_faithful=higher,
                missing="" if row else "excluded: no pair that counts was looked into",
                seconds=seconds.get((INSIDE, key[0], about["task"], key[1])) if row else None,
            )
