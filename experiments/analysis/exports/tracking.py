"""Tracking: the numbers in the tables of a run, sent to MLflow, trackio or Weights & Biases.

A config's key `tracking` names the tracker; without it nothing is imported or sent. A table whose
leading text columns name each of its rows gives one number per column
(`slrc/planted:faithful/planted/prefix/generated/necessity`). Any other table gives curves along the
number column that tells its rows apart: a layer, a position, a step of training.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

PROJECT = "faithscope"
"""Name of the project where the tracker's own environment variable names none."""
MOST_NUMBERS = 5_000
"""Number of numbers above which a table is not sent."""
_AT_ONCE = 500
"""Number of metrics that MLflow is sent in one call, which takes at most 1,000."""
Numbers = dict[str, float]
Curves = Mapping[int, Numbers]
"""Step -> metric -> value."""


def track(config: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> None:
    """Send the tables of a run to the tracker that its config names, as one new run there."""
    name = config.get("tracking")
    if name is None:
        return
    try:
        said = _sent(importlib.import_module(name), config, tables)
    # whatever the tracker, its server or the network come up with: the tables are written
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        said = (
            f"note: not tracked with {name} ({reason}); `faithscope report` sends the tables again"
        )
    print(said, file=sys.stderr)


def _sent(tracker: Any, config: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> str:
    summary, curves, left = Numbers(), defaultdict[int, Numbers](Numbers), []
    for of_table, table in tables.items():
        values = list(numbers(of_table, table))
        if len(values) > MOST_NUMBERS:
            left.append(of_table)
            continue
        for metric, step, value in values:
            (summary if step is None else curves[step])[metric] = value
    name = config["tracking"]
    send = _to_mlflow if name == "mlflow" else _to_wandb_or_trackio
    send(tracker, config, summary, dict(sorted(curves.items())))
    n = len({metric for of_step in curves.values() for metric in of_step})
    more = f"; too large to send: {', '.join(left)}" if left else ""
    return f"tracked with {name}: {len(summary)} numbers, {n} curves{more}"


def numbers(name: str, table: pd.DataFrame) -> Iterator[tuple[str, int | None, float]]:
    """Yields (metric, step, value) of a table; the step is None for a number that is no curve's.

    A step is the value in the column that tells rows apart, or, where that column has fractions,
    the rank of the value. Ends of intervals are left out.
    """
    columns = list(table.columns)
    is_number = {
        c: pd.api.types.is_numeric_dtype(table[c]) and not pd.api.types.is_bool_dtype(table[c])
        for c in columns
    }
    n = next((i for i, c in enumerate(columns) if is_number[c]), len(columns))
    while n < len(columns) and table.duplicated(columns[:n] or None).any():
        n += 1
    keys, values = columns[:n], [c for c in columns[n:] if is_number[c]]
    axis = keys.pop() if keys and is_number[keys[-1]] else None
    steps = pd.Series(dtype=float) if axis is None else table[axis]
    if bool((steps % 1 != 0).any()):
        steps = steps.rank(method="dense").sub(1)
    for i, row in enumerate(table.to_dict("records")):
        where = "/".join([name, *(str(row[key]) for key in keys)])
        step = None if axis is None else int(steps.iloc[i])
        for column in values:
            if not column.endswith(("_low", "_high")) and pd.notna(row[column]):
                # these characters are allowed in names by all trackers
                yield re.sub(r"[^\w./: -]", "_", f"{where}/{column}"), step, float(row[column])


def _to_wandb_or_trackio(
    tracker: Any, config: Mapping[str, Any], summary: Numbers, curves: Curves
) -> None:
    project = os.environ.get(f"{tracker.__name__.upper()}_PROJECT", PROJECT)
    tracker.init(project=project, name=config["name"], config=dict(config))
    for step, values in curves.items():
        tracker.log(values, step=step)
    tracker.log(summary)
    tracker.finish()


def _to_mlflow(mlflow: Any, config: Mapping[str, Any], summary: Numbers, curves: Curves) -> None:
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    with mlflow.start_run(run_name=config["name"]):
        mlflow.log_dict(dict(config), "config.yaml")
        for step, values in [*curves.items(), (None, summary)]:
            named = list(values.items())
            for i in range(0, len(named), _AT_ONCE):
                mlflow.log_metrics(dict(named[i : i + _AT_ONCE]), step=step)
