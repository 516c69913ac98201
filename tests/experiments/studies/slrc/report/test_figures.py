"""What the figures draw is what the tables say, and all of it can be read."""

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

from faithscope.experiments.analysis.axes import legend_above
from faithscope.experiments.analysis.picture import STYLE, Picture, save, svg
from faithscope.experiments.analysis.tidy import where
from faithscope.experiments.studies.slrc.figures import figures, maps
from faithscope.experiments.studies.slrc.figures.figures import pictures, position_table
from faithscope.experiments.studies.slrc.frames import tables_of
from faithscope.experiments.studies.slrc.measure_report import SlrcAnalysis
from faithscope.experiments.studies.slrc.words import primary

RUN = sample_run()
NAMES = {"edits", "forest", "position", "agreement", "contrasts", "by_task"}


@pytest.fixture(scope="module")
def of_run() -> dict[str, pd.DataFrame]:
    return tables_of(RUN, analysis=SlrcAnalysis(resamples=50))


def axes_of(picture: Picture) -> list[Axes]:
    assert picture.figure is not None
    return picture.figure.axes


def labels(ax: Axes) -> list[str]:
    return [tick.get_text() for tick in ax.get_yticklabels()]


def drawn(ax: Axes, style: tuple[str, str, str]) -> list[float]:
    """The x values of a series."""
    return [
        float(x)
        for line in ax.get_lines()
        if line.get_marker() == style[1] and to_hex(str(line.get_color())) == style[0].lower()
        for x in line.get_xdata()
    ]


def test_the_comparison_of_edits_tells_the_twins_apart(of_run):
    edits = where(of_run["edits"], model={FAITHFUL, HINT})
    (ax,) = axes_of(figures.edits_picture(edits))
    assert labels(ax) == ["planted:faithful · planted", "planted:hint · planted"]
    assert drawn(ax, figures.EDIT_STYLES["regenerate"]) == [1.0, 0.0]
    assert drawn(ax, figures.EDIT_STYLES["corrupt"]) == [pytest.approx(1 / 3), 0.0]


def test_the_forest_has_a_row_per_model_task_and_framing():
    table = table_of("slrc", RUN, 50)
    ax = axes_of(figures.forest_picture(table))[0]
    assert len(labels(ax)) == 6
    assert labels(ax)[0] == "planted:faithful · planted · prefix"
    generated = where(table, reading="generated", model=HINT)["necessity"].tolist()
    assert drawn(ax, figures.READING_STYLES["generated"])[2:4] == generated


def test_relative_positions_pool_traces_of_different_lengths():
    records = records_of(
        [chain_sample("faithful", i + n, n) for i in (0, 10, 20, 30) for n in (2, 4)]
    )
    table = where(
        position_table(table_of("edits_by_step", records).assign(unit="sentence")),
        edit="corrupt",
        framing="prefix",
        reading="generated",
    )
    # Steps 1 and 2 of two stand at .25 and .75; steps 1 to 4 of four at .125, .375, .625, .875.
    counts = dict(zip(table["position"].round(1), table["n_edits"], strict=True))
    assert counts == {0.1: 4, 0.3: 8, 0.7: 8, 0.9: 4}
    assert table["flip_rate"].tolist() == [0, 0, 0.5, 1]


def test_positions_draw_one_line_per_edit(of_run):
    by_step = where(of_run["edits_by_step"], model=FAITHFUL)
    (ax,) = axes_of(figures.position_picture(by_step))
    # planted models have no words for the remark of the control
    named = [style.label for edit, style in figures.EDIT_STYLES.items() if edit != "control"]
    assert [line.get_label() for line in ax.get_lines()] == named
    assert list(ax.get_lines()[1].get_ydata()) == [0, 0, 1]


def test_agreements_are_drawn_for_every_comparison():
    (ax,) = axes_of(figures.agreement_picture(table_of("agreement", RUN)))
    for style in maps.BETWEEN_STYLES.values():
        assert len(drawn(ax, style)) == 3
    assert drawn(ax, maps.BETWEEN_STYLES["prefix~reprompt in generated"]) == [1.0, 1.0, 1.0]


