"""Charts can be read: numbers in coloured squares stand out."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from figure_fit import drawing_problems
from matplotlib.figure import Figure
from matplotlib.text import Text
from quick_figures import USERS_FONT

from faithscope.experiments.analysis.axes import LARGE, SMALL, TALLEST, WIDTHS, of_width
from faithscope.experiments.analysis.charts import Dot, dot_rows, field, panels
from faithscope.experiments.analysis.colours import AMOUNT, INK_ON_DARK, INK_ON_PALE, PLAIN, SIGN
from faithscope.experiments.analysis.picture import STYLE, Picture, save, svg


@pytest.mark.parametrize(
    ("limits", "stops", "values", "inks"),
    [
        ((0, 12), AMOUNT, [0.0, 0.8, 3.0, 12.0], [INK_ON_PALE] * 3 + [INK_ON_DARK]),
        ((0, 1), AMOUNT, [0.0, 0.4, 1.0], [INK_ON_PALE, INK_ON_PALE, INK_ON_DARK]),
        ((-1, 1), SIGN, [-1.0, 0.0, 1.0], [INK_ON_DARK, INK_ON_PALE, INK_ON_DARK]),
    ],
)
def test_a_number_stands_out_on_its_square_whatever_the_scale(limits, stops, values, inks) -> None:
    ax = Figure().add_subplot()
    field(
        ax, np.array([values]), ["a"], list(map(str, values)), limits=limits, stops=stops, text=str
    )
    assert [text.get_color() for text in ax.texts] == inks


def test_two_images_of_the_same_pixels_have_no_id_in_common() -> None:
    figure = Figure()
    for left in (0.0, 0.5):
        figure.add_axes((left, 0.0, 0.4, 0.8)).imshow(np.eye(2))
    drawn = svg(Picture("twice", "", "", pd.DataFrame(), figure))
    assert drawn.count("<image") == 2
    ids = re.findall(r'\bid="([^"]*)"', drawn)
    assert len(ids) == len(set(ids))


def test_letters_of_a_pdf_are_embedded_as_text_that_programs_can_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STYLE, "pdf.fonttype", USERS_FONT)
    figure = Figure()
    figure.text(0.5, 0.5, "Necessity χ κ r′")
    save(Picture("said", "", "", pd.DataFrame({"x": [1]}), figure), tmp_path)
    assert b"/FontFile2" in (tmp_path / "said.pdf").read_bytes()


NAMES = [
    "correct",
    "unfaithful.unfaithfulness of a label",
    "org/Model-32B-Instruct-2507" + "x" * 60,
]


@pytest.mark.parametrize("form", ["dot_rows", "panels"])
def test_titles_of_panels_are_folded_where_they_are_wider(form: str) -> None:
    rows = {f"detector.early_answering.{i}": f"detector.early_answering.{i} (org/M)" for i in "ab"}
    if form == "dot_rows":
        figure = dot_rows({name: [Dot(row, 0.5, PLAIN) for row in rows] for name in NAMES}, rows)
    else:
        figure = panels(NAMES, lambda ax, _: ax.plot([0, 1]), NAMES)
    assert figure is not None
    figure.draw_without_rendering()
    for ax, name in zip(figure.axes, NAMES, strict=True):
        assert ax.title.get_window_extent().width <= ax.get_window_extent().width + 1
        assert re.sub(r"\s", "", ax.get_title()) == name.replace(" ", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("form", ["dot_rows", "panels"])
def test_a_figure_has_the_width_and_letters_of_a_paper(name: str, form: str) -> None:
    rows = {f"m{i}": f"planted:model {i} · planted" for i in range(47)}
    with of_width(name), mpl.rc_context(STYLE):
        if form == "dot_rows":
            dots = [Dot(row, 1.0, PLAIN, n=i) for i, row in enumerate(rows)]
            figure = dot_rows({"left": dots, "right": dots}, rows, label="share", groups=[20, 27])
        else:
            draw = lambda ax, _: ax.plot([0, 1], label="a line")  # noqa: E731
            figure = panels(list(rows), draw, list(rows), labels=("x", "y"))
        assert figure is not None
        sheets = [figure, *figure.further]
        for sheet in sheets:
            assert sheet.get_figwidth() == WIDTHS[name]
            assert sheet.get_figheight() <= TALLEST
            assert drawing_problems(sheet) == []
            letters = [t for t in sheet.findobj(Text) if t.get_visible() and t.get_text().strip()]  # pyright: ignore
            assert {t.get_fontsize() for t in letters} <= {LARGE, SMALL}  # pyright: ignore
    assert len(sheets) > 1
    if form == "dot_rows":
        names = [t.get_text() for s in sheets for t in s.axes[0].get_yticklabels()]
        assert names == list(rows.values())
        assert max(len(s.axes[0].get_yticklabels()) for s in sheets) <= 20
        # the numbers of items stand once, since both columns have the same
        beside = [text.get_text() for s in sheets for text in s.axes[1].texts]
        assert [t for t in beside if t != "n"] == [str(i) for i in range(47)]
        assert name == "column" or not any(s.axes[0].texts for s in sheets)


def test_every_sheet_is_saved_and_shown_and_none_of_an_earlier_figure_stays(tmp_path: Path) -> None:
    rows = {i: str(i) for i in range(30)}
    figure = dot_rows({"": [Dot(row, 0.5, PLAIN) for row in rows]}, rows)
    picture = Picture("tall", "", "", pd.DataFrame({"x": [1]}), figure)
    (tmp_path / "tall-3.pdf").write_bytes(b"")
    (tmp_path / "taller.pdf").write_bytes(b"")
    save(picture, tmp_path)
    written = {"tall.csv", "tall.pdf", "tall.png", "tall-2.pdf", "tall-2.png", "taller.pdf"}
    assert {path.name for path in tmp_path.iterdir()} == written
    assert svg(picture).count("<svg") == 2
    ids = re.findall(r'\bid="([^"]*)"', svg(picture))
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("promise", "kept"),
    [
        ("Mean over items, with 95 % bootstrap intervals over chains. A", "Mean over items. A"),
        ("Flagged, with 95 % Wilson bands; others pale.", "Flagged; others pale."),
        ("They differ. 95 % Wilson intervals over pairs.", "They differ."),
        ("The share with its 95 % Wilson interval in black.", "The share."),
        ("Means over seeds, with 95 % intervals over seeds; pale", "Means over seeds; pale"),
    ],
)
def test_a_caption_promises_the_intervals_that_are_drawn(promise: str, kept: str) -> None:
    drawn = pd.DataFrame({"x": [0.5], "x_low": [0.4], "x_high": [0.6]})
    assert Picture("p", "", promise, drawn, None).said == promise
    none = Picture("p", "", promise, drawn.assign(x_low=np.nan), None).said
    assert none == f"{kept} No interval is drawn: there are too few items for one."


def test_ticks_are_written_as_numbers_are_elsewhere_and_steps_are_whole(tmp_path: Path) -> None:
    figure = Figure(layout="constrained")
    left, right, bars = figure.subplots(1, 3)
    left.plot([0, 1], [0, 6e-5])
    bars.barh([0, 1], [0.1, 0.3])
    bars.axhline(0.5)
    right.plot([0.0, 0.5, 1.0], [-1, 0, 1])
    drawn = svg(Picture("ticks", "", "", pd.DataFrame(), figure))
    assert all(x == round(x) for x in left.get_xticks())
    assert not all(x == round(x) for x in bars.get_xticks())
    said = re.findall(r">([^<>]+)</text>", drawn)
    assert {"0.00002", "−0.5", "0.5"} <= set(said)
    assert not {"1e−5", "0.0", "1.0"} & set(said)


def test_a_drawing_has_no_groups_that_say_nothing() -> None:
    figure = Figure()
    figure.add_subplot().plot([0, 1], marker="o")
    drawn = svg(Picture("bare", "", "", pd.DataFrame(), figure))
    assert "<g>" not in drawn
    assert drawn.count("<g ") == drawn.count("</g>")
    refers = re.findall(r'(?:href="#|url\(#)([^")]+)', drawn)
    assert refers
    assert all(f'id="{name}"' in drawn for name in refers)
