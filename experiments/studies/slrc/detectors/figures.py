"""The figure of a run of FaithCoT-Bench: each detector's share of flagged chains, AUROC and F1."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from faithscope.experiments.analysis.charts import dot_rows, dots_by
from faithscope.experiments.analysis.colours import GREY, styles_for
from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.analysis.tidy import columns, groups, keep, rows, with_interval
from faithscope.experiments.engine.tallies.reasons import CHAIN_CUT
from faithscope.experiments.studies.slrc.detectors.metrics import main_readings, share_by_question
from faithscope.experiments.studies.slrc.detectors.readings import label_of
from faithscope.experiments.studies.slrc.detectors.results import WAY

PANELS = {
    "flagged": "share of chains flagged",
    "auroc": "AUROC of the score",
    "f1": "F1 of the unfaithful class",
}
BESIDE = (
    " Beside it, of labelled chains: AUROC of the score (one half, dashed, is chance), and F1 of "
    "flags, which are by thresholds that other folds chose where there is no rule."
)
_TALLEST = 0.7
"""Maximum height of a figure row in inches, however many dots it holds."""


def detectors_picture(scores: pd.DataFrame, detectors: pd.DataFrame, how: Bootstrap) -> Picture:
    """Dots of flag rate, AUROC and F1: a row per detector in its main reading, a colour per data
    set and model."""
    data = flagged(scores, detectors, how)
    chains = [f"{r['dataset']} · {chains_of(r)}" for r in rows(data)]
    styles = styles_for(dict.fromkeys(chains))
    reasons = dict(zip(data["label"], data["no_flags"], strict=True))
    dots = {
        title: [
            replace(dot, silent=reasons[dot.row] if name == "flagged" else "")
            for dot in dots_by(data.assign(chains=chains), name, "chains", styles, "label")
        ]
        for name, title in PANELS.items()
        if not data[name].isna().to_numpy().all()
    }
    each = min(_TALLEST, 0.2 + 0.1 * len(styles))
    labelled = bool(detectors["n_labelled"].any())
    with mpl.rc_context(STYLE):
        figure = (
            dot_rows(dots, {name: name for name in reasons}, silent="–", each=each)
            if dots
            else None
        )
    for ax, title in zip(figure.panels if figure else (), itertools.cycle(dots), strict=False):
        if title == PANELS["auroc"]:
            ax.axvline(0.5, color=GREY, lw=0.8, ls="--")
    return Picture(
        "detectors",
        "What the detectors flag",
        "Share of chains that a detector's plain rule calls unfaithful; 95 % intervals draw "
        "questions. A detector that has no rule flags nothing." + (BESIDE if labelled else ""),
        data,
        figure,
        "No detector has a score.",
    )


def flagged(scores: pd.DataFrame, detectors: pd.DataFrame, how: Bootstrap) -> pd.DataFrame:
    """One row per data set, model and detector in its main reading: the share of chains that the
    plain rule flags (`flagged`) or why there is none (`no_flags`), with AUROC and F1 from
    `detectors`."""
    own = {tuple(key.values()): rows(of) for key, of in groups(scores, WAY)}
    table = []
    for r in rows(keep(detectors, main_readings(detectors))):
        chains = own.get(tuple(r[name] for name in WAY), [])
        ruled = [c for c in chains if c["flag"] in (True, False)]
        flags = np.array([float(c["flag"]) for c in ruled])
        questions = np.array([c["question"] for c in ruled])
        (reason, _), *_ = Counter(c["missing"] for c in chains).most_common() or [(CHAIN_CUT, 0)]
        row = {name: r[name] for name in (*WAY, "rule")}
        row |= {"label": label_of(r), "n_flags": len(flags)}
        row |= {"no_flags": "" if ruled else reason.replace("_", " ")}
        row |= columns("flagged", share_by_question(questions, flags, how))
        table.append(row | {name: r[name] for name in with_interval("auroc", "f1")})
    names = [*WAY, "rule", "label", "n_flags", "no_flags", *with_interval(*PANELS)]
    return pd.DataFrame(table, columns=names)


def chains_of(row: Mapping[str, Any]) -> str:
    """Short name of the model that wrote a row's chains, and of the reader if that is another
    model."""
    model = row["model"].rpartition("/")[2]
    reader = row["reader"].rpartition("/")[2]
    return model if row["reader"] == row["model"] else f"{model} read by {reader}"
