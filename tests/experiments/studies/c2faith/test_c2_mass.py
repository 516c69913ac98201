"""Probability mass of the scored verdicts, against numbers computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

import faithscope
from faithscope.experiments.analysis.statistics.resampling import Bootstrap
from faithscope.experiments.numerals import significant
from faithscope.experiments.studies.c2faith.tables.reliability import MASS

NAMES = ["judge", "reading", "prompt", "item", "chain", "outcome", "mass"]


def test_by_hand() -> None:
    masses = [("a", 0.9), ("a", 0.7), ("b", 0.2), ("c", 0.4), ("c", None)]
    rows = [("j", "scored", "p", str(i), c, "parsed", m) for i, (c, m) in enumerate(masses)]
    [row] = MASS.make(pd.DataFrame(rows, columns=NAMES), how=Bootstrap(0, 200)).to_dict("records")
    assert list(row) == MASS.header
    assert (row["n"], row["n_without_verdict"]) == (4, 1)
    assert row["mean_mass"] == pytest.approx(0.55)
    assert row["median_mass"] == pytest.approx(0.55)
    assert row["least_mass"] == 0.2
    assert row["share_below_half"] == 0.5
    # three chains are too few to draw
    assert math.isnan(row["mean_mass_low"])
    more = [(j, r, p, f"{i}{c}{k}", f"{c}{k}", *m) for k in "xy" for j, r, p, i, c, *m in rows]
    [row] = MASS.make(pd.DataFrame(more, columns=NAMES), how=Bootstrap(0, 200)).to_dict("records")
    # whole chains are drawn: the least mean there can be is b's alone, the greatest a's
    assert 0.2 <= row["mean_mass_low"] < 0.55 < row["mean_mass_high"] <= 0.8 + 1e-9


def test_a_judge_that_never_could_be_read_has_a_row_that_says_so() -> None:
    rows = [("j", "scored", "p", "0", "a", "overflow", None)]
    frame = pd.DataFrame(rows, columns=NAMES).astype({"mass": float})
    [row] = MASS.make(frame, how=Bootstrap(0, 20)).to_dict("records")
    assert (row["n"], row["n_without_verdict"]) == (0, 1)
    assert pd.isna(row["mean_mass"])


def test_a_run_has_the_mean_of_its_records_and_says_it_on_its_page(judged: Path) -> None:
    found = faithscope.load_run(judged)
    scored = found.judgements.query("reading == 'scored'")
    mean = scored.groupby("form")["mass"].mean()
    table = pd.read_csv(judged / "tables" / "c2_mass.csv").set_index("prompt")
    assert set(table.index) == set(mean.index)
    for form, value in mean.items():
        assert table.loc[form, "mean_mass"] == pytest.approx(value, abs=1e-6)
        assert table.loc[form, "n"] == (scored["form"] == form).sum()
    page = (judged / "report.html").read_text()
    assert f"Here it is {significant(mean.min())} on average of" in page
    assert f"and {significant(mean.max())} of" in page
