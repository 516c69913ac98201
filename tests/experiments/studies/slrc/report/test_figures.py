"""What the figures draw is what the tables say."""

from __future__ import annotations

import re

import matplotlib as mpl
import pandas as pd
import pytest
from figure_fit import drawing_problems
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from probe_records import table_of
from sample_records import FAITHFUL, HINT, chain_sample, records_of, sample_run

from faithscope.experiments.analysis import plots
from faithscope.experiments.analysis.charts import legend_above
from faithscope.experiments.analysis.picture import STYLE, save, svg
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.figures.contrasts import against, by_task, contrast_table
from faithscope.experiments.studies.slrc.figures.figures import (
    pictures,
    position_table,
)
from faithscope.experiments.studies.slrc.measures.slice import SlrcAnalysis
from faithscope.experiments.studies.slrc.tables.results import tables
from faithscope.experiments.studies.slrc.tables.verdict import primary

RUN = sample_run()
NAMES = {"edits", "forest", "position", "agreement", "contrasts", "by_task"}


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    return tables(RUN, analysis=SlrcAnalysis(resamples=50))


def axes() -> Axes:
    return Figure().add_subplot()


def labels(ax: Axes) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


def points(ax: Axes, colour: str) -> list[float]:
    """The x values of the markers in a colour."""
    return [
        float(x)
        for line in ax.get_lines()
        if line.get_marker() not in ("None", "", "|") and to_hex(line.get_color()) == colour.lower()
        for x in line.get_xdata()
    ]


def test_the_comparison_of_edits_tells_the_twins_apart(made):
    data = primary(where(made["edits"], edit=plots.STYLES, model={FAITHFUL, HINT}))
    ax = axes()
    assert plots.edit_comparison(ax, data, 0.3) is ax
    assert labels(ax) == ["planted:faithful · planted", "planted:hint · planted"]
    assert points(ax, plots.GREEN) == [1.0, 0.0]
    assert points(ax, plots.ORANGE) == [pytest.approx(1 / 3), 0.0]


def test_the_forest_has_a_row_per_model_task_and_framing():
    table = table_of("slrc", RUN, 50)
    ax = plots.forest(axes(), table, "necessity")
    assert len(labels(ax)) == 6
    assert labels(ax)[0] == "planted:faithful · planted · prefix"
    generated = where(table, reading="generated", model=HINT)["necessity"].tolist()
    assert points(ax, plots.BLUE)[2:4] == generated


def test_relative_positions_pool_traces_of_different_lengths():
    records = records_of([chain_sample("faithful", i, n) for i in range(4) for n in (2, 4)])
    table = where(
        position_table(table_of("edits_by_step", records).assign(unit="sentence")),
        edit="corrupt",
        framing="prefix",
        reading="generated",
    )
    # Steps 1 and 2 of two stand at .25 and .75; steps 1 to 4 of four at .125, .375, .625, .875.
    assert dict(zip(table["position"].round(1), table["n_edits"], strict=True)) == {
        0.1: 4,
        0.3: 8,
        0.7: 8,
        0.9: 4,
    }
    assert table["flip_rate"].tolist() == [0, 0, 0.5, 1]


def test_positions_draw_one_line_per_edit(made):
    data = primary(position_table(where(made["edits_by_step"], edit=plots.STYLES)))
    ax = plots.by_position(axes(), where(data, model=FAITHFUL))
    # planted models have no words for the remark of the control
    drawn = [style[2] for edit, style in plots.STYLES.items() if edit != "control"]
    assert [line.get_label() for line in ax.get_lines()] == drawn
    assert list(ax.get_lines()[1].get_ydata()) == [0, 0, 1]


def test_agreements_are_drawn_for_every_comparison():
    table = where(table_of("agreement", RUN), edit="remove")
    ax = plots.agreements(axes(), table)
    assert len(ax.get_lines()) >= 4
    assert points(ax, plots.GREEN) == [1.0, 1.0, 1.0]


def test_contrasts_put_both_ways_of_measuring_beside_each_other(made):
    table = contrast_table(made["slrc"])
    assert len(table) == 3 * 4  # models with one task each, four comparisons
    one = where(table, model=FAITHFUL, between="prefix~reprompt in scored").iloc[0]
    slrc = where(made["slrc"], model=FAITHFUL, reading="scored")
    across, up = (where(slrc, framing=f)["necessity"].iloc[0] for f in ("prefix", "reprompt"))
    assert (one["across"], one["up"], one["difference"]) == (across, up, up - across)
    ax = against(axes(), where(table, between="prefix~reprompt in scored"))
    assert sorted(points(ax, plots.PURPLE)) == sorted(
        where(table, between="prefix~reprompt in scored")["across"]
    )


