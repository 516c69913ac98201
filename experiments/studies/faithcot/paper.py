"""The paper's Tables 1 to 3: each detector's own reading of all the chains that it can tell of, and
of those that every detector can tell of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from faithscope.experiments.analysis.paper_table import PaperTable, percent
from faithscope.experiments.analysis.tidy import groups, keep, rows
from faithscope.experiments.studies.faithcot.detectors import detector_of
from faithscope.experiments.studies.faithcot.results import WAY

PLAIN, FITTED = "plain", "fitted"
LEAST_COVERED = 0.5
"""Share of a group's labelled chains that a detector must be able to tell of to stand in the tables
of common chains; a choice of ours."""
PAPER = {
    "faithcot_paper": {"kappa": "κ", "accuracy": "Acc", "f1": "F1"},
    "faithcot_f1": {"f1": "F1"},
}
"""Table -> its statistics and the paper's headings of them: Tables 2 and 3, and Table 1."""
_LINE = ("dataset", "label", "judge")


def common_chains(scores: pd.DataFrame, kept: bool) -> pd.DataFrame:
    """The scores, in the paper's reading of each detector, of labelled chains that every detector
    of a data set, model and reader can tell of: it has a flag, or a score where it has no plain
    rule. A detector that can tell of fewer than `LEAST_COVERED` of the labelled chains takes no
    part, so that one of them does not empty the table.

    Args:
        kept: whether chains that the token limit cut off are in the numbers; if not, their rows
            stay, to be counted beside.
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
    """Whether a cell of a frame holds something."""
    return value is not None and value == value


def paper_data(detectors: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The numbers of the paper's tables."""
    named = [{**r, "label": detector_of(r).label} for r in shown(detectors)]
    about = [*_LINE, "model", "reader", "rule", "rule_by", "n", "n_cut"]
    return {t: pd.DataFrame(named, columns=[*about, *stats]) for t, stats in PAPER.items()}


def paper_tables(tables: Mapping[str, pd.DataFrame]) -> list[PaperTable]:
    """These in the paper's layout, of each detector's chains and of those that all can tell of: a
    row per detector, columns per model, in percent beside the number of chains."""
    return [
        _wide(f"{name}{of}", tables[f"{name}{of}"], stats)
        for name, stats in PAPER.items()
        for of in ("", "_common")
    ]


def shown(detectors: pd.DataFrame) -> list[dict[str, Any]]:
    """Each detector's own reading, by its plain rule, or where it has none by the fitted one."""
    own = [r for r in rows(detectors) if r["main"]]
    return [r for r in own if r["rule"] == (PLAIN if detector_of(r).rule else FITTED)]


def chains_of(row: Mapping[str, Any]) -> str:
    """Which model's chains a row is of, and who read them where that is another."""
    model = row["model"].rpartition("/")[2]
    reader = row["reader"].rpartition("/")[2]
    return model if row["reader"] == row["model"] else f"{model} read by {reader}"


def _wide(name: str, data: pd.DataFrame, statistics: Mapping[str, str]) -> PaperTable:
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for r in rows(data):
        line = lines.setdefault(tuple(r[k] for k in _LINE), {})
        line[f"{chains_of(r)} n"] = str(r["n"])
        line |= {f"{chains_of(r)} {short}": percent(r[s]) for s, short in statistics.items()}
    heads = dict.fromkeys(k for line in lines.values() for k in line)
    body = [
        dict(zip(("Dataset", "Detector", "Judge"), key, strict=True))
        | {head: line.get(head, "—") for head in heads}
        for key, line in lines.items()
    ]
    printed = pd.DataFrame(body, columns=["Dataset", "Detector", "Judge", *heads])
    return PaperTable(name, data, printed)
