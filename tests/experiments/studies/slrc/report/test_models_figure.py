"""Figure 3: every model a named point, its kind told, names apart, sentences that follow."""

from __future__ import annotations

import itertools
import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from figure_fit import drawing_problems
from matplotlib.colors import to_hex
from matplotlib.text import Text
from probe_records import slrc_outcome
from sample_records import write_run

from faithscope.experiments.analysis.picture import STYLE, Picture
from faithscope.experiments.analysis.run import load_run
from faithscope.experiments.analysis.textual import to_csv
from faithscope.experiments.analysis.tidy import where, with_interval
from faithscope.experiments.engine.folder import SCHEMA
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.slrc.figures.models import (
    KINDS,
    PANELS,
    lead_way,
    model_readings,
    models_picture,
)
from faithscope.experiments.studies.slrc.tables.models import MODEL_CORRELATIONS, SCORES

LONG = "DeepSeek-R1-Distill-Llama-70B"


def models(slrc: list[float], noise: float = 0.1, seed: int = 0, **columns) -> pd.DataFrame:
    """Models of these SLRC, more sycophantic the higher it is; every third is open."""
    rng = np.random.default_rng(seed)
    n = len(slrc)
    table = pd.DataFrame({"slrc": slrc})
    table["sycophancy"] = np.clip(0.1 + 0.8 * table["slrc"] + noise * rng.normal(size=n), 0, 1)
    for name in ("accuracy", "direct_accuracy", "error_detection", "false_alarm"):
        table[name] = rng.random(n)
    table["youden"] = table["error_detection"] - table["false_alarm"]
    table["ris"] = table["slrc"] * (1 - table["sycophancy"])
    for name in SCORES:
        table[f"{name}_low"], table[f"{name}_high"] = table[name] - 0.03, table[name] + 0.03
    is_open = [i % 3 == 0 for i in range(n)]
    named = [f"{'org' if o else 'api:x'}/{LONG[: 8 + i]}-{i}" for i, o in enumerate(is_open)]
    fixed = {"framing": "reprompt", "reading": "generated", "tasks": "t"}
    sizes = {"parameters": np.nan, "active_parameters": np.nan}
    return table.assign(model=named, open=is_open, **(fixed | sizes | columns))


def drawn(table: pd.DataFrame) -> Picture:
    with mpl.rc_context(STYLE):
        return models_picture(table, MODEL_CORRELATIONS.make(table))


def crowded(n: int) -> list[float]:
    """As in the paper: most models near zero, a few far from it."""
    return [0.01 * i if i < 0.7 * n else 0.2 + 0.05 * i for i in range(n)]


@pytest.mark.in_time(1)
@pytest.mark.parametrize("n", [2, 3, 16, 40])
def test_names_do_not_cover_each_other(n):
    picture = drawn(models(crowded(n)))
    assert picture.figure is not None
    with mpl.rc_context(STYLE):
        assert drawing_problems(picture.figure) == []
    for ax in picture.figure.axes:
        assert len(ax.texts) == n
        # an annotation's own extent would hold its line, too
        words = sorted((Text.get_window_extent(text) for text in ax.texts), key=lambda w: w.y0)
        for below, above in itertools.pairwise(words):
            assert below.y1 <= above.y0 + 1, (ax.get_xlabel(), below, above)
        assert all(w.x0 > ax.get_window_extent().x1 for w in words)


def test_every_model_is_a_point_told_by_its_kind():
    table = models(crowded(8))
    picture = drawn(table)
    assert picture.figure is not None
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in picture.figure.axes] == [
        ("SLRC", "sycophancy"),
        ("RIS", "error detection"),
        ("SLRC", "error detection"),
        ("RIS", "error detection less false alarms"),
    ]
    for ax, (x, y) in zip(picture.figure.axes, PANELS, strict=True):
        for note in ax.texts:
            row = table[table["model"].str.endswith(f"/{note.get_text()}")].iloc[0]
            assert note.xy == (row[x], row[y])
        for is_open, (colour, marker, _) in KINDS.items():
            (line,) = [a for a in ax.get_lines() if a.get_marker() == marker]
            assert to_hex(line.get_color()) == colour.lower()
            assert sorted(line.get_xdata()) == sorted(where(table, open=is_open)[x])


def test_the_title_has_the_correlation_of_the_table():
    table = models(crowded(8))
    said = MODEL_CORRELATIONS.make(table).query("x == 'slrc' and y == 'sycophancy'")
    r, rho = said["r"]
    picture = drawn(table)
    assert picture.figure is not None
    title = picture.figure.axes[0].get_title(loc="left")
    assert title.startswith("SLRC and sycophancy, n = 8\n")
    assert f"r = {decimal(r)} [" in title
    assert f"ρ = {decimal(rho)}, p" in title


def test_few_models_are_drawn_without_a_number():
    picture = drawn(models(crowded(3)))
    assert picture.figure is not None
    for ax in picture.figure.axes:
        assert "3 models: too few to correlate" in ax.get_title(loc="left")