def test_the_field_of_models_and_tasks_says_every_number_once(made):
    data = primary(made["slrc"])
    ax = by_task(axes(), data)
    assert labels(ax)[0] == "planted:faithful"
    assert [t.get_text() for t in ax.texts] == [f"{v:.2f}" for v in data["necessity"]]


def test_no_figure_smuggles_an_image_into_the_page(made):
    assert "<image" not in "".join(svg(p) for p in pictures(made))


@pytest.mark.parametrize("name", ["m", "org/a-model-of-a-very-long-name-Instruct-2512-bf16"])
def test_no_legend_and_no_title_is_cut_off_where_there_is_one_panel(name: str) -> None:
    records = [r | {"model": name} for r in records_of([chain_sample("hint", i) for i in (1, 2)])]
    for picture in pictures(tables(records, analysis=SlrcAnalysis(resamples=10))):
        assert picture.figure is not None
        assert drawing_problems(picture.figure) == [], picture.name


def test_a_legend_has_the_columns_that_fit_and_widens_a_figure_of_less() -> None:
    def drawn(inches: float, label: str) -> tuple[int, float]:
        figure = Figure(figsize=(inches, 2), layout="constrained")
        ax = figure.add_subplot()
        for i in range(4):
            ax.plot([0, 1], label=f"{label} {i}")
        legend_above(figure, ax)
        assert drawing_problems(figure) == []
        return figure.legends[0]._ncols, figure.get_figwidth()

    assert drawn(9, "a label of some length") == (2, 9)
    assert drawn(2.5, "a label of some length") == (1, 2.5)
    columns, width = drawn(2.5, "a label that is much longer than its figure is wide")
    assert columns == 1
    assert width > 3


def test_colours_are_told_apart_by_markers_too():
    for styles in (plots.STYLES, plots.READING_STYLES, plots.BETWEEN_STYLES):
        markers = [style[1] for style in styles.values()]
        assert len(set(markers)) == len(markers)


def test_primary_prefers_the_edited_reasoning_in_place_and_the_generated_answer():
    records = records_of([chain_sample("hint", i) for i in range(2)], ["reprompt"])
    table = primary(table_of("edits", records).assign(unit="sentence"))
    assert set(table["framing"]) == {"reprompt"}
    assert set(table["reading"]) == {"generated"}
    assert primary(table.iloc[:0]).empty


def test_every_picture_has_its_numbers(made):
    drawn = pictures(made)
    assert {p.name for p in drawn} == NAMES
    for picture in drawn:
        assert picture.figure is not None
        assert len(picture.data) > 0
        assert picture.caption.endswith(".")


def test_no_picture_without_numbers():
    for picture in pictures(tables([])):
        assert picture.figure is None
        assert picture.absent.endswith(".")
        with pytest.raises(ValueError, match="was not drawn"):
            svg(picture)


def test_one_framing_and_reading_leave_nothing_to_compare():
    records = records_of([chain_sample("hint", i) for i in range(2)], ["prefix"], ["generated"])
    absent = {
        p.name: p.absent
        for p in pictures(tables(records, analysis=SlrcAnalysis(resamples=10)))
        if not p.figure
    }
    assert list(absent) == ["agreement", "contrasts"]
    assert "nothing to compare" in absent["agreement"]


def test_files_of_a_figure_that_is_no_longer_drawn_go(tmp_path):
    stale = tmp_path / "edits.png"
    stale.write_bytes(b"")
    (edits,) = (
        p
        for p in pictures(tables(RUN[:1], analysis=SlrcAnalysis(resamples=10)))
        if p.name == "edits"
    )
    assert edits.figure is None
    save(edits, tmp_path)
    assert not stale.exists()


def test_inline_svg_takes_its_ink_from_the_page(made):
    text = "".join(svg(p) for p in pictures(made))
    assert text.count("<svg") == len(NAMES)
    assert "#000000" not in text
    assert "<!--" not in text
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))


def test_names_are_text_whatever_they_hold():
    record = records_of([chain_sample("faithful", 1)])
    for r in record:
        r["model"] = "org/a$b_c$ <script>"
    with mpl.rc_context(STYLE):
        drawn = pictures(tables(record, analysis=SlrcAnalysis(resamples=10)))
    text = svg(drawn[0])
    assert "<script" not in text
