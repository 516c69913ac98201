"""Every paper that a study declares: its printed cells and its specification fit each other."""

from __future__ import annotations

import pytest

from faithscope.experiments import studies  # noqa: F401
from faithscope.experiments.analysis.published import problems
from faithscope.experiments.config.study import STUDIES

PAPERS = {paper.name: paper for study in STUDIES.values() for paper in study.papers()}


def test_the_four_papers_are_declared():
    assert list(PAPERS) == ["slrc", "faithcot", "c2faith", "rfeval"]


@pytest.mark.parametrize("name", PAPERS)
def test_cells_and_specification_fit_each_other(name):
    assert problems(PAPERS[name]) == []