def test_one_model_is_no_comparison():
    picture = drawn(models([0.5]))
    assert picture.figure is None
    assert picture.absent.endswith(".")


def test_the_way_that_most_models_have_leads():
    everyone = models(crowded(6))
    of_open = where(everyone, open=True).assign(framing="prefix")
    mixed = pd.concat([everyone, of_open, of_open.assign(reading="scored")])
    assert lead_way(mixed) == {"framing": "reprompt", "reading": "generated"}
    assert set(drawn(mixed).data["model"]) == set(everyone["model"])
    all_open = pd.concat([everyone, everyone.assign(framing="prefix")])
    assert lead_way(all_open) == {"framing": "prefix", "reading": "generated"}
    assert lead_way(mixed.iloc[:0]) == {}


def test_the_data_are_what_is_drawn():
    picture = drawn(models(crowded(5)))
    assert set(with_interval(*SCORES)) <= set(picture.data.columns)
    assert len(picture.data) == 5


def readings(table: pd.DataFrame) -> str:
    return " ".join(model_readings(table, MODEL_CORRELATIONS.make(table)))


def test_sentences_follow_from_the_numbers():
    told = readings(models(crowded(16), noise=0.02))
    assert "The higher SLRC, the higher sycophancy" in told
    assert "That is the paper’s faithfulness paradox." in told
    assert "Correlation of SLRC with error detection: inconclusive" in told
    against = models(crowded(16))
    against["sycophancy"] = 0.9 - 0.8 * against["slrc"]
    assert "the opposite of the paper’s faithfulness paradox" in readings(against)
    assert "size" not in told  # nobody told it
    assert "different tasks" not in told
    mixed = models(crowded(16), tasks=["t"] * 15 + ["t u"])
    assert "different tasks" in readings(mixed)


def test_few_models_have_one_sentence():
    told = readings(models(crowded(3)))
    assert told.startswith("3 models have both SLRC")
    assert "r =" not in told


def test_as_in_the_paper_ris_alone_goes_with_error_detection():
    table = models(crowded(12), noise=0.0)
    # those of high SLRC that give in find few errors, so that SLRC alone does not tell
    table["sycophancy"] = [0.95 if i % 2 else 0.0 for i in range(12)]
    table["ris"] = table["slrc"] * (1 - table["sycophancy"])
    table["error_detection"] = 0.2 + 0.5 * table["ris"]
    told = readings(table)
    assert "The higher RIS, the higher error detection" in told
    assert "Correlation of SLRC with error detection: inconclusive" in told
    assert "the two correlations were not compared" in told


def test_a_correlation_of_one_model_is_named_so():
    rest = [0.10, 0.11, 0.12, 0.13, 0.14, 0.15]
    table = models([*rest, 0.9])
    table["sycophancy"] = [0.15, 0.18, 0.12, 0.16, 0.17, 0.11, 0.95]
    found = MODEL_CORRELATIONS.make(table).assign(p_permutation=0.01)
    found.loc[found["method"] == "spearman", "r"] = 0.5
    assert "It hangs on one model" in model_readings(table, found)[0]


def test_the_size_of_a_model_is_counted_or_told(tmp_path):
    closed, here = "api:openai/gpt-5.4", "org/here"
    records = [slrc_outcome(m, "t", "0", [True], [False], True) for m in (closed, here)]
    run_dir = write_run(tmp_path / "run", records)
    environment = {"schema": SCHEMA, "sessions": [], "models": {here: {"parameters": 363_000}}}
    (run_dir / "environment.json").write_text(json.dumps(environment))
    config = json.loads((run_dir / "config.yaml").read_text())
    told = {closed: {"total": 10**12, "active": 10**10}, here: {"total": 1}}
    (run_dir / "config.yaml").write_text(json.dumps(config | {"report": {"parameters": told}}))
    table = load_run(run_dir).tables["models"].set_index("model")
    assert table.loc[closed, ["parameters", "active_parameters"]].tolist() == [10**12, 10**10]
    assert table.loc[here, "parameters"] == 363_000  # counted before told


@pytest.mark.slow
def test_tables_of_two_runs_make_one_comparison(tmp_path):
    """As `faithscope docs closed_models` has it."""
    table = models(crowded(7))
    for run, of_run in (("open", table[table["open"]]), ("closed", table[~table["open"]])):
        (tmp_path / f"{run}.csv").write_text(to_csv(of_run))
    pooled = pd.concat(pd.read_csv(tmp_path / f"{run}.csv") for run in ("open", "closed"))
    one, other = MODEL_CORRELATIONS.make(pooled), MODEL_CORRELATIONS.make(table)
    assert one["r"].tolist() == pytest.approx(other["r"].tolist(), abs=1e-4, nan_ok=True)
    assert drawn(pooled).figure is not None
