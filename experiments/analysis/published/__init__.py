"""Published cells of papers beside the numbers of one's own runs (`faithscope reproduce`).

A study declares a `Paper`: a file of the printed cells, and for each printed table a `Published`
that says which of our columns stands beside which printed heading. Reading the cells, finding our
rows, deviations of a run from what the paper states, and verdicts are the same for all papers.
"""

from faithscope.experiments.analysis.published.cells import Cell, read_cells
from faithscope.experiments.analysis.published.comparison import NumbersOfRun, beside
from faithscope.experiments.analysis.published.deviations import Deviation, deviations
from faithscope.experiments.analysis.published.paper import Ours, Paper, Published, Stated
from faithscope.experiments.analysis.published.problems import problems

__all__ = [
    "Cell",
    "Deviation",
    "NumbersOfRun",
    "Ours",
    "Paper",
    "Published",
    "Stated",
    "beside",
    "deviations",
    "problems",
    "read_cells",
]
