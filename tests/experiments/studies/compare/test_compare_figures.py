"""Figures of a comparison: few measures, many, and with long names."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import pandas as pd
import pytest
from figure_fit import drawing_problems

from faithscope.experiments.analysis.comparison.figures import heat_map
from faithscope.experiments.analysis.picture import STYLE


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("measures", "length"), [(2, 5), (2, 90), (8, 140), (20, 60)])
def test_long_names_leave_room_for_squares(measures: int, length: int) -> None:
    names = [f"m{i:02} of a judge in a folder {'x' * length}"[:length] for i in range(measures)]
    agreement = pd.DataFrame(
        [(one, other, 0.5) for one, other in itertools.combinations(names, 2)],
        columns=["measure", "other", "spearman"],
    ).assign(n_settings=1)
    with mpl.rc_context(STYLE):
        figure = heat_map(agreement).figure
        assert figure is not None
        figure.draw_without_rendering()
    squares = figure.axes[0].get_window_extent().height / figure.dpi
    assert squares > 0.1 * measures
    assert drawing_problems(figure) == []
