"""Charts can be read: numbers in coloured squares stand out."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from faithscope.experiments.analysis.axes import INK_ON_DARK, INK_ON_PALE
from faithscope.experiments.analysis.charts import field


@pytest.mark.parametrize(
    ("limits", "cmap", "values", "inks"),
    [
        ((0, 12), "Blues", [0.0, 0.8, 3.0, 12.0], [INK_ON_PALE] * 3 + [INK_ON_DARK]),
        ((0, 1), "Blues", [0.0, 0.4, 1.0], [INK_ON_PALE, INK_ON_PALE, INK_ON_DARK]),
        ((-1, 1), "RdBu", [-1.0, 0.0, 1.0], [INK_ON_DARK, INK_ON_PALE, INK_ON_DARK]),
    ],
)
def test_a_number_stands_out_on_its_square_whatever_the_scale(limits, cmap, values, inks) -> None:
    ax = Figure().add_subplot()
    field(ax, np.array([values]), ["a"], list(map(str, values)), limits=limits, cmap=cmap, text=str)
    assert [text.get_color() for text in ax.texts] == inks
