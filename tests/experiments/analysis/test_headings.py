"""A declared column heads the tables that people read, and its meaning stands below them."""

from __future__ import annotations

import pandas as pd

from faithscope.experiments.analysis.columns import Column, by_name
from faithscope.experiments.analysis.html import html_table
from faithscope.experiments.analysis.textual import to_csv, to_latex, to_markdown

COLUMNS = by_name([Column("tv", "total variation", "Half the distance | of two.", "nats")])
TABLE = pd.DataFrame({"n_items": [3], "tv": [0.5]})


def test_headings_and_meanings_are_the_same_in_markdown_latex_and_page() -> None:
    assert to_markdown(TABLE, COLUMNS) == (
        "| n items | total variation (nats) |\n| ---: | ---: |\n| 3 | 0.500 |\n"
        "\n- total variation (nats): Half the distance \\| of two.\n"
    )
    assert r"n items & total variation (nats) \\" in to_latex(TABLE, COLUMNS)
    page = html_table(TABLE, COLUMNS)
    assert list(page.heading) == ["n items", "total variation (nats)"]
    assert page.meanings == ["", "Half the distance | of two."]


def test_machines_and_paper_layouts_keep_the_names() -> None:
    assert to_csv(TABLE).startswith("n_items,tv\n")
    assert to_markdown(TABLE).startswith("| n_items | tv |\n")
