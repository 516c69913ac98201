"""Tables and page of results on real models: what the page says of them, each with its n."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import results_pages as pages
from synthetic_comparison import run_of

from faithscope.experiments.analysis.comparison.join import join
from faithscope.experiments.analysis.tidy import rows

N = 40
SEED = 0
PAGE = (pages.RESULTS.parent / "results.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(p.name for p in pages.RESULTS.iterdir()))
def test_the_tables_are_those_that_were_measured(name: str) -> None:
    folder = pages.RESULTS / name
    assert name in pages.MODELS
    listed = dict(
        reversed(line.split("  ")) for line in (folder / pages.DIGESTS).read_text().splitlines()
    )
    files = {p.name: pages.digest(p) for p in folder.iterdir() if p.name != pages.DIGESTS}
    assert listed == files
    text = "".join(p.read_text("utf-8") for p in folder.iterdir())
    assert not re.search(r"/(work|tmp|home|root|Users)\b", text)
    (session, *_) = json.loads((folder / "environment.json").read_text("utf-8"))["measures"]
    assert session["packages"]["torch"]
    assert all(of["revision"] for of in session["models"].values())


def test_every_number_on_the_page_has_its_n_and_is_made() -> None:
    assert all(f"<!-- made: {part} -->" in PAGE for part in pages.PARTS)
    by_hand = re.sub(r"<!-- made: .*?<!-- end -->|^```.*?^```$", "", PAGE, flags=re.M | re.S)
    assert re.findall(r"(?<![\w.])[−-]?\.\d\d|\d\.\d\d|\bn \d", by_hand) == []
    intervals = re.findall(r"\[−?\d?\.\d\d, −?\d?\.\d\d\](.{0,4})", PAGE)
    assert intervals
    assert {after[:4] for after in intervals} == {", n "}


def joined(drawn: float = 0.1):
    """Two measures, one of which is drawn anew by a second run, and goes with length."""
    rng = np.random.default_rng(1)
    tokens = rng.permutation(N).astype(float)
    still = rng.normal(size=N)
    first, again = (tokens + drawn * N * rng.normal(size=N) for _ in range(2))
    of = {"still": ("logit", still), "drawn": ("behavioural", first)}
    runs = {"measures": run_of(of), "again": run_of({**of, "drawn": ("behavioural", again)})}
    runs["screened"] = run_of({"still": ("logit", still)})
    for run in runs.values():
        run.traces["n_tokens"], run.traces["n_steps"] = tokens, 3
    return join(runs, None, "text")


def test_a_measure_that_draws_is_held_against_itself() -> None:
    of = {row["measure"]: row for row in rows(pages.retest(joined(), SEED))}
    assert of.keys() == {"still", "drawn"}
    assert of["still"]["rho"] > pages.SAME
    assert of["still"]["n_same"] == of["still"]["n"] == N
    assert of["drawn"]["n_same"] == 0
    assert 0.8 < of["drawn"]["rho_low"] < of["drawn"]["rho"] < of["drawn"]["rho_high"] < 1


def test_what_was_taken_again_is_no_other_measure() -> None:
    once = pages.taken_once(joined())
    assert set(once.measures.index) == {"still", "drawn"}
    assert set(once.items["source"]) == {"measures"}
    (row,) = rows(pages.questions(once))
    assert (row["n"], row["n_measured"], row["n_left"]) == (N, N, 0)
    once.items.loc[once.items["item"] == "i3", "value"] = np.nan
    (row,) = rows(pages.questions(pages.replace(once)))
    assert (row["n_measured"], row["n_left"]) == (N - 1, 1)


def test_length_is_held_against_measures_and_held_fixed() -> None:
    once = pages.taken_once(joined())
    table = pages.of_length(once, pages.settings(once), once.units, SEED)
    of = {(row["measure"], row["length"]): row for row in rows(table)}
    assert of["drawn", "n_tokens"]["q"] < 0.01
    assert of["drawn", "n_tokens"]["rho"] > 0.9
    assert of["still", "n_tokens"]["q"] > 0.05
    assert np.isnan(of["still", "n_steps"]["rho"])  # all chains have as many


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"x": 0.5, "x_low": -0.004, "x_high": 1.0}, "0.50 [0.00, 1.00]"),
        ({"x": -0.25, "x_low": -0.5, "x_high": -0.126}, "−0.25 [−0.50, −0.13]"),
        ({"x": 0.5, "x_low": np.nan, "x_high": np.nan}, "–"),
    ],
)
def test_an_estimate_is_written_with_its_interval(row: dict[str, float], text: str) -> None:
    assert pages.estimate(row, "x") == text
