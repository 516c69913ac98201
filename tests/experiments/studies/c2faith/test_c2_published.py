"""C2-Faith's printed tables beside judgements that are made of the paper's own counts."""

from __future__ import annotations

import pandas as pd
import pytest
from c2_printed import printed_frames

from faithscope.experiments.analysis.published import NumbersOfRun, beside, problems, read_cells
from faithscope.experiments.analysis.published.comparison import (
    DOUBTFUL,
    NO_MEASURE,
    OUTSIDE,
    TOO_FEW,
    WITHIN,
    numbers_for,
)
from faithscope.experiments.studies.c2faith.paper import PAPER
from faithscope.experiments.studies.c2faith.tables.every_table import tables

CELLS = read_cells(PAPER.cells)
NAMES = [table.name for table in PAPER.tables]


@pytest.fixture(scope="module")
def made() -> dict[str, pd.DataFrame]:
    return tables(printed_frames(), resamples=200)


def compared(name: str, made: dict[str, pd.DataFrame]) -> pd.DataFrame:
    published = PAPER.table(name)
    numbers = numbers_for(published, made)
    assert numbers is not None
    lines = beside(PAPER, published, CELLS, [NumbersOfRun("stored", numbers)])
    # rows of judges that the paper's table does not have follow without a verdict
    return lines[lines["verdict"].notna()]


def test_every_printed_heading_and_name_has_its_place() -> None:
    assert problems(PAPER) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_own_counts_give_every_printed_number(
    name: str, made: dict[str, pd.DataFrame]
) -> None:
    lines = compared(name, made)
    assert len(lines) == sum(cell.table == name for cell in CELLS)
    others = lines[~lines["reason"].isin([NO_MEASURE, DOUBTFUL])]
    # made of the paper's means, features do not vary, which gives no interval
    flat = others["reason"] == TOO_FEW
    assert set(others["verdict"][~flat]) <= {WITHIN}
    assert not flat.any() or name == "table5"
    for line in others.to_dict("records"):
        if line["unit"] != "word":
            cell = next(
                c
                for c in CELLS
                if (c.table, c.column) == (name, line["column"])
                and all(line[key] == value for key, value in c.keys.items())
            )
            # the paper takes differences of numbers that it has rounded
            off = 1.001 * 10**-cell.decimals if cell.unit == "pp" else 1e-9
            assert round(line["ours"], cell.decimals) == pytest.approx(cell.value, abs=off), line


def test_what_is_not_compared_says_why(made: dict[str, pd.DataFrame]) -> None:
    left = pd.concat([compared(name, made) for name in NAMES])
    left = left[(left["verdict"] != WITHIN) & (left["reason"] != TOO_FEW)]
    assert left.groupby("column").size().to_dict() == {
        "95% CI, lower": 3,
        "95% CI, upper": 3,
        "p": 1,
        "rank": 3,
    }
    ranks = left[left["column"] == "rank"]
    assert set(ranks["reason"]) == {DOUBTFUL}
    # by the mean of its ranks GPT-4.1 is second, and the paper puts it third
    assert dict(zip(ranks["judge"], ranks["ours"], strict=True)) == {
        "GPT-4.1": "2nd",
        "DS-V3.1": "3rd",
        "o4-mini": "1st",
    }


@pytest.mark.slow
def test_another_detection_rate_is_outside() -> None:
    fewer = tables(printed_frames(gpt_4_1=320), resamples=200)
    lines = compared("table1", fewer).set_index(["judge", "column"])
    assert lines.loc[("GPT-4.1", "Detect"), "verdict"] == OUTSIDE
    assert lines.loc[("GPT-4.1", "false acceptance"), "verdict"] == OUTSIDE
    assert lines.loc[("GPT-4.1", "FPR"), "verdict"] == WITHIN
    assert lines.loc[("o4-mini", "Detect"), "verdict"] == WITHIN
    assert lines.loc[("GPT-4.1", "FPR"), "n"] == 449
