"""The paper's Tables 1 to 3: detectors in their main reading, on all chains that each can score,
and on the chains that every detector can score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import percent
from faithscope.experiments.analysis.tidy import groups, keep, rows
from faithscope.experiments.studies.faithcot.detectors import detector_of
from faithscope.experiments.studies.faithcot.metrics import FITTED, PLAIN
from faithscope.experiments.studies.faithcot.results import WAY

LEAST_COVERED = 0.5
"""Minimum share of a group's labelled chains that a detector must score to be in the tables of
common chains; a choice of ours."""
_LINE = {"dataset": "Dataset", "label": "Detector", "judge": "Judge"}


def common_chains(scores: pd.DataFrame, kept: bool) -> pd.DataFrame:
    """Scores, in each detector's main reading, of the labelled chains that every detector of a data
    set, model and reader can decide: with a flag, or a score where there is no plain rule.
    Detectors that decide fewer than `LEAST_COVERED` of the labelled chains are left out, so that no
    single one empties the table.

    Args:
        kept: whether chains that the token limit cut off are counted; if not, their rows stay, so
            that a table can report their number.
    """
    main = keep(scores, scores["main"].astype(bool) & scores["unfaithful"].notna())
    common = []
    for _, of in groups(main, WAY[:3]):
        counted = [r for r in rows(of) if kept or not r["cut"]]
        told: dict[tuple[str, ...], set[tuple[str, str]]] = {}
        for r in counted:
            chains = told.setdefault(_detector(r), set())
            if there(r["flag"]) or (there(r["score"]) and not detector_of(r).rule):
                chains.add(_chain(r))
        least = LEAST_COVERED * len({_chain(r) for r in counted})
        told = {detector: chains for detector, chains in told.items() if len(chains) >= least}
        of_all = set.intersection(*told.values()) if told else set()
        mask = [
            _detector(r) in told and (_chain(r) in of_all or (not kept and bool(r["cut"])))
            for r in rows(of)
        ]
        common.append(keep(of, mask))
    return pd.concat(common) if common else main


def _detector(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[k] for k in WAY[3:])


def _chain(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["task"], row["item"]


def there(value: Any) -> bool:
    """Whether a cell of a frame holds a value (neither None nor NaN)."""
    return value is not None and value == value


def shown(detectors: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of each detector's main reading, by its plain rule, or by the fitted one where it has
    none."""
    own = [r for r in rows(detectors) if r["main"]]
    return [r for r in own if r["rule"] == (PLAIN if detector_of(r).rule else FITTED)]


def chains_of(row: Mapping[str, Any]) -> str:
    """Short name of the model that wrote a row's chains, and of the reader if that is another
    model."""
    model = row["model"].rpartition("/")[2]
    reader = row["reader"].rpartition("/")[2]
    return model if row["reader"] == row["model"] else f"{model} read by {reader}"


def named(detectors: pd.DataFrame) -> pd.DataFrame:
    """The rows of `shown` with a column `label`: the detector's name in the paper's tables."""
    return pd.DataFrame([{**r, "label": detector_of(r).label} for r in shown(detectors)])


def in_its_layout(data: pd.DataFrame, statistics: Mapping[str, str]) -> pd.DataFrame:
    """The paper's layout: one row per detector, and per model the number of chains and the
    statistics in percent.

    Args:
        statistics: column -> the paper's heading.
    """
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for r in rows(data):
        line = lines.setdefault(tuple(r[k] for k in _LINE), {})
        line[f"{chains_of(r)} n"] = str(r["n"])
        line |= {f"{chains_of(r)} {short}": percent(r[s]) for s, short in statistics.items()}
    heads = dict.fromkeys(k for line in lines.values() for k in line)
    body = [
        dict(zip(_LINE.values(), key, strict=True)) | {head: line.get(head, "—") for head in heads}
        for key, line in lines.items()
    ]
    return pd.DataFrame(body, columns=[*_LINE.values(), *heads])
