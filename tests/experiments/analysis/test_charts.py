"""Charts can be read: numbers in coloured squares stand out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from quick_figures import USERS_FONT

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