def test_contrasts_put_both_ways_of_measuring_beside_each_other(of_run):
    picture = maps.contrast_picture(of_run["slrc"])
    assert len(picture.data) == 3 * 4  # models with one task each, four comparisons
    between = where(picture.data, between="prefix~reprompt in scored")
    one = where(between, model=FAITHFUL).iloc[0]
    slrc = where(of_run["slrc"], model=FAITHFUL, reading="scored")
    across, up = (where(slrc, framing=f)["necessity"].iloc[0] for f in ("prefix", "reprompt"))
    assert (one["across"], one["up"], one["difference"]) == (across, up, up - across)
    style = maps.BETWEEN_STYLES["prefix~reprompt in scored"]
    assert drawn(axes_of(picture)[1], style) == between["across"].tolist()


def test_the_field_of_models_and_tasks_says_every_number_once(of_run):
    (ax,) = axes_of(maps.by_task_picture(of_run["slrc"]))
    assert labels(ax)[0] == "planted:faithful"
    shown = [text.get_text() for text in ax.texts]
    known = primary(of_run["slrc"])
    few = zip(known["necessity"], known["n"], strict=True)
    assert shown == [f"{v:.2f}, n {n}" for v, n in few]  # fewer than 20 items have no colour


@pytest.mark.parametrize("name", ["m", "org/a-model-of-a-very-long-name-Instruct-2512-bf16"])
def test_nothing_is_cut_off_where_there_is_one_panel(name: str) -> None:
    records = [r | {"model": name} for r in records_of([chain_sample("hint", i) for i in (1, 2)])]
    for picture in pictures(tables_of(records, analysis=SlrcAnalysis(resamples=10))):
        assert picture.figure is not None
        assert drawing_problems(picture.figure) == [], picture.name


def test_a_legend_has_the_columns_that_fit_and_widens_a_figure_of_less() -> None:
    def columns_and_width(inches: float, label: str) -> tuple[int, float]:
        figure = Figure(figsize=(inches, 2), layout="constrained")
        ax = figure.add_subplot()
        for i in range(4):
            ax.plot([0, 1], label=f"{label} {i}")
        legend_above(figure, ax)
        assert drawing_problems(figure) == []
        return figure.legends[0]._ncols, figure.get_figwidth()

    assert columns_and_width(9, "a label of some length") == (2, 9)
    assert columns_and_width(2.5, "a label of some length") == (1, 2.5)
    columns, width = columns_and_width(2.5, "a label that is much longer than its figure is wide")
    assert columns == 1
    assert width > 3


def test_primary_prefers_the_edited_reasoning_in_place_and_the_generated_answer():
    records = records_of([chain_sample("hint", i) for i in range(2)], ["reprompt"])
    table = primary(table_of("edits", records).assign(unit="sentence"))
    assert set(table["framing"]) == {"reprompt"}
    assert set(table["reading"]) == {"generated"}
    assert primary(table.iloc[:0]).empty


@pytest.mark.slow
def test_every_picture_has_its_numbers_and_takes_its_ink_from_the_page(of_run):
    of_all = pictures(of_run)
    assert {p.name for p in of_all} == NAMES
    for picture in of_all:
        assert len(picture.data) > 0
        assert picture.caption.endswith(".")
        assert picture.figure is not None
        assert drawing_problems(picture.figure) == [], picture.name
    text = "".join(map(svg, of_all))
    assert text.count("<svg") == len(NAMES)
    assert not re.search("<image|#000000|<!--", text)
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))


def test_no_picture_without_numbers():
    for picture in pictures(tables_of([])):
        assert picture.figure is None
        assert picture.absent.endswith(".")
        with pytest.raises(ValueError, match="was not drawn"):
            svg(picture)


def test_one_framing_and_reading_leave_nothing_to_compare(tmp_path):
    stale = tmp_path / "agreement.png"
    stale.write_bytes(b"")
    records = records_of([chain_sample("hint", i) for i in range(2)], ["prefix"], ["generated"])
    of_all = pictures(tables_of(records, analysis=SlrcAnalysis(resamples=10)))
    absent = {p.name: p for p in of_all if not p.figure}
    assert list(absent) == ["agreement", "contrasts"]
    assert "nothing to compare" in absent["agreement"].absent
    save(absent["agreement"], tmp_path)
    assert not stale.exists()


def test_names_are_text_whatever_they_hold():
    records = [
        r | {"model": "org/a$b_c$ <script>"} for r in records_of([chain_sample("faithful", 1)])
    ]
    with mpl.rc_context(STYLE):
        of_all = pictures(tables_of(records, analysis=SlrcAnalysis(resamples=10)))
    assert "<script" not in svg(of_all[0])
