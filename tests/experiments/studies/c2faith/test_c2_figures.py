"""C2-Faith's figures: drawn of the tables, of few judges and many, of silent ones too."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from c2_frames import MUTE, NAMES, made_up
from figure_fit import drawing_problems, texts_of
from matplotlib.figure import Figure
from processor_time import dear

from faithscope.experiments.analysis.picture import Picture, save, svg
from faithscope.experiments.analysis.tidy import rows, where
from faithscope.experiments.analysis.wording import middle_cut
from faithscope.experiments.studies.c2faith.figures.comparisons import (
    variant_name,
    varied,
    widest,
)
from faithscope.experiments.studies.c2faith.figures.failures import radar_table
from faithscope.experiments.studies.c2faith.figures.judge_readings import judge_readings
from faithscope.experiments.studies.c2faith.figures.pictures import pictures
from faithscope.experiments.studies.c2faith.figures.scores import score_bars
from faithscope.experiments.studies.c2faith.figures.verdicts import signed_errors
from faithscope.experiments.studies.c2faith.tables.every_table import tables
from faithscope.experiments.studies.c2faith.tables.frames import Frames

OF_SEVERAL = ("c2_prompts",)
"""None of one judge, asked in one way."""
ALL = (
    *("c2_detection", "c2_localisation", "c2_coverage_scores", "c2_coverage", "c2_radar"),
    *("c2_signed_error", "c2_failure_overlap", "c2_within", "c2_positions", "c2_reliability"),
    *("c2_judge_against_internals", *OF_SEVERAL),
)


def drawn(frames: Frames) -> dict[str, Picture]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {p.name: p for p in pictures(tables(frames, resamples=20))}
    for name, picture in found.items():
        assert picture.figure is None or drawing_problems(picture.figure) == [], name
    return found


@pytest.fixture(scope="module")
@dear
def three() -> dict[str, Picture]:
    return drawn(made_up(3, 20, mute=True))


def test_nothing_judged_gives_reasons_and_no_figure(tmp_path):
    found = drawn(Frames())
    assert tuple(found) == ALL
    for picture in found.values():
        assert picture.figure is None
        assert picture.absent
        save(picture, tmp_path)
    assert not list(tmp_path.iterdir())


def test_three_judges_and_a_silent_one(three):
    assert [n for n, p in three.items() if p.figure is None] == [*("c2_reliability", "c2_prompts")]
    for name in ("c2_detection", "c2_localisation", "c2_coverage", "c2_within", "c2_radar"):
        # titles of panels are folded
        text = re.sub(r"\s", "", texts_of(three[name].figure))
        for judge in (*NAMES[:3], MUTE):
            assert middle_cut(judge.rpartition("/")[2]).replace(" ", "") in text, (name, judge)
    assert "no verdict" in texts_of(three["c2_detection"].figure)
    assert "in 20 judgements" in texts_of(three["c2_signed_error"].figure)
    assert MUTE not in texts_of(three["c2_failure_overlap"].figure)


@pytest.mark.parametrize("name", ["c2_radar", "c2_coverage", "c2_judge_against_internals"])
def test_a_picture_is_saved_with_its_numbers_and_stands_in_a_page(three, name, tmp_path):
    save(three[name], tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {f"{name}.{x}" for x in ("png", "pdf", "csv")}
    assert len(pd.read_csv(tmp_path / f"{name}.csv")) == len(three[name].data)
    # a page admits drawings, not images
    assert "<image" not in svg(three[name])


@pytest.mark.slow
def test_one_judge_in_two_readings_and_nothing_but_silence():
    one = drawn(made_up(1, 12))
    assert [n for n, p in one.items() if p.figure is None] == []
    assert "in all readings" in texts_of(one["c2_failure_overlap"].figure)
    assert "sets are of readings" in one["c2_failure_overlap"].caption
    assert "scored" in texts_of(one["c2_within"].figure)
    assert "ECE" in texts_of(one["c2_reliability"].figure)
    silent = drawn(made_up(0, 5, mute=True))
    # axes without points are not drawn
    absent = {n: p.absent for n, p in silent.items() if p.figure is None}
    assert {"c2_detection", "c2_failure_overlap", "c2_reliability", *OF_SEVERAL} <= {*absent}
    assert all(absent.values())


@pytest.mark.slow
def test_what_hangs_on_the_prompt_is_drawn_of_every_variant():
    made = tables(made_up(1, 16, prompts=2), resamples=20)
    data = varied(made["c2_prompt_variants"])
    prompts = where(data, task="detection", over="prompt")
    detection = where(made["c2_detection"], reading="generated")
    assert prompts["value"].tolist() == detection["net"].tolist()
    assert prompts["value_low"].tolist() == detection["net_low"].tolist()
    assert set(data["over"]) == {"prompt", "reading"}
    ranges = made["c2_prompts"]
    of = where(ranges, task="detection", over="prompt", reading="generated", measure="net")
    assert of["range"].iloc[0] == pytest.approx(detection["net"].max() - detection["net"].min())
    spread = data.groupby(["task", "over"])["value"].agg(lambda v: v.max() - v.min())
    task, over = spread.idxmax()
    told = widest(data)
    assert told.startswith(f"Widest here: {task} by {NAMES[0]} over its {over}s")
    assert [variant_name(r) for r in rows(prompts)] == ["plain", "strict"]
    assert variant_name({"task": "coverage", "over": "scale", "variant": "0-9"}) == "0-9"
    assert widest(data.iloc[:0]) == ""
    assert widest(data.assign(value=0.5)) == "Here no figure differs between variants."


@pytest.mark.slow
def test_only_the_first_prompt_is_drawn():
    made = tables(made_up(1, 8, prompts=2), resamples=10)
    assert made["c2_detection"]["prompt"].nunique() == 2
    assert {v.prompt for v in judge_readings(made["c2_detection"])} == {"c2_detection"}


def test_signed_errors_beyond_the_edge_are_in_the_last_bars():
    line = pd.DataFrame({"signed_error": [-20, -9, 0, 11], "share": [0.1, 0.2, 0.4, 0.3]})
    ax = signed_errors(Figure().add_subplot(), line)
    heights = {round(b.get_x() + b.get_width() / 2): b.get_height() for b in ax.patches}
    assert (heights[-8], heights[0], heights[8]) == pytest.approx((0.3, 0.4, 0.3))
    assert sum(heights.values()) == pytest.approx(1)
    # the mean is of the errors as they are
    assert ax.texts[0].get_text() == "mean −0.50"


def test_bars_of_scores_fill_the_width_on_every_scale():
    for top, scores, parts in ((4, [0, 3, 4], 3), (9, [1, 2, 9], 3), (100, [0, 19, 100], 2)):
        line = pd.DataFrame({"level": 0.1, "score": scores, "share": [0.2, 0.3, 0.5]})
        ax = score_bars(Figure().add_subplot(), line, top)
        widths = [b.get_width() for b in ax.patches]
        assert sum(widths) == pytest.approx(1)
        assert widths[-1] == pytest.approx(0.5)
        assert sum(w > 0 for w in widths) == parts


@pytest.mark.takes("every figure is drawn")
def test_the_radar_has_the_numbers_of_the_tables():
    made = tables(made_up(2, 20, mute=True), resamples=10)
    parts = [made[n] for n in ("c2_detection", "c2_localisation", "c2_coverage_pooled")]
    data = radar_table(*parts)
    of_judge = where(data, judge=NAMES[0]).set_index("axis")["value"]
    first = made["c2_detection"].iloc[0]
    assert of_judge["not_flagged"] == 1 - first["fpr"]
    assert of_judge["coverage"] == made["c2_coverage_pooled"].iloc[0]["spearman_kept"]
    assert where(data, judge=MUTE)["value"].isna().all()
    below = made["c2_coverage_pooled"].assign(spearman_kept=-0.2)
    assert radar_table(*parts[:2], below)["value"].min() == 0
    nowhere = radar_table(parts[0], parts[1].iloc[:0], parts[2].iloc[:0])
    values = where(nowhere, judge=NAMES[0])["value"].to_numpy()
    assert np.isnan(values[2:]).all()
    assert not math.isnan(values[0])
