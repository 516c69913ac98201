"""RFEval's figures: all there is drawn, nothing that is not, and the numbers are the tables'."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import pandas as pd
import pytest
from figure_fit import drawing_problems, texts_of
from processor_time import dear
from rf_frames import frame, judged, models_of, tables_of
from rf_made_up import CELLS, NAMES, REGIMES, made_tables, made_up

from faithscope.experiments.analysis.picture import Picture, save, svg
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.numerals import decimal
from faithscope.experiments.studies.rfeval.figures.failures import BEHAVIOURS
from faithscope.experiments.studies.rfeval.figures.faithfulness import ranks_sentence, went
from faithscope.experiments.studies.rfeval.figures.lines import by_group, lines_of
from faithscope.experiments.studies.rfeval.figures.pictures import pictures
from faithscope.experiments.studies.rfeval.figures.readers import pooled_readers
from faithscope.experiments.studies.rfeval.figures.relations import correlation_words, fitted
from faithscope.experiments.studies.rfeval.figures.texts import externality_picture, thousands
from faithscope.experiments.studies.rfeval.tables.faithfulness import BEHAVIOURS as KINDS
from faithscope.experiments.studies.rfeval.tables.frames import lead_reader

ALL = (
    *("rf_faithfulness", "rf_cells", "rf_components", "rf_regimes", "rf_behaviours"),
    *("rf_failures", "rf_causality", "rf_quartiles_model", "rf_quartiles_task", "rf_accuracy"),
    *("rf_per_step", "rf_judge_against_log_probs", "rf_inside_traces"),
    *("rf_waterfall", "rf_externality", "rf_lengths", "rf_readers", "rf_evaluator"),
)
OF_SEVERAL = ("rf_cells", "rf_regimes", "rf_quartiles_task")
"""None of one model."""


def drawn(made: Mapping[str, pd.DataFrame]) -> dict[str, Picture]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a legend is measured when it is made: a sign that the font lacks is told of then
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        found = {p.name: p for p in pictures(made)}
    for name, picture in found.items():
        assert picture.figure is None or drawing_problems(picture.figure) == [], name
    return found


def absent(found: Mapping[str, Picture]) -> list[str]:
    return [name for name, picture in found.items() if picture.figure is None]


@pytest.fixture(scope="module")
@dear
def of_four() -> dict[str, pd.DataFrame]:
    observed = made_up(NAMES[6:10], n=5, readers=("api:o3", "bundled:small"))
    return made_tables({**observed, "models": models_of(REGIMES)}, 20)


@pytest.fixture(scope="module")
def four(of_four) -> dict[str, Picture]:
    return drawn(of_four)


def test_nothing_judged_gives_reasons_and_no_figure(tmp_path):
    by_name = drawn(tables_of())
    assert tuple(by_name) == ALL
    assert absent(by_name) == list(ALL)
    for picture in by_name.values():
        assert picture.absent.endswith(".")
        save(picture, tmp_path)
    assert not list(tmp_path.iterdir())


def test_four_models_and_two_readers_give_every_figure(four, tmp_path):
    assert tuple(four) == ALL
    assert absent(four) == []
    for name in ("rf_faithfulness", "rf_cells", "rf_behaviours", "rf_waterfall", "rf_lengths"):
        for model in NAMES[6:10]:
            assert model.rpartition("/")[2] in texts_of(four[name].figure), name
    assert "bundled:small" in texts_of(four["rf_faithfulness"].figure)
    for picture in four.values():
        assert picture.title
        assert picture.caption.strip().endswith(".")
        one_reader = "reader" in picture.data and picture.data["reader"].nunique() == 1
        assert ("Stances as api:o3 read them." in picture.caption) == one_reader, picture.name
    save(four["rf_failures"], tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {
        f"rf_failures.{x}" for x in ("png", "pdf", "csv")
    }
    assert len(pd.read_csv(tmp_path / "rf_failures.csv")) == len(four["rf_failures"].data)
    assert "<image" not in svg(four["rf_accuracy"])


@pytest.mark.in_time(1)
@pytest.mark.parametrize("fate", ["one", "none_counts", "one_task", "all_faithful"])
def test_little_is_drawn_without_a_failure(fate):
    rows_of = {
        "one": [judged()],
        "none_counts": [judged("A A A", "A A A A"), judged(intervened_judged="unparsed")],
        "one_task": [judged(*CELLS[kind]) | {"model": m} for m in "ab" for kind in CELLS],
        "all_faithful": [judged() | {"task": t} for t in ("legal_decision", "my_own")] * 4,
    }[fate]
    if fate == "none_counts":
        empty = dict.fromkeys(("intervened_r_prime", "intervened_r", "intervened_e"), "")
        rows_of[1] |= {**empty, "intervened_a": ""}
    by_name = drawn(tables_of(frame(*rows_of)))
    for picture in by_name.values():
        if picture.figure is not None:
            picture.figure.draw_without_rendering()
    texts = texts_of(by_name["rf_faithfulness"].figure)
    assert ("no pair counts" in texts) == (fate == "none_counts")
    assert ("my own" in texts) == (fate == "all_faithful")
    assert (by_name["rf_failures"].figure is None) == (fate != "one_task")
    assert by_name["rf_waterfall"].figure is not None


@pytest.mark.slow
def test_one_model_leaves_out_what_needs_several():
    by_name = drawn(made_tables(made_up(n=4, people=0)))
    assert absent(by_name) == [*OF_SEVERAL, "rf_evaluator"]


def test_the_first_reader_that_read_anything_is_drawn():
    mute = judged(baseline_judged="refused", intervened_judged="refused", reader="mute")
    mute |= {k: "" for k in mute if k.endswith(("_r", "_e", "_a", "_r_prime"))}
    heard = judged(reader="heard")
    both = tables_of(pd.DataFrame([mute, heard]))
    assert lead_reader(both["rfeval"]) == "heard"
    only_mute = tables_of(pd.DataFrame([mute]))
    assert lead_reader(only_mute["rfeval"]) == "mute"
    assert lead_reader(both["rfeval"].iloc[:0]) == ""


def test_the_parts_of_the_waterfall_add_up(of_four):
    data = went(by_group(of_four["rf_waterfall"]), by_group(of_four["rfeval"]))
    parts = [c for c in data if c not in ("reader", "by", "group", "n_total", "n_included")]
    assert len(parts) == 6
    assert (data[parts].sum(axis=1) == data["n_total"]).all()
    pairs = where(of_four["rf_pairs"], reader="api:o3", model=NAMES[6])
    of_model = where(data, reader="api:o3", group=NAMES[6])
    assert of_model["n_faithful"].tolist() == [
        int((pairs["rf"] * (pairs["exclusion"] == "")).sum())
    ]


def test_lines_name_what_is_pooled_where_there_is_something_to_pool(of_four):
    names = list(lines_of(by_group(of_four["rfeval"])).values())
    assert names[:5] == ["gpt-oss-20b", "gpt-oss-120b", "MiMo-RL", "MiMo-RL-Zero", "all models"]
    assert names[5:7] == ["code generation", "mathematical reasoning"]
    of_one = tables_of(frame(judged()))
    assert lines_of(by_group(of_one["rfeval"])) == {("model", "m"): "m"}


def test_readers_are_pooled_by_their_parts(of_four):
    pooled = pooled_readers(of_four["rf_readers"])
    of = {"reader": "api:o3", "other": "matching", "part": "baseline_a"}
    [row] = rows(where(pooled, **of))
    single = where(of_four["rf_readers"], **of)
    assert row["n"] == single["n"].sum()
    assert row["agreement"] == pytest.approx((single["agreement"] * single["n"]).sum() / row["n"])
    assert row["agreement_low"] < row["agreement"] < row["agreement_high"]


def test_accuracy_is_drawn_with_the_slope_of_the_table(four, of_four):
    cells = where(four["rf_accuracy"].data, condition="baseline")
    known = cells.dropna(subset=["rf_low"])
    assert len(known)
    assert (known["rf_low"] <= known["rf"]).all()
    x, y = fitted(cells, 0.5)
    assert (y[1] - y[0]) == pytest.approx(0.5 * (x[1] - x[0]))
    of_reader = where(of_four["rf_accuracy_association"], reader="api:o3")
    [r] = where(of_reader, condition="baseline", statistic="pearson")["value"]
    assert correlation_words(of_reader, "baseline").startswith(f"r = {decimal(r)}")
    none = of_reader.assign(value=math.nan, reason="too few cells")
    assert correlation_words(none, "baseline") == "no correlation: too few cells"
    assert correlation_words(of_reader.iloc[:0], "baseline") == ""


def test_small_words():
    assert tuple(BEHAVIOURS) == KINDS
    assert [thousands(v) for v in (500, 2000, 20000)] == ["500", "2k", "20k"]
    ranks = pd.DataFrame({"spearman": [0.5, -0.25, math.nan]})
    assert (
        ranks_sentence(ranks)
        == "Rank correlation of the two over the tasks of 2 models: −0.25 to 0.50."
    )
    assert ranks_sentence(ranks.iloc[2:]) == ""
    one = {"mean": [0.5, 0.4], "std": [math.nan, 0.2], "n": [1, 16], "median": 0.5, "p90": 0.9}
    about = {"task": "legal_decision", "overlap": ["dice", "jaccard"], "context": "none"}
    low, high = (
        externality_picture(pd.DataFrame(about | one)).data[f"mean_{x}"] for x in ("low", "high")
    )
    assert math.isnan(low[0])
    assert high[1] == pytest.approx(0.4 + 1.96 * 0.05, abs=1e-4)


@pytest.mark.slow
def test_names_of_models_and_tasks_are_text():
    odd = [judged(model=f"x/{m}\x1b[31m$a_b$", task=t) for m in "ab" for t in ("t$1$", "t\x07")]
    by_name = drawn(tables_of(frame(*odd)))
    texts = texts_of(by_name["rf_cells"].figure)
    assert "a␛[31m$a_b$" in texts
    assert not any(c in texts for c in "\x1b\x07")
    assert "t␇" in texts
